"""Parquet files of any size, wherever they are → a source of traces that is read in shards."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from resolvent._util.parallel import Threads
from resolvent._util.text import described_by
from resolvent._util.validation import quoted
from resolvent.errors import OptionError, TableWarning
from resolvent.traces.io.read_table import read_table
from resolvent.traces.schema import (
    TABLE_ARGUMENTS,
    Name,
    Names,
    TableSchema,
    check_column_names,
    table_schema,
)
from resolvent.traces.source import (
    Scan,
    ShardFacts,
    ShardInfo,
    TraceSource,
    warn_of_skipped,
)
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet

if TYPE_CHECKING:
    # Loading what reads Parquet takes longer than all else of `import resolvent`.
    from resolvent.traces.scan.shards import StoredShards

_READERS = 2
"""Number of threads that read shards ahead of the caller."""


class TraceDataset(TraceSource):
    """Traces in Parquet files that need not fit into memory: they are read shard by shard.

    `scan_traces` makes it. A shard is a file or, of a large file, consecutive row groups. Each
    shard can be read independently, in any order and in any process.
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
        """Read one shard, and return facts for later reads.

        These are rows to skip, unless they are fixed already, and the order of the rows.
        """
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
        if rows.skipped is None:
            return Scan(traces, ShardFacts(None, rows.leading, is_sorted)), messages
        # Which rows are skipped may depend on the columns that are read.
        return Scan(traces, ShardFacts(rows.skipped)), messages

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


@described_by(read_table)
def scan_traces(  # noqa: D417  # `read_table` describes the rest
    location: str | Path | Iterable[str | Path],
    columns: Iterable[str] = (),
    *,
    episode: Names | None = None,
    order: Names | None = None,
    observation: Names | None = None,
    action: Names | None = None,
    reward: Name | None = None,
    label: Names | None = None,
    outputs: Names | Mapping[str, Name] = (),
    terminated: Name | None = None,
    truncated: Name | None = None,
    next_observation: Names | None = None,
    next_label: Names | None = None,
    final_observation: Symbol | None = None,
    label_separator: str | None = None,
    input: Names | None = None,  # noqa: A002
    output: Names | Mapping[str, Name] | None = None,
    damaged: Literal["refuse", "skip"] = "refuse",
) -> TraceDataset:
    """Open Parquet files without reading them into memory, wherever they are.

    `infer` reads them shard by shard, as often as it needs, so that they may be larger than
    memory. A shard is a file or, of a file with more than a million rows, row groups with about
    that number of rows. Only the columns that are needed are read.

    With any of the arguments of `read_table` the files are one table in a layout of its own: an
    episode may continue in the next file. Keys of `key=value` folders are columns, and so is
    `__filename`.

    Args:
        location: A folder, whose files come in the order of their names, with its `key=value`
            folders; a file; a glob, such as `"logs/**/*.parquet"`; an address that PyArrow
            opens, such as `"s3://bucket/logs"`; or a list of these. What begins with a dot or
            an underscore is not read.
        columns: Further columns to read from files of traces, beside those that they list as
            their own.
        input: As for `read_log`, with `output`: the files are a log.
        output: As for `read_log`.
        damaged: "refuse" raises an error if a file is damaged or gone. "skip" skips shards that
            cannot be read, and episodes beside them that may have rows there; `result.warnings`
            of `infer` lists these, and elsewhere a `TableWarning` does.

    Raises:
        DamagedFile: when a file cannot be read and `damaged` is "refuse".
        StorageError: when storage fails again and again.
        TraceError: when the location cannot be reached or holds no Parquet files, when files
            differ in the columns that are read, when the rows of an episode are not consecutive,
            and, as shards are read, when a file has changed since it was opened.

    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> log = pa.table({"run": [1, 1, 2], "event": ["coin", "push", "push"], "out": [0, 1, 0]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(log, f"{folder.name}/log.parquet")
    >>> location = f"{folder.name}/*.parquet"
    >>> scanned = scan_traces(location, episode="run", input="event", output="out")
    >>> len(scanned), scanned.rows, scanned.read(0)[0].actions
    (1, 3, ('coin', 'push'))
    >>> folder.cleanup()
    """
    arguments = locals()
    from resolvent.traces.scan.listing import files_of, uri_text
    from resolvent.traces.scan.opening import open_files

    if not isinstance(damaged, str) or damaged not in ("refuse", "skip"):
        raise OptionError(f"damaged is {quoted(damaged)}: write 'refuse' or 'skip'")
    further = check_column_names(columns)
    named = {name: arguments[name] for name in (*TABLE_ARGUMENTS, "input", "output")}
    named = {name: value for name, value in named.items() if value is not None and value != ()}
    schema = table_schema(named) if named else None
    if schema is not None and further:
        raise OptionError(
            "columns are for files of traces: of a table, name them as outputs (output of a log)"
        )
    if isinstance(location, Iterator):  # it can be gone through once, and its name is needed, too
        location = list(location)
    shards, schema = open_files(files_of(location), schema, further, skips=damaged == "skip")
    return TraceDataset(uri_text(location), shards, schema)
