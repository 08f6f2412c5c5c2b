"""Each rare transition is in the required number of chosen traces, for any order of traces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mealy_machine import Mealy
from resolvent import InferenceOptions, infer
from resolvent.inference.counterexamples import COMMON, traces_with_rare_transitions
from resolvent.inference.refinement import RefinementLoop
from resolvent.traces import TraceSet

MANY = 1_000  # steps

transitions_of_traces = st.lists(st.lists(st.integers(-1, 5), max_size=6), min_size=1, max_size=12)


def columns(traces):
    steps = np.int32([move for trace in traces for move in trace])
    return steps, np.append(0, np.cumsum([len(trace) for trace in traces])).astype(np.int64)


@given(transitions_of_traces, st.integers(1, 4), st.randoms())
def test_each_transition_is_in_the_first_traces_that_have_it(traces, times, random):
    steps, offsets = columns(traces)
    order = list(range(len(traces)))
    random.shuffle(order)
    wanted = set()
    for move in range(6):
        wanted |= set([trace for trace in order if move in traces[trace]][:times])
    assert traces_with_rare_transitions(
        [steps], offsets, np.int64(order), times, MANY
    ).tolist() == sorted(wanted)


def test_common_transitions_add_no_traces():
    traces = [[0] * COMMON, [0, 1], [0, 0]]
    steps, offsets = columns(traces)
    assert traces_with_rare_transitions(
        [steps], offsets, np.int64([0, 1, 2]), 1, MANY
    ).tolist() == [1]


def test_traces_that_are_not_in_the_order_do_not_count():
    steps, offsets = columns([[0, 1], [1], [2]])
    assert traces_with_rare_transitions([steps], offsets, np.int64([1]), 3, MANY).tolist() == [1]
    assert traces_with_rare_transitions([], offsets, np.int64([1]), 3, MANY).tolist() == []


def test_within_few_steps_the_rarest_transitions_come_first():
    steps, offsets = columns([[0, 0], [0, 1], [1, 0], [2, 0]])
    order = np.int64([0, 1, 2, 3])
    assert traces_with_rare_transitions([steps], offsets, order, 1, 8).tolist() == [0, 1, 3]
    assert traces_with_rare_transitions([steps], offsets, order, 1, 4).tolist() == [1, 3]
    assert traces_with_rare_transitions([steps], offsets, order, 1, 3).tolist() == [3]


def test_a_transition_of_any_machine_counts():
    steps, offsets = columns([[0], [0], [0]])
    other = np.int32([-1, -1, 3])
    assert traces_with_rare_transitions(
        [steps, other], offsets, np.int64([0, 1, 2]), 1, MANY
    ).tolist() == [0, 2]


@pytest.fixture
def rare(monkeypatch):
    """A machine with moves that walks hardly ever take, learned from few steps at first."""
    monkeypatch.setattr("resolvent.inference.refinement.SAMPLE_STEPS", 600)
    random = np.random.default_rng(0)
    states, inputs = 8, 4
    moves = np.zeros((states, inputs), np.int32)  # back to the start, but for one way ahead
    moves[np.arange(states - 1), random.integers(0, inputs, states - 1)] = np.arange(1, states)
    outputs = random.integers(0, 3, (states, inputs), dtype=np.int32)
    machine = Mealy(moves, outputs)
    assert machine.is_minimal()
    return machine


def traces_with_each_transition(machine, traces):
    """By state and input, how many traces take it."""
    each = [machine.visits(one.action_codes, one.offsets) > 0 for one in _one_by_one(traces)]
    return np.sum(each, axis=0)


def _one_by_one(traces):
    return (traces[number : number + 1] for number in range(len(traces)))


def test_chosen_traces_have_more_rare_transitions(rare, monkeypatch):
    traces = rare.traces(60_000, 0)
    there_are = traces_with_each_transition(rare, traces)
    few = (there_are > 0) & (there_are < len(traces) / 10)
    assert few.any()
    shares = []
    for found in (None, np.empty(0, np.int64)):
        if found is not None:
            monkeypatch.setattr(
                RefinementLoop, "with_rare_transitions", lambda *_, none=found: none
            )
        result = infer(traces, outputs=["output"], options=InferenceOptions(refine=True))
        assert result.refinement.rounds > 1
        learned = traces.take(result.inference_state.chosen)
        shares.append(traces_with_each_transition(rare, learned)[few].sum() / learned.steps)
    with_rare, without = shares
    assert with_rare > 1.2 * without


def test_shuffled_and_repeated_traces_give_the_same(rare):
    traces = rare.traces(60_000, 0)
    numbers = np.random.default_rng(1).permutation(len(traces))
    again = TraceSet.concatenate([traces.take(numbers), traces.take(numbers[:50])])
    first, second = (
        infer(one, outputs=["output"], options=InferenceOptions(refine=True))
        for one in (traces, again)
    )
    assert first.refinement.steps == second.refinement.steps
    assert (first.machines["output"].transitions == second.machines["output"].transitions).all()
