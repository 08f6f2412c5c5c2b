"""All traces of an inference: shards under common codes, which can be read repeatedly.

Input: a source of shards. Output: coded shards, samples of traces, and sums of work on shards.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent._util.cache import Store, cached
from resolvent._util.parallel import Listener, Progress, Threads, Workers
from resolvent.errors import ModelError, StepLocation
from resolvent.machines import Machines
from resolvent.replay.coded_shard import Alphabets, CodedShard, check_columns, rounding_of
from resolvent.replay.scan import Numbered, Pool, PoolPass, ScanCounts, ScanPass, digested
from resolvent.traces import TraceDataset, TraceSet, Vocabulary, label_order, symbol_order
from resolvent.traces.digest import TraceDigest
from resolvent.traces.source import InMemorySource, JoinedSource, TraceSource, warn_of_skipped
from resolvent.traces.vocabulary import JointVocabularies

POOL_STEPS = 1_000_000  # maximum number in files that are kept in memory to sample from
READING: Final = "reading"  # name, in progress reports, of scanning files and of fetching traces
REPLAYING: Final = "replaying"  # name, in progress reports, of a pass over all traces


Counts = TypeVar("Counts")  # counts of a shard, which add up


@dataclass(frozen=True, eq=False)
class ShardReader:
    """Shards that are read and put into common codes one by one; picklable, to run anywhere.

    `first` are the numbers of their first traces among all, and at the end the number of traces.
    """

    shards: TraceSource
    first: NDArray[np.int64]
    alphabets: Alphabets
    rounding: Mapping[str, int]

    def read(self, number: int) -> CodedShard:
        """Read one shard."""
        return self.coded(number, self.shards.read(number))

    def apply(self, work: Callable[[CodedShard], Counts], number: int) -> Counts:
        """Read one shard, and return the result of work on it."""
        return work(self.read(number))

    def coded(self, number: int, traces: TraceSet) -> CodedShard:
        """Return one shard, given its traces."""
        return CodedShard.among(int(self.first[number]), traces, self.alphabets, self.rounding)


@dataclass(frozen=True)
class FetchTraces:
    """Reads some traces of a shard, given by its number and theirs within it."""

    shards: TraceSource

    result_types: ClassVar = (TraceSet,)

    def __call__(self, wanted: tuple[int, NDArray[np.int64]]) -> TraceSet:
        """Read a shard, and return those of its traces."""
        number, traces = wanted
        return self.shards.read(number).take(traces)


class Corpus:
    """Shards of traces under common codes, which can be read repeatedly.

    They are scanned once for their values. Shards in memory are coded once; those in files are read
    by `workers` and dropped, except for a pool of traces to sample from; `cache` keeps the results.
    `rounding` is the number of decimals to which machines see some of the columns.

    A corpus is immutable: `extended` returns one with more traces, at the cost of those.
    """

    def __init__(
        self,
        shards: TraceSource,
        rounding: Mapping[str, int] | None = None,
        progress: Callable[[int], None] | None = None,
        pool_steps: int = POOL_STEPS,
        workers: Workers | None = None,
        cache: Store | None = None,
    ) -> None:
        self.shards = shards
        self.rounding = dict(rounding or {})
        self.workers: Workers = workers or Threads()
        self.cache = cache
        self._coded: list[CodedShard] | None = None
        self._hashed: TraceDigest | None = None
        self._pool: Pool | None = None
        self._fetched: list[Numbered] = []
        if self.in_memory:
            counts = [len(traces) for traces in shards]
            self.steps = sum(traces.steps for traces in shards)
            self.alphabets = self._alphabets_in_memory(progress)
        else:
            scan = self._scan(pool_steps, progress)
            self.shards = shards.with_facts(dict(scan.facts))
            counts, self.steps, self._pool = scan.traces.tolist(), scan.digest.steps, scan.pool
            common = scan.common(shards)
            self.alphabets = _alphabets(common.values(), self.rounding)
            self._hashed = None if common.made_floats else scan.digest
            self._fetched = list(scan.pool.sets)
        self._first = np.array([0, *np.cumsum(counts)], np.int64)
        if self.in_memory:
            self._coded = self._coded_shards()

    def _alphabets_in_memory(self, progress: Callable[[int], None] | None) -> Alphabets:
        if len(self.shards) == 1:  # its values are in order already
            return Alphabets.of(self.shards.read(0).values, self.rounding)
        common = JointVocabularies()
        for number, traces in enumerate(self.shards):
            common.add(traces.values, self.shards.name(number) or "the traces")
            if progress:
                progress(number + 1)
        return _alphabets(common.values(), self.rounding)

    def _scan(self, pool_steps: int, progress: Callable[[int], None] | None) -> ScanCounts:
        """Scan all shards, and again those that gave too little to the pool.

        Each gives about twice its share: too little only if other shards mostly repeat traces.
        """
        shards, numbers = self.shards, range(len(self.shards))
        scan_pass = ScanPass(shards, pool_steps, shards.rows)
        scan: ScanCounts = self.workers.map_reduce(
            cached(scan_pass, self.cache), numbers, add, called=READING, report=progress
        )
        if short := sorted({shard for _, shard in scan.pool.cut}):
            shards = shards.with_facts(dict(scan.facts))
            first = np.cumsum(scan.traces) - scan.traces
            pool_pass = cached(PoolPass(shards, pool_steps, first), self.cache)
            more = self.workers.map_reduce(pool_pass, short, add, called=READING)
            scan = replace(scan, pool=replace(scan.pool, cut=()) + more)
        return scan

    @property
    def traces(self) -> int:
        """The number of traces."""
        return int(self._first[-1])

    @property
    def all(self) -> NDArray[np.int64]:
        """The numbers of all traces."""
        return np.arange(self.traces)

    @property
    def in_memory(self) -> bool:
        """Whether the shards need not be read."""
        return isinstance(self.shards, InMemorySource)

    def extended(self, traces: TraceSet) -> "Corpus":
        """Return a corpus with one more shard; if it has new values, all are coded again."""
        more = copy.copy(self)
        more.shards = _joined(self.shards, traces)
        more._first = np.append(self._first, self.traces + len(traces))
        more.steps = self.steps + traces.steps
        more.__dict__.pop("digest", None)
        more._fetched = list(self._fetched)
        more._pool = None  # of traces in memory it is made again, if it should be needed
        alone = CodedShard.alone(traces)
        if self._pool is not None and not self.in_memory:
            more._pool = self._pool + Pool.of(alone, self._pool.steps, self.traces)
        shared, values, made_floats = self.alphabets.values, traces.values, False
        if shared.keys() == values.keys() and all(
            _has_all(shared[name], column) for name, column in values.items()
        ):
            if self._coded is not None:
                shard = CodedShard.among(self.traces, traces, self.alphabets, self.rounding)
                more._coded = [*self._coded, shard]
        else:
            common = JointVocabularies()
            common.add(shared, "the traces before")
            common.add(values, more.shards.name(len(more.shards) - 1) or "the traces")
            made_floats = common.made_floats
            more.alphabets = _alphabets(common.values(), self.rounding)
            if self._coded is not None:
                more._coded = more._coded_shards()
        if self._hashed is not None:
            more._hashed = None if made_floats else self._hashed + digested(alone)
        return more

    @property
    def reader(self) -> ShardReader:
        """The shards and their common codes, which can be read anywhere."""
        return ShardReader(self.shards, self._first, self.alphabets, self.rounding)

    def _coded_shards(self) -> list[CodedShard]:
        reader = self.reader
        return [reader.coded(number, traces) for number, traces in enumerate(self.shards)]

    def coded(self, since: int = 0) -> Iterator[CodedShard]:
        """Iterate over the shards in common codes, from number `since` on."""
        if self._coded is not None:
            return iter(self._coded[since:])
        reader = self.reader
        return (reader.read(number) for number in range(since, len(self.shards)))

    def sample(self, steps: int) -> NDArray[np.int64]:
        """Return the numbers of a sample of traces, ascending, with at least this number of steps.

        The sample has the traces of lowest key, which does not depend on the order or repetition
        of traces. From files it has no more than the pool holds.
        """
        return np.sort(self.pool.first(steps).number)

    def distinct(self) -> NDArray[np.int64]:
        """Return the numbers of distinct traces, ascending; from files those in the pool."""
        return np.sort(self.pool.number)

    @property
    def pool(self) -> Pool:
        """The distinct traces by ascending key; from files a sample of them."""
        if self._pool is None:
            self._pool = reduce(add, (Pool.of(shard, None, shard.first) for shard in self.coded()))
        return self._pool

    def fetch(self, numbers: NDArray[np.int64]) -> TraceSet:
        """Return the traces with these ascending numbers; those read from files are cached."""
        if self.in_memory and len(self.shards) == 1:
            traces = self.shards.read(0)
            return traces if len(numbers) == len(traces) else traces.take(numbers)
        present, sets, missing = [], [], numbers
        for own, traces in self._fetched:  # a shard that was scanned twice has traces in two sets
            rows = np.flatnonzero(np.isin(own, missing))
            present.append(own[rows])
            sets.append(traces.take(rows))
            missing = np.setdiff1d(missing, own[rows])
        of_shard = np.searchsorted(self._first, missing, side="right") - 1
        wanted = [(shard, missing[of_shard == shard]) for shard in np.unique(of_shard).tolist()]
        within = [(shard, rows - self._first[shard]) for shard, rows in wanted]
        workers: Workers = Threads(1) if self.in_memory else self.workers
        fetch = cached(FetchTraces(self.shards), self.cache)
        fetched = workers.map(fetch, within, called=READING)
        for (_, rows), traces in zip(wanted, fetched, strict=True):
            present.append(rows)
            sets.append(traces)
            if not self.in_memory:
                self._fetched.append((rows, traces))
        return TraceSet.concatenate(sets).take(np.argsort(np.concatenate(present)))

    def as_traces(self) -> TraceSet:
        """Return all traces, which have to be in memory, as one set."""
        sets = list(self.shards)
        return sets[0] if len(sets) == 1 else TraceSet.concatenate(sets)

    def with_traces(self, traces: TraceSet) -> "Corpus":
        """Return a corpus of other traces in memory, with the same rounding."""
        return Corpus(InMemorySource([traces]), self.rounding)

    def location(self, trace: int, step: int) -> StepLocation:
        """Return the location of a step; `trace` is the number among all."""
        shard = int(np.searchsorted(self._first, trace, side="right")) - 1
        source = self.shards.name(shard)
        within = None if source is None else trace - int(self._first[shard])
        return StepLocation(trace, step, source, within)

    @cached_property
    def digest(self) -> str:
        """The digest of all traces, as `TraceSet.digest` of them together would be."""
        if self._hashed is None:
            self._hashed = sum(map(digested, self.coded()), TraceDigest())
        return self._hashed.hexdigest(self.alphabets.values)

    def __getstate__(self) -> dict[str, Any]:
        # Workers cannot be pickled, and codes follow from the traces.
        replaced = {"_coded": None, "workers": Threads(), "cache": None}
        return {"digest": self.digest, **self.__dict__, **replaced}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.in_memory:
            self._coded = self._coded_shards()

    def __copy__(self) -> "Corpus":
        # Pickling would drop codes that have to be computed from all traces.
        corpus = object.__new__(type(self))
        corpus.__dict__.update(self.__dict__)
        return corpus

    def __deepcopy__(self, memo: dict[int, Any]) -> "Corpus":
        return self  # it is immutable


def _has_all(vocabulary: Vocabulary[Any], values: Vocabulary[Any]) -> bool:
    """Return whether a vocabulary has all values and types; 1, 1.0 and True are equal."""
    same = {*map(type, values)} <= {*map(type, vocabulary)}
    return same and all(value in vocabulary for value in values)


def _joined(shards: TraceSource, traces: TraceSet) -> TraceSource:
    if isinstance(shards, InMemorySource):
        return InMemorySource([*shards.sets, traces])
    sources = shards.sources if isinstance(shards, JoinedSource) else (shards,)
    return JoinedSource([*sources, InMemorySource([traces])])


def _alphabets(values: Mapping[str, Sequence[Any]], rounding: Mapping[str, int]) -> Alphabets:
    ordered = {
        name: Vocabulary(sorted(column, key=label_order if name == "label" else symbol_order))
        for name, column in values.items()
    }
    return Alphabets.of(ordered, rounding)


def scan_corpus(
    machines: Machines,
    traces: TraceSet | TraceDataset,
    workers: Workers,
    *,
    known: Corpus | None = None,
    progress: Listener | None = None,
) -> Corpus:
    """Return all traces as machines see them, under common codes.

    `workers` scan files once, unless `known` is a corpus of the same files, such as that of the
    inference. A `TableWarning` lists the skipped parts of damaged files; `DamagedFile` says that
    nothing is left, and `ModelError` that traces lack a column that a machine predicts.
    """
    shards: TraceSource = InMemorySource([traces]) if isinstance(traces, TraceSet) else traces
    shards, rounding = machines.preprocessor.transform_source(shards), rounding_of(machines)
    if known and known.shards.is_same(shards) and known.rounding == rounding:
        corpus = copy.copy(known)
        corpus.workers, corpus.cache = workers, None
    else:
        report = None
        if isinstance(traces, TraceDataset):
            report = _reporter(progress, READING, len(shards), traces.rows)
        corpus = Corpus(shards, rounding, report, workers=workers)
        warn_of_skipped(corpus.shards.skipped, corpus.traces)
    check_columns(machines, corpus.alphabets)
    return corpus


def run_pass(
    corpus: Corpus, work: Callable[[CodedShard], Counts], progress: Listener | None = None
) -> Counts:
    """Apply `work` to each shard of a corpus once, and return the sum of its results.

    If the corpus is in files, its workers do so, and `work` has to be picklable.
    """
    numbers = np.flatnonzero(np.diff(corpus.reader.first)).tolist()  # of shards with traces
    if not numbers:
        raise ModelError("there are no traces to replay")
    total: Counts
    if corpus.in_memory:
        total = reduce(add, (work(shard) for shard in corpus.coded() if len(shard.traces)))
    else:
        report = _reporter(progress, REPLAYING, len(numbers), corpus.steps)
        apply = partial(corpus.reader.apply, work)
        total = corpus.workers.map_reduce(apply, numbers, add, called=REPLAYING, report=report)
    return total


def _reporter(
    progress: Listener | None, stage: str, shards: int, steps: int
) -> Callable[[int], None] | None:
    """Return a function that reports the number of finished shards to a listener."""
    if progress is None:
        return None

    def report(done: int) -> None:
        progress(stage, Progress(0, 0, done, shards, 1, steps))

    return report
