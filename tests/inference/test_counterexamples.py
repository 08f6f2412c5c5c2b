"""Traces chosen as counterexamples, and equal states merged after refinement."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resolvent as rs
from mealy_machine import Mealy
from noisy_worlds import taught
from resolvent import InferenceOptions, infer
from resolvent.inference.counterexamples import (
    COMMON,
    merge_equal_states,
    traces_with_rare_transitions,
)
from resolvent.inference.refinement import RefinementLoop
from resolvent.replay.corpus import Corpus
from resolvent.replay.replaying import replay
from resolvent.traces import TraceSet
from resolvent.traces.source import InMemorySource
from worlds import random_world

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


WORLD = random_world(3, size=9, labels=4, tm_states=4)
TRACES = WORLD.rollouts(400, seed=0)
PAIR = rs.infer(TRACES).machines


def doubled(table, copies):
    """Each state in some copies; every label moves on to the next copy."""
    states = len(table)
    return np.concatenate(
        [np.where(table >= 0, table + states * ((copy + 1) % copies), -1) for copy in range(copies)]
    ).astype(np.int32)


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_copies_of_states_are_merged_again(copies):
    swollen = replace(PAIR.transition, transitions=doubled(PAIR.transition.transitions, copies))
    pair = PAIR.replacing(swollen, replace(PAIR.reward, supplemented=False))
    seen = replay(pair, Corpus(InMemorySource([TRACES])))
    assert not len(seen.machines["transition"].conflicts)
    found = merge_equal_states(swollen, seen.machines["transition"])
    assert np.array_equal(found.transitions, PAIR.transition.transitions)
    assert swollen.decisions is not None
    assert found.decisions is None


def test_minimal_machines_are_not_compacted():
    seen = replay(PAIR, Corpus(InMemorySource([TRACES])))
    assert merge_equal_states(PAIR.transition, seen.machines["transition"]) is None
    assert merge_equal_states(PAIR.reward, seen.machines["reward"]) is None


def test_states_that_differ_only_later_are_not_merged():
    """0 -a-> 1 -b-> 2 and 0 -b-> 3 -b-> 4: 1 and 3 have no answers, 2 and 4 different ones."""

    def trace(labels, last):
        steps = len(labels)
        ask = ["wait"] * steps + ["ask"]
        return rs.Trace([0] * (steps + 2), [None, *labels, None], ask, [0.0] * steps + [last])

    traces = rs.TraceSet([trace(["a", "b"], 1.0), trace(["b", "b"], 2.0), trace(["a"], 0.0)])
    pair = rs.infer(
        traces, strategy="rpni", options=rs.InferenceOptions(supplement=False, remove_trivial=False)
    ).machines
    seen = replay(pair, Corpus(InMemorySource([traces])))
    before = pair.reward.states
    found = merge_equal_states(pair.reward, seen.machines["reward"])
    assert found is None
    assert before >= 3


def test_machines_with_very_many_states_are_not_compacted():
    machine = replace(PAIR.transition, transitions=doubled(PAIR.transition.transitions, 40))
    seen = replay(PAIR, Corpus(InMemorySource([TRACES])))
    assert merge_equal_states(machine, seen.machines["transition"]) is None


def walks(*ends, label=None):
    """Traces of two steps that end so, of which the second step comes after a label."""
    return [rs.Trace(["a", "a", end], [None, label, None], ["go", "go"], [0, 0]) for end in ends]


CLEAN = rs.TraceSet([*walks("a"), *walks("b", label="key")])


def noisy_machine(traces):
    machines = rs.infer(CLEAN, outputs=["observation"]).machines
    return taught(machines, rs.TraceSet(traces)).transition


def test_a_state_predicts_the_most_frequent_output():
    machine = noisy_machine([*walks("a", "b", "a"), *walks("b", "b", "a", label="key")])
    assert machine.states == 2
    # In state 0 the first steps of all six, and the second ones of the first three.
    assert machine.counts(0, "a", "go") == {"a": 8, "b": 1}
    assert machine.counts(1, "a", "go") == {"b": 2, "a": 1}
    assert [machine.output(state, "a", "go") for state in (0, 1)] == ["a", "b"]
    assert machine.support.outputs.tolist() == [9, 3]
    assert machine.noise == 2 / 12


def test_a_query_that_varies_in_one_state_is_not_constant():
    # The output in state 1 is "a" or "b", state 0 always "a": the most frequent outputs are the same.
    machine = noisy_machine([*walks("a"), *walks("a", "a", "b", label="key")])
    assert machine.output_value.tolist() == [0, 0]
    assert len(machine.constant_value) == 0
    assert (machine.counts(0, "a", "go"), machine.noise) == ({"a": 5}, 1 / 8)


def test_traces_without_noise_leave_none():
    machine = noisy_machine(CLEAN)
    assert not machine.is_noisy
    assert machine == rs.infer(CLEAN, outputs=["observation"]).machines.transition


def test_steps_after_an_unknown_label_belong_to_no_state():
    lost = rs.Trace(["a", "a", "b"], [None, "gong", None], ["go", "go"], [0, 0])
    machine = noisy_machine([*CLEAN, lost])
    assert not machine.is_noisy
    assert int(machine.support.outputs.sum()) == 5
    assert np.all(machine.output_state >= 0)
    assert np.all(machine.support.transitions[machine.transitions < 0] == 0)
