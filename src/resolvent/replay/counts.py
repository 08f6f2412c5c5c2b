"""Counts of distinct rows of integer columns, which add up over shards.

Input: columns of codes, one entry a row. Output: the distinct rows in sorted order, the number
of occurrences of each, and its first location. `ReplayCounts` holds all counts of a replay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import ByValue
from resolvent.machines.tables import positions
from resolvent.replay.coded_shard import Alphabets
from resolvent.traces.vocabulary import MAX_TABLE_SIZE, Codes, distinct_pairs

Integers: TypeAlias = NDArray[Any]  # a column of codes of any type; negative ones are allowed
Int64s: TypeAlias = NDArray[np.int64]
Rows = NDArray[np.void]  # a structured array: one record a row
_LARGEST: Final = np.iinfo(np.int64).max  # largest number that a row can be packed into


def number_rows(columns: Mapping[str, Integers], rows: int) -> tuple[int, Integers]:
    """Return the number of distinct rows and, for each row, its rank among them."""
    number: Integers = np.zeros(rows, np.int32)
    size, is_ranked = min(rows, 1), True  # numbers are below size; ranked: all of these occur
    for column in columns.values():
        size, number, width, column = _fitted(size, number, column)
        if size * width <= MAX_TABLE_SIZE:
            column, number = (codes.astype(np.int32, copy=False) for codes in (column, number))
            distinct, number = distinct_pairs(number, column, size, width)
            size, is_ranked = len(distinct), True
        else:
            number = number.astype(np.int64) * width + column
            size, is_ranked = size * width, False
    return (size, number) if is_ranked else _ranked(number)


def pack_rows(columns: Mapping[str, Integers], rows: int) -> Int64s:
    """Return one number a row, such that the numbers are in the order of the rows."""
    size, number = 1, np.zeros(rows, np.int64)
    for column in columns.values():
        size, number, width, column = _fitted(size, number, column)
        size, number = size * width, number.astype(np.int64) * width + column
    return number


def _fitted(size: int, number: Integers, column: Integers) -> tuple[int, Integers, int, Integers]:
    """Return (size, numbers below it, width, column below it), with a product that can be packed.

    If the product would overflow, the numbers and then the column become ranks.
    """
    low = int(column.min(initial=0))
    width = int(column.max(initial=0)) - low + 1
    if size * width > _LARGEST:
        size, number = _ranked(number)
    if size * width > _LARGEST:
        return size, number, *_ranked(column)
    return size, number, width, column - low if low else column


def _ranked(numbers: Integers) -> tuple[int, Integers]:
    distinct, rank = np.unique(numbers, return_inverse=True)
    return len(distinct), rank


@dataclass(frozen=True, eq=False)
class CountTable(ByValue):
    """The distinct rows of some columns, sorted by these in their order, each with its count.

    `location` holds `trace` and `step` of the first occurrence of each row, if wanted. Tables with
    the same columns add up: counts are summed, and the earlier location is kept.
    """

    columns: dict[str, Integers]
    count: Int64s
    location: dict[str, Int64s] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: Mapping[str, Integers], count: Int64s | None = None, **location: Int64s
    ) -> "CountTable":
        """Count the distinct rows of columns, or sum the counts that the rows have already.

        With a location (`trace` and `step`), the rows have to be in the order of traces and steps.
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
        return cls(_take(columns, first), total, _take(location, first))

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, name: str) -> Integers:
        return self.columns[name]

    def __add__(self, other: "CountTable") -> "CountTable":
        columns, location = (
            {name: np.concatenate([column, theirs[name]]) for name, column in ours.items()}
            for ours, theirs in ((self.columns, other.columns), (self.location, other.location))
        )
        both = CountTable(columns, np.concatenate([self.count, other.count]), location)
        both = both.by_location() if location else both
        return CountTable.of(both.columns, both.count, **both.location)

    def take(self, rows: NDArray[Any]) -> "CountTable":
        """Return some of the rows, given by their positions or a mask."""
        return CountTable(_take(self.columns, rows), self.count[rows], _take(self.location, rows))

    @property
    def locations(self) -> tuple[Int64s, Int64s]:
        """The trace and step of the first occurrence of each row, which are there."""
        return self.location["trace"], self.location["step"]

    def by_location(self) -> "CountTable":
        """Return the rows in the order of their first occurrence."""
        trace, step = self.locations
        return self.take(np.lexsort((step, trace)))


def _take(columns: Mapping[str, Integers], rows: NDArray[Any]) -> dict[str, Integers]:
    return {name: column[rows] for name, column in columns.items()}


