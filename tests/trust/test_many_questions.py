"""Observations times actions beyond 2³¹: what is asked is counted as in a small world."""

import pytest

import resolvent as rs
from resolvent.environments import House

MANY = 46_400


@pytest.mark.slow
def test_evidence_and_report_of_more_than_two_billion_questions(tmp_path):
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
    told, known = (rs.evidence(one, of) for one, of in ((large, traces), (small, house)))
    for kind in ("transition", "reward"):
        assert [*map(str, told[kind].separations)] == [*map(str, known[kind].separations)]
    score = large.machines.score(traces)
    assert all(one.right == traces.steps for one in score.values())
    rs.report(large, traces, tmp_path / "far.html", evidence=told)
    assert "room 00000" in (tmp_path / "far.html").read_text()
