"""The first look at pieces of files: which values there are, how many traces, which to sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.replay.coded import CodedShard
from resolvent.replay.pool import Pool
from resolvent.traces.common_values import CommonValues
from resolvent.traces.digest import TraceDigest
from resolvent.traces.source import Arrangement, Gap, Shards

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
        traces, gap, stands = self.shards.scan(number)
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
