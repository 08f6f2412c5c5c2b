"""Prefix trees, folding and red-blue merging, on samples small enough to follow by hand."""

import copy

import numpy as np
import pytest

from resolvent._core import SteppedFolding, find_conflict
from resolvent.inference.engine import merge
from resolvent.inference.merge_order import FirstFit
from resolvent.inference.state_merging import (
    Fold,
    FoldConflict,
    RedBlue,
    Watch,
    build_prefix_tree,
    compatible,
    try_fold,
)
from resolvent.machines.build import RawMergeEvent
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
    return find_conflict(samples.histories.tree, samples.alpha, samples.output)


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


# A line of four states over one label: 0 —0→ 1 —0→ 2 —0→ 3, answering alpha 0 with 1, 2, 1, 2.
LINE = [[(-1, 0, 1), (0, 0, 2), (0, 0, 1), (0, 0, 2)]]


def tree_of(traces):
    return build_prefix_tree(sample_set(traces))


def test_compatible_counts_the_outputs_that_agree():
    tree = tree_of([[(-1, 0, 1), (-1, 1, 1), (-1, 2, 1), (0, 0, 1), (-1, 2, 1), (-1, 3, 9)]])
    assert compatible(tree, 0, 1) == 2


def test_compatible_names_the_query_that_differs():
    tree = tree_of([[(-1, 0, 1), (-1, 1, 1), (0, 0, 1), (-1, 1, 2)]])
    assert compatible(tree, 0, 1) == FoldConflict(into=0, state=1, alpha=1)


def test_states_without_outputs_are_compatible():
    assert compatible(tree_of([[(0, 0, 1)]]), 0, 1) == 0


def test_a_fold_merges_all_that_follows():
    tree = tree_of(LINE)
    fold = try_fold(tree, 0, 2, parent=1, label=0)
    assert isinstance(fold, Fold)
    assert fold.agreeing == 2  # 2 agrees with 0, and so 3 with 1
    assert fold.merged == [(2, 0), (3, 1)]
    assert tree.children == [{0: 1}, {0: 0}, {0: 3}, {}]


def test_a_conflict_further_down_undoes_the_fold():
    traces = [[(-1, 0, 1), (0, 0, 2), (0, 0, 1), (0, 0, 3)]]
    tree = tree_of(traces)
    before = copy.deepcopy(tree)
    assert try_fold(tree, 0, 2, parent=1, label=0) == FoldConflict(into=1, state=3, alpha=0)
    assert tree == before


def test_a_state_folds_into_its_own_parent():
    """The edge is redirected first, so what hangs below folds into the loop."""
    tree = tree_of([[(-1, 0, 1), (0, -1, -1), (0, 0, 1), (0, 1, 5)]])
    fold = try_fold(tree, 0, 1, parent=0, label=0)
    assert isinstance(fold, Fold)
    assert fold.agreeing == 1
    assert fold.merged == [(1, 0), (2, 0), (3, 0)]
    assert fold.new_outputs == [(0, 1)]
    assert tree.children[0] == {0: 0}
    assert tree.outputs[0] == {0: 1, 1: 5}
    fold.undo()
    assert tree.children[0] == {0: 1}
    assert tree.outputs[0] == {0: 1}


def test_outputs_added_during_a_fold_can_conflict():
    """Neither pair conflicts by itself: 2 and 3 both fold into 0, and disagree there."""
    tree = tree_of([[(0, -1, -1), (0, 0, 1), (0, 0, 2)]])
    before = copy.deepcopy(tree)
    assert try_fold(tree, 0, 1, parent=0, label=0) == FoldConflict(into=0, state=3, alpha=0)
    assert tree == before


