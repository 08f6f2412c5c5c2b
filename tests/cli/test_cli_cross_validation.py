"""What `resolvent infer` says of held-out steps and weak states, without being asked."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import resolvent as rs
from resolvent.inference import cross_validation
from vending_machine import log

COLUMNS = (*("--episode", "session", "--order", "time"), *("--input", "event"))
LOG = (*COLUMNS, "--output", "response")


@pytest.fixture
def vend(tmp_path: Path) -> Callable[..., Path]:
    def write(sessions: int, events: int = 25) -> Path:
        path = tmp_path / "vend.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["time", "session", "event", "response"])
            writer.writeheader()
            writer.writerows(log(sessions, seed=0, events=events))
        return path

    return write


def read(path: Path) -> rs.TraceSet:
    return rs.read_log(path, episode="session", order="time", input="event", output="response")


def test_a_log_is_told_what_it_predicts(run: Any, vend: Callable[..., Path]) -> None:
    path = vend(400)
    outcome = run("infer", path, *LOG)
    assert "held out            80 traces (2,000 steps), predicted by machines" in outcome.out
    assert "response: 100% predicted right (95% confidence: 95.4% or more), 0% wrong" in outcome.out
    assert "few traces for this number of states" not in outcome.out
    figures = run("infer", path, *LOG, "--json").json
    traces = read(path)
    assert figures["held_out"] == rs.holdout_score(rs.infer(traces), traces).as_dict()
    assert figures["held_out"]["response"]["right"] == 2000
    assert figures["weak"] == {"response": []}
    assert figures["held_out_skipped"] is None
    assert figures["seconds"]["total"] >= figures["seconds"]["held_out"] > 0


def test_weak_states_are_named_with_the_way_there(run: Any, vend: Callable[..., Path]) -> None:
    path = vend(30, events=12)
    out = run("infer", path, *LOG).out
    machine = rs.infer(read(path)).machines["response"]
    figures = run("infer", path, *LOG, "--json").json["weak"]["response"]
    for weak in figures[:5]:
        assert machine.run(weak["by"]) == weak["state"]
        labels = ", ".join(label for (label,) in weak["by"])
        assert re.search(
            rf"state {weak['state']}, reached by \d label sequences?, such as {labels}\n", out
        )
    assert (
        f"weak                {len(figures)} of {machine.states} states reached by fewer than 5"
        in out
    )


def test_holding_out_can_be_left_out_or_chosen(run: Any, vend: Callable[..., Path]) -> None:
    path = vend(100)
    quiet = run("infer", path, *LOG, "--set", "held_out=0")
    assert "held out" not in quiet.out
    assert run("infer", path, *LOG, "--set", "held_out=0", "--json").json["held_out"] is None
    assert "held out            50 traces" in run("infer", path, *LOG, "--set", "held_out=0.5").out


def test_what_took_long_is_not_done_again_unless_asked_for(
    run: Any, vend: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_validation, "MAX_SECONDS", 0.0)
    path = vend(100)
    outcome = run("infer", path, *LOG)
    assert outcome.code == 0
    assert "held out            nothing, since inferring again would take another" in outcome.out
    assert "--set held_out=0.2 does it nevertheless" in outcome.out
    assert run("infer", path, *LOG, "--json").json["held_out_skipped"].startswith("since inferring")
    assert "held out            20 traces" in run("infer", path, *LOG, "--set", "held_out=0.2").out


def test_a_time_limit_leaves_room_for_the_machines_only(vend: Callable[..., Path]) -> None:
    traces = read(vend(100))
    result = rs.infer(traces, time_limit=1000)
    skipped = cross_validation.holdout_if_fast(result, traces, None, took=900.0)
    assert skipped == "since the time limit leaves too little time for inferring again"
    score = cross_validation.holdout_if_fast(result, traces, None, took=10.0)
    assert isinstance(score, rs.inference.HoldoutScore)


def test_too_little_to_hold_out_is_said(run: Any, vend: Callable[..., Path]) -> None:
    outcome = run("infer", vend(2, events=1), *LOG)
    assert outcome.code == 0
    assert "held out            nothing, since the traces have one step each" in outcome.out


def test_of_a_folder_as_much_is_held_out(tmp_path: Path, vend: Callable[..., Path]) -> None:
    traces = read(vend(100))
    (tmp_path / "folder").mkdir()
    traces.save(tmp_path / "folder" / "a.parquet")
    folder = rs.scan_traces(tmp_path / "folder", ["response"])
    score = cross_validation.holdout_if_fast(rs.infer(folder), folder, None, took=30.0)
    assert score == rs.holdout_score(rs.infer(traces), traces)
    assert score.part is None
