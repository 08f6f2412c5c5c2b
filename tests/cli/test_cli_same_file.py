"""No command writes over what it reads."""

import inspect
import shutil
from pathlib import Path

import pytest
from cli_outcome import Run

from resolvent.cli import COMMANDS
from resolvent.cli.flags import function_of

LOG = "given,answered\ncoin,tea\ncoin,tea\n"
COLUMNS = ("--input", "given", "--output", "answered")


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def here(tmp_path: Path, house: Path, machines: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with traces, machines, a log, a curve and links to two of them."""
    shutil.copy(house, tmp_path / "t.jsonl")
    shutil.copy(machines, tmp_path / "m.json")
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "curve.csv").write_text("episode,return\n0,1\n")
    (tmp_path / "link.jsonl").symlink_to("t.jsonl")
    (tmp_path / "link.json").symlink_to("m.json")
    (tmp_path / "hard.jsonl").hardlink_to(tmp_path / "t.jsonl")
    (tmp_path / "to-new.json").symlink_to("new.json")
    (tmp_path / "to-new.svg").symlink_to("new.json")
    (tmp_path / "one.json").write_text("old")
    (tmp_path / "hard.svg").hardlink_to(tmp_path / "one.json")
    (tmp_path / "here").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("infer", "t.jsonl", "-o", "t.jsonl"),
        ("infer", "t.jsonl", "-o", "./t.jsonl"),
        ("infer", "t.jsonl", "-o", "link.jsonl"),
        ("infer", "link.jsonl", "--output", "t.jsonl"),
        ("infer", "t.jsonl", "-o", "hard.jsonl"),
        ("infer", "t.jsonl", "-o", "here/t.jsonl"),
        ("plan", "m.json", "t.jsonl", "-o", "here/link.json"),
        ("infer", "log.csv", *COLUMNS, "-o", "log.csv"),
        ("report", "m.json", "t.jsonl", "-o", "m.json"),
        ("report", "m.json", "t.jsonl", "-o", "t.jsonl"),
        ("report", "m.json", "t.jsonl", "--curve", "curve.csv", "-o", "curve.csv"),
        ("report", "m.json", "t.jsonl", "--policy", "m.json", "-o", "link.json"),
        ("plan", "m.json", "t.jsonl", "-o", "m.json"),
        ("plan", "m.json", "t.jsonl", "-o", "t.jsonl"),
        ("train", "resolvent/House-v0", "--machines", "m.json", "-o", "m.json"),
        ("train", "resolvent/House-v0", "--machines", "m.json", "--curve", "link.json"),
        ("train", "resolvent/House-v0", "--traces", "t.jsonl", "--picture", "t.jsonl"),
        ("convert", "t.jsonl", "t.jsonl"),
        ("convert", "link.jsonl", "t.jsonl"),
        ("show", "m.json", "-o", "m.json"),
        ("show", "m.json", "--format", "reward-machine", "--traces", "t.jsonl", "-o", "t.jsonl"),
    ],
)
def test_an_output_that_is_an_input_is_refused(
    run: Run, here: Path, arguments: tuple[str, ...]
) -> None:
    before = contents(here)
    outcome = run(*arguments)
    assert outcome.code == 2
    target = Path(arguments[-1])
    assert outcome.error.startswith(f"cannot write {target}: it would replace what is read from ")
    assert outcome.error.endswith("; name another file\n")
    assert contents(here) == before


@pytest.mark.parametrize(
    ("curve", "other"),
    [
        ("new.json", ("-o", "new.json")),
        ("new.json", ("-o", "here/new.json")),
        ("new.json", ("-o", "to-new.json")),
        ("new.json", ("--picture", "to-new.svg")),
        ("one.json", ("--picture", "hard.svg")),
    ],
)
def test_two_outputs_that_are_one_file_are_refused(
    run: Run, here: Path, curve: str, other: tuple[str, ...]
) -> None:
    before = contents(here)
    outcome = run("train", "resolvent/House-v0", "-n", "5", "--curve", curve, *other)
    assert outcome.code == 2
    assert outcome.error.startswith("cannot write two things to ")
    assert outcome.error.endswith(": give each a file of its own\n")
    assert contents(here) == before


def test_every_command_that_writes_a_file_is_in_this_test() -> None:
    (table,) = (
        mark.args[1]
        for mark in test_an_output_that_is_an_input_is_refused.pytestmark  # type: ignore[attr-defined]
    )
    options = {name: inspect.signature(function_of(name)).parameters for name in COMMANDS}
    writes = {name for name, taken in options.items() if {"output", "target"} & set(taken)}
    # These write to a folder of their own or read no file; what they refuse is tested beside them.
    assert writes - {"collect", "solve", "reproduce"} == {arguments[0] for arguments in table}


def test_a_file_of_a_folder_that_is_read_is_refused(run: Run, here: Path) -> None:
    folder = here / "many"
    folder.mkdir()
    assert run("convert", "t.jsonl", folder / "a.parquet").code == 0
    before = (folder / "a.parquet").read_bytes()
    assert "would replace what is read from" in run("convert", folder, folder / "a.parquet").error
    assert (folder / "a.parquet").read_bytes() == before
    assert run("infer", folder, "-o", folder / "machines.json").code == 0


def test_another_file_is_written_over(run: Run, here: Path) -> None:
    (here / "old.json").write_text("old")
    assert run("infer", "t.jsonl", "-o", "old.json").code == 0
    assert (here / "old.json").read_bytes() == (here / "m.json").read_bytes()
