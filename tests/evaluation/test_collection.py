import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent import _core
from resolvent.evaluation.collection import collect_evidence
from resolvent.inference.infer import infer_with
from resolvent.worlds import House

STAGES = [
    "replaying the traces",
    *(
        f"{kind} machine: {stage}"
        for kind in ("transition", "reward")
        for stage in ("counting outputs", "distinguishing states", "checking label sequences")
    ),
    "testing on held-out traces",
]


def test_progress_names_every_stage_and_changes_nothing():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)
    result = rs.infer(traces)
    events = []
    evidence = rs.evidence(result, traces, progress=lambda *now: events.append(now))
    assert list(dict.fromkeys(stage for stage, _ in events)) == STAGES
    assert all(0 <= now.fraction <= 1 for _, now in events)
    silent = collect_evidence(
        result.machines, traces, infer=lambda some: infer_with(result.options, some).machines
    )
    assert evidence.as_dict() == silent.as_dict()


def test_the_core_reports_its_progress():
    """With this number of nodes it takes longer than the time between two calls."""
    count, states = 400_000, 1280
    beta = np.zeros(count, np.int32)
    tree = _core.build_history_tree(beta, np.array([0, count]))
    ring = (np.arange(states, dtype=np.int32) + 1) % np.int32(states)
    events = []
    nothing = np.array([], np.int32)
    convergence = _core.converge(
        tree,
        np.full(count, -1, np.int32),
        beta,
        query=nothing,
        state=nothing,
        output=nothing,
        queries=0,
        transitions=ring,
        states=states,
        labels=1,
        progress=lambda *now: events.append(now[2:]),
    )
    assert convergence == (count + 1, 0, 0, 0, 1)
    done = [count_done for count_done, _ in events]
    assert done == sorted(done)
    assert {total for _, total in events} == {count + 1}


def test_labels_that_a_machine_does_not_know_are_never_read_in_it():
    known = rs.TraceSet([rs.Trace([0, 1, 0], [None, "a", None], ["go", "go"], [0, 1])])
    other = rs.TraceSet([rs.Trace([0, 1, 0], [None, "b", None], ["go", "go"], [0, 1])])
    evidence = rs.evidence(rs.infer(known).machines, other)
    assert (0, frozenset({"b"})) in evidence.transition.completeness.unseen_transitions
    assert not evidence.transition.completeness.structure_complete


MANY = 46_400
"""Number of rooms and of doors: more than 2³¹ queries."""


@pytest.mark.slow
def test_evidence_and_report_of_more_than_two_billion_queries(tmp_path):
    house = rs.collect(House(), episodes=200, seed=0)
    far = rs.Trace(
        [f"room {number:05}" for number in range(MANY)] + ["room 00000"],
        [None] * (MANY + 1),
        [f"door {number:05}" for number in range(MANY)],
        [0.0] * MANY,
    )
    traces = rs.TraceSet([*house, far])
    assert len(traces.observations) * len(traces.actions) > 1 << 31
    small, large = (rs.infer(one, noise="none") for one in (house, traces))
    assert [one.states for one in large.machines.values()] == [2, 2]
    sampled, known = (rs.evidence(one, of) for one, of in ((large, traces), (small, house)))
    for kind in ("transition", "reward"):
        assert [*map(str, sampled[kind].separations)] == [*map(str, known[kind].separations)]
    score = large.machines.score(traces)
    assert all(one.right == traces.steps for one in score.values())
    rs.report(large, traces, tmp_path / "far.html", evidence=sampled)
    assert "room 00000" in (tmp_path / "far.html").read_text()
