"""Files that are not what a command wants, and files with odd names: one line each."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_outcome import Run

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
ODD = {
    "not UTF-8": b'{"format": "\xff\xfe"}',
    "nested too deep": DEEP,
    "a long field": b"[" * 200_000,
    "another format": b'{"format": "resolvent-plan-of-tomorrow", "version": 1}',
    "a huge number": b'{"format": "resolvent-policy", "version": 1' + b"0" * 400 + b"}",
    "no JSON": b"nothing",
    "empty": b"",
}
POLICY = (
    '{"format":"resolvent-policy","version":1,"gamma":%s,"engine":"native","first_action":0,'
    '"situations":["a"],"q":[[%s]],"returns":[1.0],"discounted_returns":[1.0],"steps":[%s],'
    '"epsilons":[0.1],"evaluations":[]}'
)


@pytest.mark.parametrize("option", ["--policy", "--curve"])
@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_a_policy_or_curve_that_is_none(
    run: Run, house: Path, machines: Path, tmp_path: Path, option: str, content: bytes
) -> None:
    odd = tmp_path / "odd.json"
    odd.write_bytes(content)
    outcome = run("report", machines, house, option, odd, "-o", tmp_path / "page.html")
    assert outcome.code == 2
    assert outcome.error.startswith(str(odd))
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "numbers",
    [
        ("1.5", "0.5", "1"),
        ("0.9", "1e999", "1"),
        ("0.9", "0.5", "9" * 30),
        ("0.9", "0.5", "-1"),
    ],
)
def test_a_policy_whose_numbers_are_out_of_range(
    run: Run, house: Path, machines: Path, tmp_path: Path, numbers: tuple[str, ...]
) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text(POLICY % numbers)
    outcome = run("report", machines, house, "--policy", odd, "-o", tmp_path / "page.html")
    assert outcome.code == 2
    assert outcome.error.startswith(f"{odd}: not a policy that Resolvent wrote: ")


@pytest.mark.parametrize("option", ["--policy", "--curve"])
def test_a_folder_where_a_file_is_wanted(
    run: Run, house: Path, machines: Path, tmp_path: Path, option: str
) -> None:
    outcome = run("report", machines, house, option, tmp_path, "-o", tmp_path / "page.html")
    assert (outcome.code, outcome.error) == (2, f"{tmp_path} cannot be read: is a directory\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("infer", "TRACES", "-o", "LOOP"),
        ("report", "MACHINES", "TRACES", "-o", "LOOP"),
        ("collect", "resolvent/House-v0", "--format", "jsonl", "-o", "LOOP"),
        ("solve", "resolvent/House-v0", "-o", "LOOP"),
        ("reproduce", "ablation", "--quick", "-o", "LOOP"),
    ],
)
def test_links_that_lead_in_a_circle(
    run: Run, house: Path, machines: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("other")
    (tmp_path / "other").symlink_to("loop")
    named = {"TRACES": house, "MACHINES": machines, "LOOP": loop}
    outcome = run(*(named.get(word, word) for word in arguments))
    assert outcome.code == 2
    assert outcome.error.startswith(f"cannot write {loop}: links lead from it back to it")


def test_a_link_into_a_folder_that_is_not_there(run: Run, house: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("nowhere/machines.json")
    outcome = run("infer", house, "-o", link)
    assert outcome.code == 2
    assert f"the folder {tmp_path / 'nowhere'} does not exist; make it first" in outcome.error


def test_names_do_nothing_to_a_terminal(run: Run, house: Path, tmp_path: Path) -> None:
    odd = tmp_path / "red\x1b[31m\nline.jsonl"
    odd.write_bytes(house.read_bytes())
    target = tmp_path / "machines\x1b[2J.json"
    outcome = run("infer", odd, "-o", target)
    assert outcome.code == 0
    assert target.exists()
    assert "\x1b" not in outcome.out + outcome.err
    assert r"red\x1b[31m\nline.jsonl: 200 traces" in outcome.out
    assert rf"wrote {tmp_path}/machines\x1b[2J.json" in outcome.out
    assert rf"resolvent show $'{tmp_path}/machines\x1b[2J.json'" in outcome.out
    missing = run("show", tmp_path / "gone\x1b[31m.json")
    assert "\x1b" not in missing.err


def two_rows(**columns: pa.Array) -> pa.Table:
    rows = {
        "episode": pa.array([0, 0]),
        "step": pa.array([0, 1]),
        "observation": pa.array(["hall", "attic"]),
        "label": pa.array(["key", ""]),
        "action": pa.array(["up", None]),
    }
    return pa.table(rows | columns)


def test_texts_as_views(run: Run, tmp_path: Path) -> None:
    views = {
        "observation": pa.array(["hall", "attic"], pa.string_view()),
        "label": pa.array([["key"], []], pa.list_(pa.string_view())),
        "action": pa.array(["up", None], pa.string_view()),
    }
    pq.write_table(two_rows(**views), tmp_path / "views.parquet")
    pq.write_table(two_rows(label=pa.array([["key"], []])), tmp_path / "texts.parquet")
    for place in ("{}", "{}*"):  # read whole, and scanned
        made = []
        for name in ("views.parquet", "texts.parquet"):
            out = tmp_path / f"{name}.json"
            assert run("infer", place.format(tmp_path / name), "-o", out).code == 0
            made.append(out.read_bytes())
            out.unlink()
        assert made[0] == made[1]


@pytest.mark.parametrize("place", ["{}", "{}*"])
@pytest.mark.parametrize("named", [(), ("--episode", "episode", "--label", "label")])
def test_columns_of_types_that_nothing_is_made_of(
    run: Run, tmp_path: Path, place: str, named: tuple[str, ...]
) -> None:
    path = tmp_path / "odd.parquet"
    pairs = pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64()))
    pq.write_table(two_rows(label=pairs), path)
    more = (*named, "--observation", "observation", "--action", "action") if named else ()
    outcome = run("infer", place.format(path), *more)
    assert outcome.code == 2
    assert outcome.error.startswith(f"{path}: has a column of a type that is not read (Map type")


@pytest.mark.parametrize("place", ["{}", "{}*"])
def test_steps_out_of_range(run: Run, tmp_path: Path, place: str) -> None:
    path = tmp_path / "odd.parquet"
    pq.write_table(two_rows(step=pa.array([0, 2**64 - 1], pa.uint64())), path)
    error = run("infer", place.format(path)).error
    assert error.startswith(f"{path}, row 1: step 18446744073709551615 of episode 0, not the")


def test_a_column_that_is_there_twice(run: Run, tmp_path: Path) -> None:
    table = two_rows().append_column("observation", pa.array(["x", "y"]))
    pq.write_table(table, tmp_path / "twice.parquet")
    for place in (tmp_path / "twice.parquet", tmp_path, f"{tmp_path}/*.parquet"):
        assert "several columns `observation`" in run("infer", place).error


@pytest.mark.parametrize(("digits", "code"), [(400, 0), (5_000, 2)])
def test_long_integers(run: Run, tmp_path: Path, digits: int, code: int) -> None:
    number = "1" * digits
    path = tmp_path / "long.jsonl"
    path.write_text(
        f'{{"observations":[{number},2],"labels":[[],[]],"actions":["up"],"rewards":[1]}}\n'
    )
    outcome = run("infer", path, "-o", tmp_path / "machines.json")
    assert outcome.code == code, outcome.err
    if code == 0:
        assert number in run("show", tmp_path / "machines.json", "--json").out
    else:
        assert "step 0: the observation: integer value out of range" in outcome.error


def test_hidden_files_of_a_folder_are_not_read(run: Run, house: Path, tmp_path: Path) -> None:
    assert run("convert", house, tmp_path / "a.parquet").code == 0
    (tmp_path / ".b.parquet.1a2b3c4d.part").write_bytes(b"PAR1 half")
    (tmp_path / ".c.parquet").write_bytes(b"nothing")
    for place in (tmp_path, f"{tmp_path}/*.parquet"):
        assert run("infer", place, "--json").json["traces"] == 200
