from pathlib import Path

import pytest
from cli_outcome import Run


@pytest.fixture
def doors(tmp_path: Path) -> Path:
    """Two episodes that begin alike and go on differently."""
    path = tmp_path / "doors.jsonl"
    line = '{"observations":["hall","%s"],"labels":[[],[]],"actions":["go"],"rewards":[0]}\n'
    path.write_text(line % "attic" + line % "cellar")
    return path


def test_findings_are_told_in_words_and_the_exit_code_is_0(run: Run, doors: Path) -> None:
    outcome = run("diagnose", doors)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{doors}: 2 traces, 2 steps\n\nerror: First steps differ")
    assert max(map(len, outcome.out.splitlines()[1:])) <= 80


def test_json_has_every_finding(run: Run, doors: Path) -> None:
    outcome = run("diagnose", doors, "--json")
    assert outcome.code == 0
    assert (outcome.json["traces"], outcome.json["steps"]) == (2, 2)
    first = outcome.json["findings"][0]
    assert (first["kind"], first["severity"]) == ("random-start", "error")
    assert first["figures"]["outcomes"] == {"attic": 1, "cellar": 1}


def test_the_timing_counts(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cued.jsonl"
    line = '{"observations":["hall","%s"],"labels":[["%s"],[]],"actions":["go"],"rewards":[0]}\n'
    path.write_text(line % ("attic", "up") + line % ("cellar", "down"))

    def kinds(*options: str) -> set[str]:
        found = run("diagnose", path, "--json", *options).json["findings"]
        return {one["kind"] for one in found}

    assert "random-start" in kinds()
    assert "random-start" not in kinds("--timing", "current-with-initial")


def test_the_outputs_are_those_that_are_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("run,given,answer,fault\n1,coin,tea,no\n2,coin,coffee,no\n")

    def errors(*options: str) -> set[str]:
        columns = ("--episode", "run", "--input", "given", "--output", "answer")
        found = run("diagnose", path, "--json", *columns, *options).json["findings"]
        return {one["figures"]["output"] for one in found if one["severity"] == "error"}

    assert errors() == {"answer"}
    assert errors("--outputs", "fault") == set()
    assert errors("--outputs", "fault, answer") == {"answer"}
    outcome = run("diagnose", path, "--outputs", "fault,,answer")
    assert (outcome.code, "empty name" in outcome.err) == (2, True)


def test_further_columns_of_lines_are_read_when_they_are_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "costs.jsonl"
    line = (
        '{"observations":["hall","hall"],"labels":[[],[]],"actions":["go"],"rewards":[0],'
        '"cost":[%d]}\n'
    )
    path.write_text(line % 1 + line % 2)
    found = run("diagnose", path, "--json", "--outputs", "cost").json["findings"]
    assert (found[0]["kind"], found[0]["figures"]["output"]) == ("random-start", "cost")


def test_a_folder(run: Run, house: Path, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    assert run("convert", house, folder / "a.parquet").code == 0
    outcome = run("diagnose", folder, "--json")
    assert (outcome.code, outcome.json["traces"]) == (0, 200)


def test_bad_input_ends_with_exit_code_2(run: Run, tmp_path: Path, doors: Path) -> None:
    missing = run("diagnose", tmp_path / "missing.jsonl")
    assert (missing.code, "does not exist" in missing.error) == (2, True)
    assert run("diagnose", doors, "--timing", "never").code == 2


def test_infer_prints_its_warnings(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"observations":[0.1,0.2,0.3],"labels":[[],[],[]],"actions":["go","go"],"rewards":[0,0]}\n'
    )
    outcome = run("infer", path)
    assert outcome.code == 0
    assert "warning: Hardly any query repeats" in outcome.out
    figures = run("infer", path, "--json").json["warnings"]
    assert [one["kind"] for one in figures] == [
        "unique-observations",
        "hardly-repeats",
        "constant-reward",
        "one-long-log",
    ]
