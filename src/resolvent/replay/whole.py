"""All traces, in memory or in files → one pass over them, piece by piece, that adds up."""

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from resolvent.errors import ModelError
from resolvent.machines import Machines
from resolvent.progress import Listener, Progress
from resolvent.replay.coded import CodedShard
from resolvent.replay.corpus import Corpus
from resolvent.replay.replaying import check_columns, rounding_of
from resolvent.senses.senses import SensedShards
from resolvent.traces import TraceFolder, TraceSet
from resolvent.traces.shards import Shards, ShardsInMemory


class AddsUp(Protocol):
    """What pieces show; two of them together show their sum."""

    def __add__(self, other: Self) -> Self: ...


Made = TypeVar("Made", bound=AddsUp)


def whole(
    machines: Machines,
    traces: TraceSet | TraceFolder,
    known: Corpus | None = None,
    progress: Listener | None = None,
) -> Corpus:
    """Return all traces as machines see them, under common codes.

    Those in files are gone through once for that, unless they are `known` already: the corpus
    that machines were inferred from, say. `progress` is told how far that is.

    Raises:
        ModelError: when the traces have no column that a machine predicts.
    """
    shards: Shards = ShardsInMemory([traces]) if isinstance(traces, TraceSet) else traces
    shards, rounding = machines.senses.on_shards(shards), rounding_of(machines)
    if known and _are_same(known.shards, shards) and known.rounding == rounding:
        corpus = known
    else:
        in_files = isinstance(traces, TraceFolder)
        corpus = Corpus(shards, rounding, telling(progress, "reading", len(shards), in_files))
    check_columns(machines, corpus.alphabets)
    return corpus


def through(
    corpus: Corpus,
    work: Callable[[CodedShard], Made],
    progress: Callable[[int], None] | None = None,
) -> Made:
    """Go through all pieces of a corpus once, and return what they show together.

    `progress` is told how many pieces are done.
    """
    together: Made | None = None
    for number, shard in enumerate(corpus.coded(), 1):
        if len(shard.traces):  # in the midst of one long trace nothing begins
            made = work(shard)
            together = made if together is None else together + made
        if progress:
            progress(number)
    if together is None:
        raise ModelError("there are no traces to replay")
    return together


def telling(
    progress: Listener | None, doing: str, pieces: int, in_files: bool = True
) -> Callable[[int], None] | None:
    """Return what tells a listener how many pieces are done, if there is one and they are files."""
    if progress is None or not in_files:
        return None

    def tell(done: int) -> None:
        progress(doing, Progress(0, 0, done, pieces))

    return tell


def _are_same(one: Shards, other: Shards) -> bool:
    """Whether shards are the same files, seen in the same way."""
    if isinstance(one, SensedShards) and isinstance(other, SensedShards):
        return one.shards is other.shards and one.senses == other.senses
    return one is other
