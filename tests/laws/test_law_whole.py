"""Traces that are scanned say of machines what they say in memory, however they are divided."""

import json
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from noisy_worlds import noisy_house
from resolvent.evaluation import observed
from resolvent.viz.report.page import contents
from shuffled_workers import ShuffledWorkers


@cache
def house():
    return rs.collect(gym.make("resolvent/House-v0"), episodes=60, seed=0)


@cache
def grid():
    env = gym.make("resolvent/RandomWorld-v0", size=5)
    return rs.collect(env, episodes=60, seed=1, max_steps=40)


@cache
def machines_of(traces_of, first=None):
    return rs.infer(traces_of()[:first], strategy="edsm").machines


def repeated():
    """Traces of which some occur several times."""
    traces = house()
    return traces.take([*range(60), *range(0, 60, 3), *range(0, 60, 7)])


CASES = {
    "known": lambda: (machines_of(house), house()),
    "new": lambda: (machines_of(grid, 40), grid()),
    "repeated": lambda: (machines_of(repeated), repeated()),
    "noisy": noisy_house,
    "timing": lambda: (rs.infer(house(), timing="lagged").machines, house()),
    "rounded": lambda: (
        rs.infer(house(), options=rs.InferenceOptions(reward_digits=1)).machines,
        house(),
    ),
}


def scanned(traces, folder, cuts):
    """The traces as files, each from one cut to the next."""
    Path(folder).mkdir(exist_ok=True)
    for number, (first, last) in enumerate(pairwise([0, *sorted(cuts), len(traces)])):
        traces[first:last].save(Path(folder) / f"{number}.parquet")
    return rs.scan_traces(folder)


def said_by(machines, traces):
    """All that is said of machines after inference, as text."""
    evidence = rs.evidence(machines, traces)
    told = {
        "score": str(machines.score(traces)),
        "evidence": evidence.as_dict(),
        "weak": {kind: one.weakness.lines() for kind, one in evidence.items()},
        "report": contents(machines, evidence),
        "plan": planned(machines, traces),
    }
    return json.loads(json.dumps(told, default=str))


def planned(machines, traces):
    """The plan and how many steps it is made from, or why there is none."""
    try:
        plan = rs.plan(machines, traces)
    except rs.errors.ModelError as error:
        return str(error)
    return {**plan.as_dict(), "traces": plan.model.traces, "steps": plan.model.steps}


@cache
def in_memory(case):
    return said_by(*CASES[case]())


@settings(deadline=None, max_examples=12)
@given(st.sampled_from(sorted(CASES)), st.sets(st.integers(1, 59), min_size=1, max_size=5))
def test_scanned_traces_give_the_results_of_traces_in_memory(case, cuts):
    machines, traces = CASES[case]()
    with tempfile.TemporaryDirectory() as folder:
        found = said_by(machines, scanned(traces, folder, cuts))
    assert found == in_memory(case)


def test_each_case_has_a_nonempty_result():
    said = {case: in_memory(case) for case in CASES}
    assert said["known"]["evidence"]["holdout"]["carries_over"] is True
    assert said["new"]["evidence"]["holdout"]["new_traces"] is True
    assert said["new"]["report"]["map"] is not None
    assert said["noisy"]["evidence"]["transition"]["completeness"]["weighed"] > 0
    assert said["repeated"]["plan"]["steps"] > said["known"]["plan"]["steps"]
    assert "trace 40, step 12" in said["new"]["plan"]


def test_scanned_traces_of_another_world_are_scored_and_refused_alike(tmp_path):
    machines = machines_of(house)
    other = rs.collect(gym.make("resolvent/HouseInterference-v0"), episodes=20, seed=0)
    folder = scanned(other, tmp_path, [7, 13])
    score = machines.score(folder)
    assert score == machines.score(other)
    assert score.first_mismatch is not None
    assert "these are not its machines" in planned(machines, other)
    assert planned(machines, folder) == planned(machines, other)


def test_a_result_stores_its_source(tmp_path, monkeypatch):
    """Values and pool are known from inference, so that nothing is looked through again."""
    folder = scanned(house(), tmp_path, [20, 40])
    result = rs.infer(folder)
    read = []
    plain = rs.TraceDataset.read

    def counted(self, number):
        read.append(number)
        return plain(self, number)

    monkeypatch.setattr(rs.TraceDataset, "read", counted)
    plan = rs.plan(result, folder)
    assert sorted(read) == [0, 1, 2]
    assert plan == rs.plan(rs.infer(house()), house())
    read.clear()
    assert rs.holdout_score(result, folder) == rs.holdout_score(rs.infer(house()), house())
    assert read == []
    assert result.evidence == rs.infer(house()).evidence
    result.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 50_000


@pytest.fixture
def small_pool(monkeypatch):
    """Only so few steps that most traces cannot be looked at one by one."""
    monkeypatch.setattr(observed, "POOL_STEPS", 500)
    return 500


def test_checks_of_a_sample_report_their_number_of_steps(tmp_path, small_pool):
    traces = house()
    folder = scanned(traces, tmp_path, [10, 30])
    machines = machines_of(house)
    told, known = rs.evidence(machines, folder), rs.evidence(machines, traces)
    completeness = told["transition"].completeness
    assert small_pool <= completeness.part.steps < 2 * small_pool
    assert completeness.part.of == traces.steps
    assert completeness.sequences < known["transition"].completeness.sequences
    words = f"from {completeness.part.steps:,} of {traces.steps:,} steps"
    assert str(told).count(words) == 3  # label sequences of two machines, and what is held out
    assert told.holdout.as_dict()["part"] == completeness.as_dict()["part"]
    # Everything that is counted is counted in all traces.
    for kind in told:
        assert told[kind].observed_outputs == known[kind].observed_outputs
        assert told[kind].observed_transitions == known[kind].observed_transitions
        assert told[kind].weakness == known[kind].weakness
        assert str(told[kind].separations[0]) == str(known[kind].separations[0])
    held = rs.holdout_score(rs.infer(folder), folder)
    assert held.part == completeness.part
    assert words in str(held)


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_sample_depends_only_on_the_content_of_traces(tmp_path, small_pool, shuffled):
    traces = house()
    order = list(reversed(range(60))) if shuffled else [*range(60), *range(60)]
    folder = scanned(traces.take(order), tmp_path / "other", [11, 50])
    plain = scanned(traces, tmp_path / "plain", [30])
    machines = machines_of(house, 50)
    one, other = (rs.evidence(machines, place)["reward"].completeness for place in (plain, folder))
    assert (one.sequences, one.first_ambiguous) == (other.sequences, other.first_ambiguous)


def test_results_do_not_depend_on_the_workers(tmp_path, ray_of_two):
    machines, traces = machines_of(grid), grid()
    folder = scanned(traces, tmp_path, [10, 20, 30, 50])
    for on in ("ray", *map(ShuffledWorkers, range(3))):
        assert machines.score(folder, on=on) == machines.score(traces)
        assert rs.evidence(machines, folder, on=on) == rs.evidence(machines, traces)
        assert rs.plan(machines, folder, on=on) == rs.plan(machines, traces)


@pytest.mark.slow
def test_processes_give_the_same_results(tmp_path):
    machines, traces = machines_of(grid), grid()
    folder = scanned(traces, tmp_path, [10, 20, 30, 50])
    assert machines.score(folder, on="processes") == machines.score(traces)
    assert rs.evidence(machines, folder, on="processes") == rs.evidence(machines, traces)
