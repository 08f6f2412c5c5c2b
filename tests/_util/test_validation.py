"""Arguments that do not fit a signature, and data over a limit, are refused in one line."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resolvent as rs
from resolvent._util.validation import bytes_text, check_arguments, limit, quoted
from resolvent.cli import main
from resolvent.machines.io.json import encode
from resolvent.traces.io import formats
from resolvent.traces.scan.storage import StoredFiles
from resolvent.worlds import House
from resolvent.worlds.grid_world import random_grid_world
from resolvent.worlds.random_world import load_grid_world, save_grid_world


def call(
    number: float = 1,
    count: int | None = None,
    way: Literal["a", "b"] = "a",
    path: str | Path = "x",
    names: Iterable[str] = (),
    both: tuple[float, float] | None = None,
    by_name: Mapping[str, Any] | None = None,
    function: Callable[[], object] | None = None,
    anything: Any = None,
    quoted: "rs.Plan | None" = None,
) -> None:
    check_arguments(call, locals())


@pytest.mark.parametrize(
    "given",
    [
        {"number": np.float32(2), "count": np.int64(3)},
        {"number": 10**300, "path": Path("x"), "names": ["a", "b"]},
        {"names": (name for name in "ab"), "both": [1, 2]},
        {"by_name": {"a": 1}, "function": len, "anything": object(), "quoted": 3},
    ],
)
def test_what_the_signature_says_is_taken(given):
    call(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"number": "1"}, "number='1': give a number"),
        ({"number": 10**400}, "give a number"),
        ({"count": 1.5}, "count=1.5: give a whole number or None"),
        ({"way": "c"}, "way='c': give 'a' or 'b'"),
        ({"way": np.array([1, 2])}, "give 'a' or 'b'"),
        ({"path": 3}, "path=3: give a text or a path"),
        ({"path": "a\0b"}, "give a text or a path"),
        ({"names": 3}, "names=3: give a list of a text"),
        ({"names": ["a", 3]}, "give a list of a text"),
        ({"names": np.array(3)}, "give a list of a text"),
        ({"both": (1, 2, 3)}, "give a tuple of a number and a number or None"),
        ({"by_name": [1]}, "by_name=[1]: give a mapping"),
        ({"function": 3}, "function=3"),
    ],
)
def test_anything_else_is_refused_in_one_line(given, message):
    with pytest.raises(rs.OptionError) as refused:
        call(**given)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_value_that_cannot_write_itself_is_named_by_its_type():
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    assert quoted(nested) == "a list"


def test_public_calls_refuse_numbers_that_are_texts():
    traces = rs.collect("resolvent/House-v0", episodes=3, seed=0)
    with pytest.raises(rs.OptionError, match="gamma='high': give a number"):
        rs.plan(rs.infer(traces), traces, gamma="high")
    with pytest.raises(rs.OptionError, match="episodes='many'"):
        rs.collect("resolvent/House-v0", episodes="many")


def test_every_error_is_one_line_however_its_names_look():
    assert str(rs.TraceError("no column a\nb\x1b[31m")) == "no column a\\nb\\x1b[31m"
    assert len(str(rs.errors.ModelError("x" * 10**6))) <= 4000


# --- Limits ---

LINE = b'{"observations":[0,1],"labels":[null,"key"],"actions":[0],"rewards":[0]}\n'
ZEROS = b'{"observations":[' + b"0," * (1 << 20)


def packed(kind, data):
    if kind == "gz":
        return gzip.compress(data)
    return pa.Codec("zstd", compression_level=19).compress(data, asbytes=True)


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_line_that_never_ends_is_not_read_to_its_end(tmp_path, kind):
    bomb = tmp_path / f"bomb.jsonl.{kind}"
    bomb.write_bytes(LINE_AND_BOMB[kind])
    with rs.config.Limits(line_bytes=1 << 20), pytest.raises(rs.errors.TooLarge) as caught:
        rs.read_traces(bomb)
    message = str(caught.value)
    assert f"{bomb}, line 2 is longer than the limit of 1 MiB" in message
    assert (
        "RESOLVENT_MAX_LINE_BYTES=4194304 or use resolvent.config.Limits(line_bytes=4194304)"
        in message
    )


LINE_AND_BOMB = {kind: packed(kind, LINE + ZEROS) for kind in ("gz", "zst")}


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("line", [LINE, b" " * 70 + b"\n"], ids=["traces", "blank"])
def test_a_small_file_may_not_hold_very_much(tmp_path, kind, line):
    bomb = tmp_path / f"bomb.jsonl.{kind}"
    bomb.write_bytes(packed(kind, LINE + line * 40_000))
    with (
        rs.config.Limits(decompressed_bytes=1 << 20),
        pytest.raises(rs.errors.TooLarge, match="200 times"),
    ):
        rs.read_traces(bomb)


def test_a_large_file_may_hold_200_times_its_size(tmp_path):
    rng = np.random.default_rng(0)
    words = [f'{{"observations":[{a},{b}],"labels":[[],[]],"actions":[{c}]}}\n'
             for a, b, c in rng.integers(0, 10, (4000, 3)).tolist()]  # fmt: skip
    honest = tmp_path / "honest.jsonl.zst"
    honest.write_bytes(packed("zst", "".join(words).encode()))
    with rs.config.Limits(decompressed_bytes=1):
        assert len(rs.read_traces(honest)) == 4000


def test_a_small_parquet_file_may_not_have_very_many_rows(tmp_path):
    rows = 1 << 20
    path = tmp_path / "rows.parquet"
    same = np.zeros(rows, np.int8)
    names = ("episode", "step", "observation", "action", "label")
    pq.write_table(pa.table(dict.fromkeys(names, same)), path)
    for read in (
        rs.read_traces,
        lambda one: rs.read_table(one, episode="episode", observation="action"),
    ):
        with (
            rs.config.Limits(decompressed_bytes=1 << 20),
            pytest.raises(rs.errors.TooLarge, match="1,048,576 rows"),
        ):
            read(path)


def test_a_small_csv_file_may_not_hold_very_much(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"e,a\n" + b"1,1\n" * 1_000_000))
    with (
        rs.config.Limits(decompressed_bytes=1 << 20),
        pytest.raises(rs.errors.TooLarge, match=r"rows\.csv\.gz holds"),
    ):
        rs.read_table(path, episode="e", observation="a")


def test_labels_are_counted_while_a_file_is_read(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text(
        "".join(LINE.decode().replace("key", f"key {i}") for i in range(6)) + "not JSON"
    )
    with (
        rs.config.Limits(labels=5),
        pytest.raises(rs.errors.TooLarge, match="6 labels are more than the limit"),
    ):
        rs.read_traces(path)


def test_a_small_model_may_not_ask_for_a_large_table(tmp_path):
    content = json.loads(encode(House().machines()))
    tables = content["machines"][0]["tables"]
    tables["labels"] = [[f"{label}"] for label in range(2000)]
    tables["states"] = 2000
    tables["transitions"] = [[state, 0, state + 1] for state in range(1999)]
    path = tmp_path / "large.json"
    path.write_text(json.dumps(content))
    with rs.config.Limits(table_bytes=1 << 20), pytest.raises(rs.errors.TooLarge) as caught:
        rs.load(path)
    assert "2,000 by 2,000, take 45.8 MiB" in str(caught.value)
    assert "damaged" not in str(caught.value)
    with rs.config.Limits(labels=1999), pytest.raises(rs.errors.TooLarge, match="2,000 labels"):
        rs.load(path)


def test_a_small_world_may_not_ask_for_large_tables(tmp_path):
    path = tmp_path / "world.json"
    save_grid_world(random_grid_world(0, size=9, tm_states=3), path)
    content = json.loads(path.read_text())
    content["environment"]["size"] = 200
    content["transition_automaton"]["states_count"] = 60
    path.write_text(json.dumps(content))
    world = load_grid_world(path)
    with (
        rs.config.Limits(table_bytes=1 << 28),
        pytest.raises(rs.errors.TooLarge, match="the world's steps"),
    ):
        _ = world.tables


def test_machines_and_models_may_not_ask_for_large_tables():
    traces = rs.collect(House(), episodes=100, seed=0)
    with (
        rs.config.Limits(table_bytes=20),
        pytest.raises(rs.errors.TooLarge, match="a machine's states by labels"),
    ):
        rs.infer(traces)
    machines = rs.infer(traces).machines
    with (
        rs.config.Limits(table_bytes=20),
        pytest.raises(rs.errors.TooLarge, match="augmented states by actions"),
    ):
        rs.plan(machines, traces)


def test_memory_that_runs_out_is_no_damage(tmp_path, monkeypatch, capsys):
    house = rs.collect(House(), episodes=5, seed=0)
    path = tmp_path / "house.parquet"
    house.save(path)

    def greedy(*_):
        raise pa.ArrowMemoryError("malloc of size 4611686018427387904 failed")

    monkeypatch.setattr(StoredFiles, "read", greedy)
    with pytest.raises(
        rs.errors.OutOfMemory, match=r"memory ran out while .*house\.parquet was read"
    ):
        rs.read_traces(path)
    assert main(["infer", str(path)]) == 2
    assert "memory ran out" in capsys.readouterr().err

    monkeypatch.setattr(formats, "_read", lambda *_: bytearray(1 << 62))
    with pytest.raises(rs.errors.OutOfMemory):
        rs.read_traces(path)
    monkeypatch.setattr("resolvent.inference.infer._source", lambda *_: bytearray(1 << 62))
    with pytest.raises(rs.errors.OutOfMemory, match="machines were inferred"):
        rs.infer(house)


def test_commands_say_so_when_memory_runs_out_anywhere(tmp_path, monkeypatch, capsys):
    rs.collect(House(), episodes=5, seed=0).save(path := tmp_path / "house.jsonl")
    monkeypatch.setattr(
        "resolvent.cli.commands.diagnose.findings_in", lambda *_, **__: bytearray(1 << 62)
    )
    assert main(["diagnose", str(path)]) == 2
    assert capsys.readouterr().err.startswith("resolvent: error: memory ran out")


def test_limits_come_from_the_innermost_with_then_the_environment(monkeypatch):
    usual = limit("labels")
    monkeypatch.setenv("RESOLVENT_MAX_LABELS", "7")
    monkeypatch.setenv("RESOLVENT_MAX_TABLE_BYTES", "3g")
    assert (limit("labels"), limit("table_bytes")) == (7, 3 << 30)
    with rs.config.Limits(labels=9), rs.config.Limits(line_bytes=5):
        assert (limit("labels"), limit("line_bytes"), limit("table_bytes")) == (9, 5, 3 << 30)
        with rs.config.Limits(labels=1):
            assert limit("labels") == 1
        assert limit("labels") == 9
    monkeypatch.delenv("RESOLVENT_MAX_LABELS")
    assert limit("labels") == usual


@pytest.mark.parametrize("text", ["", "many", "-5", "0", "1.5", "G", "5X", "²", "9" * 30])
def test_what_is_no_limit_is_refused(monkeypatch, text):
    monkeypatch.setenv("RESOLVENT_MAX_LABELS", text)
    with pytest.raises(rs.OptionError, match="RESOLVENT_MAX_LABELS="):
        limit("labels")


@pytest.mark.parametrize("number", [0, -1, 2.0, True, "5"])
def test_what_is_no_number_is_refused(number):
    with pytest.raises(rs.OptionError, match="labels="):
        rs.config.Limits(labels=number)


def test_bytes_have_a_suitable_unit():
    texts = [bytes_text(number) for number in (300, 2 << 30, 3 << 19)]
    assert texts == ["300 bytes", "2 GiB", "1.5 MiB"]