@dataclass(frozen=True, eq=False)
class GroupedCounts(ByValue):
    """Counts of values by key, such as the outputs given in each state.

    `key` is sorted. The values of key i, sorted, and their counts lie from `offset[i]` up to
    `offset[i + 1]`.
    """

    key: Int64s
    offset: Int64s
    value: Int64s
    count: Int64s

    @classmethod
    def of(cls, keys: Integers, values: Integers, count: Int64s | None = None) -> Self:
        """Count values by key, or sum the counts that the rows have already."""
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        width, most = high - low + 1, max(-int(keys.min(initial=0)), int(keys.max(initial=0)))
        if count is None and (most + 1) * width <= _LARGEST:  # sorting is faster than ranking
            packed = np.sort(keys.astype(np.int64) * width + (values - low))
            first = np.flatnonzero(np.diff(packed, prepend=packed[:1] - 1))
            key, value = np.divmod(packed[first], width)
            value, count = value + low, np.diff(first, append=len(packed))
        else:
            table = CountTable.of({"key": keys, "value": values}, count)
            key, value = (table[name].astype(np.int64, copy=False) for name in ("key", "value"))
            count = table.count
        key, start = np.unique(key, return_index=True)
        return cls(key, np.append(start, len(value)), value, count)

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
        """For each value, the position of its key."""
        return np.repeat(np.arange(len(self)), self.size)

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """The relative frequency of each value under its key."""
        return self.count / self.total[self.row]

    def find(self, keys: Int64s) -> Int64s:
        """Return the position of each key, −1 where it does not occur."""
        return positions(self.key, keys).astype(np.int64)

    def entries(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return all entries of the keys at some positions; position −1 has none.

        The first column is the entry's position in `rows`, the second that in `value` and `count`.
        """
        size = np.where(rows < 0, 0, self.size[rows]) if len(self) else np.zeros(len(rows), int)
        owner = np.repeat(np.arange(len(rows)), size)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        return owner, self.offset[rows[owner]] + within

    def better_known(self, other: "GroupedCounts") -> "GroupedCounts":
        """Return for each key the counts of the table with the larger total for it.

        Both may have counted the same steps, so the counts are not added up.
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


_COUNTED = [
    ("output", np.int32),
    ("count", np.int64),
    ("trace", np.int64),  # the first, or that of least length and then least key
    ("step", np.int32),
    ("length", np.int64),
    ("key", np.int64),
    ("early_trace", np.int64),  # where the fewest steps come before it, if asked for
    ("early_step", np.int32),
]
OUTPUT_ROW: Final = np.dtype([("state", np.int32), ("query", np.int64), *_COUNTED])
TRANSITION_ROW: Final = np.dtype([("state", np.int32), ("label", np.int32), *_COUNTED])
AUGMENTED_STATE_ROW: Final = np.dtype(
    [("number", np.int64), ("count", np.int64), ("ended", np.int64)]
)


@dataclass(frozen=True, eq=False)
class MachineCounts:
    """Counts of the outputs and transitions that traces show of one machine.

    `outputs` has a row for each state, query and output, sorted by these, with the number of
    occurrences and an example trace. State −1 is unknown. Traces conflict if a query has several
    outputs in a state. `transitions` has a row for each state and label; output −1 means that the
    machine has no target, so that the state is unknown after it. `unqueried` counts the steps
    without a query to a supplemented machine: the Transition Machine's state is unknown.
    """

    outputs: Rows
    transitions: Rows
    unqueried: int = 0

    @property
    def known_outputs(self) -> Rows:
        """The outputs in known states."""
        return self.outputs[int(np.searchsorted(self.outputs["state"], 0)) :]

    @cached_property
    def conflicts(self) -> Rows:
        """The outputs of the pairs of state and query with several outputs.

        They are sorted by state, query, and the length and key of their example trace.
        """
        rows = self.known_outputs
        same = (np.diff(rows["state"]) == 0) & (np.diff(rows["query"]) == 0)
        differs = np.zeros(len(rows), bool)
        differs[1:] = same
        differs[:-1] |= same
        conflicts: Rows = rows[differs]
        return conflicts[row_order(conflicts, "state", "query", "length", "key", "output")]

    @property
    def missing(self) -> Rows:
        """The transitions for which the machine has no target."""
        return self.transitions[self.transitions["output"] < 0]

    def __add__(self, other: "MachineCounts") -> "MachineCounts":
        return MachineCounts(
            _sum_rows(self.outputs, other.outputs, ("state", "query", "output")),
            _sum_rows(self.transitions, other.transitions, ("state", "label")),
            self.unqueried + other.unqueried,
        )


@dataclass(frozen=True, eq=False)
class ReplayCounts:
    """Counts of all that traces show of some machines, in the codes of `alphabets`.

    A query is observation code × number of actions + action code; to a supplemented machine
    the observation's code is observation code × number of transition states + transition
    state. `augmented_states` count augmented states with an action, packed into one number, and the
    terminations there. If the outputs of the last machine hold these counts already
    (`counted_in_outputs`), only those with terminations are listed.

    `sizes` are the numbers of states. `states` are those at every step, if asked for.
    """

    alphabets: Alphabets
    machines: Mapping[str, MachineCounts]
    sizes: Mapping[str, int]
    augmented_states: Rows
    counted_in_outputs: bool
    traces: int
    steps: int
    states: Mapping[str, Codes] = field(default_factory=dict)

    @cached_property
    def terminations(self) -> Rows:
        """The augmented states and actions that terminated traces, with their counts."""
        ended = self.augmented_states[self.augmented_states["ended"] > 0].copy()
        if self.counted_in_outputs:
            name, last = list(self.machines.items())[-1]
            rows, actions = last.known_outputs, len(self.alphabets.actions)
            observation, action = np.divmod(rows["query"], actions)
            number = (observation * self.sizes[name] + rows["state"]) * actions + action
            at = positions(ended["number"], number)
            ended["count"] = 0
            np.add.at(ended["count"], at[at >= 0], rows["count"][at >= 0])
        return ended

    def unpack(self, numbers: Int64s) -> tuple[Int64s, ...]:
        """Return the observation, the states and the action of packed augmented states."""
        parts = []
        for size in (len(self.alphabets.actions), *reversed(list(self.sizes.values()))):
            numbers, part = np.divmod(numbers, size)
            parts.append(part)
        return (numbers, *reversed(parts))

    @property
    def unexplained(self) -> frozenset[str]:
        """The names of the machines that do not explain all traces."""
        return frozenset(
            name
            for name, counts in self.machines.items()
            if len(counts.conflicts) or len(counts.missing)
        )

    @property
    def consistent(self) -> bool:
        """Whether the machines explain every step of every trace."""
        return not self.unexplained

    def __add__(self, other: "ReplayCounts") -> "ReplayCounts":
        """Return the counts of two shards together; their order makes no difference."""
        if other.alphabets is not self.alphabets and other.alphabets != self.alphabets:
            raise ValueError("two replays add up only in the same codes")
        return ReplayCounts(
            self.alphabets,
            {name: counts + other.machines[name] for name, counts in self.machines.items()},
            self.sizes,
            _sum_augmented_states(np.concatenate([self.augmented_states, other.augmented_states])),
            self.counted_in_outputs,
            self.traces + other.traces,
            self.steps + other.steps,
        )


def outputs_vary(query: Int64s, output: Codes, queries: int) -> NDArray[np.bool_]:
    """Return for each row whether its query has another output in some other row."""
    if queries > MAX_TABLE_SIZE:
        queries, query = _ranked(query)
    example = np.empty(queries, np.int32)
    example[query] = output  # any one of a query's outputs
    varies = np.zeros(queries, bool)
    varies[query[output != example[query]]] = True
    return varies[query]


def row_order(rows: Rows, *fields: str) -> Int64s:
    """Return the positions of rows in the order of some fields."""
    return np.lexsort([rows[field] for field in reversed(fields)])


def _sum_rows(rows: Rows, more: Rows, keys: tuple[str, ...]) -> Rows:
    """Merge rows that are sorted by distinct keys: sum the counts, and keep the better examples.

    This costs little more than a copy of the longer rows if the shorter ones are few.
    """
    if len(rows) < len(more):
        rows, more = more, rows
    if len(more) == 0:
        return rows
    columns = {key: np.concatenate([rows[key], more[key]]) for key in keys}
    number = pack_rows(columns, len(rows) + len(more))
    number, wanted = number[: len(rows)], number[len(rows) :]
    at = np.searchsorted(number, wanted)
    is_there = number[np.minimum(at, len(rows) - 1)] == wanted
    total, existing, same = rows.copy(), at[is_there], more[is_there]
    total["count"][existing] += same["count"]
    for names, order in (
        (("trace", "step", "length", "key"), ("length", "key", "trace")),
        (("early_trace", "early_step"), ("early_step", "early_trace")),
    ):
        better = _come_before(same, total[existing], order)
        for name in names:
            total[name][existing[better]] = same[name][better]
    return np.insert(total, at[~is_there], more[~is_there])


def _come_before(rows: Rows, compared: Rows, order: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return for each row whether it comes before the one in `compared`."""
    before, same = np.zeros(len(rows), bool), np.ones(len(rows), bool)
    for name in order:
        before |= same & (rows[name] < compared[name])
        same &= rows[name] == compared[name]
    return before


def _sum_augmented_states(augmented_states: Rows) -> Rows:
    numbers, group = np.unique(augmented_states["number"], return_inverse=True)
    total = np.zeros(len(numbers), AUGMENTED_STATE_ROW)
    total["number"] = numbers
    for name in ("count", "ended"):
        np.add.at(total[name], group, augmented_states[name])
    return total
