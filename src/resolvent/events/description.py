"""How long it takes to write down which sources are events, what they do, and all answers."""

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent.events.steps import EventSteps, Table

_DOUBT = 0.1
"""How often each answer is taken to have been seen already: little, for answers seldom vary."""


class Description:
    """The length of descriptions of the same steps, in nats: the shorter, the better explained.

    Answers are written one after the other, each by how often its state gave it to its
    question before; so a state that always answers alike takes next to nothing.
    """

    def __init__(self, steps: EventSteps) -> None:
        self.steps = steps
        most = len(steps.telling) + 1
        self._of_answer = _sums_of_logs(most, _DOUBT)
        choices = np.bincount(steps.question_of)
        self._order = np.argsort(steps.question_of, kind="stable")
        self._begins = np.flatnonzero(np.diff(steps.question_of[self._order], prepend=-1))
        self._by_choices = [
            (np.flatnonzero(choices == count), _sums_of_logs(most, count * _DOUBT))
            for count in np.unique(choices).tolist()
        ]

    def of(self, table: Table, told: NDArray[np.int64]) -> float:
        """Return the length of a table and of the answers that its states give so often."""
        return float(self.of_answers(told).sum()) + self.of_table(table)

    def of_answers(self, told: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the length of answers that were given so often; the last axis is the answer's."""
        asked = np.add.reduceat(told[..., self._order], self._begins, axis=-1)
        length = -self._of_answer[told].sum(-1)
        for questions, sums in self._by_choices:
            length += sums[asked[..., questions]].sum(-1)
        return np.asarray(length, np.float64)

    def of_table(self, table: Table) -> float:
        """Return the length of a table: each event's name and class, and the classes' moves."""
        states = table.shape[1]
        moves = table != np.arange(states)
        events = moves.any(1)
        classes = np.unique(table[events], axis=0)
        named = events.sum() * (log(self.steps.sources) + log(1 + len(classes)))
        moved = (classes != np.arange(states)).sum() * log(2 * states)
        return float(named + moved + states)


def _sums_of_logs(most: int, first: float) -> NDArray[np.float64]:
    """Return log(first) + log(first + 1) + … of 0 to `most` summands."""
    return np.concatenate([[0.0], np.cumsum(log(np.arange(most) + first))])
