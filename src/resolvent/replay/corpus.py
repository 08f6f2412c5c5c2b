"""All traces that an inference is about: shards under common codes, gone through repeatedly."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TracePlace
from resolvent.replay.coded import Alphabets, CodedShard
from resolvent.traces import TraceSet, Vocabulary, label_order, symbol_order
from resolvent.traces.common_values import CommonValues
from resolvent.traces.digest import TraceDigest
from resolvent.traces.shards import JoinedShards, Shards, ShardsInMemory

POOL_STEPS = 1_000_000
"""Steps of a folder's traces that are kept in memory to sample from."""

Piece = tuple[NDArray[np.int64], TraceSet]
"""Some traces, and their numbers among all."""


class Corpus:
    """Shards of traces, looked through once for the values that occur in them.

    Goes through the shards in common codes as often as it is asked to. What is
    in memory already is coded once; from a folder one shard after the other is
    read and dropped, but for a pool of traces to sample from. `rounding` says to how
    many decimals machines see some of the columns.

    It never changes: `extended` returns a corpus with more traces, at the cost of those.
    """

    def __init__(
        self,
        shards: Shards,
        rounding: Mapping[str, int] | None = None,
        progress: Callable[[int], None] | None = None,
        pool_steps: int = POOL_STEPS,
    ) -> None:
        self.shards = shards
        self.rounding = dict(rounding or {})
        self.steps = 0
        self._held: list[CodedShard] | None = None
        self._hashed: TraceDigest | None = None
        self._hashing = Lock()
        self._digest: str | None = None
        self._pool = None if self.in_memory else _Pool(pool_steps)
        common = CommonValues()
        alone = self.in_memory and len(shards) == 1
        first = [0]
        for number, traces in enumerate(shards):
            if not alone:
                common.add(traces.values, shards.name(number) or "the traces")
            if self._pool is not None:
                shard = CodedShard.alone(traces)
                self._pool.add(first[-1], shard)
                self._hashed = (self._hashed or TraceDigest()) + _digested(shard)
            first.append(first[-1] + len(traces))
            self.steps += traces.steps
            if progress:
                progress(number + 1)
        self._first = np.array(first, np.int64)
        self._fetched: list[Piece] = [] if self._pool is None else list(self._pool.pieces)
        if alone:  # its values are in order already
            self.alphabets = Alphabets.of(shards.read(0).values, self.rounding)
        else:
            self.alphabets = _alphabets(common.values(), self.rounding)
        if common.made_floats:
            self._hashed = None
        if self.in_memory:
            self._held = self._coded_anew()

    @property
    def traces(self) -> int:
        """How many traces there are."""
        return int(self._first[-1])

    @property
    def all(self) -> NDArray[np.int64]:
        """The numbers of all traces."""
        return np.arange(self.traces)

    @property
    def in_memory(self) -> bool:
        """Whether the shards need not be read."""
        return isinstance(self.shards, ShardsInMemory)

    def extended(self, traces: TraceSet) -> "Corpus":
        """Return a corpus that has these traces too, as one more shard.

        As long as they bring no new values, nothing is done to the shards there are.
        """
        more = copy.copy(self)
        more.shards = _joined(self.shards, traces)
        more._first = np.append(self._first, self.traces + len(traces))
        more.steps = self.steps + traces.steps
        more._digest = None
        more._fetched = list(self._fetched)
        more._pool = None  # of traces in memory it is made again, if it should be needed
        if self._pool is not None and not self.in_memory:
            more._pool = copy.copy(self._pool)
            more._pool.add(self.traces, CodedShard.alone(traces))
        known, values = self.alphabets.values, traces.values
        if known.keys() == values.keys() and all(
            _holds(known[name], column) for name, column in values.items()
        ):
            shard = CodedShard.among(self.traces, traces, self.alphabets, self.rounding)
            if self._held is not None:
                more._held = [*self._held, shard]
            if self._hashed is not None:
                more._hashed = self._hashed + _digested(CodedShard.alone(traces))
            return more
        common = CommonValues()
        common.add(known, "the traces before")
        common.add(traces.values, more.shards.name(len(more.shards) - 1) or "the traces")
        more.alphabets = _alphabets(common.values(), self.rounding)
        more._hashed = None
        if self._hashed is not None and not common.made_floats:
            more._hashed = self._hashed + _digested(CodedShard.alone(traces))
        if self._held is not None:
            more._held = more._coded_anew()
        return more

    def _coded_anew(self) -> list[CodedShard]:
        return [self._coded(number, traces) for number, traces in enumerate(self.shards)]

    def _coded(self, number: int, traces: TraceSet) -> CodedShard:
        return CodedShard.among(int(self._first[number]), traces, self.alphabets, self.rounding)

    def coded(self, since: int = 0) -> Iterator[CodedShard]:
        """Go through the shards in common codes, from number `since` on."""
        if self._held is not None:
            yield from self._held[since:]
        elif since:
            for number in range(since, len(self.shards)):
                yield self._coded(number, self.shards.read(number))
        else:
            for number, traces in enumerate(self.shards):
                yield self._coded(number, traces)

    def sample(self, steps: int) -> NDArray[np.int64]:
        """Return the numbers of some traces, rising, with so many steps or a little more.

        They are those of lowest key, as good as random and yet the same however
        traces are shuffled or repeated. From a folder there are no more than the
        pool holds.
        """
        enough = int(np.searchsorted(np.cumsum(self._by_key.length), steps)) + 1
        return np.sort(self._by_key.number[:enough])

    def by_key(self) -> NDArray[np.int64]:
        """Return the numbers of traces that differ from each other, by rising key."""
        return self._by_key.number

    def distinct(self) -> NDArray[np.int64]:
        """Return the numbers of traces that differ from each other, rising.

        Of equal ones that is the first; from a folder those in the pool.
        """
        return np.sort(self._by_key.number)

    @property
    def _by_key(self) -> "_Pool":
        if self._pool is None:
            self._pool = _Pool(None)
            for shard in self.coded():
                self._pool.add(shard.first, shard)
        return self._pool

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

    def together(self) -> TraceSet:
        """Return all traces as one set; for those in memory."""
        sets = list(self.shards)
        return sets[0] if len(sets) == 1 else TraceSet.concatenate(sets)

    def place(self, trace: int, step: int) -> TracePlace:
        """Say where a step is, given its trace's number among all."""
        shard = int(np.searchsorted(self._first, trace, side="right")) - 1
        source = self.shards.name(shard)
        if source is None:
            return TracePlace(trace, step)
        return TracePlace(trace, step, source, trace - int(self._first[shard]))

    @property
    def digest(self) -> str:
        """The digest of all traces, as `TraceSet.digest` of them together would be."""
        with self._hashing:  # whoever asks while it is under way waits for it
            if self._digest is None:
                if self._hashed is None:
                    self._hashed = sum(map(_digested, self.coded()), TraceDigest())
                self._digest = self._hashed.hexdigest(self.alphabets.values)
            return self._digest

    def __getstate__(self) -> dict[str, Any]:
        made_again = {"_hashing": None, "_held": None}  # codes follow from the traces
        return {**self.__dict__, "_digest": self.digest, **made_again}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hashing = Lock()
        if self.in_memory:
            self._held = self._coded_anew()

    def __copy__(self) -> "Corpus":
        # What pickling leaves out would have to be made again, from all traces.
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> "Corpus":
        return self  # it never changes


