"""Traces of lowest key → a pool to sample from, put together from the pools of pieces."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from resolvent.replay.coded import CodedShard
from resolvent.traces import TraceSet

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
