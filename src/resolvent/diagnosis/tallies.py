"""Questions and their answers → how often each was given, and where answers differ."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tally:
    """How often questions were answered in which ways.

    There is a row for each question and each of its answers, by question and answer.
    """

    question: Numbers
    answer: Numbers
    count: Numbers

    @cached_property
    def _first(self) -> Numbers:
        """The first row of each question."""
        return np.flatnonzero(np.diff(self.question, prepend=-1))

    @cached_property
    def asked(self) -> Numbers:
        """How often each question was asked."""
        return np.add.reduceat(self.count, self._first)

    @cached_property
    def differing(self) -> Numbers:
        """How often each question was answered otherwise than it mostly is."""
        return self.asked - np.maximum.reduceat(self.count, self._first)

    @property
    def repeated(self) -> int:
        """How many steps ask what another step asks, too."""
        return int(self.asked[self.asked > 1].sum())

    @property
    def contradicted(self) -> Numbers:
        """The questions that are answered in more than one way."""
        return self.question[self._first[self.differing > 0]]

    def worst(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the question most often answered otherwise, and its answers with their counts.

        The most frequent answer comes first.

        >>> tally = tallied(np.array([7, 7, 7, 2]), np.array([0, 1, 1, 0], np.int32), 2)
        >>> tally.worst()
        (7, [(1, 2), (0, 1)])
        """
        place = int(np.argmax(self.differing))
        start = int(self._first[place])
        stop = int(self._first[place + 1]) if place + 1 < len(self._first) else len(self.count)
        by_count = start + np.argsort(-self.count[start:stop], kind="stable")
        answers = zip(self.answer[by_count].tolist(), self.count[by_count].tolist(), strict=True)
        return int(self.question[start]), list(answers)


def tallied(question: Numbers, answer: NDArray[np.int32], answers: int) -> Tally:
    """Count the answers to each question, given by the codes 0 to `answers` − 1.

    >>> tally = tallied(np.array([7, 7, 7, 2]), np.array([0, 1, 1, 0], np.int32), 2)
    >>> tally.question.tolist(), tally.answer.tolist(), tally.count.tolist()
    ([2, 7, 7], [0, 0, 1], [1, 1, 2])
    >>> tally.repeated, tally.differing.tolist(), tally.contradicted.tolist()
    (3, [0, 1], [7])
    """
    kept = None
    if (int(question.max(initial=0)) + 1) * answers > np.iinfo(np.int64).max:
        kept, question = np.unique(question, return_inverse=True)
    numbers = np.sort(question.astype(np.int64) * answers + answer)
    start = np.flatnonzero(np.diff(numbers, prepend=-1))
    asked, answered = np.divmod(numbers[start], answers)
    return Tally(
        asked if kept is None else kept[asked],
        answered,
        np.diff(start, append=len(numbers)),
    )
