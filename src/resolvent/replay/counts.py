"""Counts of distinct rows of integer columns, which add up over shards.

Input: columns of codes, one entry a row. Output: the distinct rows in sorted order, the number
of occurrences of each, and where it first occurs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.by_value import ByValue
from resolvent.machines.columns import places
from resolvent.traces.vocabulary import DENSE, distinct_pairs

Integers: TypeAlias = NDArray[Any]
"""A column of codes, of any integer type; negative ones are allowed."""

Int64s: TypeAlias = NDArray[np.int64]

_LARGEST: Final = np.iinfo(np.int64).max
"""Largest number that a row can be packed into."""


def number_rows(columns: Mapping[str, Integers], rows: int) -> tuple[int, Integers]:
    """Return the number of distinct rows and, for each row, its place among them in sorted order.

    >>> number_rows({"a": np.array([2, -1, 2]), "b": np.array([0, 7, 0])}, 3)[1].tolist()
    [1, 0, 1]
    """
    number: Integers = np.zeros(rows, np.int32)
    size, ranked = min(rows, 1), True  # numbers are below size; ranked: all of these occur
    for column in columns.values():
        low = int(column.min(initial=0))
        width = int(column.max(initial=0)) - low + 1
        if size * width > _LARGEST:  # packing would overflow: pack ranks instead
            (size, number), ranked = _ranked(number), True
            if size * width > _LARGEST:
                (width, column), low = _ranked(column), 0
        if size * width <= DENSE:
            shifted = (column - low if low else column).astype(np.int32, copy=False)
            distinct, number = distinct_pairs(number, shifted, size, width)
            size, ranked = len(distinct), True
        else:
            number = number.astype(np.int64) * width + (column - low)
            size, ranked = size * width, False
    return (size, number) if ranked else _ranked(number)


def _ranked(numbers: Integers) -> tuple[int, Integers]:
    distinct, rank = np.unique(numbers, return_inverse=True)
    return len(distinct), rank.astype(np.int32)


@dataclass(frozen=True, eq=False)
class CountTable(ByValue):
    """The distinct rows of some columns, sorted by these in their order, each with its count.

    `trace` and `step` say where each row first occurs; None if that was not asked for. Tables
    with the same columns add up: counts are summed, and the earlier place stays.

    >>> columns = {"seen": np.int32([4, 4, 2]), "done": np.int32([0, 0, 0])}
    >>> early = CountTable.of(columns, trace=np.array([0, 0, 1]), step=np.array([0, 1, 0]))
    >>> late = CountTable.of(columns, trace=np.array([2, 2, 3]), step=np.array([0, 1, 0]))
    >>> table = late + early
    >>> table["seen"].tolist(), table.count.tolist(), table.trace.tolist()
    ([2, 4], [2, 4], [1, 0])
    """

    columns: dict[str, Integers]
    count: Int64s
    trace: Int64s | None = None
    step: Int64s | None = None

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Integers],
        count: Int64s | None = None,
        *,
        trace: Int64s | None = None,
        step: Int64s | None = None,
    ) -> "CountTable":
        """Count the distinct rows of columns, or sum the counts that the rows have already.

        With places, the rows have to be in the order of traces and steps.
        """
        rows = len(next(iter(columns.values())))
        size, number = number_rows(columns, rows)
        first = np.empty(size, np.int64)
        first[number[::-1]] = np.arange(rows)[::-1]  # of equal rows, the last one written stays
        if count is None:
            total = np.bincount(number, minlength=size)
        else:
            total = np.zeros(size, np.int64)
            np.add.at(total, number, count)
        return cls({name: column[first] for name, column in columns.items()}, total)._placed(
            first, trace, step
        )

    def _placed(self, rows: Int64s, trace: Int64s | None, step: Int64s | None) -> "CountTable":
        if trace is None or step is None:
            return self
        return CountTable(self.columns, self.count, trace[rows], step[rows])

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, name: str) -> Integers:
        return self.columns[name]

    def __add__(self, other: "CountTable") -> "CountTable":
        columns = {
            name: np.concatenate([column, other[name]]) for name, column in self.columns.items()
        }
        count = np.concatenate([self.count, other.count])
        if self.trace is None or self.step is None or other.trace is None or other.step is None:
            return CountTable.of(columns, count)
        trace = np.concatenate([self.trace, other.trace])
        step = np.concatenate([self.step, other.step])
        order = np.lexsort((step, trace))
        return CountTable.of(
            {name: column[order] for name, column in columns.items()},
            count[order],
            trace=trace[order],
            step=step[order],
        )

    def take(self, rows: NDArray[Any]) -> "CountTable":
        """Return some of the rows, given by their places or a mask."""
        table = CountTable(
            {name: column[rows] for name, column in self.columns.items()}, self.count[rows]
        )
        return table._placed(rows, self.trace, self.step)

    def by_first_place(self) -> "CountTable":
        """Return the rows in the order in which they first occur."""
        if self.trace is None or self.step is None:
            raise ValueError("the table has no places")
        return self.take(np.lexsort((self.step, self.trace)))


@dataclass(frozen=True, eq=False)
class GroupedCounts(ByValue):
    """Counts of values by key, such as the outputs given in each state.

    `key` is sorted. The values of key i, sorted, and their counts lie from `offset[i]` up to
    `offset[i + 1]`.

    >>> coins = GroupedCounts.of(np.array([7, 3, 7, 7]), np.array([1, 0, 0, 1]))
    >>> coins.key.tolist(), coins.value.tolist(), coins.count.tolist(), coins.total.tolist()
    ([3, 7], [0, 0, 1], [1, 1, 2], [1, 3])
    """

    key: Int64s
    offset: Int64s
    value: Int64s
    count: Int64s

    @classmethod
    def of(cls, keys: Integers, values: Integers, count: Int64s | None = None) -> "GroupedCounts":
        """Count values by key, or sum the counts that the rows have already."""
        table = CountTable.of({"key": keys, "value": values}, count)
        key = table["key"].astype(np.int64, copy=False)
        start = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
        return cls(
            key[start],
            np.append(start, len(key)),
            table["value"].astype(np.int64, copy=False),
            table.count,
        )

    def __len__(self) -> int:
        return len(self.key)

    @cached_property
    def size(self) -> Int64s:
        """The number of distinct values of each key."""
        return np.diff(self.offset)

    @cached_property
    def total(self) -> Int64s:
        """The sum of the counts of each key."""
        return np.add.reduceat(self.count, self.offset[:-1]) if len(self) else self.size

    @cached_property
    def largest(self) -> Int64s:
        """The largest count of each key."""
        return np.maximum.reduceat(self.count, self.offset[:-1]) if len(self) else self.size

    @cached_property
    def row(self) -> Int64s:
        """For each value, the place of its key."""
        return np.repeat(np.arange(len(self)), self.size)

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """The relative frequency of each value under its key."""
        return self.count / self.total[self.row]

    def find(self, keys: Int64s) -> Int64s:
        """Return the place of each key, −1 where it does not occur."""
        return places(self.key, keys).astype(np.int64)

    def entries(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return all entries of some keys, which are given by their places; −1 has none.

        The first column says which of `rows` an entry belongs to, the second where it lies in
        `value` and `count`.
        """
        size = np.where(rows < 0, 0, self.size[rows]) if len(self) else np.zeros(len(rows), int)
        owner = np.repeat(np.arange(len(rows)), size)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        return owner, self.offset[rows[owner]] + within

    def better_known(self, other: "GroupedCounts") -> "GroupedCounts":
        """Return each key with the counts of that one of the two which has more of it.

        Both may have counted the same steps, so counts are never added up.

        >>> first, second = (
        ...     GroupedCounts.of(np.array([1, 1, key]), np.array([0, 0, 0])) for key in (1, 2)
        ... )
        >>> both = second.better_known(first)
        >>> both.key.tolist(), both.total.tolist()
        ([1, 2], [3, 1])
        """
        if not len(other) or not len(self):
            return self if len(self) else other
        there, here = self.find(other.key), other.find(self.key)
        from_self = ((here < 0) | (self.total >= other.total[here]))[self.row]
        from_other = ((there < 0) | (other.total > self.total[there]))[other.row]
        return GroupedCounts.of(
            np.concatenate([self.key[self.row[from_self]], other.key[other.row[from_other]]]),
            np.concatenate([self.value[from_self], other.value[from_other]]),
            np.concatenate([self.count[from_self], other.count[from_other]]),
        )