class _Pool:
    """Traces by rising key, of equal ones the first.

    With a limit, those of lowest key that have so many steps together; and the
    traces themselves are kept, since they would have to be read again.
    """

    def __init__(self, steps: int | None) -> None:
        self.steps = steps
        self.pieces: list[Piece] = []
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


def _holds(known: Vocabulary[Any], values: Vocabulary[Any]) -> bool:
    """Whether values are known, and of known types: 1 and 1.0 and True are equal, yet not one."""
    same = {*map(type, values)} <= {*map(type, known)}
    return same and all(value in known for value in values)


def _joined(shards: Shards, traces: TraceSet) -> Shards:
    if isinstance(shards, ShardsInMemory):
        return ShardsInMemory([*shards.sets, traces])
    sources = shards.sources if isinstance(shards, JoinedShards) else (shards,)
    return JoinedShards([*sources, ShardsInMemory([traces])])


def _digested(shard: CodedShard) -> TraceDigest:
    return TraceDigest.of(shard.key, shard.traces.steps)


def _alphabets(values: Mapping[str, Sequence[Any]], rounding: Mapping[str, int]) -> Alphabets:
    ordered = {
        name: Vocabulary(sorted(column, key=label_order if name == "label" else symbol_order))
        for name, column in values.items()
    }
    return Alphabets.of(ordered, rounding)
