"""The native half of the exact search, on tables worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings

from resolvent import _core
from resolvent.inference.engine import merge
from resolvent.preprocess.samples import find_contradiction
from strategies import columns, sample_set, sample_sets

# Label 0 goes round a ring of two that answer alpha 0 with 0 and 1; after label 1
# nothing is asked.
RING = sample_set([[(-1, 0, 0), (0, 0, 1), (0, 0, 0), (1, -1, -1)], [(0, 0, 1)]])
LABELS = 2
FLIP = [1, 0, 0, 0]  # by state and label


def ids(*values):
    return np.array(values, np.int32)


def tree_of(samples):
    return samples.histories.tree


def evidence_of(samples, labels=None):
    labels = len(samples.labels) if labels is None else labels
    return _core.output_tree(tree_of(samples), samples.alpha, samples.output, labels)


def clash(table, samples):
    return _core.first_conflict(ids(*table), len(samples.labels), *columns(samples))


def test_nodes_without_later_queries_are_no_evidence():
    assert len(tree_of(RING)) == 4
    assert len(evidence_of(RING)) == 3


def test_a_canonical_table_numbers_states_by_first_visit():
    evidence = evidence_of(RING)
    assert evidence.canonical(ids(*FLIP)).tolist() == [1, -1, 0, -1]
    # The same machine with another name for its second state, and a state never met.
    assert evidence.canonical(ids(2, 0, 1, 1, 0, 2)).tolist() == [1, -1, 0, -1]
    assert evidence.canonical(ids(0, 0)).tolist() == [0, -1]


def test_the_first_clash_is_two_rows():
    assert clash(FLIP, RING) is None
    assert clash([0, 0], RING) == (0, 1)
    assert clash([1, 0, 1, 0], RING) == (1, 2)


def test_a_machine_built_from_a_table_counts_all_rows():
    found = _core.merge_as(tree_of(RING), RING.alpha, RING.output, ids(1, -1, 0, -1), LABELS)
    assert found["access"].tolist() == [0, 1]
    assert found["transition_state"].tolist() == [0, 0, 1]
    assert found["transition_label"].tolist() == [0, 1, 0]
    assert found["transition_target"].tolist() == [1, 0, 0]
    assert found["transition_count"].tolist() == [2, 1, 1]
    assert found["output_state"].tolist() == [0, 1]
    assert found["output_value"].tolist() == [0, 1]
    assert found["output_count"].tolist() == [2, 2]


@settings(deadline=None, max_examples=100)
@given(sample_sets().filter(lambda samples: find_contradiction(samples) is None))
def test_a_merged_machine_has_no_clash(samples):
    automaton = merge(samples)
    table = np.zeros((automaton.states, len(samples.labels)), np.int32)
    table[automaton.transition_state, automaton.transition_label] = automaton.transition_target
    assert _core.first_conflict(table.ravel(), len(samples.labels), *columns(samples)) is None
    evidence = evidence_of(samples)
    settled = evidence.canonical(table.ravel())
    assert np.array_equal(evidence.canonical(np.maximum(settled, 0)), settled)


# ---- what is refused -------------------------------------------------------


@pytest.mark.parametrize("table", [(), (0,), (2, 0, 0, 0), (-1, 0, 0, 0), (0, 0, 0)])
def test_invalid_tables_are_refused(table):
    evidence = evidence_of(RING)
    for call in (evidence.canonical, lambda x: clash(x, RING)):
        with pytest.raises(ValueError, match=r"table|range"):
            call(ids(*table))


def test_settled_tables_must_have_targets_that_exist():
    with pytest.raises(ValueError, match="range"):
        _core.merge_as(tree_of(RING), RING.alpha, RING.output, ids(1, -1), LABELS)


def test_labels_must_be_known():
    with pytest.raises(ValueError, match="unknown label"):
        evidence_of(RING, labels=1)
    with pytest.raises(ValueError, match="range"):
        _core.first_conflict(ids(0), 1, *columns(RING))


def test_contradictory_samples_are_refused():
    with pytest.raises(ValueError, match="contradict"):
        evidence_of(sample_set([[(-1, 0, 0)], [(-1, 0, 1)]]))
