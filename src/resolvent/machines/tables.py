"""Tables of machines: their entries, counts and decisions, and look-ups in sorted columns.

Input: columns of codes. Output: the records that a machine's tables consist of.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.symbols import Label, Symbol
from resolvent.traces.vocabulary import MAX_TABLE_SIZE, Codes

_MAX_TABLE_ENTRIES_PER_KEY = 64  # above this, searching is cheaper than a table


class Basis(StrEnum):
    """The basis of a machine's output for a query in a state.

    OBSERVED: the traces show this query in this state. GENERALIZED: the output was the same in all
    states with this query, but the query was never observed in this state, or the state is not
    known. UNSEEN: there is no output.
    """

    OBSERVED = "observed"
    GENERALIZED = "generalized"
    UNSEEN = "unseen"


UNSEEN_CODE: Final = 0
GENERALIZED_CODE: Final = 1
OBSERVED_CODE: Final = 2

BASIS_BY_CODE: Final = (Basis.UNSEEN, Basis.GENERALIZED, Basis.OBSERVED)
"""Each basis at its code in columns; a higher code is a better basis."""


class TableEntry(NamedTuple):
    """One entry of a machine's output table; `state` is None where all states agree."""

    state: int | None
    observation: Symbol
    action: Symbol
    output: Any

    @property
    def basis(self) -> Basis:
        """Basis of the output; a constant output is generalized to states without observation."""
        return Basis.GENERALIZED if self.state is None else Basis.OBSERVED


class MergeDecision(NamedTuple):
    """One decision of state merging: the target of one transition, and the evidence for it.

    Either `target` is a `new` state, incompatible with all states before it, or the subtree
    after the label was merged into a known state: `agreeing` outputs were equal on both sides,
    none differed, and `folded` nodes of the prefix tree were removed.
    """

    source: int
    label: Label
    target: int
    new: bool
    agreeing: int
    folded: int


def no_codes() -> Codes:
    """Return an empty column of codes."""
    return np.empty(0, np.int32)


def no_numbers() -> NDArray[np.int64]:
    """Return an empty column of numbers."""
    return np.empty(0, np.int64)


def pair_keys(first: NDArray[Any], second: NDArray[Any], width: int) -> NDArray[np.int64]:
    """Return one number for each pair of codes, −1 where either is −1."""
    keys: NDArray[np.int64] = first.astype(np.int64) * width + second
    keys[(first < 0) | (second < 0)] = -1
    return keys


def look_up(keys: NDArray[np.int64], values: Codes, wanted: NDArray[np.int64]) -> Codes:
    """Return the value of each wanted key, −1 where there is none; `keys` are sorted."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int32)
    size = int(keys[-1]) + 1
    if size <= min(MAX_TABLE_SIZE, _MAX_TABLE_ENTRIES_PER_KEY * len(wanted)):
        table = np.full(size + 1, -1, np.int32)  # the last entry stands for all other keys
        table[keys] = values
        return table[np.where((wanted >= 0) & (wanted < size), wanted, size)]
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    return np.where(keys[at] == wanted, values[at], np.int32(-1))


def positions(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> Codes:
    """Return the position of each wanted key among the sorted keys, −1 where there is none."""
    return look_up(keys, np.arange(len(keys), dtype=np.int32), wanted)


def is_member(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each wanted key whether it is among the sorted keys."""
    return np.asarray(look_up(keys, np.zeros(len(keys), np.int32), wanted) == 0)


@dataclass(frozen=True, eq=False)
class AlternativeTransitions:
    """For each transition, the likeliest other target, and the odds against it.

    `target` is [state, label]. It is −1 for transitions without an alternative: those never
    taken, those by a label that is read often and changes no state, and those of a machine with
    one state. `log_odds` are those of the present target against the alternative.
    """

    target: Codes
    log_odds: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Support:
    """How often the traces showed each entry of a machine's tables.

    Repeated traces change this part of a machine only. `outputs` counts each query in a state.
    `constants` are the totals of constant queries, `constants_by_state` their counts by state,
    empty if only the totals are known. `alternatives` holds the odds of transitions of a machine
    inferred from noisy traces.
    """

    transitions: NDArray[np.int64]
    outputs: NDArray[np.int64]
    constants: NDArray[np.int64]
    constants_by_state: NDArray[np.int64] = field(default_factory=no_numbers)
    alternatives: AlternativeTransitions | None = None


@dataclass(frozen=True, eq=False)
class OutputCounts:
    """Counts of the outputs by state and query; a machine has those of pairs with several outputs.

    Four parallel columns, sorted by state, query and output: `value` is the output's code,
    `count` its count. Two tables are equal when every output has the same share in both,
    since repeated traces add no information.

    >>> coin = OutputCounts(
    ...     np.zeros(2, np.int32), np.zeros(2, np.int64), np.array([0, 1]), np.array([3, 9])
    ... )
    >>> len(coin), coin.main.tolist(), coin.totals.tolist()
    (2, [1], [12])
    """

    state: Codes = field(default_factory=no_codes)
    query: NDArray[np.int64] = field(default_factory=no_numbers)
    value: Codes = field(default_factory=no_codes)
    count: NDArray[np.int64] = field(default_factory=no_numbers)

    def __len__(self) -> int:
        return len(self.value)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Index of the first output of each pair of state and query."""
        is_first = np.ones(len(self), bool)
        is_first[1:] = (np.diff(self.state) != 0) | (np.diff(self.query) != 0)
        return np.flatnonzero(is_first)

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
        return np.add.reduceat(self.count, self.starts) if len(self) else self.count

    @cached_property
    def main(self) -> Codes:
        """The most frequent output of each pair; of ties, the lowest code."""
        return self.value[self.by_count[self.starts]]

    @cached_property
    def most(self) -> NDArray[np.int64]:
        """Count of the most frequent output of each pair."""
        return self.count[self.by_count[self.starts]]

    @cached_property
    def shares(self) -> tuple[NDArray[np.int64], ...]:
        """The columns, with counts in lowest terms."""
        divisor = np.gcd.reduceat(self.count, self.starts) if len(self) else self.count
        columns = (self.state, self.query, self.value, self.count // divisor[self.group])
        return tuple(column.astype(np.int64) for column in columns)

    @cached_property
    def rows(self) -> dict[tuple[int, int], dict[int, int]]:
        """Count of each output by state and query, the most frequent output first."""
        order = self.by_count
        rows: dict[tuple[int, int], dict[int, int]] = {}
        columns = (self.state, self.query, self.value, self.count)
        entries = zip(*(column[order].tolist() for column in columns), strict=True)
        for state, query, value, count in entries:
            rows.setdefault((state, query), {})[value] = count
        return rows

    def varying(self) -> "OutputCounts":
        """Return the outputs of the pairs of state and query that have several."""
        rows = (np.bincount(self.group) > 1)[self.group]
        return OutputCounts(self.state[rows], self.query[rows], self.value[rows], self.count[rows])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OutputCounts):
            return NotImplemented
        return all(map(np.array_equal, self.shares, other.shares))

    def __hash__(self) -> int:
        return hash(tuple(column.tobytes() for column in self.shares))

    def __repr__(self) -> str:
        return f"OutputCounts({len(self.starts)} queries in a state, {len(self)} outputs)"
