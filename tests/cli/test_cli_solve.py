"""`resolvent solve`."""

from pathlib import Path

import pytest
from cli_outcome import Run

import resolvent as rs

HOUSE = ("solve", "resolvent/House-v0")


def test_the_house_is_solved_and_kept(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "solved"
    figures = run(*HOUSE, "-o", folder, "--json").json
    assert figures["optimal"] is True
    assert figures["states"] == {"transition": 2, "reward": 2}
    assert figures["bound"] == 0
    assert figures["value"] == pytest.approx(0.95**5)
    assert figures["why_stopped"].startswith("optimal in every environment that agrees with the ")
    assert figures["steps"] == rs.Solution.load(folder).steps
    names = {"machines.json", "traces.jsonl", "policy.json", "solved.json"}
    assert {path.name for path in folder.iterdir()} == names
    checked = run("check", folder / "machines.json", folder / "traces.jsonl")
    assert checked.code == 0


def test_it_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    first = run(*HOUSE, "-o", parts, "--budget", "50")
    assert first.code == 0
    assert "the budget is spent after 45 steps" in first.out
    assert f"solve resolvent/House-v0 -o {parts} --budget 100 --resume" in first.out
    again = run(*HOUSE, "-o", parts).error
    assert again == f"{parts} holds earlier results: add --resume to continue\n"
    assert run(*HOUSE, "-o", parts, "--resume", "--json").json["optimal"] is True
    assert run(*HOUSE, "-o", whole).code == 0
    for name in ("machines.json", "traces.jsonl", "policy.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


def test_there_has_to_be_something_to_go_on_from(run: Run, tmp_path: Path) -> None:
    message = run(*HOUSE, "-o", tmp_path / "none", "--resume").error
    assert message == f"--resume: {tmp_path / 'none'} holds no results to continue from\n"


def test_a_folder_with_other_things_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    message = run(*HOUSE, "-o", tmp_path, "--budget", "20").error
    assert "contains other files" in message


def test_what_comes_next_is_said_with_all_that_was_given(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "maze"
    given = "--set", "length=5", "--import", "json", "--gamma", "0.9", "--reward-range", "0", "2"
    outcome = run("solve", "resolvent/TMaze-v0", "-o", folder, "--budget", "30", *given)
    more = "--set length=5 --import json --budget 60 --gamma 0.9 --reward-range 0 2 --resume"
    assert f"solve resolvent/TMaze-v0 -o {folder} {more}\n" in outcome.out
    again = run("solve", "resolvent/TMaze-v0", "-o", folder, *more.split())
    assert "spent after 54 steps" in again.out


def test_numbers_that_do_not_come_back_are_to_be_put_into_intervals(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "cart"
    outcome = run("solve", "CartPole-v1", "-o", folder)
    infer = f"infer {folder / 'traces.jsonl'} -o machines.json --labels auto"
    assert f"{infer} --set discretize=auto" in outcome.out
