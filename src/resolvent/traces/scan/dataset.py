"""Open Parquet files of any size, wherever they are, as a source of traces in shards."""

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from resolvent._util.validation import shown
from resolvent.errors import OptionError, TableWarning
from resolvent.traces.io.read_table import Names
from resolvent.traces.schema import CommandLineValue, Name, check_column_names, schema_of_arguments
from resolvent.traces.source import (
    RowOrder,
    RowOrders,
    Scan,
    ShardInfo,
    SkippedRows,
    TraceSource,
    skipped_text,
)
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace import Trace
from resolvent.traces.trace_set import TraceSet

if TYPE_CHECKING:
    # Loading what reads Parquet takes longer than all else of `import resolvent`.
    from resolvent.traces.scan.layouts import Layout
    from resolvent.traces.scan.shards import StoredShards

_READ_AHEAD = 2
"""Number of shards that are read while the caller works on the one before."""


@dataclass(frozen=True)
class _Read:
    """A shard as it was read, with messages about rows that its layout drops."""

    scan: Scan
    messages: Sequence[str] = ()


class TraceDataset(TraceSource):
    """Traces in Parquet files that need not fit into memory: they are read shard by shard.

    `scan_traces` makes it. A shard is a file or, of a large file, consecutive row groups. Each
    shard can be read independently, in any order and in any process.
    """

    def __init__(
        self,
        place: str,
        shards: "StoredShards",
        layout: "Layout",
        gaps: Mapping[int, SkippedRows] | None = None,
    ) -> None:
        self.place = place
        self._shards, self._layout = shards, layout
        self.skips = shards.stored.skips and gaps is None
        self._gaps: Mapping[int, SkippedRows] = dict(gaps or {})
        self._has_warned = False
        self._row_orders = RowOrders()

    def __len__(self) -> int:
        return len(self._shards)

    def __iter__(self) -> Iterator[TraceSet]:
        # The next shards are read while the caller looks at this one.
        with ThreadPoolExecutor(_READ_AHEAD) as readers:
            waiting: deque[Future[_Read]] = deque()
            try:
                for number in range(len(self)):
                    waiting.append(readers.submit(self._read, number))
                    if len(waiting) > _READ_AHEAD:
                        yield self._warned(waiting.popleft().result())
                while waiting:
                    yield self._warned(waiting.popleft().result())
            finally:
                for future in waiting:
                    future.cancel()

    @property
    def rows(self) -> int:
        """The number of rows that the files state."""
        return self._shards.rows

    @property
    def gaps(self) -> Mapping[int, SkippedRows]:
        """The skipped rows by shard; empty until scans have found them."""
        return self._gaps

    @property
    def files(self) -> list[str]:
        """The names of the files, in order."""
        return [file.name for file in self._shards.stored.files]

    def info(self, number: int) -> ShardInfo:
        """Return the facts about one shard, named by its file and row groups."""
        shards = self._shards
        return ShardInfo(shards.name(number), shards.rows_in(number), self._gaps.get(number))

    def fingerprint(self, number: int) -> Any:
        """Return all that the traces of a shard depend on, as plain data."""
        return self._shards.fingerprint(number), self._layout, self.skips, self._gaps.get(number)

    def read(self, number: int) -> TraceSet:
        """Read the traces that begin in one shard."""
        return self._warned(self._read(number))

    def read_all(self) -> TraceSet:
        """Read all traces into memory."""
        return TraceSet.concatenate(
            self, [self._shards.name(number) for number in range(len(self))]
        )

    def iterate_episodes(self) -> Iterator[Trace]:
        """Yield the traces one by one, reading shard after shard."""
        for traces in self:
            yield from traces

    def sample_episodes(self, n: int, seed: int = 0) -> list[Trace]:
        """Return `n` traces drawn at random without replacement, or all if there are fewer.

        Every trace is equally likely; all shards are read once.
        """
        rng = np.random.default_rng(seed)
        reservoir: list[Trace] = []
        for number, trace in enumerate(self.iterate_episodes()):
            if number < n:
                reservoir.append(trace)
            elif (place := int(rng.integers(number + 1))) < n:
                reservoir[place] = trace
        return reservoir

    def scan(self, number: int) -> Scan:
        """Read one shard for the first time: find rows to skip, and its row order.

        `skipping` then fixes the skipped rows for all later reads.
        """
        read = self._read(number)
        if self.skips:  # otherwise the next read of the shard warns
            self._warned(read, of_gaps=False)
        return read.scan

    def skipping(self, gaps: Mapping[int, SkippedRows]) -> "TraceDataset":
        """Return the same files without the rows of `gaps`, whatever is damaged later."""
        if not self.skips:
            return self
        fixed = TraceDataset(self.place, self._shards, self._layout, gaps)
        fixed._has_warned = self._has_warned
        fixed.remember(self._row_orders)
        return fixed

    def remember(self, arrangements: Mapping[int, RowOrder]) -> None:
        """Store row orders by shard that scans in other processes found."""
        for number, order in arrangements.items():
            if number not in self._gaps:
                self._row_orders[number] = order

    def is_same(self, other: TraceSource) -> bool:
        """Whether another source reads the same files in the same way, but for skipped rows."""
        return (
            isinstance(other, TraceDataset)
            and self._shards is other._shards
            and self._layout is other._layout
        )

    def _read(self, number: int) -> _Read:
        """Read one shard, with messages about rows that its layout drops."""
        from resolvent.traces.scan.damaged import read_skipping, read_without

        messages: list[str] = []
        order = self._row_orders.get(number)
        layout = self._layout.without_order() if order and order.is_sorted else self._layout
        columns, gap = layout.columns, None
        if self.skips:
            rows, gap = read_skipping(self._shards, number, columns)
        elif number in self._gaps:
            rows = read_without(self._shards, number, columns, self._gaps[number])
        else:
            rows = self._shards.read(number, columns, self._row_orders)
        traces, is_sorted = layout.traces(rows, messages.append)
        # Which rows are skipped because of damage may depend on the columns that are read.
        if order is None and gap is None and number not in self._gaps:
            self._row_orders[number] = RowOrder(rows.leading, is_sorted)
        scan = Scan(traces, gap, self._row_orders.get(number))
        return _Read(scan, [f"{self._shards.name(number)}: {text}" for text in messages])

    def _warned(self, read: _Read, *, of_gaps: bool = True) -> TraceSet:
        """Warn of skipped rows, and of dropped ones once: those of other shards will be alike."""
        if of_gaps and read.scan.skipped is not None:
            warnings.warn(skipped_text({0: read.scan.skipped}), TableWarning, stacklevel=3)
        if read.messages and not self._has_warned:
            self._has_warned = True
            more = "; so it may be in other pieces, of which nothing is said" * (len(self) > 1)
            warnings.warn(read.messages[0] + more, TableWarning, stacklevel=3)
        return read.scan.traces

    def __repr__(self) -> str:
        shards = f", {len(self)} pieces" if len(self) != len(self.files) else ""
        return f"TraceFolder({self.place!r}, {len(self.files)} files{shards}, {self.rows} rows)"


