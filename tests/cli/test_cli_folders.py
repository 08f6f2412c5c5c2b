"""Folders of Parquet files from the command line, small ones taken as large."""

import re
from pathlib import Path

import pytest
from cli_outcome import Run

import resolvent as rs
from resolvent.cli import inputs
from resolvent.evaluation import observed
from resolvent.inference import refinement
from worlds import random_world

WORLD = random_world(3, size=9, labels=4, tm_states=4)
TRACES = WORLD.rollouts(400, seed=0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    folder.mkdir()
    for number in range(4):
        TRACES[number * 100 : number * 100 + 100].save(folder / f"part-{number}.parquet")
    return folder


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "REFINE_ABOVE_STEPS", 1000)
    monkeypatch.setattr(refinement, "SAMPLE_STEPS", 2000)


def test_a_large_folder_is_refined_to_the_same_machines(
    run: Run, folder: Path, tmp_path: Path, large: None
) -> None:
    refined, whole = tmp_path / "refined.json", tmp_path / "whole.json"
    figures = run("infer", folder, "-o", refined, "--set", "refine=true", "--json").json
    assert figures["learned_from"]["traces"] < 400
    assert figures["explains_all_traces"] is True
    figures = run("infer", folder, "-o", whole, "--set", "refine=false", "--json").json
    assert figures["learned_from"]["traces"] == 400
    assert rs.load(refined) == rs.load(whole)
    assert "replayed, all traces are explained" in run("infer", folder).out


def test_a_large_folder_over_ray(
    run: Run, folder: Path, tmp_path: Path, large: None, ray_of_two: object
) -> None:
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert run("infer", folder, "-o", here).code == 0
    outcome = run("infer", folder, "-o", there, "--on", "ray")
    assert (outcome.code, outcome.err) == (0, "")
    assert there.read_bytes() == here.read_bytes()
    part = folder / "part-2.parquet"
    part.write_bytes(part.read_bytes()[:-40] + b"?" * 40)
    outcome = run("infer", folder, "--on", "ray", "--json")
    assert outcome.code == 2
    assert "part-2.parquet" in outcome.error


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("dask", "on='dask': choose threads, processes, ray or ray:ADDRESS"),
        ("ray:127.0.0.1:1", "no Ray cluster responds at 127.0.0.1:1"),
    ],
)
def test_workers_that_are_not_there_are_refused_in_a_line(
    run: Run, folder: Path, large: None, monkeypatch: pytest.MonkeyPatch, on: str, message: str
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    outcome = run("infer", folder, "--on", on)
    assert outcome.code == 2
    assert message in outcome.error


def test_check_goes_through_a_large_folder(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = tmp_path / "machines.json"
    assert run("infer", folder, "-o", machines).code == 0
    small = run("check", machines, folder, "--json").json
    monkeypatch.setattr(inputs, "REFINE_ABOVE_STEPS", 1000)
    outcome = run("check", machines, folder, "--json")
    assert outcome.code == 0
    assert {**outcome.json, "seconds": None} == {**small, "seconds": None}


def test_what_a_large_folder_says_is_what_it_says_in_memory(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = tmp_path / "machines.json"
    assert run("infer", folder, "-o", machines).code == 0

    def result() -> list[object]:
        report = tmp_path / "report.html"
        figures = [
            run("check", machines, folder, "--evidence", "--json").json,
            run("plan", machines, folder, "--json").json,
            run("report", machines, folder, "-o", report, "--json").json,
        ]
        for one in figures:
            one.pop("seconds", None)
        return [*figures, report.read_bytes()]

    small = result()
    monkeypatch.setattr(inputs, "REFINE_ABOVE_STEPS", 1000)
    assert result() == small
    outcome = run("check", machines, folder, "--evidence")
    assert outcome.code == 0
    assert "400 traces" in outcome.out
    outcome = run("plan", machines, f"{folder}/*.parquet")
    assert outcome.code == 0
    assert outcome.out.startswith("value        1.757 from the starts")


def test_what_looks_at_single_traces_says_from_how_many_steps(
    run: Run, folder: Path, tmp_path: Path, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "POOL_STEPS", 2000)
    machines = tmp_path / "machines.json"
    outcome = run("infer", folder, "-o", machines)
    pattern = rf"from 2,\d\d\d of {TRACES.steps:,} steps"
    assert len(re.findall(rf"inferred from the others, {pattern}:", outcome.out)) == 1
    outcome = run("check", machines, folder, "--evidence")
    assert len(re.findall(pattern, outcome.out)) == 3  # histories of two machines, and the hold-out
    report = tmp_path / "report.html"
    assert run("report", machines, folder, "-o", report).code == 0
    assert len(re.findall(pattern, report.read_text(encoding="utf-8"))) == 3


def test_a_mismatch_in_a_large_folder_has_the_number_of_its_trace(
    run: Run, folder: Path, tmp_path: Path, large: None
) -> None:
    machines = tmp_path / "machines.json"
    assert run("infer", folder, "-o", machines).code == 0
    trace = TRACES[250]
    seen = [*trace.observations[:-1], trace.observations[0] + 1000]
    odd = rs.Trace(seen, trace.labels, trace.actions, trace.rewards, terminated=True)
    (rs.TraceSet([odd]) + TRACES[201:300]).save(folder / "part-2.parquet")
    outcome = run("check", machines, folder, "--json")
    assert outcome.code == 1
    assert outcome.json["transition"]["wrong"] == 1
    assert outcome.json["transition"]["first_mismatch"]["trace"] == 200


def test_an_unreadable_file_in_the_middle_is_named_and_nothing_written(
    run: Run, folder: Path, tmp_path: Path, large: None
) -> None:
    content = (folder / "part-2.parquet").read_bytes()
    (folder / "part-2.parquet").write_bytes(content[:-100])
    target = tmp_path / "machines.json"
    outcome = run("infer", folder, "-o", target)
    assert outcome.code == 2
    assert "part-2.parquet" in outcome.error
    assert not target.exists()


def test_a_damaged_page_in_the_middle_is_named(
    run: Run, folder: Path, tmp_path: Path, large: None
) -> None:
    """The footer is whole, so the damage shows only when the file is read."""
    content = bytearray((folder / "part-2.parquet").read_bytes())
    content[100:400] = bytes(300)
    (folder / "part-2.parquet").write_bytes(content)
    target = tmp_path / "machines.json"
    outcome = run("infer", folder, "-o", target)
    assert outcome.code == 2
    assert "part-2.parquet" in outcome.error
    assert not target.exists()


def test_contradictions_in_files_name_both(
    run: Run, folder: Path, tmp_path: Path, large: None
) -> None:
    for number, following in ((1, 998), (3, 997)):
        odd = rs.TraceSet([rs.Trace([999, following], [None, None], [0], [0.0])])
        (TRACES[number * 100 : number * 100 + 100] + odd).save(folder / f"part-{number}.parquet")
    outcome = run("infer", folder, "--noise", "none")
    assert outcome.code == 2
    assert "part-1.parquet, trace 100, step 0" in outcome.error
    assert "part-3.parquet, trace 100, step 0" in outcome.error
