import json
from pathlib import Path

import pytest
from cli_outcome import Run

from resolvent import read_traces


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("out.parquet", []),
        ("out.jsonl", []),
        ("out.jsonl.gz", []),
        ("out.jsonl.zst", []),
        ("out.data", ["--format", "parquet"]),
        ("out.data", ["--format", "jsonl"]),
    ],
)
def test_there_and_back(
    run: Run, house: Path, tmp_path: Path, name: str, options: list[str]
) -> None:
    outcome = run("convert", house, tmp_path / name, *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert "200 traces" in outcome.out
    assert read_traces(tmp_path / name) == read_traces(house)


def test_to_the_papers_format(run: Run, house: Path, tmp_path: Path) -> None:
    path = tmp_path / "paper.jsonl"
    outcome = run("convert", house, path, "--format", "paper", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["traces"] == 200
    assert path.read_text().startswith("[[[")
    assert read_traces(path)[0].observations == read_traces(house)[0].observations


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("out.txt", [], ".parquet"),
        ("out.parquet.gz", [], "leave out .gz"),
        ("out.jsonl", ["--format", "csv"], "jsonl, paper, parquet"),
        ("missing/out.jsonl", [], "does not exist"),
    ],
)
def test_bad_target(
    run: Run, house: Path, tmp_path: Path, name: str, options: list[str], word: str
) -> None:
    outcome = run("convert", house, tmp_path / name, *options)
    assert outcome.code == 2
    assert word in outcome.error
    assert not list(tmp_path.iterdir())


def test_missing_source(run: Run, tmp_path: Path) -> None:
    outcome = run("convert", tmp_path / "nowhere.jsonl", tmp_path / "out.parquet")
    assert outcome.code == 2
    assert "nowhere.jsonl does not exist" in outcome.error


def test_columns_of_others_are_named(run: Run, tmp_path: Path) -> None:
    line = {"observations": [0, 1], "labels": [[], []], "actions": ["go"], "cost": [7]}
    (tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n")
    out = tmp_path / "log.parquet"
    assert run("convert", tmp_path / "log.jsonl", out, "--columns", "cost").code == 0
    assert read_traces(out)[0].columns == {"cost": (7,)}
    refused = run("convert", out, tmp_path / "paper.jsonl", "--format", "paper")
    assert refused.code == 2
    assert "the paper's format holds rewards and no further columns" in refused.error
    missing = run("convert", out, tmp_path / "again.jsonl", "--columns", "cots")
    assert missing.code == 2
    assert "no column `cots`: there is cost" in missing.error
