"""Sources of traces that are read shard by shard, so that they need not fit into memory.

Input: trace sets in memory, or scanned files. Output: shards, each a `TraceSet` with its own
vocabularies, which can be read repeatedly, in any order and in any process.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.cache import register_type
from resolvent._util.text import amount
from resolvent.errors import DamagedFile, TableWarning
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Vocabulary


@dataclass(frozen=True)
class SkippedRows:
    """Rows of a shard that are skipped because files are damaged.

    Attributes:
        piece: Name of the shard.
        rows: Number of rows of the shard, if all of it is skipped and the number is known.
        whole: Whether all of it is skipped.
        first: Whether its first episode is, which may begin in a damaged shard.
        last: Whether its last episode is, which may go on in one.
        why: The error.
    """

    piece: str
    rows: int | None = None
    whole: bool = False
    first: bool = False
    last: bool = False
    why: str = ""

    @property
    def episodes(self) -> int:
        """Number of episodes that are skipped in a shard that can be read."""
        return self.first + self.last


def skipped_text(gaps: Mapping[int, SkippedRows]) -> str:
    """Describe skipped rows, by shard, in one line.

    >>> damaged = SkippedRows("a", 7, whole=True, why="a: damaged")
    >>> skipped_text({3: damaged, 4: SkippedRows("b", first=True)})
    '1 piece that cannot be read is left out, with 7 rows (a: damaged), and 1 episode beside it \
that may lack rows'
    """
    skipped = [gap for gap in gaps.values() if gap.whole]
    episodes = sum(gap.episodes for gap in gaps.values())
    rows = sum(gap.rows or 0 for gap in skipped)
    unknown = sum(gap.rows is None for gap in skipped)
    parts = []
    if skipped:
        counted = [amount(rows, "row")] * (unknown < len(skipped))
        counted += [f"{amount(unknown, 'file')} of unknown length"] * bool(unknown)
        more = f", and {len(skipped) - 1:,} more" * (len(skipped) > 1)
        be = "is" if len(skipped) == 1 else "are"
        parts.append(
            f"{amount(len(skipped), 'piece')} that cannot be read {be} left out, with "
            f"{' and '.join(counted)} ({skipped[0].why}{more})"
        )
    if episodes:
        beside = f" beside {'it' if len(skipped) == 1 else 'them'}" if skipped else " left out"
        why = "" if skipped else f" ({next(gap.why for gap in gaps.values())})"
        parts.append(f"{amount(episodes, 'episode')}{beside} that may lack rows{why}")
    return ", and ".join(parts)


def warn_of_skipped(gaps: Mapping[int, SkippedRows], traces: int) -> None:
    """Warn of skipped rows, if there are any; `traces` is the number of traces that are left.

    Raises:
        DamagedFile: when no traces are left.
    """
    if not gaps:
        return
    if not traces:
        raise DamagedFile(f"no traces are left: {skipped_text(gaps)}")
    warnings.warn(skipped_text(gaps), TableWarning, stacklevel=4)


class RowOrder(NamedTuple):
    """Order of the rows of a shard, found when it is first read; files have fingerprints.

    Attributes:
        leading_rows: Number of rows at the beginning that belong to an earlier shard's episode.
        is_sorted: Whether the other rows are in order, so that the column that orders them need
            not be read again.
    """

    leading_rows: int
    is_sorted: bool


class RowOrders(Mapping[int, RowOrder]):
    """Row orders by shard, pickled as arrays: a million are small to send and quick to load.

    >>> import pickle
    >>> orders = RowOrders()
    >>> orders[7] = RowOrder(3, is_sorted=True)
    >>> sent = pickle.loads(pickle.dumps(orders))
    >>> sent[7], sent.get(6), list(sent)
    (RowOrder(leading_rows=3, is_sorted=True), None, [7])
    """

    def __init__(self) -> None:
        self._new: dict[int, RowOrder] = {}
        self._shard: NDArray[np.int64] = np.empty(0, np.int64)
        self._leading_rows: NDArray[np.int64] = np.empty(0, np.int64)
        self._is_sorted: NDArray[np.bool_] = np.empty(0, bool)

    def __setitem__(self, shard: int, order: RowOrder) -> None:
        self._new[shard] = order

    def __getitem__(self, shard: int) -> RowOrder:
        if shard in self._new:
            return self._new[shard]
        at = int(np.searchsorted(self._shard, shard))
        if at == len(self._shard) or self._shard[at] != shard:
            raise KeyError(shard)
        return RowOrder(int(self._leading_rows[at]), bool(self._is_sorted[at]))

    def __iter__(self) -> Iterator[int]:
        sent = (shard for shard in self._shard.tolist() if shard not in self._new)
        return chain(sent, list(self._new))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getstate__(self) -> dict[str, Any]:
        if not self._new:
            return self.__dict__
        orders = sorted(self.items())
        return {
            "_new": {},
            "_shard": np.array([shard for shard, _ in orders], np.int64),
            "_leading_rows": np.array([order.leading_rows for _, order in orders], np.int64),
            "_is_sorted": np.array([order.is_sorted for _, order in orders], bool),
        }


class ShardInfo(NamedTuple):
    """Facts about a shard that are known without reading it.

    Attributes:
        name: Its name in errors; None if it is the only one.
        rows: Its number of rows; None if that is unknown.
        skipped: Its rows that are skipped because files are damaged.
    """

    name: str | None
    rows: int | None = None
    skipped: SkippedRows | None = None


class Scan(NamedTuple):
    """The result of the first read of a shard: its traces, and facts for later reads."""

    traces: TraceSet
    skipped: SkippedRows | None = None
    row_order: RowOrder | None = None


_NOTHING: Mapping[int, Any] = MappingProxyType({})


class TraceSource(ABC):
    """A source of traces in shards, each read on its own, repeatedly and in any process."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of shards."""

    @abstractmethod
    def read(self, number: int) -> TraceSet:
        """Return one shard."""

    @abstractmethod
    def info(self, number: int) -> ShardInfo:
        """Return the facts about one shard."""

    def fingerprint(self, number: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        return None

    @property
    def rows(self) -> int | None:
        """The number of rows of all shards; None if it is unknown."""
        return None

    @property
    def gaps(self) -> Mapping[int, SkippedRows]:
        """The skipped rows by shard."""
        return _NOTHING

    def scan(self, number: int) -> Scan:
        """Read one shard for the first time: find rows to skip, and its row order."""
        return Scan(self.read(number))

    def skipping(self, gaps: Mapping[int, SkippedRows]) -> "TraceSource":
        """Return the same source with the skipped rows fixed that scans of its shards found."""
        return self

    def remember(self, arrangements: Mapping[int, RowOrder]) -> None:  # noqa: B027
        """Store row orders by shard that scans in other processes found."""

    def is_same(self, other: "TraceSource") -> bool:
        """Whether another source reads the same traces, but for skipped rows."""
        return self is other

    def name(self, number: int) -> str | None:
        """Return the name of a shard in errors; None if it is the only one."""
        return self.info(number).name

    def __iter__(self) -> Iterator[TraceSet]:
        return map(self.read, range(len(self)))


class InMemorySource(TraceSource):
    """Trace sets in memory, each one shard."""

    def __init__(self, sets: Sequence[TraceSet]) -> None:
        self.sets = tuple(sets)

    def __len__(self) -> int:
        return len(self.sets)

    def read(self, number: int) -> TraceSet:
        """Return one of the sets."""
        return self.sets[number]

    def info(self, number: int) -> ShardInfo:
        """Return the facts about one shard, named by its number if there are several."""
        return ShardInfo(f"trace set {number}" if len(self.sets) > 1 else None)


class JoinedSource(TraceSource):
    """The shards of several sources, one source after the other."""

    def __init__(self, sources: Sequence[TraceSource]) -> None:
        self.sources = tuple(sources)

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def __iter__(self) -> Iterator[TraceSet]:
        return chain.from_iterable(self.sources)

    def read(self, number: int) -> TraceSet:
        """Return one shard."""
        source, local = self._local(number)
        return source.read(local)

    def info(self, number: int) -> ShardInfo:
        """Return the facts about one shard, named after its source if it has no name there."""
        source, local = self._local(number)
        info = source.info(local)
        return info._replace(name=info.name or f"trace set {self.sources.index(source)}")

    def fingerprint(self, number: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        source, local = self._local(number)
        return source.fingerprint(local)

    @property
    def gaps(self) -> Mapping[int, SkippedRows]:
        """The skipped rows by shard."""
        gaps: dict[int, SkippedRows] = {}
        first = 0
        for source in self.sources:
            gaps |= {first + number: gap for number, gap in source.gaps.items()}
            first += len(source)
        return gaps

    def _local(self, number: int) -> tuple[TraceSource, int]:
        for source in self.sources:
            if number < len(source):
                break
            number -= len(source)
        return source, number


class MappedSource(TraceSource):
    """A source whose traces are transformed as they are read.

    `transform` has to be plain data that can be compared, such as a frozen dataclass with
    `__call__`: fingerprints contain it.
    """

    def __init__(self, source: TraceSource, transform: Callable[[TraceSet], TraceSet]) -> None:
        self.source, self.transform = source, transform

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[TraceSet]:
        return map(self.transform, self.source)

    def read(self, number: int) -> TraceSet:
        """Return one shard."""
        return self.transform(self.source.read(number))

    def scan(self, number: int) -> Scan:
        """Read one shard for the first time."""
        scan = self.source.scan(number)
        return scan._replace(traces=self.transform(scan.traces))

    def info(self, number: int) -> ShardInfo:
        """Return the facts about one shard."""
        return self.source.info(number)

    def fingerprint(self, number: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        fingerprint = self.source.fingerprint(number)
        return None if fingerprint is None else (fingerprint, self.transform)

    @property
    def rows(self) -> int | None:
        """The number of rows of all shards; None if it is unknown."""
        return self.source.rows

    @property
    def gaps(self) -> Mapping[int, SkippedRows]:
        """The skipped rows by shard."""
        return self.source.gaps

    def skipping(self, gaps: Mapping[int, SkippedRows]) -> "MappedSource":
        """Return the same source with fixed skipped rows."""
        return MappedSource(self.source.skipping(gaps), self.transform)

    def remember(self, arrangements: Mapping[int, RowOrder]) -> None:
        """Store row orders by shard that scans in other processes found."""
        self.source.remember(arrangements)

    def is_same(self, other: TraceSource) -> bool:
        """Whether another source reads the same traces and transforms them equally."""
        return (
            isinstance(other, MappedSource)
            and self.source.is_same(other.source)
            and self.transform == other.transform
        )


def look_at(shards: TraceSource, number: int) -> tuple[TraceSet, SkippedRows | None]:
    """Scan one shard; return its traces and its skipped rows."""
    scan = shards.scan(number)
    return scan.traces, scan.skipped


def gaps_of(shards: TraceSource) -> Mapping[int, SkippedRows]:
    """Return the skipped rows by shard."""
    return shards.gaps


def _parts_of_traces(traces: TraceSet) -> Iterable[Any]:
    columns = {name: tuple(column) for name, column in traces.all_columns.items()}
    return columns, traces.offsets, traces.terminated, traces.truncated


def _traces_of_parts(parts: list[Any]) -> TraceSet:
    columns, offsets, terminated, truncated = parts
    return TraceSet.taking_over(
        columns, offsets=offsets, terminated=terminated, truncated=truncated
    )


register_type(Vocabulary, tuple, Vocabulary)
register_type(TraceSet, _parts_of_traces, _traces_of_parts)
