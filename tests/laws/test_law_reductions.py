"""Law 5: with and without each reduction the machine fits the same traces."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from oracles import state_at, wrong_answers

import resolvent as rs
from strategies import infer_options, world_traces

SWITCHES = [(redundant, trivial) for redundant in (True, False) for trivial in (True, False)]


def constant_answers(traces, asked_and_told):
    """Every query that the traces answer in one way only, with that answer."""
    told = defaultdict(set)
    for trace in traces:
        for t in range(len(trace)):
            query, answer = asked_and_told(trace, t)
            told[query].add(answer)
    return {query: min(answers) for query, answers in told.items() if len(answers) == 1}


@settings(deadline=None, max_examples=60)
@given(world_traces(), infer_options)
def test_each_reduction_fits_the_same_traces(traces, options):
    for redundant, trivial in SWITCHES:
        chosen = {**options, "remove_redundant": redundant, "remove_trivial": trivial}
        pair = rs.infer(traces, options=rs.InferenceOptions(**chosen)).machines
        assert wrong_answers(pair, traces) == []
        assert pair.score(traces).perfect


@pytest.mark.parametrize("trivial", [True, False])
@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), options=infer_options)
def test_no_constant_output_is_lost(trivial, traces, options):
    chosen = {**options, "remove_redundant": True, "remove_trivial": trivial}
    pair = rs.infer(traces, options=rs.InferenceOptions(**chosen)).machines

    def step(trace, t):
        return (trace.observations[t], trace.actions[t]), trace.observations[t + 1]

    def paid(trace, t):
        seen = trace.observations[t]
        if pair.reward.supplemented:
            seen = (seen, state_at(pair.transition, trace, t, pair.timing))
        return (seen, trace.actions[t]), trace.rewards[t]

    for machine, asked_and_told in ((pair.transition, step), (pair.reward, paid)):
        constants = constant_answers(traces, asked_and_told)
        assert machine.constant_outputs == constants
        for query, answer in constants.items():
            for state in (*range(machine.states), rs.UNSEEN):
                assert machine.output(state, *query) == answer


@settings(deadline=None, max_examples=80)
@given(world_traces(), infer_options)
def test_trivial_labels_loop_on_every_state(traces, options):
    pair = rs.infer(
        traces, options=rs.InferenceOptions(**{**options, "remove_trivial": True})
    ).machines
    for machine in (pair.transition, pair.reward):
        assert machine.trivial_labels == tuple({frozenset()} & set(machine.labels))
        for label in machine.trivial_labels:
            assert all(machine.step(state, label) == state for state in range(machine.states))


@settings(deadline=None, max_examples=80)
@given(world_traces(), infer_options)
def test_without_reductions_nothing_is_removed(traces, options):
    off = {**options, "remove_redundant": False, "remove_trivial": False}
    pair = rs.infer(traces, options=rs.InferenceOptions(**off)).machines
    for machine in (pair.transition, pair.reward):
        assert machine.trivial == ()
        assert machine.constant_outputs == {}
