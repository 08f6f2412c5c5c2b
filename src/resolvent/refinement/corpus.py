"""All traces that an inference is about: shards under common codes, gone through repeatedly."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import TracePlace
from resolvent.traces import Codes, Label, Symbol, TraceSet, Vocabulary, label_order, symbol_order
from resolvent.traces.choosing import content_keys, core_columns
from resolvent.traces.shards import Shards, ShardsInMemory
from resolvent.traces.trace_set import CommonValues, TraceDigest
from resolvent.traces.vocabulary import codes_of

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

POOL_STEPS = 1_000_000
"""Steps of a folder's traces that are kept in memory to sample from."""


@dataclass(frozen=True, slots=True)
class Alphabets:
    """The values that occur in all shards together, each at the position that is its code."""

    observations: Vocabulary[Symbol]
    labels: Vocabulary[Label]
    actions: Vocabulary[Symbol]
    rewards: Vocabulary[float]

    def __iter__(self) -> Iterator[Vocabulary[Any]]:
        return iter((self.observations, self.labels, self.actions, self.rewards))


@dataclass(frozen=True, eq=False)
class CodedShard:
    """A shard in common codes, ready to be replayed.

    `first` is the number of its first trace among all traces.
    """

    first: int
    traces: TraceSet
    codes: tuple[Codes, ...]
    alphabets: Alphabets

    @classmethod
    def alone(cls, traces: TraceSet) -> "CodedShard":
        """Return a trace set as a shard in its own codes."""
        codes = tuple(codes for _, codes in _columns(traces))
        return cls(0, traces, codes, Alphabets(*(values for values, _ in _columns(traces))))

    @cached_property
    def key(self) -> NDArray[np.int64]:
        """A number for each trace that depends on nothing but what it holds.

        >>> from resolvent.traces import Trace
        >>> ways = [Trace([0, 1], [None, None], ["go"], [r]) for r in (0, 1, 0)]
        >>> a, b, c = CodedShard.alone(TraceSet(ways)).key.tolist()
        >>> a == c, a == b, CodedShard.alone(TraceSet(ways[2:])).key.tolist() == [a]
        (True, False, True)
        """
        return content_keys(self.columns(), self.alphabets, THREADS)

    @cached_property
    def length(self) -> NDArray[np.int64]:
        """How many steps each trace has."""
        return np.diff(self.traces.offsets)

    @cached_property
    def order(self) -> Codes:
        """The traces by length and key: the same however they were shuffled."""
        return np.lexsort((self.key, self.length)).astype(np.int32)

    def columns(self, reward_codes: Codes | None = None) -> _core.TraceColumns:
        """Return the columns as the core takes them; `reward_codes` stand for the rewards'."""
        if reward_codes is None:
            return self._columns
        *others, reward = self.codes
        codes = (*others, _core.recode(reward, reward_codes))
        return core_columns(self.traces, codes, map(len, self.alphabets))

    @cached_property
    def _columns(self) -> _core.TraceColumns:
        return core_columns(self.traces, self.codes, map(len, self.alphabets))


