"""AALpy's general state merging on our samples; imports AALpy, so import this file only when asked.

AALpy gets a prefix tree of labels with the answers seen at each node as node data,
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

from resolvent.samples import NONE, SampleSet
from resolvent.traces.vocabulary import Codes

Answered = tuple[NDArray[np.int64], Codes, Codes]
"""Columns: a state, an alpha, and the output it answers with."""


class Answers(DataHandler):  # type: ignore[misc]
    """Node data: the answers seen there, by question."""

    def init_data(self) -> dict[int, int]:
        """Begin with no answers."""
        return {}

    def aggregate_data(self, *step: Any) -> None:
        """Take in nothing: the tree comes with its answers."""

    def merge(self, x: dict[int, int], y: dict[int, int]) -> dict[int, int]:
        """Put the answers of two nodes together, which do not disagree."""
        x.update(y)
        return x

    def copy(self, x: dict[int, int]) -> dict[int, int]:
        """Copy the answers of a node."""
        return dict(x)


class FirstFit(ScoreCalculation):  # type: ignore[misc]
    """Two nodes are compatible if no question has different answers; the first fit is taken."""

    def __init__(self, tick: Callable[[], None] | None) -> None:
        super().__init__()
        self.tick = tick

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Say whether two nodes agree on what both have seen."""
        if self.tick is not None:
            self.tick()
        few, many = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        return all(many.get(question, answer) == answer for question, answer in few.items())


class MostEvidence(FirstFit):
    """Of all fits the one on which most answers agree."""

    def initialize_merge(self, *merge: Any) -> None:
        """Begin to count."""
        self.agreeing = 0

    def local_compatibility(self, a: Any, b: Any) -> bool:
        """Say whether two nodes agree, and count on how much."""
        if self.tick is not None:
            self.tick()
        few, many = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        for question, answer in few.items():
            other = many.get(question)
            if other is not None:
                if other != answer:
                    return False
                self.agreeing += 1
        return True

    def score_function(self, part: Any) -> int:
        """Score a fit by the answers that agree."""
        return self.agreeing


class PaperOrder(Instrumentation):  # type: ignore[misc]
    """Sorts nodes as `rpni` does: states by promotion, others by label history in shortlex order.

    AALpy's own "short-lex" goes by the shortest history that leads to a node by now,
    which merges change; and it puts that together anew for each comparison.
    """

    def __init__(self, root: Any) -> None:
        super().__init__()
        self.promotion: dict[Any, int] = {}
        queue = [root]
        for node in queue:
            queue.extend(node.transitions[label][0] for label in sorted(node.transitions))
        self.history = {node: number for number, node in enumerate(queue)}

    def log_promote(self, node: Any) -> None:
        """Give a new state the next number."""
        self.promotion[node] = len(self.promotion)

    def key(self, node: Any) -> int:
        """Return what to sort by; AALpy never sorts states together with other nodes."""
        promoted = self.promotion.get(node)
        return self.history[node] if promoted is None else promoted


def merged(
    samples: SampleSet, *, edsm: bool, tick: Callable[[], None] | None = None
) -> tuple[Codes, Answered, int]:
    """Let AALpy infer an automaton from samples that do not contradict each other.

    `tick` is called at each comparison of nodes and may raise, to stop. Returns the
    transition table, −1 where a label was never read, numbered breadth first; what its
    states answer; and the size of the tree.
    """
    root = _tree(samples)
    order = PaperOrder(root)
    merging = GeneralizedStateMerging(
        output_behavior="mealy",
        transition_behavior="deterministic",
        score_calc=MostEvidence(tick) if edsm else FirstFit(tick),
        data_handler=Answers(),
        node_order=None if edsm else order.key,
        consider_only_min_blue=not edsm,
    )
    root = merging.run(root, convert=False, instrumentation=order, data_format="tree")
    number = {root: 0}
    queue = [root]
    rows: list[list[int]] = []
    answers: list[tuple[int, int, int]] = []
    for node in queue:
        row = [NONE] * len(samples.labels)
        for label in sorted(node.transitions):
            for child in node.transitions[label].values():
                if child not in number:
                    number[child] = len(number)
                    queue.append(child)
                row[label] = number[child]
        rows.append(row)
        answers.extend((number[node], alpha, output) for alpha, output in node.data.items())
    state, alpha, output = np.array(answers, np.int64).reshape(-1, 3).T
    columns = (state, alpha.astype(np.int32), output.astype(np.int32))
    return np.array(rows, np.int32), columns, len(order.history)


def _tree(samples: SampleSet) -> Any:
    """Build AALpy's tree: labels lead on, answers lie at the nodes."""
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
