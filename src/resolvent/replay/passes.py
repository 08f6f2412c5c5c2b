"""One pass over all traces, in memory or in files; the counts of shards add up."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Protocol, Self, TypeVar

from resolvent._util.parallel import Workers
from resolvent._util.progress import Listener, Progress
from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.corpus import READING, Corpus, ShardReader
from resolvent.replay.replaying import REPLAYING, check_columns, rounding_of
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.source import InMemorySource, TraceSource, warn_of_skipped


class Summable(Protocol):
    """Counts of a shard, which add up."""

    def __add__(self, other: Self) -> Self: ...


Counts = TypeVar("Counts", bound=Summable)


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
    inference. A `TableWarning` lists the skipped parts of damaged files.

    Raises:
        DamagedFile: when nothing is left.
        ModelError: when the traces have no column that a machine predicts.
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
    if corpus.in_memory:
        counts = [[work(shard)] for shard in corpus.coded() if len(shard.traces)]
        total: list[Counts] = reduce(_sum, counts) if counts else []
    else:
        shards = len(corpus.shards)
        total = corpus.workers.map_reduce(
            _ReadAndWork(corpus.reader, work),
            range(shards),
            _sum,
            called=REPLAYING,
            report=_reporter(progress, REPLAYING, shards, corpus.steps),
        )
    if not total:
        raise ModelError("there are no traces to replay")
    return total[0]


@dataclass(frozen=True, eq=False)
class _ReadAndWork(Generic[Counts]):
    """Reads a shard and works on it; it can be pickled, to run anywhere."""

    reader: ShardReader
    work: Callable[[CodedShard], Counts]

    def __call__(self, number: int) -> list[Counts]:
        shard = self.reader.read(number)
        return [self.work(shard)] if len(shard.traces) else []


def _sum(counts: list[Counts], more: list[Counts]) -> list[Counts]:
    """Return the sum of the counts of shards; one in the middle of a long trace has none."""
    return [counts[0] + more[0]] if counts and more else counts or more


def _reporter(
    progress: Listener | None, doing: str, shards: int, steps: int
) -> Callable[[int], None] | None:
    """Return a function that reports the number of finished shards to a listener."""
    if progress is None:
        return None

    def report(done: int) -> None:
        progress(doing, Progress(0, 0, done, shards, 1, steps))

    return report