class Corpus:
    """Shards of traces, looked through once for the values that occur in them.

    Goes through the shards in common codes as often as it is asked to. What is
    in memory already is coded once; from a folder one shard after the other is
    read and dropped, but for a pool of traces to sample from.
    """

    def __init__(
        self,
        shards: Shards,
        progress: Callable[[int], None] | None = None,
        pool_steps: int = POOL_STEPS,
    ) -> None:
        self.shards = shards
        self.steps = 0
        self._digest: str | None = None
        self._held: list[CodedShard] | None = None
        self._fetched: list[tuple[NDArray[np.int64], TraceSet]] = []
        common = CommonValues()
        pool = _Pool(None if self.in_memory else pool_steps)
        first = [0]
        for number, traces in enumerate(shards):
            shard = CodedShard.alone(traces)
            common.add(traces, shards.name(number) or "the traces")
            pool.add(first[-1], shard)
            first.append(first[-1] + len(traces))
            self.steps += traces.steps
            if progress:
                progress(number + 1)
        self._first = np.array(first, np.int64)
        self.alphabets = _in_order(common.values())
        self._pool = pool
        if self.in_memory and len(shards) == 1:
            self._held = [shard]
        self._fetched = pool.pieces

    @property
    def traces(self) -> int:
        """How many traces there are."""
        return int(self._first[-1])

    @property
    def all(self) -> NDArray[np.int64]:
        """The numbers of all traces."""
        return np.arange(self.traces)

    def sample(self, steps: int) -> NDArray[np.int64]:
        """Return the numbers of some traces, rising, with so many steps or a little more.

        They are those of lowest key, as good as random and yet the same however
        traces are shuffled or repeated. From a folder there are no more than the
        pool holds.
        """
        enough = int(np.searchsorted(np.cumsum(self._pool.length), steps)) + 1
        return np.sort(self._pool.number[:enough])

    @property
    def in_memory(self) -> bool:
        """Whether the shards need not be read."""
        return isinstance(self.shards, ShardsInMemory)

    def __iter__(self) -> Iterator[CodedShard]:
        if self._held is not None:
            yield from self._held
            return
        shards = []
        digest = None if self._digest else TraceDigest(tuple(self.alphabets))
        for number, traces in enumerate(self.shards):
            shard = CodedShard(
                int(self._first[number]), traces, self._codes(traces), self.alphabets
            )
            if digest:
                digest.add(shard.codes, shard.length, traces.terminated, traces.truncated)
            if self.in_memory:
                shards.append(shard)
            yield shard
        if digest:
            self._digest = digest.hexdigest()
        if self.in_memory:
            self._held = shards

    def _codes(self, traces: TraceSet) -> tuple[Codes, ...]:
        return tuple(
            codes if values == known else _core.recode(codes, codes_of(values, known, -1))
            for (values, codes), known in zip(_columns(traces), self.alphabets, strict=True)
        )

    def fetch(self, numbers: NDArray[np.int64]) -> TraceSet:
        """Return the traces with these numbers, which must rise.

        What was read from a folder once is kept, for it will be asked for again.
        """
        if self.in_memory and len(self.shards) == 1:
            traces = self.shards.read(0)
            return traces if len(numbers) == len(traces) else traces.take(numbers)
        kept = [held[np.isin(held, numbers)] for held, _ in self._fetched]
        sets = [
            traces.take(np.flatnonzero(np.isin(held, numbers))) for held, traces in self._fetched
        ]
        missing = np.setdiff1d(numbers, np.concatenate([np.empty(0, np.int64), *kept]))
        of_shard = np.searchsorted(self._first, missing, side="right") - 1
        for shard in np.unique(of_shard).tolist():
            wanted = missing[of_shard == shard]
            traces = self.shards.read(shard).take(wanted - self._first[shard])
            kept.append(wanted)
            sets.append(traces)
            if not self.in_memory:
                self._fetched.append((wanted, traces))
        order = np.argsort(np.concatenate(kept))
        return TraceSet.concatenate(sets).take(order)

    def place(self, trace: int, step: int) -> TracePlace:
        """Say where a step is, given its trace's number among all."""
        shard = int(np.searchsorted(self._first, trace, side="right")) - 1
        source = self.shards.name(shard)
        if source is None:
            return TracePlace(trace, step)
        return TracePlace(trace, step, source, trace - int(self._first[shard]))

    @property
    def digest(self) -> str:
        """SHA-256 over all traces, as `TraceSet.digest` of them together would be."""
        if self.in_memory and len(self.shards) == 1:
            return self.shards.read(0).digest
        while self._digest is None:
            for _ in self:
                pass
        return self._digest


class _Pool:
    """Traces by rising key, of equal ones the first.

    With a limit, those of lowest key that have so many steps together; and the
    traces themselves are kept, since they would have to be read again.
    """

    def __init__(self, steps: int | None) -> None:
        self.steps = steps
        self.pieces: list[tuple[NDArray[np.int64], TraceSet]] = []
        self.number = self.length = self._key = np.empty(0, np.int64)

    def add(self, first: int, shard: CodedShard) -> None:
        """Look at one shard, whose first trace has this number."""
        number = np.append(self.number, first + np.arange(len(shard.traces)))
        key, length = np.append(self._key, shard.key), np.append(self.length, shard.length)
        _, lowest = np.unique(key, return_index=True)
        if self.steps is not None:
            lowest = lowest[: int(np.searchsorted(np.cumsum(length[lowest]), self.steps)) + 1]
        self.number, self._key, self.length = number[lowest], key[lowest], length[lowest]
        if self.steps is None:
            return
        new = np.sort(self.number[self.number >= first])
        self.pieces = [
            (held[stays], traces.take(np.flatnonzero(stays)))
            for held, traces in self.pieces
            if np.any(stays := np.isin(held, self.number))
        ]
        if len(new):
            self.pieces.append((new, shard.traces.take(new - first)))


def _columns(traces: TraceSet) -> tuple[tuple[Vocabulary[Any], Codes], ...]:
    return (
        (traces.observations, traces.observation_codes),
        (traces.labels, traces.label_codes),
        (traces.actions, traces.action_codes),
        (traces.rewards, traces.reward_codes),
    )


def _in_order(values: Sequence[Sequence[Any]]) -> Alphabets:
    observations, labels, actions, rewards = values
    return Alphabets(
        Vocabulary(sorted(observations, key=symbol_order)),
        Vocabulary(sorted(labels, key=label_order)),
        Vocabulary(sorted(actions, key=symbol_order)),
        Vocabulary(sorted(rewards)),
    )
