"""Globs, partitions and large files on the command line."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_outcome import Run

import resolvent as rs
from resolvent.cli import inputs
from resolvent.traces.scan import opening

COLUMNS = ("--episode", "run", "--input", "event", "--output", "answer")


def log(runs: range) -> pa.Table:
    """Runs in which every second push opens: the last of it in some file or other."""
    rows = [
        (run, event, "open" if event == "push" and step % 2 else "ok")
        for run in runs
        for step, event in enumerate(("push",) * (2 + run % 5))
    ]
    return pa.table(dict(zip(("run", "event", "answer"), zip(*rows, strict=True), strict=True)))


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """A partitioned data set, in which each day counts its own runs."""
    for day in range(3):
        folder = tmp_path / "logs" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(log(range(20)), folder / "part-0.parquet", row_group_size=7)
    return tmp_path / "logs"


def states(run: Run, *arguments: str | Path) -> tuple[int, int]:
    figures = run("infer", *arguments, "--json").json
    return figures["traces"], figures["states"]["answer"]


def test_a_glob_in_quotes(run: Run, days: Path) -> None:
    assert states(run, f"{days}/day=1/*.parquet", *COLUMNS) == (20, 2)
    assert states(run, f"{days}/**/*.parquet", "--episode", "day", *COLUMNS) == (60, 2)
    message = run("infer", f"{days}/*.txt", *COLUMNS).error
    assert message.startswith(f"nothing matches {days}/*.txt: check the pattern")


def test_keys_of_folders_tell_episodes_apart(run: Run, days: Path, tmp_path: Path) -> None:
    machines = tmp_path / "machines.json"
    columns = ("--episode", "day", *COLUMNS)
    assert run("infer", days, *columns, "-o", machines).code == 0
    outcome = run("check", machines, days, *columns, "--json")
    assert (outcome.code, outcome.json["traces"]) == (0, 60)
    assert "60 traces" in run("diagnose", days, *columns).out


@pytest.fixture
def pieces_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of pieces that are read one by one."""
    numbers: list[int] = []
    plain = rs.TraceDataset.read

    def counted(self: rs.TraceDataset, number: int) -> rs.TraceSet:
        numbers.append(number)
        return plain(self, number)

    monkeypatch.setattr(rs.TraceDataset, "read", counted)
    return numbers


def test_the_same_machines_where_all_is_large(
    run: Run, days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces_read: list[int]
) -> None:
    columns = ("--episode", "day", *COLUMNS)
    whole, scanned = tmp_path / "whole.json", tmp_path / "scanned.json"
    assert run("infer", days, *columns, "-o", whole).code == 0
    monkeypatch.setattr(inputs, "REFINE_ABOVE_STEPS", 10)
    monkeypatch.setattr(opening, "SHARD_ROWS", 10)
    assert run("infer", days, *columns, "-o", scanned).code == 0
    assert pieces_read
    assert rs.load(scanned) == rs.load(whole)


def test_a_large_file_is_gone_through_in_pieces(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces_read: list[int]
) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(log(range(200)), path, row_group_size=50)
    small = run("infer", path, *COLUMNS, "--json").json
    assert not pieces_read
    for name in ("FILE_ROWS", "REFINE_ABOVE_STEPS"):
        monkeypatch.setattr(inputs, name, 100)
    monkeypatch.setattr(opening, "SHARD_ROWS", 100)
    large = run("infer", path, *COLUMNS, "--json").json
    assert len(set(pieces_read)) > 1
    assert large["held_out_skipped"] == small["held_out_skipped"]
    assert large["states"] == small["states"] == {"answer": 2}
    assert large["traces"] == small["traces"] == 200


def test_what_a_table_lacks_is_said_while_it_is_scanned(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        rows = {"run": [number] * 3, "see": ["a", "b", "a"], "do": ["go"] * 3}
        pq.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    monkeypatch.setattr(inputs, "REFINE_ABOVE_STEPS", 1)
    columns = ("--episode", "run", "--observation", "see", "--action", "do")
    outcome = run("infer", tmp_path, *columns)
    assert outcome.code == 0
    assert outcome.err.count("resolvent: warning: ") == 1
    # Two threads read them, and either may be the first.
    assert re.search(r"/[01]\.parquet: the last row is a step", outcome.err)


def test_no_file_of_a_glob_is_written_over(run: Run, days: Path) -> None:
    target = days / "day=1" / "part-0.parquet"
    for place in (f"{days}/day=1/*.parquet", str(days)):
        message = run("infer", place, *COLUMNS, "-o", target).error
        assert "it would replace what is read" in message


def test_who_has_nothing_to_do_is_told(run: Run, days: Path, tmp_path: Path) -> None:
    arguments = ("infer", days, "--episode", "day", *COLUMNS)
    outcome = run(*arguments, "--on", "ray", "--cache-dir", tmp_path / "kept")
    assert outcome.code == 0
    assert outcome.err == (
        "resolvent: note: 240 steps were read into memory; not used: "
        f"--on ray, --cache-dir {tmp_path / 'kept'}\n"
    )
    assert run(*arguments).err == ""


def test_damaged_files_are_left_out_of_a_check(run: Run, days: Path, tmp_path: Path) -> None:
    machines = tmp_path / "machines.json"
    columns = ("--episode", "day", *COLUMNS)
    assert run("infer", days, *columns, "-o", machines).code == 0
    (days / "day=1" / "part-0.parquet").write_bytes(b"PAR1 and no more")
    assert "day=1/part-0.parquet" in run("check", machines, days, *columns).error
    outcome = run("check", machines, days, *columns, "--damaged", "skip", "--json")
    assert (outcome.code, outcome.json["traces"]) == (0, 40)
    assert outcome.err.startswith("resolvent: warning: skipped, since files are damaged: 1 shard")
