import numpy as np

from resolvent.samples import NONE, Histories, LabelTiming
from resolvent.traces import Trace, TraceSet, Vocabulary

TRACES = TraceSet(
    [
        Trace([0, 1, 2], ["b", "a", "c"], ["go", "go"], [0, 0]),
        Trace([0, 1], [None, "a"], ["go"], [0]),
    ]
)


def test_histories_hold_what_the_timing_reads():
    histories = Histories.of(TRACES, LabelTiming.CURRENT)
    assert histories.beta.tolist() == [NONE, TRACES.labels.code(frozenset("a")), NONE]
    assert histories.offsets.tolist() == [0, 2, 3]
    assert histories.labels == TRACES.labels


def test_the_tree_has_a_node_for_each_distinct_history():
    beta = np.array([1, 0, 1, 0, 0], np.int32)  # 1, 10 | 1, 10 | 0
    labels = Vocabulary([frozenset("a"), frozenset("b")])
    tree = Histories(beta, np.array([0, 2, 4, 5]), labels).tree
    assert [tree.history(node) for node in range(len(tree))] == [[], [0], [1], [1, 0]]


def test_the_tree_is_built_once():
    histories = Histories.of(TRACES, LabelTiming.CURRENT)
    assert histories.tree is histories.tree
