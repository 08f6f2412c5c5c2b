"""One pass over all traces, in memory or in files, shard by shard."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Protocol, Self, TypeVar

from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.progress import Listener, Progress
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.corpus import READING, CodedPieces, Corpus
from resolvent.replay.replaying import REPLAYING, check_columns, rounding_of
from resolvent.senses.senses import SensedShards
from resolvent.traces import TraceFolder, TraceSet
from resolvent.traces.gap import tell_of
from resolvent.traces.shards import Shards, ShardsInMemory, are_same, gaps_of
from resolvent.workers import Workers


class AddsUp(Protocol):
    """What pieces show; two of them together show their sum."""

    def __add__(self, other: Self) -> Self: ...


Made = TypeVar("Made", bound=AddsUp)


def whole(
    machines: Machines,
    traces: TraceSet | TraceFolder,
    workers: Workers,
    *,
    known: Corpus | None = None,
    progress: Listener | None = None,
) -> Corpus:
    """Return all traces as machines see them, under common codes.

    `workers` go through those in files once for that, unless they are `known` already: the
    corpus that machines were inferred from, say. `progress` is told how far that is. What is left
    out as files are damaged, where a user asks for that, is told by a `TableWarning`.

    Raises:
        DamagedFile: when nothing is left.
        ModelError: when the traces have no column that a machine predicts.
    """
    shards: Shards = ShardsInMemory([traces]) if isinstance(traces, TraceSet) else traces
    shards, rounding = machines.senses.on_shards(shards), rounding_of(machines)
    if known and _are_same(known.shards, shards) and known.rounding == rounding:
        corpus = copy.copy(known)
        corpus.workers = workers
    else:
        told = None
        if isinstance(traces, TraceFolder):
            told = _telling(progress, READING, len(shards), traces.rows)
        corpus = Corpus(shards, rounding, told, workers=workers)
        tell_of(gaps_of(corpus.shards), corpus.traces)
    check_columns(machines, corpus.alphabets)
    return corpus


def through(
    corpus: Corpus, work: Callable[[CodedShard], Made], progress: Listener | None = None
) -> Made:
    """Go through all pieces of a corpus once, and return what they show together.

    The workers of the corpus do so where it is in files: `work` has to be one that can be
    pickled then. `progress` is told how far it is.
    """
    if corpus.in_memory:
        made = [[work(shard)] for shard in corpus.coded() if len(shard.traces)]
        together: list[Made] = reduce(_added, made) if made else []
    else:
        pieces = len(corpus.shards)
        together = corpus.workers.together(
            _Working(corpus.pieces, work),
            range(pieces),
            _added,
            called=REPLAYING,
            report=_telling(progress, REPLAYING, pieces, corpus.steps),
        )
    if not together:
        raise ModelError("there are no traces to replay")
    return together[0]


@dataclass(frozen=True, eq=False)
class _Working(Generic[Made]):
    """Reads a piece and works on it, wherever that is done."""

    pieces: CodedPieces
    work: Callable[[CodedShard], Made]

    def __call__(self, number: int) -> list[Made]:
        shard = self.pieces.read(number)
        return [self.work(shard)] if len(shard.traces) else []


def _added(one: list[Made], other: list[Made]) -> list[Made]:
    """Put together what pieces show; in the midst of one long trace nothing begins."""
    return [one[0] + other[0]] if one and other else one or other


def _telling(
    progress: Listener | None, doing: str, pieces: int, steps: int
) -> Callable[[int], None] | None:
    """Return what tells a listener how many pieces are done, if there is one."""
    if progress is None:
        return None
    started = time.perf_counter()

    def tell(done: int) -> None:
        seconds = time.perf_counter() - started
        progress(doing, Progress(0, 0, done, pieces, 1, steps, seconds))

    return tell


def _are_same(one: Shards, other: Shards) -> bool:
    """Whether shards are the same files, seen in the same way."""
    if isinstance(one, SensedShards) and isinstance(other, SensedShards):
        return are_same(one.shards, other.shards) and one.senses == other.senses
    return are_same(one, other)
