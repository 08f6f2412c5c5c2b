"""Samples → an automaton by AALpy's general state merging; only this module imports AALpy.

AALpy gets a prefix tree of labels with the outputs observed at each node as node data,
through its own hooks, so that it searches the same space as our search does.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from aalpy.learning_algs.general_passive.DataHandler import DataHandler
from aalpy.learning_algs.general_passive.GeneralizedStateMerging import (
    GeneralizedStateMerging,
    Instrumentation,
)
from aalpy.learning_algs.general_passive.GsmNode import GsmNode, no_op_input, unknown_output
from aalpy.learning_algs.general_passive.ScoreFunctionsGSM import ScoreCalculation
from numpy.typing import NDArray

from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE
from resolvent.traces.vocabulary import Codes

Outputs = tuple[NDArray[np.int64], Codes, Codes]  # states, alphas, and their outputs


class OutputData(DataHandler):  # type: ignore[misc]
    """Node data: the outputs observed there, by query."""

    def init_data(self) -> dict[int, int]:
        """Begin with no outputs."""
        return {}

    def aggregate_data(self, *step: Any) -> None:
        """Do nothing: the tree has its outputs already."""

    def merge(self, x: dict[int, int], y: dict[int, int]) -> dict[int, int]:
        """Unite the outputs of two nodes, which do not differ."""
        x.update(y)
        return x

    def copy(self, x: dict[int, int]) -> dict[int, int]:
        """Copy the outputs of a node."""
        return dict(x)


class FirstFit(ScoreCalculation):  # type: ignore[misc]
    """Accept two nodes if no query has different outputs; the first fit is used."""

    def __init__(self, check_time: Callable[[], None]) -> None:
        super().__init__()
        self.check_time = check_time

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Return whether two nodes agree on the queries observed at both."""
        self.check_time()
        smaller, larger = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        return all(larger.get(query, output) == output for query, output in smaller.items())


class MostEvidence(FirstFit):
    """Choose the merge on which most outputs agree."""

    def initialize_merge(self, *merge: Any) -> None:
        """Begin to count."""
        self.agreeing = 0

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Return whether two nodes agree, and count the outputs that do."""
        self.check_time()
        smaller, larger = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        for query, output in smaller.items():
            expected = larger.get(query)
            if expected is not None:
                if expected != output:
                    return False
                self.agreeing += 1
        return True

    def score_function(self, part: Any) -> int:
        """Return the number of outputs that agree."""
        return self.agreeing


class PaperOrder(Instrumentation):  # type: ignore[misc]
    """Sorts nodes as `rpni` does: states by promotion, others by label sequence in shortlex order.

    AALpy's own "short-lex" uses the shortest sequence that currently leads to a node. Merges change
    it, and AALpy recomputes it for each comparison.
    """

    def __init__(self, root: Any) -> None:
        super().__init__()
        self.promotion: dict[Any, int] = {}
        queue = [root]
        for node in queue:
            queue.extend(node.transitions[label][0] for label in sorted(node.transitions))
        self.position = {node: number for number, node in enumerate(queue)}

    def log_promote(self, node: Any) -> None:
        """Give a new state the next number."""
        self.promotion[node] = len(self.promotion)

    def key(self, node: Any) -> int:
        """Return the sorting key; AALpy never sorts states together with other nodes."""
        promoted = self.promotion.get(node)
        return self.position[node] if promoted is None else promoted


def merge(
    samples: SampleSet, *, edsm: bool, check_time: Callable[[], None]
) -> tuple[Codes, Outputs, int]:
    """Let AALpy infer an automaton from samples that do not contradict each other.

    `check_time` is called at each comparison of nodes and may raise. Returns the
    transition table, −1 where a label was never read, numbered breadth-first; the outputs of its
    states; and the size of the tree.
    """
    root = _tree(samples)
    order = PaperOrder(root)
    merging = GeneralizedStateMerging(
        output_behavior="mealy",
        transition_behavior="deterministic",
        score_calc=MostEvidence(check_time) if edsm else FirstFit(check_time),
        data_handler=OutputData(),
        node_order=None if edsm else order.key,
        consider_only_min_blue=not edsm,
    )
    root = merging.run(root, convert=False, instrumentation=order, data_format="tree")
    number = {root: 0}
    queue = [root]
    rows: list[list[int]] = []
    outputs: list[tuple[int, int, int]] = []
    for node in queue:
        row = [NONE] * len(samples.labels)
        for label in sorted(node.transitions):
            for child in node.transitions[label].values():
                if child not in number:
                    number[child] = len(number)
                    queue.append(child)
                row[label] = number[child]
        rows.append(row)
        outputs.extend((number[node], alpha, output) for alpha, output in node.data.items())
    state, alpha, output = np.array(outputs, np.int64).reshape(-1, 3).T
    columns = (state, alpha.astype(np.int32), output.astype(np.int32))
    return np.array(rows, np.int32), columns, len(order.position)


def _tree(samples: SampleSet) -> Any:
    """Build AALpy's tree: labels on its edges, outputs at the nodes."""
    root = GsmNode((no_op_input, unknown_output), None, {})
    beta, alpha, output = (c.tolist() for c in (samples.beta, samples.alpha, samples.output))
    for start, stop in pairwise(samples.offsets.tolist()):
        node = root
        for row in range(start, stop):
            label = beta[row]
            if label != NONE:
                children = node.transitions[label]
                child = children.get(0)
                if child is None:
                    child = children[0] = GsmNode((label, 0), node, {})
                node = child
            if alpha[row] != NONE:
                node.data[alpha[row]] = output[row]
    return root
