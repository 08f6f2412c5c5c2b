"""The first pass over shards in files: their values, sizes and a sample of traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.replay.coded_shard import CodedShard
from resolvent.traces import TraceSet
from resolvent.traces.arrangement import Arrangement
from resolvent.traces.common_values import CommonValues
from resolvent.traces.digest import TraceDigest
from resolvent.traces.gap import Gap
from resolvent.traces.shards import Shards, arrangements_of, look_at

Numbered = tuple[NDArray[np.int64], TraceSet]
"""Some traces, and their numbers among all."""

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Pool:
    """Traces by rising key, of equal ones the first.

    With a limit of `steps` they are those of lowest key that have so many steps together or a
    little more; and the traces themselves are kept (`sets`), since they would have to be read
    again. `cut` says of pieces that did not give all that they might have from which key on
    that is, so that one can tell whether it matters.

    Two pools are put together by `+`, in any grouping: a trace that has too many before it in one
    of them has them in both.
    """

    steps: int | None
    number: NDArray[np.int64] = field(default_factory=_NONE.copy)
    length: NDArray[np.int64] = field(default_factory=_NONE.copy)
    key: NDArray[np.int64] = field(default_factory=_NONE.copy)
    sets: tuple[Numbered, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls,
        shard: CodedShard,
        steps: int | None,
        first: int = 0,
        given: tuple[int, int] | None = None,
    ) -> "Pool":
        """Return the pool of one shard, whose first trace has the number `first`.

        `given` are the number of its piece and how many steps that should give at most.
        """
        number = first + np.arange(len(shard.traces))
        found = cls(steps, number, shard.length, shard.key)._lowest()
        if given is not None and (enough := _enough(found.length, given[1])) < len(found.key):
            found = replace(found._first(enough), cut=((int(found.key[enough]), given[0]),))
        if steps is None:
            return found
        kept = np.sort(found.number)
        return replace(found, sets=((kept, shard.traces.take(kept - first)),))

    def moved(self, by: int) -> "Pool":
        """Return the same pool for traces whose numbers are higher by so many."""
        if not by:
            return self
        sets = tuple((held + by, traces) for held, traces in self.sets)
        return replace(self, number=self.number + by, sets=sets)

    def __add__(self, other: "Pool") -> "Pool":
        if self.is_full:
            other = other._up_to(int(self.key[-1]))
        together = Pool(
            self.steps,
            np.append(self.number, other.number),
            np.append(self.length, other.length),
            np.append(self.key, other.key),
            cut=self.cut + other.cut,
        )._lowest()
        return replace(together, sets=together._needed((*self.sets, *other.sets)))

    @property
    def is_full(self) -> bool:
        """Whether traces of higher keys than these do not belong here."""
        return self.steps is not None and int(self.length.sum()) >= self.steps

    def _up_to(self, key: int) -> "Pool":
        found = self._first(int(np.searchsorted(self.key, key, side="right")))
        return found if len(found.number) else replace(found, sets=())

    def _needed(self, sets: tuple[Numbered, ...]) -> tuple[Numbered, ...]:
        """Leave out traces that are not in the pool, once they are half: copying takes time."""
        if sum(traces.steps for _, traces in sets) <= 2 * int(self.length.sum()):
            return sets
        numbers = np.sort(self.number)
        found = []
        for held, traces in sets:
            at = np.minimum(np.searchsorted(numbers, held), len(numbers) - 1)
            stays = numbers[at] == held
            if stays.any():
                found.append((held[stays], traces.take(np.flatnonzero(stays))))
        return tuple(found)

    @property
    def short(self) -> list[int]:
        """The pieces that may hold traces which belong into the pool and are not there."""
        return sorted({piece for _, piece in self.cut})

    def with_all_of(self, more: "Pool") -> "Pool":
        """Return the pool when the pieces that were cut have given all they have."""
        return replace(self, cut=()) + more

    def _lowest(self) -> "Pool":
        """Leave out traces that are there already, and those beyond the limit."""
        # Where keys are equal, the first number comes first.
        order = np.lexsort((self.number, self.key))
        key = self.key[order]
        order = order[np.diff(key, prepend=key[:1] - 1) != 0]
        sorted_ = replace(
            self, number=self.number[order], length=self.length[order], key=self.key[order]
        )
        if self.steps is None:
            return sorted_
        found = sorted_._first(_enough(sorted_.length, self.steps))
        if int(found.length.sum()) >= self.steps:  # what comes later does not matter
            found = replace(found, cut=tuple(one for one in self.cut if one[0] <= found.key[-1]))
        return found

    def _first(self, many: int) -> "Pool":
        return replace(
            self, number=self.number[:many], length=self.length[:many], key=self.key[:many]
        )


def _enough(length: NDArray[np.int64], steps: int) -> int:
    """Return how many of the first traces have so many steps together."""
    return int(np.searchsorted(np.cumsum(length), steps)) + 1


LEAST_STEPS = 50_000
"""Steps that a piece gives to the pool at least, if it has them."""

_SPARE = 2
"""How many times its share of the pool a piece gives."""

Known = Mapping[str, Mapping[type, frozenset[Any]]]
"""Values by column and type: 1, 1.0 and True are equal, yet not one."""


@dataclass(frozen=True)
class Looking:
    """Looks at one piece, wherever that is done.

    `pool_steps` are the steps of the whole pool, and `rows` how many steps there are in all; where
    that is not known every piece gives to the pool all that may belong there.
    """

    shards: Shards
    pool_steps: int
    rows: int | None = None

    def __call__(self, number: int) -> "Look":
        """Read a piece, and return what there is in it."""
        traces, gap = look_at(self.shards, number)
        stands = arrangements_of(self.shards).get(number)
        most = self.pool_steps
        if self.rows:
            share = _SPARE * self.pool_steps * traces.steps // self.rows
            most = min(max(share, LEAST_STEPS), most)
        shard = CodedShard.alone(traces)
        return Look(
            np.array([len(traces)]),
            digested(shard),
            ((number, {name: tuple(values) for name, values in traces.values.items()}),),
            Pool.of(shard, self.pool_steps, given=(number, most)),
            () if gap is None else ((number, gap),),
            () if stands is None else ((number, stands),),
        )


@dataclass(frozen=True, eq=False)
class Pooling:
    """Looks again at a piece, for all that may belong into the pool.

    `first` are the numbers of the first traces of all pieces.
    """

    shards: Shards
    pool_steps: int
    first: NDArray[np.int64]

    def __call__(self, number: int) -> Pool:
        """Read a piece, and return its pool."""
        shard = CodedShard.alone(self.shards.read(number))
        return Pool.of(shard, self.pool_steps, int(self.first[number]))


@dataclass(frozen=True, eq=False)
class Look:
    """What there is in neighbouring pieces.

    `traces` are how many each piece has. `news` are the values that each piece is the first to
    have, by its number and column; a piece without any is left out. `gaps` are what cannot be
    read of pieces, by their numbers, as files are damaged. `arrangements` are how the rows of
    pieces stand, by their numbers, where that is known: who reads them next need not look again.

    What two runs of pieces hold is put together by `+`, the second following the first.
    """

    traces: NDArray[np.int64]
    digest: TraceDigest
    news: tuple[tuple[int, dict[str, tuple[Any, ...]]], ...]
    pool: Pool
    gaps: tuple[tuple[int, Gap], ...] = ()
    arrangements: tuple[tuple[int, Arrangement], ...] = ()

    def __add__(self, other: "Look") -> "Look":
        known, news = self._known, list(self.news)
        for piece, values in other.news:
            fresh = {name: _fresh(column, known.get(name, {})) for name, column in values.items()}
            if any(fresh.values()) or fresh.keys() != self.news[0][1].keys():
                news.append((piece, fresh))
                known = _with(known, fresh)
        found = Look(
            np.append(self.traces, other.traces),
            self.digest + other.digest,
            tuple(news),
            self.pool + other.pool.moved(int(self.traces.sum())),
            self.gaps + other.gaps,
            self.arrangements + other.arrangements,
        )
        found.__dict__["_known"] = known  # it need not be put together again
        return found

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.digest.steps

    def common(self, shards: Shards) -> CommonValues:
        """Return the values of every column, put together.

        Raises:
            TraceError: when pieces have other columns than the first, or values of other types.
        """
        common = CommonValues()
        for piece, values in self.news:
            common.add(values, shards.name(piece) or "the traces")
        return common

    @cached_property
    def _known(self) -> Known:
        known: Known = {}
        for _, values in self.news:
            known = _with(known, values)
        return known

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known"}


def digested(shard: CodedShard) -> TraceDigest:
    """Return what is kept of a shard's traces to tell them from others."""
    return TraceDigest.of(shard.key, shard.traces.steps)


def _fresh(values: Sequence[Any], known: Mapping[type, frozenset[Any]]) -> tuple[Any, ...]:
    """Return the values that are not known."""
    kinds = {*map(type, values)}
    if len(kinds) == 1:
        there = known.get(kinds.pop(), frozenset())
        return tuple(value for value in values if value not in there)
    return tuple(value for value in values if value not in known.get(type(value), ()))


def _with(known: Known, values: Mapping[str, Sequence[Any]]) -> Known:
    """Return what is known with more values."""
    more = {name: dict(kinds) for name, kinds in known.items()}
    for name, column in values.items():
        of_type = more.setdefault(name, {})
        for kind in {*map(type, column)}:
            new = (value for value in column if type(value) is kind)
            of_type[kind] = of_type.get(kind, frozenset()).union(new)
    return more