def scan_traces(
    place: str | Path | Iterable[str | Path],
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
    final_observation: Symbol | CommandLineValue | None = None,
    label_separator: str | None = None,
    input: Names | None = None,  # noqa: A002
    output: Names | Mapping[str, Name] | None = None,
    damaged: Literal["refuse", "skip"] = "refuse",
) -> TraceDataset:
    """Open Parquet files without reading them into memory, wherever they are.

    `infer` reads them shard by shard, as often as it needs, so that they may be larger than
    memory. A shard is a file or, of a file with more than a million rows, row groups with about
    that number of rows. Only the columns that are needed are read.

    Args:
        place: A folder, whose files come in the order of their names, with its `key=value`
            folders; a file; a glob, such as `"logs/**/*.parquet"`; an address that PyArrow
            opens, such as `"s3://bucket/logs"`; or a list of these. What begins with a dot or
            an underscore is not read.
        columns: Further columns to read from files of traces, beside those that they list as
            their own.
        episode: As for `read_table`, with all options that follow. With any of them the files
            are one table in a layout of its own: an episode may go on in the next file. Keys of
            `key=value` folders are columns, and so is `__filename`.
        order: As for `read_table`.
        observation: As for `read_table`.
        action: As for `read_table`.
        reward: As for `read_table`.
        label: As for `read_table`.
        outputs: As for `read_table`.
        terminated: As for `read_table`.
        truncated: As for `read_table`.
        next_observation: As for `read_table`.
        next_label: As for `read_table`.
        final_observation: As for `read_table`.
        label_separator: As for `read_table`.
        input: As for `read_log`, with `output`: the files are a log.
        output: As for `read_log`.
        damaged: "refuse" raises an error if a file is damaged or gone. "skip" skips shards that
            cannot be read, and episodes beside them that may have rows there; `result.warnings`
            of `infer` lists these, and elsewhere a `TableWarning` does.

    Raises:
        DamagedFile: when a file cannot be read and `damaged` is "refuse".
        StorageError: when storage fails again and again.
        TraceError: when the place cannot be reached or holds no Parquet files, when files differ
            in the columns that are read, when the rows of an episode are not consecutive, and, as
            shards are read, when a file has changed since it was opened.

    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> log = pa.table({"run": [1, 1, 2], "event": ["coin", "push", "push"], "out": [0, 1, 0]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(log, f"{folder.name}/log.parquet")
    >>> place = f"{folder.name}/*.parquet"
    >>> scanned = scan_traces(place, episode="run", input="event", output="out")
    >>> len(scanned), scanned.rows, scanned.read(0)[0].actions
    (1, 3, ('coin', 'push'))
    >>> folder.cleanup()
    """
    from resolvent.traces.scan.layouts import TableLayout, open_table_files, open_trace_files
    from resolvent.traces.scan.listing import files_of, uri_text

    if not isinstance(damaged, str) or damaged not in ("refuse", "skip"):
        raise OptionError(f"damaged is {shown(damaged)}: write 'refuse' or 'skip'")
    skips = damaged == "skip"
    further = check_column_names(columns)
    named = schema_of_arguments(
        {
            "episode": episode,
            "order": order,
            "observation": observation,
            "action": action,
            "reward": reward,
            "label": label,
            "outputs": outputs,
            "terminated": terminated,
            "truncated": truncated,
            "next_observation": next_observation,
            "next_label": next_label,
            "final_observation": final_observation,
            "label_separator": label_separator,
        },
        input,
        output,
    )
    if isinstance(place, Iterator):  # it can be gone through once, and its name is needed, too
        place = list(place)
    if named is None:
        shards, layout = open_trace_files(files_of(place), further, skips=skips)
        return TraceDataset(uri_text(place), shards, layout)
    if further:
        raise OptionError(
            "columns are for files of traces: of a table, name them as outputs (output of a log)"
        )
    table, layout_named = open_table_files(files_of(place), TableLayout(*named), skips=skips)
    return TraceDataset(uri_text(place), table, layout_named)
