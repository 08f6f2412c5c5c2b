"""Whole searches small enough to follow by hand."""

import pytest

from resolvent.inference.engine import merge
from resolvent.inference.merge_order import FirstFit
from resolvent.inference.state_merging import RedBlue, Watch, build_prefix_tree
from resolvent.machines.build import RawMergeEvent
from strategies import sample_set

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
