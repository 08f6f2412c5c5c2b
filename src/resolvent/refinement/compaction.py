"""A machine that explains all traces + what these show → a smaller one that does so too.

Few traces may leave states apart that are one. All traces together tell: two
states are one if merging them, with all that follows from it, brings no two
different answers together. If the traces are structure complete, every state
of a machine that explains them stands for one true state, and two that stand
for the same can be merged while others cannot: then the result is minimal.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import Machine
from resolvent.machines.building import breadth_first
from resolvent.replay.shown import Sightings, answers_vary
from resolvent.traces import Codes

M = TypeVar("M", bound=Machine)

_MOST_STATES = 128  # beyond, comparing all pairs takes longer than learning anew


def compacted(machine: M, seen: Sightings) -> M | None:
    """Return the machine with states merged that nothing tells apart; None if there are none.

    Its transitions are right, its answers are still to be gathered anew. How the
    larger machine was found is not how this one was.
    """
    if machine.states > _MOST_STATES:
        return None
    classes = _Classes.of(machine.transitions, seen)
    while (pair := classes.surest_pair()) is not None:
        classes.merge(*pair)
    if classes.states == machine.states:
        return None
    return replace(machine, transitions=classes.numbered(), decisions=None)


@dataclass
class _Classes:
    """States, some of them merged. `answers` and `moves` have a row for each that is left.

    `apart[p, q]` says that p and q cannot be one; that stays so, since merging
    only adds answers. Columns of `answers` are questions with more than one
    answer; −1 stands for unseen.
    """

    answers: Codes
    moves: Codes
    apart: NDArray[np.bool_]
    root: list[int]

    @classmethod
    def of(cls, transitions: Codes, seen: Sightings) -> "_Classes":
        question, output = (
            np.ascontiguousarray(seen.answers[name]) for name in ("question", "output")
        )
        kept = answers_vary(question, output, int(question.max(initial=-1)) + 1)
        questions, column = np.unique(question[kept], return_inverse=True)
        answers = np.full((len(transitions), len(questions)), -1, np.int32)
        answers[seen.answers["state"][kept], column] = output[kept]
        apart = np.array([_conflict(row, answers) for row in answers]).reshape(len(answers), -1)
        moves = np.where(transitions >= 0, transitions, -1)
        # Of very many labels, most lead alike.
        ways = np.unique(moves, axis=1).T if moves.size else moves.T
        while True:
            before = int(apart.sum())
            for targets in ways:
                known = np.flatnonzero(targets >= 0)
                apart[np.ix_(known, known)] |= apart[np.ix_(targets[known], targets[known])]
            if int(apart.sum()) == before:
                return cls(answers, moves, apart, list(range(len(moves))))

    @property
    def states(self) -> int:
        """How many states are left."""
        return sum(root == state for state, root in enumerate(self.root))

    def surest_pair(self) -> tuple[int, int] | None:
        """Return the pair on which most answers agree, among those not known to be apart."""
        left = [state for state, root in enumerate(self.root) if state == root]
        best, most = None, -1
        for place, q in enumerate(left):
            for p in left[:place]:
                if not self.apart[p, q]:
                    known = self.answers[q] >= 0
                    agreeing = int(np.sum(known & (self.answers[p] == self.answers[q])))
                    if agreeing > most:
                        best, most = (p, q), agreeing
        return best

    def merge(self, p: int, q: int) -> None:
        """Merge two states and all that follows from it; or find that they are apart."""
        answers, moves, root = self.answers.copy(), self.moves.copy(), list(self.root)

        def find(state: int) -> int:
            while root[state] != state:
                state = root[state]
            return state

        queue = [(p, q)]
        for one, other in queue:
            a, b = sorted((find(one), find(other)))
            if a == b:
                continue
            if self.apart[a, b] or _conflict(answers[a], answers[b : b + 1])[0]:
                self.apart[p, q] = self.apart[q, p] = True
                return
            root[b] = a
            answers[a] = np.where(answers[a] >= 0, answers[a], answers[b])
            for label, target in enumerate(moves[b].tolist()):
                if target >= 0 and moves[a, label] >= 0:
                    queue.append((int(moves[a, label]), target))
                elif target >= 0:
                    moves[a, label] = target
        final = [find(state) for state in range(len(root))]
        # What is apart from a part of a class is apart from all of it.
        for state, kept in enumerate(final):
            if state != kept:
                self.apart[kept] |= self.apart[state]
                self.apart[:, kept] |= self.apart[:, state]
        self.answers, self.moves, self.root = answers, moves, final

    def numbered(self) -> Codes:
        """Return the moves of what is left, numbered breadth first."""
        root = np.array([*self.root, -1], np.int32)
        moves = root[self.moves]
        order = breadth_first(moves)
        number = np.full(len(root), -1, np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        renumbered: Codes = number[moves[order]]
        return renumbered


def _conflict(row: Codes, rows: Codes) -> Any:
    """Return which of some rows of answers differ from one row where both are known."""
    return np.any((row >= 0) & (rows >= 0) & (row != rows), axis=1)
