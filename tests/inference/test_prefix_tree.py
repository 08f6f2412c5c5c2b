import numpy as np
import pytest

from resolvent._core import SteppedFolding, find_contradiction
from resolvent.inference.state_merging import build_prefix_tree
from resolvent.preprocess.samples import ContradictoryRows
from strategies import columns, sample_set

#          root ── 0 ── 1        histories in shortlex order: (), 0, 1, 01, 10, 11
#             └─── 1 ── 0
#                   └─ 1
TRACES = [
    [(-1, 0, 7), (1, 0, 3), (1, 1, 4)],  # () 1 11
    [(1, 0, 3), (0, -1, -1), (-1, 2, 5)],  # 1 10 10
    [(0, -1, -1), (1, 0, 9), (-1, 0, 9)],  # 0 01 01
]


def first_contradiction(samples):
    return find_contradiction(samples.histories.tree, samples.alpha, samples.output)


def test_nodes_come_in_shortlex_order():
    tree = build_prefix_tree(sample_set(TRACES))
    assert tree.parent == [-1, 0, 0, 1, 2, 2]
    assert tree.label == [-1, 0, 1, 1, 0, 1]
    assert tree.children == [{0: 1, 1: 2}, {1: 3}, {0: 4, 1: 5}, {}, {}, {}]
    assert len(tree) == 6


def test_nodes_hold_outputs_counts_and_visits():
    tree = build_prefix_tree(sample_set(TRACES))
    assert tree.outputs == [{0: 7}, {}, {0: 3}, {0: 9}, {2: 5}, {1: 4}]
    assert tree.counts == [{0: 1}, {}, {0: 2}, {0: 2}, {2: 1}, {1: 1}]
    assert tree.visits == [3, 1, 2, 1, 1, 1]


def test_the_order_of_traces_makes_no_difference():
    tree, other = (build_prefix_tree(sample_set(order)) for order in (TRACES, TRACES[::-1]))
    assert tree.parent == other.parent
    assert tree.label == other.label
    assert tree.outputs == other.outputs


def test_the_native_tree_is_the_same():
    nodes = SteppedFolding(*columns(sample_set(TRACES))).snapshot()
    assert nodes == [
        (0, [(0, 1), (1, 2)], [(0, 7)]),
        (1, [(1, 3)], []),
        (2, [(0, 4), (1, 5)], [(0, 3)]),
        (3, [], [(0, 9)]),
        (4, [], [(2, 5)]),
        (5, [], [(1, 4)]),
    ]


def test_a_tree_without_labels_is_its_root():
    tree = build_prefix_tree(sample_set([[(-1, 0, 1), (-1, 1, 2)], []]))
    assert (tree.parent, tree.outputs, tree.visits) == ([-1], [{0: 1, 1: 2}], [2])


@pytest.mark.parametrize(
    ("traces", "rows"),
    [
        ([[(0, 0, 1)], [(0, 0, 2)]], (0, 1)),
        ([[(0, 0, 1), (-1, 0, 1), (-1, 0, 2)]], (0, 2)),
        # A shorter history first, though it comes later.
        ([[(0, 0, 1), (0, 0, 1)], [(0, 0, 1), (0, 0, 2)], [(1, 0, 3)], [(1, 0, 4)]], (4, 5)),
        # Of one history, the smaller alpha; of one alpha, the first row and the first that differs.
        ([[(0, 5, 1), (-1, 5, 2), (-1, 3, 0), (-1, 3, 0), (-1, 3, 1), (-1, 3, 2)]], (2, 4)),
    ],
)
def test_the_first_contradiction_is_named(traces, rows):
    samples = sample_set(traces)
    with pytest.raises(ContradictoryRows) as caught:
        build_prefix_tree(samples)
    assert (caught.value.first, caught.value.second) == rows
    assert first_contradiction(samples) == rows
    with pytest.raises(ValueError, match="contradict"):
        SteppedFolding(*columns(samples))


def test_agreeing_samples_have_no_contradiction():
    assert first_contradiction(sample_set(TRACES)) is None


def test_deep_trees_need_no_recursion():
    rows = [(0, -1, -1)] * 100_000
    assert len(build_prefix_tree(sample_set([rows]))) == 100_001
    found = first_contradiction(sample_set([[*rows, (0, 0, 0)], [*rows, (0, 0, 1)]]))
    assert found == (100_000, 200_001)
    assert np.iinfo(np.int32).max > 200_001
