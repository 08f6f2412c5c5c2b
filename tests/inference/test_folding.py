import copy

import pytest

from resolvent._core import SteppedFolding
from resolvent.inference.state_merging import (
    Fold,
    FoldConflict,
    build_prefix_tree,
    compatible,
    try_fold,
)
from strategies import columns, sample_set

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
