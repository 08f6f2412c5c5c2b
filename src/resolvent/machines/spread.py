"""Answers with counts → what a machine answers most often, and how its answers spread.

A state of a noisy world may answer a question now so, now otherwise. The machine then
answers with what came most often, and keeps all answers with their counts beside that.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.columns import no_codes, no_numbers
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True, eq=False)
class Spread:
    """All answers to the questions that a state answers in more than one way.

    Four parallel columns, sorted by state, question and answer: `value` is the answer's
    code, and `count` says how often it came. Two spreads are equal when every answer has
    the same share in both, for repeated traces show nothing new.

    >>> coin = Spread(
    ...     np.zeros(2, np.int32), np.zeros(2, np.int64), np.array([0, 1]), np.array([3, 9])
    ... )
    >>> len(coin), coin.main.tolist(), coin.totals.tolist()
    (2, [1], [12])
    """

    state: Codes = field(default_factory=no_codes)
    question: NDArray[np.int64] = field(default_factory=no_numbers)
    value: Codes = field(default_factory=no_codes)
    count: NDArray[np.int64] = field(default_factory=no_numbers)

    def __len__(self) -> int:
        return len(self.value)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The place of the first answer of each state and question."""
        return _starts(self.state, self.question)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """For each answer, which of the pairs of state and question it belongs to."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self)))

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How often each of the questions was asked in its state."""
        return _totals(self.count, self.starts)

    @cached_property
    def main(self) -> Codes:
        """The most frequent answer of each state and question; of equals the lowest code."""
        by_count = np.lexsort((self.value, -self.count, self.group))
        return self.value[by_count[self.starts]]

    @cached_property
    def most(self) -> NDArray[np.int64]:
        """How often the main answer of each state and question came."""
        return np.maximum.reduceat(self.count, self.starts) if len(self) else self.count

    @cached_property
    def rows(self) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
        """Answers with their counts by state and question, the most frequent first."""
        order = np.lexsort((self.value, -self.count, self.group))
        answers = list(zip(self.value[order].tolist(), self.count[order].tolist(), strict=True))
        states, questions = self.state[self.starts].tolist(), self.question[self.starts].tolist()
        bounds = pairwise([*self.starts.tolist(), len(self)])
        return {
            (state, question): tuple(answers[begin:end])
            for state, question, (begin, end) in zip(states, questions, bounds, strict=True)
        }

    @property
    def odd(self) -> int:
        """How many answers were others than the most frequent one."""
        return int(self.count.sum() - self.most.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spread):
            return NotImplemented
        return all(
            np.array_equal(mine, yours)
            for mine, yours in zip(self._shares, other._shares, strict=True)
        )

    def __hash__(self) -> int:
        return hash(tuple(column.tobytes() for column in self._shares))

    def __repr__(self) -> str:
        return f"Spread({len(self.starts)} questions in a state, {len(self)} answers)"

    @property
    def _shares(self) -> tuple[NDArray[np.int64], ...]:
        """The columns, with counts in lowest terms."""
        divisor = np.gcd.reduceat(self.count, self.starts) if len(self) else self.count
        columns = (self.state, self.question, self.value, self.count // divisor[self.group])
        return tuple(column.astype(np.int64) for column in columns)


class Answered(NamedTuple):
    """A row for each state and question: its main answer, how often it was asked, and the rest."""

    state: Codes
    question: NDArray[np.int64]
    value: Codes
    asked: NDArray[np.int64]
    spread: Spread


def answered(
    state: Codes, question: NDArray[np.int64], value: Codes, count: NDArray[np.int64]
) -> Answered:
    """Put answers together that one state gives to one question.

    The columns are sorted by state, question and value. The main answer is the most
    frequent one, and of equals the one with the lowest code.

    >>> states, questions = np.array([0, 0, 1]), np.array([7, 7, 7])
    >>> found = answered(states, questions, np.array([2, 5, 5]), np.array([1, 9, 4]))
    >>> found.value.tolist(), found.asked.tolist(), found.spread.count.tolist()
    ([5, 5], [10, 4], [1, 9])
    """
    starts = _starts(state, question)
    if len(starts) == len(state):
        return Answered(state, question, value, count, Spread())
    sizes = np.diff(starts, append=len(state))
    several = np.repeat(sizes > 1, sizes)
    spread = Spread(state[several], question[several], value[several], count[several])
    main = value[starts]
    main[several[starts]] = spread.main
    return Answered(state[starts], question[starts], main, _totals(count, starts), spread)


def _starts(state: Codes, question: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where another state or question begins, in columns sorted by both."""
    new = np.ones(len(state), bool)
    new[1:] = (state[1:] != state[:-1]) | (question[1:] != question[:-1])
    return np.flatnonzero(new)


def _totals(count: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.add.reduceat(count, starts) if len(count) else count
