"""No command writes over what it reads."""

import shutil
from pathlib import Path

import pytest
from cli_outcome import Run

LOG = "given,answered\ncoin,tea\ncoin,tea\n"
COLUMNS = ("--input", "given", "--output", "answered")


@pytest.fixture
def here(tmp_path: Path, house: Path, machines: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with traces, machines, a log, a curve and links to two of them."""
    shutil.copy(house, tmp_path / "t.jsonl")
    shutil.copy(machines, tmp_path / "m.json")
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "curve.csv").write_text("episode,return\n0,1\n")
    (tmp_path / "link.jsonl").symlink_to("t.jsonl")
    (tmp_path / "link.json").symlink_to("m.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("infer", "t.jsonl", "-o", "t.jsonl"),
        ("infer", "t.jsonl", "-o", "./t.jsonl"),
        ("infer", "t.jsonl", "-o", "link.jsonl"),
        ("infer", "link.jsonl", "--output", "t.jsonl"),
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
    before = {path: path.read_bytes() for path in here.iterdir()}
    outcome = run(*arguments)
    assert outcome.code == 2
    target = Path(arguments[-1])
    assert outcome.error.startswith(f"cannot write {target}: it would replace what is read from ")
    assert outcome.error.endswith("; name another file\n")
    assert {path: path.read_bytes() for path in here.iterdir()} == before


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
