"""How often traces show the entries of a machine's tables, and outputs that vary within a state."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.tables import no_codes, no_numbers
from resolvent.machines.uncertainty import AlternativeTransitions
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True, eq=False)
class Support:
    """How often the traces showed each entry of a machine's tables.

    Repeated traces change this part of a machine only. `outputs` counts each query in a state.
    `constants` are the totals of constant queries, `asked` their counts by state, empty if only
    the totals are known.
    `rivals` holds the odds of transitions of a machine inferred from noisy traces.
    """

    transitions: NDArray[np.int64]
    outputs: NDArray[np.int64]
    constants: NDArray[np.int64]
    asked: NDArray[np.int64] = field(default_factory=no_numbers)
    rivals: AlternativeTransitions | None = None


@dataclass(frozen=True, eq=False)
class OutputCounts:
    """All outputs of the queries that have more than one output in a state.

    Four parallel columns, sorted by state, query and output: `value` is the output's code,
    `count` its count. Two spreads are equal when every output has the same share in both,
    since repeated traces add no information.

    >>> coin = OutputCounts(
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
        """Index of the first output of each pair of state and query."""
        return _starts(self.state, self.question)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """Number of the pair of state and query that each output belongs to."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self)))

    @cached_property
    def by_count(self) -> NDArray[np.int64]:
        """Order of the outputs within each pair: most frequent first, then lowest code."""
        return np.lexsort((self.value, -self.count, self.group))

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """Count of each pair of state and query."""
        return _totals(self.count, self.starts)

    @cached_property
    def main(self) -> Codes:
        """The most frequent output of each pair; of ties, the lowest code."""
        return self.value[self.by_count[self.starts]]

    @cached_property
    def most(self) -> NDArray[np.int64]:
        """Count of the most frequent output of each pair."""
        return self.count[self.by_count[self.starts]]

    @cached_property
    def rows(self) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
        """Outputs with their counts by state and query, the most frequent first."""
        order = self.by_count
        outputs = list(zip(self.value[order].tolist(), self.count[order].tolist(), strict=True))
        states, queries = self.state[self.starts].tolist(), self.question[self.starts].tolist()
        bounds = pairwise([*self.starts.tolist(), len(self)])
        return {
            (state, query): tuple(outputs[begin:end])
            for state, query, (begin, end) in zip(states, queries, bounds, strict=True)
        }

    @property
    def odd(self) -> int:
        """Number of outputs that differ from the most frequent one of their pair."""
        return int(self.count.sum() - self.most.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OutputCounts):
            return NotImplemented
        return all(map(np.array_equal, self._shares, other._shares))

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


class OutputRows(NamedTuple):
    """A row for each state and query: its most frequent output, its count, and all variation."""

    state: Codes
    question: NDArray[np.int64]
    value: Codes
    asked: NDArray[np.int64]
    spread: OutputCounts


def group_outputs(
    state: Codes, question: NDArray[np.int64], value: Codes, count: NDArray[np.int64]
) -> OutputRows:
    """Group output counts by state and query; the columns are sorted by state, query and output.

    >>> states, queries = np.array([0, 0, 1]), np.array([7, 7, 7])
    >>> outputs = group_outputs(states, queries, np.array([2, 5, 5]), np.array([1, 9, 4]))
    >>> outputs.value.tolist(), outputs.asked.tolist(), outputs.spread.count.tolist()
    ([5, 5], [10, 4], [1, 9])
    """
    starts = _starts(state, question)
    if len(starts) == len(state):
        return OutputRows(state, question, value, count, OutputCounts())
    sizes = np.diff(starts, append=len(state))
    varies = np.repeat(sizes > 1, sizes)
    spread = OutputCounts(state[varies], question[varies], value[varies], count[varies])
    main = value[starts]
    main[varies[starts]] = spread.main
    return OutputRows(state[starts], question[starts], main, _totals(count, starts), spread)


def _starts(state: Codes, question: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where another state or query begins, in columns sorted by both."""
    is_first = np.ones(len(state), bool)
    is_first[1:] = (state[1:] != state[:-1]) | (question[1:] != question[:-1])
    return np.flatnonzero(is_first)


def _totals(count: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.add.reduceat(count, starts) if len(count) else count
