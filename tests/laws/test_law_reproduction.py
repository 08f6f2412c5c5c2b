"""Law 1: the inferred machine reproduces every sample it was given."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import NO_EVENT, contradictory, wrong_answers

import resolvent as rs
from resolvent.preprocess.timing import LabelTiming
from strategies import assume_engine_has, infer_options, trace_sets, world_traces


@pytest.mark.parametrize("engine", ["native", "python"])
@settings(deadline=None, max_examples=150)
@given(traces=world_traces(), options=infer_options)
def test_every_sample_is_reproduced(engine, traces, options):
    assume_engine_has(options, engine)
    result = rs.infer(traces, options=rs.InferenceOptions(engine=engine, **options))
    assert result.machines.timing is options["timing"]
    assert result.machines.reward.supplemented is options["supplement"]
    assert wrong_answers(result.machines, traces) == []


@settings(deadline=None, max_examples=100)
@given(traces=world_traces(), options=infer_options, digits=st.sampled_from([0, 1, 2]))
def test_rounded_rewards_are_reproduced_as_rounded(traces, options, digits):
    pair = rs.infer(traces, options=rs.InferenceOptions(reward_digits=digits, **options)).machines
    assert wrong_answers(pair, traces, digits) == []


@pytest.mark.parametrize("engine", ["native", "python"])
@settings(deadline=None, max_examples=150)
@given(traces=trace_sets(), options=infer_options)
def test_traces_are_refused_exactly_when_no_machine_can_explain_them(engine, traces, options):
    assume_engine_has(options, engine)
    trivial = frozenset({NO_EVENT}) if options["remove_trivial"] else frozenset()
    options = {**options, "trivial": ()}
    if contradictory(traces, options["timing"], trivial):
        with pytest.raises(rs.ContradictoryTraces):
            rs.infer(traces, options=rs.InferenceOptions(engine=engine, noise="none", **options))
    else:
        pair, default = (
            rs.infer(
                traces, options=rs.InferenceOptions(engine=engine, noise=noise, **options)
            ).machines
            for noise in ("none", "auto")
        )
        assert default.replacing(provenance=None) == pair.replacing(provenance=None)
        assert wrong_answers(pair, traces) == []


@settings(deadline=None, max_examples=150)
@given(traces=trace_sets(), options=infer_options)
def test_labels_dropped_on_evidence_leave_all_traces_explained(traces, options):
    try:
        pair = rs.infer(traces, options=rs.InferenceOptions(noise="none", **options)).machines
    except rs.ContradictoryTraces:
        assert contradictory(traces, options["timing"], frozenset({NO_EVENT}))
    else:
        assert wrong_answers(pair, traces) == []


def test_the_oracle_detects_a_wrong_timing():
    """A world in which each timing matters: the oracle must not agree with a shifted reading."""
    traces = rs.TraceSet(
        [
            rs.Trace([0, 0, 0, 0], ["x", "a", "b", "a"], [0, 0, 0], [0, 1, 2]),
            rs.Trace([0, 0, 0, 0], ["y", "b", "a", "a"], [0, 0, 0], [0, 3, 4]),
        ]
    )
    pair = rs.infer(traces, timing="current").machines
    assert wrong_answers(pair, traces) == []
    lagged = rs.MachinePair(pair.transition, pair.reward, LabelTiming.LAGGED)
    assert wrong_answers(lagged, traces) != []
