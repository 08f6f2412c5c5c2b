"""Sources of traces that are read shard by shard, so that they need not fit into memory.

Input: trace sets in memory, or scanned files. Output: shards, each a `TraceSet` with its own
vocabularies, which can be read repeatedly, in any order and in any process.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from resolvent._util.cache import register_type
from resolvent._util.parallel import Threads
from resolvent._util.text import amount
from resolvent.errors import DamagedFile, TableWarning
from resolvent.traces.schema import TableSchema
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Vocabulary

if TYPE_CHECKING:
    # Loading what reads Parquet takes longer than all else of `import resolvent`.
    from resolvent.traces.scan.shards import StoredShards

_READERS = 2  # number of threads that read shards ahead of the caller


@dataclass(frozen=True)
class SkippedRows:
    """Rows of a shard that are skipped because files are damaged.

    That is the `whole` shard, with its number of `rows` if it is known; or its `first` episode,
    which may begin in a damaged shard, or its `last` one, which may continue in one.
    """

    shard: str
    why: str = ""
    rows: int | None = None
    whole: bool = False
    first: bool = False
    last: bool = False

    @property
    def episodes(self) -> int:
        """Number of episodes that are skipped in a shard that can be read."""
        return self.first + self.last


class ShardFacts(NamedTuple):
    """Facts that the first read of a shard finds, for all later reads.

    Its `leading_rows`, None if unknown, belong to an episode of an earlier shard; if the others are
    sorted, the column that orders them need not be read again.
    """

    skipped: SkippedRows | None = None
    leading_rows: int | None = None
    is_sorted: bool = False


class Scan(NamedTuple):
    """The result of the first read of a shard."""

    traces: TraceSet
    facts: ShardFacts = ShardFacts()


class ShardInfo(NamedTuple):
    """A shard's name in errors (None if it is the only one), number of rows, and skipped rows."""

    name: str | None
    rows: int | None = None
    skipped: SkippedRows | None = None


def skipped_text(skipped: Sequence[SkippedRows]) -> str:
    """Describe skipped rows in one line."""
    shards = [rows for rows in skipped if rows.whole]
    known = [shard.rows for shard in shards if shard.rows is not None]
    episodes = sum(rows.episodes for rows in skipped)
    n_unknown = len(shards) - len(known)
    parts = (
        f"{amount(len(known), 'shard')} of {amount(sum(known), 'row')}" if known else "",
        f"{amount(n_unknown, 'shard')} of unknown length" if n_unknown else "",
        f"{amount(episodes, 'episode')} that may lack rows" if episodes else "",
    )
    why = (shards or skipped)[0].why
    return f"skipped, since files are damaged: {', '.join(filter(None, parts))} ({why})"


def warn_of_skipped(skipped: Sequence[SkippedRows], traces: int) -> None:
    """Warn of skipped rows, if any; `DamagedFile` if there are no traces beside them."""
    if not skipped:
        return
    if not traces:
        raise DamagedFile(f"no traces are left: {skipped_text(skipped)}")
    warnings.warn(skipped_text(skipped), TableWarning, stacklevel=4)


