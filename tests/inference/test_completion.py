"""Completion of merging that ran out of time, on samples small enough to work out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automata import unexplained
from resolvent import _core
from resolvent.inference.engine import Limits, merge
from resolvent.machines.build import automaton_from_columns
from resolvent.preprocess.samples import ContradictoryRows, find_contradiction
from strategies import sample_set, sample_sets

# Label 0 leads from the root to a state that answers 1, and back; label 1 is not settled.
SAMPLES = sample_set(
    [
        [(0, 0, 1), (0, 0, 0), (0, 0, 1)],
        [(1, 0, 1), (0, 0, 0), (0, 0, 1)],
        [(1, 0, 1), (1, 0, 0)],
    ]
)


def nodes(samples):
    """The number of each history's node."""
    tree = samples.histories.tree
    return {tuple(tree.history(node)): node for node in range(len(tree))}


def completed(samples, access, settled):
    """The automaton of a search that was stopped with these states."""
    tree = samples.histories.tree
    columns = _core.complete(
        tree,
        samples.alpha,
        samples.output,
        np.array(access, np.int32),
        np.array(settled, np.int32),
    )
    return automaton_from_columns(columns, len(tree))


def test_undecided_nodes_join_the_state_with_most_agreement():
    node = nodes(SAMPLES)
    settled = [-1] * len(node)
    for history, state in {(): 0, (0,): 1, (0, 0): 0, (0, 0, 0): 1}.items():
        settled[node[history]] = state
    found = completed(SAMPLES, [0, node[0,]], settled)
    assert not found.finished
    assert found.states == 2
    moves = zip(found.transition_state.tolist(), found.transition_label.tolist(), strict=True)
    table = dict(zip(moves, found.transition_target.tolist(), strict=True))
    # After label 1 it answers 1, then after 0 it answers 0, then 1: as state 1 does.
    assert table == {(0, 0): 1, (1, 0): 0, (0, 1): 1, (1, 1): 0}
    assert found.wrong == 0
    assert unexplained(found, SAMPLES) == []
    assert [(event.red, event.blue) for event in found.events] == [
        (node[0,], node[1,]),
        (0, node[1, 1]),
    ]
    assert all(event.folded >= 1 for event in found.events)


def test_states_predict_the_most_frequent_output():
    samples = sample_set([[(0, 0, 1), (0, 0, 1), (0, 0, 0)]])
    found = completed(samples, [0], [0, -1, -1, -1])
    assert found.states == 1
    assert found.output_value.tolist() == [1]
    assert found.wrong == len(unexplained(found, samples)) == 1


def test_of_equally_frequent_outputs_the_lowest_is_predicted():
    samples = sample_set([[(0, 0, 1), (0, 0, 0)]])
    assert completed(samples, [0], [0, -1, -1]).output_value.tolist() == [0]


@settings(deadline=None)
@given(samples=sample_sets(), cut=st.integers(0, 8))
def test_wrong_rows_are_counted_wherever_merging_stops(samples, cut):
    """Settled is what the first states of a finished machine have, and what is above it."""
    if find_contradiction(samples) is not None:
        return
    whole = merge(samples)
    kept = min(cut, whole.states - 1) + 1
    table = {
        (state, label): target
        for state, label, target in zip(
            whole.transition_state.tolist(),
            whole.transition_label.tolist(),
            whole.transition_target.tolist(),
            strict=True,
        )
    }
    settled = []
    for node in range(len(samples.histories.tree)):
        state = 0
        for label in samples.histories.tree.history(node):
            state = -1 if state < 0 else table[state, label]
            if state >= kept:
                state = -1
        settled.append(state)
    found = completed(samples, whole.access[:kept].tolist(), settled)
    assert found.states == kept
    assert found.wrong == len(unexplained(found, samples))
    if kept == whole.states:
        assert found.wrong == 0


@pytest.mark.parametrize(
    ("access", "settled", "words"),
    [
        ([0], [0, 0], "the state of each node"),
        ([0], [0, 1, -1], None),
        ([0], [-1, -1, -1], "the first node"),
        ([0], [0, -1, 0], "above a settled node"),
        ([7], [0, -1, -1], None),
    ],
)
def test_invalid_columns_are_refused(access, settled, words):
    samples = sample_set([[(0, 0, 1), (0, 0, 1)]])
    with pytest.raises(ValueError, match=words):
        completed(samples, access, settled)


def test_a_contradiction_is_raised_despite_the_time_limit():
    samples = sample_set([[(0, 0, 1)], [(0, 0, 0)]])
    with pytest.raises(ContradictoryRows):
        merge(samples, limits=Limits(1e-9))