def test_missing_children_are_grafted():
    tree = tree_of([[(0, 0, 1), (1, 0, 2)], [(1, 0, 3)]])  # () 0 1 01
    fold = try_fold(tree, 0, 2, parent=0, label=1)
    assert isinstance(fold, Fold)
    assert fold.moved == []
    fold.undo()
    fold = try_fold(tree, 2, 1, parent=0, label=0)  # not red, but that is the caller's affair
    assert fold == FoldConflict(2, 1, 0)
    tree = tree_of([[(0, -1, -1), (1, 0, 2)], [(1, 0, 3)]])
    fold = try_fold(tree, 2, 1, parent=0, label=0)
    assert isinstance(fold, Fold)
    assert fold.moved == [(2, 1, 3)]
    assert tree.children[2] == {1: 3}
    fold.undo()
    assert tree.children == [{0: 1, 1: 2}, {1: 3}, {}, {}]


def test_a_horizon_limits_the_pairs_that_are_folded():
    tree = tree_of(LINE)
    fold = try_fold(tree, 0, 2, parent=1, label=0, horizon=1)
    assert isinstance(fold, Fold)
    assert (fold.agreeing, fold.merged) == (1, [(2, 0)])


# ---- the native fold, step by step -----------------------------------------


def test_stepped_folding_by_hand():
    folding = SteppedFolding(*columns(sample_set(LINE)))
    start = folding.snapshot()
    assert folding.try_fold(0, 1) is None
    assert folding.snapshot() == start
    folding.promote(1)
    assert folding.snapshot() == start
    assert folding.try_fold(0, 2) == 2
    assert [node[1] for node in folding.snapshot()] == [[(0, 1)], [(0, 0)], [(0, 3)], []]
    folding.undo()
    assert folding.snapshot() == start
    assert folding.try_fold(0, 2) == 2


def test_stepped_folding_refuses_invalid_states():
    folding = SteppedFolding(*columns(sample_set(LINE)))
    for red in (-1, 1, 4, 2**31 - 1):
        with pytest.raises(ValueError, match="red is not a red state"):
            folding.try_fold(red, 1)
    for blue in (-1, 0, 2, 4, -(2**31)):
        with pytest.raises(ValueError, match="blue is not a blue state"):
            folding.try_fold(0, blue)
    for state in (-1, 0, 2, 4):
        with pytest.raises(ValueError, match="only a blue state"):
            folding.promote(state)
    with pytest.raises(ValueError, match="no fold to undo"):
        folding.undo()
    with pytest.raises(TypeError):
        folding.promote(2**31)
    folding.try_fold(0, 1)
    with pytest.raises(ValueError, match="no fold to undo"):
        folding.undo()  # the fold failed
    folding.promote(1)
    folding.try_fold(0, 2)
    folding.undo()
    with pytest.raises(ValueError, match="no fold to undo"):
        folding.undo()
    folding.try_fold(0, 2)
    with pytest.raises(ValueError, match="not a blue state"):
        folding.try_fold(0, 2)  # it was merged and is no more


both_engines = pytest.mark.parametrize("engine", ["native", "python"])
both_orders = pytest.mark.parametrize("order", ["edsm", "rpni"])

# A light switch: label 0 toggles, alpha 0 tells. Nodes () 0 00 000 = 0 1 2 3.
SWITCH = [[(-1, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 1)]]


@both_engines
@both_orders
def test_a_switch_has_two_states(engine, order):
    found = merge(sample_set(SWITCH), order=order, engine=engine)
    assert found.access.tolist() == [0, 1]
    assert found.transition_state.tolist() == [0, 1]
    assert found.transition_label.tolist() == [0, 0]
    assert found.transition_target.tolist() == [1, 0]
    assert found.transition_count.tolist() == [2, 1]
    assert found.output_state.tolist() == [0, 1]
    assert found.output_alpha.tolist() == [0, 0]
    assert found.output_value.tolist() == [0, 1]
    assert found.output_count.tolist() == [2, 2]
    assert found.events == (RawMergeEvent(None, 1, 0, 0), RawMergeEvent(0, 2, 2, 2))
    assert found.tree_nodes == 4


