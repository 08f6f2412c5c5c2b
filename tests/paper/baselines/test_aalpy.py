import subprocess
import sys

import gymnasium as gym
import pytest
from hypothesis import given, settings

import resolvent as rs
from resolvent.errors import ContradictoryTraces, MissingExtra, OptionError, TraceError
from resolvent.machines import is_isomorphic
from resolvent.paper.baselines import aalpy
from resolvent.traces import Trace, TraceSet
from strategies import trace_sets


def same(one, other):
    return is_isomorphic(one.transition, other.transition) and is_isomorphic(
        one.reward, other.reward
    )


def machines_or_error(found):
    try:
        return found()
    except ContradictoryTraces as error:
        return str(error)


@pytest.mark.parametrize(
    ("world", "episodes"), [("House-v0", 200), ("PhaseGrid3-v0", 275), ("TwoKeys-v0", 10)]
)
def test_the_first_fit_is_that_of_the_paper_s_order(world, episodes):
    traces = rs.collect(gym.make(f"resolvent/{world}"), episodes=episodes, seed=0)
    ours = rs.infer(traces, strategy="rpni", options=rs.InferenceOptions(trivial=[])).machines
    outcome = aalpy(traces)
    assert outcome.status == "found"
    assert same(outcome.machine, ours)
    assert outcome.states == ours.reward.states
    assert outcome.details["transition"]["states"] == ours.transition.states


@given(trace_sets())
@settings(max_examples=300, deadline=None)
def test_both_find_the_same_machines_or_the_same_contradiction(traces):
    ours = machines_or_error(
        lambda: (
            rs.infer(
                traces, strategy="rpni", noise="none", options=rs.InferenceOptions(trivial=[])
            ).machines
        )
    )
    its = machines_or_error(lambda: aalpy(traces).machine)
    if isinstance(ours, str):  # which also names what can be predicted without
        assert ours.partition("; to predict only")[0] == its
    else:
        assert same(ours, its)


@pytest.mark.parametrize("timing", list(rs.LabelTiming))
def test_either_order_explains_the_traces(timing):
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=60, seed=1)
    for order in ("first-fit", "edsm"):
        try:
            outcome = aalpy(traces, order=order, timing=timing)
        except ContradictoryTraces:
            assert timing is rs.LabelTiming.LAGGED
        else:
            assert outcome.machine.score(traces).perfect
            assert outcome.machine.timing is timing


def test_most_evidence_finds_the_truth_of_the_grids():
    traces = rs.collect(gym.make("resolvent/PhaseGrid4-v0"), episodes=100, seed=0)
    outcome = aalpy(traces, order="edsm")
    assert same(outcome.machine, rs.infer(traces, options=rs.InferenceOptions(trivial=[])).machines)
    assert outcome.states == 3


def test_without_time_there_is_no_machine():
    traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=20, seed=0)
    outcome = aalpy(traces, time_limit=1e-9)
    assert (outcome.status, outcome.machine, outcome.states) == ("time limit", None, None)


def test_a_missing_library_names_the_extra(monkeypatch):
    traces = TraceSet([Trace("ab", [None, None], "x", [0])])
    monkeypatch.delitem(sys.modules, "resolvent.paper.baselines.aalpy_merging", raising=False)
    monkeypatch.setitem(sys.modules, "aalpy.learning_algs.general_passive.DataHandler", None)
    with pytest.raises(MissingExtra, match=r"resolvent\[aalpy\]"):
        aalpy(traces)


def test_the_other_baselines_do_without_aalpy():
    program = "import sys; sys.modules['aalpy'] = None; import resolvent.paper.experiments"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_options_that_make_no_sense_are_refused():
    traces = TraceSet([Trace("ab", [None, None], "x", [0])])
    for wrong in ({"order": "last"}, {"timing": "never"}, {"time_limit": -1.0}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            aalpy(traces, **wrong)
    with pytest.raises(TraceError, match="no traces"):
        aalpy(TraceSet([]))
