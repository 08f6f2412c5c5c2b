"""Scan shards in files for their values, sizes, and a sample of their traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from resolvent.replay.coded_shard import CodedShard
from resolvent.traces import TraceSet
from resolvent.traces.digest import TraceDigest
from resolvent.traces.source import ShardFacts, SkippedRows, TraceSource
from resolvent.traces.vocabulary import JointVocabularies

Numbered = tuple[NDArray[np.int64], TraceSet]  # some traces, and their numbers among all
LEAST_STEPS: Final = 50_000  # minimum number that a shard gives to the pool, if it has them
_SPARE: Final = 2  # multiple of its share of the pool that a shard gives


@dataclass(frozen=True, eq=False)
class Pool:
    """A sample of distinct traces, in the order of their keys; of equal traces the first.

    With a limit of `steps` it holds the traces of lowest key up to about that number of steps, and
    the traces themselves (`sets`), to avoid reading them again. `cut` lists the shards that left
    out traces: the lowest key left out, and the number of the shard.

    Pools add up in any grouping: a trace beyond the limit in a part is so in the total.
    """

    steps: int | None
    number: NDArray[np.int64]
    length: NDArray[np.int64]
    key: NDArray[np.int64]
    sets: tuple[Numbered, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls,
        shard: CodedShard,
        steps: int | None,
        first: int = 0,
        limit: tuple[int, int] | None = None,
    ) -> "Pool":
        """Return the pool of one shard, whose first trace has the number `first`.

        `limit` is the number of the shard and its maximum number of steps.
        """
        number = first + np.arange(len(shard.traces))
        pool = everything = cls(steps, number, shard.length, shard.key)._lowest()
        if limit is not None and len(pool := everything.first(limit[1])) < len(everything):
            pool = replace(pool, cut=((int(everything.key[len(pool)]), limit[0]),))
        if steps is None:
            return pool
        numbers = np.sort(pool.number)
        return replace(pool, sets=((numbers, shard.traces.take(numbers - first)),))

    def __len__(self) -> int:
        return len(self.key)

    def moved(self, by: int) -> "Pool":
        """Return the pool with a constant added to the numbers of its traces."""
        sets = tuple((numbers + by, traces) for numbers, traces in self.sets)
        return replace(self, number=self.number + by, sets=sets)

    def __add__(self, other: "Pool") -> "Pool":
        total = Pool(
            self.steps,
            np.append(self.number, other.number),
            np.append(self.length, other.length),
            np.append(self.key, other.key),
            cut=self.cut + other.cut,
        )._lowest()
        return replace(total, sets=total._needed((*self.sets, *other.sets)))

    def _needed(self, sets: tuple[Numbered, ...]) -> tuple[Numbered, ...]:
        """Drop traces that are not in the pool once they are half of all; copying takes time."""
        if sum(traces.steps for _, traces in sets) <= 2 * int(self.length.sum()):
            return sets
        wanted = np.sort(self.number)
        needed = []
        for numbers, traces in sets:
            at = np.minimum(np.searchsorted(wanted, numbers), len(wanted) - 1)
            stays = wanted[at] == numbers
            if stays.any():
                needed.append((numbers[stays], traces.take(np.flatnonzero(stays))))
        return tuple(needed)

    def _lowest(self) -> "Pool":
        """Drop traces that are repeated, and those beyond the limit."""
        # Where keys are equal, the first number comes first.
        order = np.lexsort((self.number, self.key))
        key = self.key[order]
        pool = self._take(order[np.diff(key, prepend=key[:1] - 1) != 0])
        if self.steps is None:
            return pool
        pool = pool.first(self.steps)
        if int(pool.length.sum()) >= self.steps:  # shards that were cut later do not matter
            pool = replace(pool, cut=tuple(cut for cut in self.cut if cut[0] <= pool.key[-1]))
        return pool

    def first(self, steps: int) -> "Pool":
        """Return the traces of lowest key that have this number of steps together."""
        return self._take(slice(int(np.searchsorted(np.cumsum(self.length), steps)) + 1))

    def _take(self, rows: slice | NDArray[np.int64]) -> "Pool":
        return replace(self, number=self.number[rows], length=self.length[rows], key=self.key[rows])


_ValuesByType = Mapping[tuple[str, type], frozenset[Any]]  # 1, 1.0 and True are equal


@dataclass(frozen=True, eq=False)
class ScanCounts:
    """The scan of consecutive shards; scans add up in the order of shards.

    `traces` are the numbers of traces of each shard. `new_values` are those that first occur in a
    shard, by its number and column. `facts` are those for later reads, by shard number.
    """

    traces: NDArray[np.int64]
    digest: TraceDigest
    new_values: tuple[tuple[int, dict[str, tuple[Any, ...]]], ...]
    pool: Pool
    facts: tuple[tuple[int, ShardFacts], ...] = ()

    def __add__(self, other: "ScanCounts") -> "ScanCounts":
        by_type, new_values = self._by_type, list(self.new_values)
        for shard, values in other.new_values:
            fresh = {name: _new_values(name, column, by_type) for name, column in values.items()}
            if any(fresh.values()) or fresh.keys() != self.new_values[0][1].keys():
                new_values.append((shard, fresh))
                by_type = _with_values(by_type, fresh)
        total = ScanCounts(
            np.append(self.traces, other.traces),
            self.digest + other.digest,
            tuple(new_values),
            self.pool + other.pool.moved(int(self.traces.sum())),
            self.facts + other.facts,
        )
        total.__dict__["_by_type"] = by_type  # saves computing it again
        return total

    def common(self, shards: TraceSource) -> JointVocabularies:
        """Return all values of every column; `TraceError` if columns or types differ."""
        common = JointVocabularies()
        for shard, values in self.new_values:
            common.add(values, shards.name(shard) or "the traces")
        return common

    @cached_property
    def _by_type(self) -> _ValuesByType:
        return reduce(_with_values, (values for _, values in self.new_values), {})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_by_type"}


@dataclass(frozen=True)
class ScanPass:
    """Scans one shard, given by its number; it can be pickled, to run anywhere.

    `pool_steps` is the number of steps of the whole pool, `rows` that of all shards; if it is not
    known, each shard returns all traces that may belong to the pool.
    """

    shards: TraceSource
    pool_steps: int
    rows: int | None = None

    result_types: ClassVar = (ScanCounts, Pool, ShardFacts, SkippedRows, TraceDigest)

    def __call__(self, number: int) -> ScanCounts:
        """Read a shard, and return its values, sizes and pool."""
        traces, facts = self.shards.scan(number)
        most = self.pool_steps
        if self.rows:
            share = _SPARE * self.pool_steps * traces.steps // self.rows
            most = min(max(share, LEAST_STEPS), most)
        shard = CodedShard.alone(traces)
        return ScanCounts(
            np.array([len(traces)]),
            digested(shard),
            ((number, {name: tuple(values) for name, values in traces.values.items()}),),
            Pool.of(shard, self.pool_steps, limit=(number, most)),
            ((number, facts),),
        )


@dataclass(frozen=True, eq=False)
class PoolPass:
    """Scans a shard again for its part of the pool; `first` are the first traces of all shards."""

    shards: TraceSource
    pool_steps: int
    first: NDArray[np.int64]

    result_types: ClassVar = (Pool,)

    def __call__(self, number: int) -> Pool:
        """Read a shard, and return its pool."""
        shard = CodedShard.alone(self.shards.read(number))
        return Pool.of(shard, self.pool_steps, int(self.first[number]))


def digested(shard: CodedShard) -> TraceDigest:
    """Return the digest of a shard's traces."""
    return TraceDigest.of(shard.key, shard.traces.steps)


def _new_values(name: str, values: Sequence[Any], by_type: _ValuesByType) -> tuple[Any, ...]:
    """Return the values of a column that are not in `by_type`."""
    existing = {dtype: by_type.get((name, dtype), frozenset()) for dtype in {*map(type, values)}}
    return tuple(value for value in values if value not in existing[type(value)])


def _with_values(by_type: _ValuesByType, values: Mapping[str, Sequence[Any]]) -> _ValuesByType:
    more = dict(by_type)
    for name, column in values.items():
        for dtype in {*map(type, column)}:
            new = (value for value in column if type(value) is dtype)
            more[name, dtype] = more.get((name, dtype), frozenset()).union(new)
    return more
