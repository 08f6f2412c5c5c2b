"""The part of the samples that solvers are shown: whole traces, more as they are needed.

A part large enough to fix the machine is easier than a tiny one: near the
threshold where a smaller machine still just fits, proofs are longest
(docs/decisions/exact-search.md).
"""

from itertools import combinations

import numpy as np

from resolvent.exact.problem import Question
from resolvent.samples import NONE

TOP = 1000
"""How many of the shortest histories are shown with all that was answered there."""

TRACES = 20_000
"""How many traces are asked about these."""

ANSWERS = 4000
"""How many answers more the first part holds, in whole traces, if there are as many."""

ROWS = 20_000
"""How much of a single trace is shown before a clash asks for more."""

HEAVIEST = 64
"""Among how many nodes a clique is looked for."""


class Part:
    """Some of a problem's traces, as a tree that only ever grows.

    `parent`, `label` and `children` are by node, in the order in which nodes
    were made; `answers[v]` maps alphas to outputs, and `told` lists the same
    answers as (node, alpha, output) in the order in which they came.
    """

    def __init__(self, problem: Question, answers: int = ANSWERS) -> None:
        self.problem = problem
        self.parent = [NONE]
        self.label = [NONE]
        self.children: list[dict[int, int]] = [{}]
        self.answers: list[dict[int, int]] = [{}]
        self.told: list[tuple[int, int, int]] = []
        self._stop: dict[int, int] = {}  # how far each trace was shown
        self._next = 0
        self._show_top()
        top = len(self.told)
        while len(self.told) < top + answers and self._show_next():
            pass

    @property
    def traces(self) -> int:
        """How many traces are in it."""
        return len(self._stop)

    def grow(self, clash: tuple[int, int]) -> None:
        """Show both traces of a clash as far as the clash, and some traces more."""
        for row in clash:
            trace = int(np.searchsorted(self.problem.offsets, row, side="right")) - 1
            self._show(trace, max(row + 1, int(self.problem.offsets[trace]) + ROWS))
        for _ in range(self.traces // 8):
            self._show_next()

    def heaviest(self) -> list[int]:
        """Return the nodes with most answers at and below them."""
        weight = [len(answers) for answers in self.answers]
        for node in range(len(weight) - 1, 0, -1):
            weight[self.parent[node]] += weight[node]
        return sorted(range(len(weight)), key=lambda node: -weight[node])[:HEAVIEST]

    def incompatible(self, u: int, v: int) -> bool:
        """Whether no machine can be in the same state at two nodes."""
        pairs = [(u, v)]
        while pairs:
            u, v = pairs.pop()
            few, many = sorted((self.answers[u], self.answers[v]), key=len)
            if any(many.get(alpha, output) != output for alpha, output in few.items()):
                return True
            below = self.children[v]
            pairs += [(child, below[x]) for x, child in self.children[u].items() if x in below]
        return False

    def clique(self) -> list[int]:
        """Return nodes of which no two can be in the same state, many of them."""
        among = self.heaviest()
        foes: dict[int, set[int]] = {node: set() for node in among}
        for u, v in combinations(among, 2):
            if self.incompatible(u, v):
                foes[u].add(v)
                foes[v].add(u)
        best = among[:1]
        for start in among:
            found, rest = [start], foes[start]
            while rest:
                node = max(sorted(rest), key=lambda each: len(foes[each] & rest))
                found.append(node)
                rest = rest & foes[node]
            best = max(best, found, key=len)
        return best

    def _show_top(self) -> None:
        """Show how all traces begin, as far as there are few histories."""
        offsets = self.problem.offsets
        depth = _depth_of(TOP, self.problem.labels)
        read = np.concatenate([[0], np.cumsum(self.problem.beta != NONE)])
        stops = np.searchsorted(read, read[offsets[:-1]] + depth, side="right") - 1
        for trace, stop in enumerate(np.minimum(stops, offsets[1:]).tolist()[:TRACES]):
            self._show(trace, stop)

    def _show_next(self) -> bool:
        if self._next >= len(self.problem.offsets) - 1:
            return False
        start = int(self.problem.offsets[self._next])
        self._show(self._next, start + ROWS)
        self._next += 1
        return True

    def _show(self, trace: int, stop: int) -> None:
        """Show the rows of a trace before `stop`."""
        start, end = self.problem.offsets[trace : trace + 2].tolist()
        stop = min(end, stop)
        if stop <= self._stop.get(trace, start):
            return
        self._stop[trace] = stop
        asked = np.flatnonzero(self.problem.alpha[start:stop] != NONE)
        rows = slice(start, start + int(asked[-1]) + 1 if len(asked) else start)
        node = 0
        for beta, alpha, output in zip(
            self.problem.beta[rows].tolist(),
            self.problem.alpha[rows].tolist(),
            self.problem.output[rows].tolist(),
            strict=True,
        ):
            if beta != NONE:
                node = self._child(node, beta)
            if alpha != NONE and alpha not in self.answers[node]:
                self.answers[node][alpha] = output
                self.told.append((node, alpha, output))

    def _child(self, node: int, label: int) -> int:
        child = self.children[node].get(label)
        if child is None:
            child = self.children[node][label] = len(self.parent)
            self.parent.append(node)
            self.label.append(label)
            self.children.append({})
            self.answers.append({})
        return child


def _depth_of(nodes: int, labels: int) -> int:
    """Return how deep a full tree over some labels may be to have no more than so many nodes."""
    depth, size, level = 0, 1, 1
    while labels and size + level * labels <= nodes:
        depth, level = depth + 1, level * labels
        size += level
    return depth