@both_engines
@pytest.mark.parametrize(("order", "attempts"), [("rpni", 2), ("edsm", 4)])
def test_every_attempt_is_counted(engine, order, attempts):
    """Rpni tries (0, 1) and (0, 2); edsm also (1, 2), and folds the best once more."""
    assert merge(sample_set(SWITCH), order=order, engine=engine).attempts == attempts


# The orders part ways: after a, alpha 0 answers 1; after b, alphas 0 and 1 answer 2 and 2; after
# c, nothing but alpha 1, with 2. The root answers nothing, so that it takes what comes first.
FORK = [[(0, 0, 1)], [(1, 0, 2), (-1, 1, 2)], [(2, 1, 2)]]


@both_engines
def test_rpni_makes_the_first_merge_that_fits(engine):
    """A joins the root, b conflicts with that, and c joins the root too, for nothing hinders it."""
    found = merge(sample_set(FORK), order="rpni", engine=engine)
    assert found.events == (
        RawMergeEvent(0, 1, 0, 1),
        RawMergeEvent(None, 2, 0, 0),
        RawMergeEvent(0, 3, 0, 1),
    )
    assert found.transition_target.tolist() == [0, 1, 0]


@both_engines
def test_edsm_makes_the_merge_with_most_agreement(engine):
    """No pair agrees at first: a joins the root. Then b fits nothing; then c agrees with b."""
    found = merge(sample_set(FORK), order="edsm", engine=engine)
    assert found.events == (
        RawMergeEvent(0, 1, 0, 1),
        RawMergeEvent(None, 2, 0, 0),
        RawMergeEvent(2, 3, 1, 1),
    )
    assert found.transition_target.tolist() == [0, 1, 1]


@both_engines
@both_orders
def test_grafted_children_of_a_red_state_become_blue(engine, order):
    """What hangs below the merged state 0 is decided later, as the root's own."""
    traces = [[(-1, 0, 5), (0, 0, 5), (1, 0, 6)]]  # nodes () 0 01
    found = merge(sample_set(traces), order=order, engine=engine)
    assert found.events == (RawMergeEvent(0, 1, 1, 1), RawMergeEvent(None, 2, 0, 0))
    assert found.access.tolist() == [0, 2]
    assert found.transition_target.tolist() == [0, 1]


@both_engines
@both_orders
def test_states_are_numbered_by_promotion(engine, order):
    """B is promoted after a, whatever its answers are."""
    traces = [[(-1, 0, 0)], [(0, 0, 2)], [(1, 0, 1)]]
    found = merge(sample_set(traces), order=order, engine=engine)
    assert found.access.tolist() == [0, 1, 2]
    assert found.output_value.tolist() == [0, 2, 1]
    assert found.events == (RawMergeEvent(None, 1, 0, 0), RawMergeEvent(None, 2, 0, 0))


@both_engines
@both_orders
def test_counts_add_up_over_merged_states(engine, order):
    traces = [[(0, 0, 1), (0, 0, 1), (0, 0, 1)], [(0, 0, 1), (-1, 0, 1)], [(0, 1, 2)]]
    found = merge(sample_set(traces), order=order, engine=engine)
    assert found.states == 1
    assert found.transition_count.tolist() == [5]
    assert found.output_alpha.tolist() == [0, 1]
    assert found.output_count.tolist() == [5, 1]


def test_history_is_the_path_from_the_root():
    tree = sample_set([[(2, 0, 0), (0, 0, 1)], [(1, 0, 2)]]).histories.tree
    assert [tree.history(node) for node in range(len(tree))] == [[], [1], [2], [2, 0]]


def test_every_node_ends_in_a_red_state():
    search = RedBlue(build_prefix_tree(sample_set(SWITCH)), Watch(None, None))
    assert search.blue_in_order() == [1]
    search.run(FirstFit())
    assert search.states_of_nodes() == [0, 1, 0, 1]
    assert search.red == [0, 1]
    assert search.merges == 1
