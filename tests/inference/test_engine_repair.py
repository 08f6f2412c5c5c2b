"""Repaired machines explain all samples and are not larger; lower bounds hold."""

from dataclasses import fields, replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from mealy_machine import Mealy
from resolvent.inference.engine import Limits, merge, min_states_bound, repair_automaton
from resolvent.inference.options import InferenceOptions
from resolvent.machines.build import automaton_of_transitions
from resolvent.preprocess.reduction import remove_trivial
from resolvent.preprocess.samples import Histories, find_contradiction, output_samples
from strategies import sample_sets


def samples_of(machine, steps, seed=0):
    """What is known of a Mealy machine from random walks."""
    traces = machine.traces(steps, seed)
    samples = output_samples(traces, Histories.of(traces, InferenceOptions().timing), "output")
    silence = [code for code, label in enumerate(traces.labels) if not label]
    return replace(samples, histories=remove_trivial(samples.histories, silence))


def table_of(automaton, samples):
    """The moves by state and label code; -1 where there is none."""
    table = np.full((automaton.states, len(samples.labels)), -1, np.int32)
    columns = (automaton.transition_state, automaton.transition_label, automaton.transition_target)
    for state, label, target in zip(*(column.tolist() for column in columns), strict=True):
        table[state, label] = target
    return table


def explains(automaton, samples):
    """Whether every row is answered as all others in its state that ask the same."""
    table, answers = table_of(automaton, samples), {}
    for start, stop in pairwise(samples.offsets.tolist()):
        state = 0
        for row in range(start, stop):
            if samples.beta[row] >= 0:
                state = int(table[state, samples.beta[row]])
            asked = int(samples.alpha[row])
            if (
                asked >= 0
                and answers.setdefault((state, asked), samples.output[row]) != (samples.output[row])
            ):
                return False
    return True


def with_a_copy(table, state, rng):
    """The same machine with one state twice, and some of the ways to it leading to the copy."""
    twice = np.vstack([table, table[state]])
    to_it = np.argwhere(twice == state)
    for source, label in to_it[rng.permutation(len(to_it))[: max(1, len(to_it) // 3)]]:
        twice[source, label] = len(table)
    return twice


@pytest.mark.parametrize("seed", range(4))
def test_a_duplicated_state_is_merged(seed):
    samples = samples_of(Mealy.drawn(8, seed), 24_000, seed)
    found = merge(samples)
    assert found.states == 8
    copied = with_a_copy(table_of(found, samples), 1 + seed, np.random.default_rng(seed))
    better = repair_automaton(samples, automaton_of_transitions(copied))
    assert better.states == 8
    assert explains(better, samples)
    assert table_of(better, samples).tolist() == table_of(found, samples).tolist()


def test_a_wrong_transition_that_cost_states_is_repaired():
    """A merge that nothing spoke against, and all that then had to be told apart because of it."""
    improved = 0
    for seed in range(6):
        samples = samples_of(Mealy.drawn(12, seed), 5_000, seed)
        found = merge(samples)
        better = repair_automaton(samples, found, effort=0.1)
        assert explains(better, samples)
        assert better.states <= found.states
        improved += better.states < found.states
        if found.states <= 12:
            assert better is found
    assert improved


@given(sample_sets(), st.integers(0, 3))
@settings(deadline=None)
def test_repair_explains_all_samples_and_is_never_larger(samples, seed):
    if find_contradiction(samples) is not None:
        return
    found = merge(samples, order="rpni")
    better = repair_automaton(samples, found, seed=seed, effort=0.01)
    assert better.states <= found.states
    assert explains(better, samples)
    assert min_states_bound(samples, found) <= better.states


def test_the_same_seed_gives_the_same_automaton():
    samples = samples_of(Mealy.drawn(12, 3), 5_000, 3)
    found = merge(samples)
    first, second = (repair_automaton(samples, found, seed=5, effort=0.1) for _ in range(2))
    for field in fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        assert np.array_equal(one, other), field.name


def test_without_effort_or_time_the_automaton_is_returned_unchanged():
    samples = samples_of(Mealy.drawn(12, 0), 5_000)
    found = merge(samples)
    assert repair_automaton(samples, found, effort=0) is found
    assert repair_automaton(samples, found, limits=Limits(1e-9)).states <= found.states


def test_a_machine_that_does_not_explain_the_samples_is_refused():
    samples = samples_of(Mealy.drawn(5, 0), 1_000)
    one_state = np.zeros((1, len(samples.labels)), np.int32)
    one_state[0, [code for code, label in enumerate(samples.labels) if not label]] = -1
    with pytest.raises(ValueError, match="does not explain"):
        repair_automaton(samples, automaton_of_transitions(one_state))


def largest_clique(samples):
    """As many histories as pairwise conflict, by trying all sets of them."""
    ahead = {}  # by history: what is answered after which labels
    for start, stop in pairwise(samples.offsets.tolist()):
        read = []
        for row in range(start, stop):
            if samples.beta[row] >= 0:
                read.append(int(samples.beta[row]))
            if samples.alpha[row] >= 0:
                for cut in range(len(read) + 1):
                    asked = (*read[cut:], -1, int(samples.alpha[row]))
                    ahead.setdefault(tuple(read[:cut]), {})[asked] = int(samples.output[row])
    tellers = list(ahead.values())
    differ = {
        (one, other)
        for one, other in combinations(range(len(tellers)), 2)
        if any(tellers[other].get(asked, told) != told for asked, told in tellers[one].items())
    }
    size = 1
    while any(differ.issuperset(combinations(some, 2)) for some in _sets(tellers, size + 1)):
        size += 1
    return size


def _sets(tellers, size):
    return combinations(range(len(tellers)), size)


@given(sample_sets(traces=3, length=4))
@settings(deadline=None, max_examples=60)
def test_the_bound_is_at_most_the_largest_clique(samples):
    if find_contradiction(samples) is not None:
        return
    assert 1 <= min_states_bound(samples, merge(samples)) <= largest_clique(samples)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("steps", [300, 3_000, 30_000])
def test_the_bound_is_never_above_the_truth_and_reaches_it(seed, steps):
    machine = Mealy.drawn(10, seed)
    samples = samples_of(machine, steps, seed)
    for order in ("rpni", "edsm"):
        found = merge(samples, order=order)
        proven = min_states_bound(samples, found)
        assert proven <= min(machine.states, found.states)
        if steps == 30_000:
            assert proven == machine.states


def test_repeated_and_shuffled_traces_prove_the_same():
    traces = Mealy.drawn(10, 1).traces(3_000, 1)
    order = np.random.default_rng(0).permutation(len(traces)).tolist()
    mixed = traces.take([*order, *order[:5]])
    proven = [
        min_states_bound(samples, merge(samples))
        for samples in (
            output_samples(some, Histories.of(some, InferenceOptions().timing), "output")
            for some in (traces, mixed)
        )
    ]
    assert proven[0] == proven[1] > 1


def test_the_bound_compares_at_most_2048_states():
    """All answers differ, so that each step has a state of its own; to prove that takes long."""
    steps = 3_000
    counting = rs.Trace(
        ["nothing"] * (steps + 1),
        [["tick"]] * (steps + 1),
        ["tick"] * steps,
        columns={"output": [str(step) for step in range(steps)]},
    )
    traces = rs.TraceSet([counting])
    samples = output_samples(traces, Histories.of(traces, InferenceOptions().timing), "output")
    found = merge(samples, order="rpni")
    assert len(found.access) == steps
    assert min_states_bound(samples, found) == 2_048
