import pytest

import resolvent as rs
from resolvent.inference.engine import merge
from resolvent.inference.state_merging import Fold, build_prefix_tree, try_fold
from resolvent.inference.strategy import NodeOutputs, OutputCount, ProposedMerge, Strategy
from strategies import sample_set

# Nodes: () = 0, then label 0 = 1, labels 0 0 = 2. Alpha 0 is answered 7 throughout,
# once, twice and thrice; alpha 1 is answered 8 by nodes 0 and 2, alpha 2 by node 1 alone.
LINE = sample_set(
    [
        [(-1, 0, 7), (-1, 1, 8)],
        [(0, 0, 7), (-1, 0, 7), (-1, 2, 9)],
        [(0, -1, -1), (0, 0, 7), (-1, 0, 7), (-1, 0, 7), (-1, 1, 8)],
    ]
)


def folded(red, blue, parent, horizon=None):
    tree = build_prefix_tree(LINE)
    fold = try_fold(tree, red, blue, parent, 0, horizon)
    assert isinstance(fold, Fold)
    return tree, ProposedMerge(LINE, fold)


def test_outputs_are_a_mapping_from_queries():
    node = NodeOutputs(LINE, build_prefix_tree(LINE), 1)
    assert dict(node) == {0: OutputCount(7, 2), 2: OutputCount(9, 1)}
    assert (len(node), list(node), 1 in node) == (2, [0, 2], False)
    assert node.get(1) is None
    assert node.query(2) == (2, "ask")  # the second is the only action of these samples
    with pytest.raises(TypeError):
        node[0] = OutputCount(1, 1)


def test_outputs_of_merged_nodes_add_up():
    tree, _ = folded(0, 1, parent=0)  # and so node 2, which hangs from 1 by the same label
    assert dict(NodeOutputs(LINE, tree, 0)) == {
        0: OutputCount(7, 1 + 2 + 3),
        1: OutputCount(8, 1 + 1),
        2: OutputCount(9, 1),
    }


def test_agreements_in_the_order_in_which_nodes_fold():
    _, merge = folded(0, 1, parent=0)
    assert (merge.agreeing, merge.folded) == (3, 2)
    assert list(merge.agreements()) == [
        (0, 7, 1, 2),  # node 1 into the root
        (0, 7, 1 + 2, 3),  # then node 2, and by now the root knows more
        (1, 8, 1, 1),
    ]
    assert list(merge.agreements()) == list(merge.agreements())
    assert merge.query(1) == (1, "ask")


def test_a_horizon_limits_the_agreements():
    _, merge = folded(0, 1, parent=0, horizon=2)  # node 1 answers two queries
    assert (merge.agreeing, merge.folded) == (1, 1)
    assert [tuple(agreement) for agreement in merge.agreements()] == [(0, 7, 1, 2)]


def test_a_strategy_sees_observations_actions_and_outputs():
    """Each machine asks about what follows "press": what is seen next, and what it pays."""
    seen = []

    class Watching(Strategy):
        name = "watching"

        def fits(self, known, new):
            seen.extend(
                (new.query(number), answer.output, answer.count) for number, answer in new.items()
            )
            return True

        def score(self, merge):
            return merge.agreeing

    lamp = rs.Trace(["dark", "dark", "light"], [None, "press", None], ["wait", "look"], [0, 0.5])
    rs.infer(
        rs.TraceSet([lamp]),
        strategy=Watching(),
        options=rs.InferenceOptions(remove_redundant=False, refine=False),
    )
    assert set(seen) == {
        (("dark", "look"), "light", 1),
        ((("dark", 0), "look"), 0.5, 1),
    }


def test_the_count_of_an_output_can_decide():
    """Two merges on which one answer agrees; the second was seen more often.

    Label 0 leads to a node that answers alpha 0 once, label 1 to one that answers
    alpha 1 five times; the root knows both five times over. edsm takes the
    first of equals, weighing takes the better founded one.
    """

    class Weighing(Strategy):
        name = "weighing"

        def score(self, merge):
            return sum(min(agreement.known, agreement.new) for agreement in merge.agreements())

    root = [(-1, 0, 3)] * 5 + [(-1, 1, 4)] * 5
    samples = sample_set([root, [(0, 0, 3)], [(1, 1, 4)] + [(-1, 1, 4)] * 4])
    assert [event.blue for event in merge(samples).events] == [1, 2]
    assert [event.blue for event in merge(samples, order=Weighing()).events] == [2, 1]