class TraceSource(ABC):
    """A source of traces in shards, each read on its own, repeatedly and in any process."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of shards."""

    @abstractmethod
    def read(self, shard: int) -> TraceSet:
        """Return the traces of one shard."""

    @abstractmethod
    def info(self, shard: int) -> ShardInfo:
        """Return what is known about one shard without reading it."""

    def scan(self, shard: int) -> Scan:
        """Read one shard for the first time."""
        return Scan(self.read(shard))

    def with_facts(self, facts: Mapping[int, ShardFacts]) -> "TraceSource":
        """Return the same source with the facts, by shard, that scans of its shards found."""
        return self

    def fingerprint(self, shard: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        return None

    @property
    def rows(self) -> int | None:
        """The number of rows of all shards; None if it is unknown."""
        rows = [self.info(shard).rows for shard in range(len(self))]
        return None if None in rows else sum(filter(None, rows))

    @property
    def skipped(self) -> tuple[SkippedRows, ...]:
        """The rows that are skipped because files are damaged, in the order of shards."""
        skipped = (self.info(shard).skipped for shard in range(len(self)))
        return tuple(rows for rows in skipped if rows is not None)

    def is_same(self, other: "TraceSource") -> bool:
        """Whether another source reads the same traces, but for skipped rows."""
        return self is other

    def name(self, shard: int) -> str | None:
        """Return the name of a shard in errors; None if it is the only one."""
        return self.info(shard).name

    def __iter__(self) -> Iterator[TraceSet]:
        return map(self.read, range(len(self)))


class InMemorySource(TraceSource):
    """Trace sets in memory, each one shard."""

    def __init__(self, sets: Sequence[TraceSet]) -> None:
        self.sets = tuple(sets)

    def __len__(self) -> int:
        return len(self.sets)

    def read(self, shard: int) -> TraceSet:
        """Return one of the sets."""
        return self.sets[shard]

    def info(self, shard: int) -> ShardInfo:
        """Return the name of a shard: its number, if there are several."""
        return ShardInfo(f"trace set {shard}" if len(self.sets) > 1 else None)


class JoinedSource(TraceSource):
    """The shards of several sources, one source after the other."""

    def __init__(self, sources: Sequence[TraceSource]) -> None:
        self.sources = tuple(sources)

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def __iter__(self) -> Iterator[TraceSet]:
        return chain.from_iterable(self.sources)

    def read(self, shard: int) -> TraceSet:
        """Return the traces of one shard."""
        source, number = self._located(shard)
        return source.read(number)

    def info(self, shard: int) -> ShardInfo:
        """Return what is known about one shard, named after its source if it has no name there."""
        source, number = self._located(shard)
        info = source.info(number)
        return info._replace(name=info.name or f"trace set {self.sources.index(source)}")

    def fingerprint(self, shard: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        source, number = self._located(shard)
        return source.fingerprint(number)

    def _located(self, shard: int) -> tuple[TraceSource, int]:
        """Return the source of a shard, and its number there."""
        for source in self.sources:
            if shard < len(source):
                break
            shard -= len(source)
        return source, shard


class MappedSource(TraceSource):
    """A source whose traces are transformed as they are read.

    Fingerprints contain `transform`: it has to be plain data, such as a frozen dataclass.
    """

    def __init__(self, source: TraceSource, transform: Callable[[TraceSet], TraceSet]) -> None:
        self.source, self.transform = source, transform

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[TraceSet]:
        return map(self.transform, self.source)

    def read(self, shard: int) -> TraceSet:
        """Return the traces of one shard."""
        return self.transform(self.source.read(shard))

    def scan(self, shard: int) -> Scan:
        """Read one shard for the first time."""
        scan = self.source.scan(shard)
        return scan._replace(traces=self.transform(scan.traces))

    def with_facts(self, facts: Mapping[int, ShardFacts]) -> "MappedSource":
        """Return the same source with the facts, by shard, that scans of its shards found."""
        return MappedSource(self.source.with_facts(facts), self.transform)

    def info(self, shard: int) -> ShardInfo:
        """Return what is known about one shard without reading it."""
        return self.source.info(shard)

    def fingerprint(self, shard: int) -> Any:
        """Return all that a shard depends on, as plain data; None if it is in memory."""
        fingerprint = self.source.fingerprint(shard)
        return None if fingerprint is None else (fingerprint, self.transform)

    def is_same(self, other: TraceSource) -> bool:
        """Whether another source reads the same traces and transforms them equally."""
        return (
            isinstance(other, MappedSource)
            and self.source.is_same(other.source)
            and self.transform == other.transform
        )


class TraceDataset(TraceSource):
    """Traces in Parquet files that need not fit into memory: `scan_traces` makes it.

    A shard is a file or, of a large file, consecutive row groups. Each shard can be read
    independently, in any order and in any process.
    """

    def __init__(
        self,
        location: str,
        shards: "StoredShards",
        schema: TableSchema,
        facts: Mapping[int, ShardFacts] | None = None,
    ) -> None:
        self.location = location
        self._shards, self._schema, self._facts = shards, schema, facts
        self._has_warned = False

    def __len__(self) -> int:
        return len(self._shards)

    def __iter__(self) -> Iterator[TraceSet]:
        # The next shards are read while the caller looks at this one.
        skipped, traces = [], 0
        for read in Threads(_READERS).map(self._read, range(len(self)), called="reading"):
            scan = self._without_warnings(read)
            if scan.facts.skipped is not None:
                skipped.append(scan.facts.skipped)
            traces += len(scan.traces)
            yield scan.traces
        if self._facts is None:
            warn_of_skipped(skipped, traces)

    @property
    def rows(self) -> int:
        """The number of rows that the files state."""
        return self._shards.rows

    @property
    def files(self) -> list[str]:
        """The names of the files, in order."""
        return [file.name for file in self._shards.stored.files]

    def info(self, shard: int) -> ShardInfo:
        """Return what is known about one shard, named by its file and row groups."""
        skipped = self._facts_of(shard).skipped
        return ShardInfo(self._shards.name(shard), self._shards.rows_in(shard), skipped)

    def fingerprint(self, shard: int) -> Any:
        """Return all that the traces of a shard depend on, as plain data."""
        may_skip = self._shards.skips and self._facts is None
        skipped = self._facts_of(shard).skipped
        return self._shards.fingerprint(shard), self._schema, may_skip, skipped

    def read(self, shard: int) -> TraceSet:
        """Read the traces that begin in one shard."""
        scan = self.scan(shard)
        if self._facts is None and scan.facts.skipped is not None:
            warn_of_skipped([scan.facts.skipped], traces=1)
        return scan.traces

    def read_all(self) -> TraceSet:
        """Read all traces into memory."""
        return TraceSet.concatenate(self, [self._shards.name(shard) for shard in range(len(self))])

    def scan(self, shard: int) -> Scan:
        """Read one shard, and return facts for later reads: rows to skip, and their order."""
        return self._without_warnings(self._read(shard))

    def _read(self, shard: int) -> tuple[Scan, Sequence[str]]:
        """Read one shard, and return warnings about its rows as well."""
        from resolvent.traces.io.table import traces_of_table

        shards, facts, schema = self._shards, self._facts_of(shard), self._schema
        if facts.is_sorted:
            schema = replace(schema, order=None)
        if shards.skips and self._facts is None:
            rows = shards.read_readable(shard, schema.columns)
        else:
            rows = shards.read(shard, schema.columns, self._facts or {})
        traces, is_sorted, messages = traces_of_table(
            rows.table, schema, rows.location, rows.spans[0][0] if rows.spans else None
        )
        # Which rows are skipped may depend on the columns that are read.
        known = (rows.leading, is_sorted) if rows.skipped is None else ()
        return Scan(traces, ShardFacts(rows.skipped, *known)), messages

    def _without_warnings(self, read: tuple[Scan, Sequence[str]]) -> Scan:
        """Issue the first of all warnings: those about other shards will be alike."""
        scan, messages = read
        if messages and not self._has_warned:
            self._has_warned = True
            more = "; other shards may lack rows, too" * (len(self) > 1)
            warnings.warn(messages[0] + more, TableWarning, stacklevel=4)
        return scan

    def with_facts(self, facts: Mapping[int, ShardFacts]) -> "TraceDataset":
        """Return the same files with the facts, by shard, that scans found.

        Rows that were skipped stay so, and no others are skipped, whatever is damaged later.
        """
        fixed = TraceDataset(self.location, self._shards, self._schema, facts)
        fixed._has_warned = self._has_warned
        return fixed

    def is_same(self, other: TraceSource) -> bool:
        """Return whether another source reads the same files alike, but for skipped rows."""
        return (
            isinstance(other, TraceDataset)
            and self._shards is other._shards
            and self._schema is other._schema
        )

    def _facts_of(self, shard: int) -> ShardFacts:
        return (self._facts or {}).get(shard, ShardFacts())

    def __repr__(self) -> str:
        shards = f", {len(self)} shards" if len(self) != len(self.files) else ""
        return f"TraceDataset({self.location!r}, {len(self.files)} files{shards}, {self.rows} rows)"


register_type(Vocabulary, tuple, Vocabulary)
register_type(
    TraceSet, lambda traces: traces.__reduce__()[1], lambda parts: TraceSet.taking_over(*parts)
)
