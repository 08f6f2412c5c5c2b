"""Read row groups of Parquet files, and their footers.

A footer states the number of rows of each row group and, mostly, the bounds of its episodes, so
that row groups which may share an episode are found without reading them.
"""

import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from resolvent._util.processes import run_after_fork
from resolvent._util.storage import (
    file_system,
    is_missing,
    is_of_storage,
    is_passing,
    is_read_too_small,
    reaching,
    storage_error,
)
from resolvent._util.validation import ran_out_of_memory
from resolvent.errors import DamagedFile, StorageError, TraceError, locating
from resolvent.traces.io.arrow import check_dictionaries
from resolvent.traces.scan.episodes import Bounds
from resolvent.traces.scan.footer import Chunk, chunks_of
from resolvent.traces.scan.listing import StoredFile

FILE_NAME = "__filename"
"""Name of a column with the name of the file, as in PyArrow's data sets."""

_CACHED_FOOTERS = 4
_MAGIC = b"PAR1"
_MIN_READ = 1 << 12
"""Minimum number of bytes of a read after storage failed: its refusals take some hundred."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_ORDERED_TYPES = (bool, int, str, bytes, date, datetime)


class Fingerprint(NamedTuple):
    """State of a file when it was opened: its size, and its ETag or time of change."""

    size: int
    changed: str | int | None


class RowGroup(NamedTuple):
    """A row group: its file, its number there, its first row, and its number of rows."""

    file: int
    group: int
    first: int
    rows: int


@dataclass(frozen=True)
class Footer:
    """The footer of a file.

    Attributes:
        fingerprint: The state of the file.
        schema: Its columns.
        groups: The number of rows in each row group.
        bounds: The bounds of the episodes of each row group, None where they are unknown.
        is_damaged: Whether it cannot be read.
    """

    fingerprint: Fingerprint
    schema: pa.Schema
    groups: tuple[int, ...] = ()
    bounds: tuple[Bounds | None, ...] = ()
    is_damaged: bool = False


@dataclass(frozen=True)
class StoredFiles:
    """Files that together hold a table, with a column for each key of their folders.

    Attributes:
        files: The files, in order.
        fingerprints: Their states when they were opened.
        integer_keys: The keys whose values are integers everywhere.
        texts: Columns that hold texts in all files, and are read as codes of a dictionary.
        skips: Whether damaged files are skipped.
    """

    files: Sequence[StoredFile]
    fingerprints: Sequence[Fingerprint] = ()
    integer_keys: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    skips: bool = False

    def constants(self, file: int) -> dict[str, Any]:
        """Return the columns that have one value in a file."""
        stored = self.files[file]
        keys = {
            name: int(text) if text is not None and name in self.integer_keys else text
            for name, text in stored.keys.items()
        }
        return {FILE_NAME: stored.name, **keys}

    def read(
        self, row_groups: Sequence[RowGroup], names: Sequence[str], rows: int | None = None
    ) -> pa.Table:
        """Read columns of consecutive row groups of one file, or of its first rows."""
        try:
            return self._read(row_groups, names, rows)
        except StorageError as error:
            if not is_read_too_small(error):
                raise
        return self._read(row_groups, names, rows, large_reads=True)

    def _read(
        self,
        row_groups: Sequence[RowGroup],
        names: Sequence[str],
        rows: int | None,
        *,
        large_reads: bool = False,
    ) -> pa.Table:
        number, groups = row_groups[0].file, [row_group.group for row_group in row_groups]
        of = self.files[number].name
        if row_groups[0].rows:
            of += f", row group{_span(groups)}"
        with self.opened(number, names, of, large_reads=large_reads) as file:
            in_file = [name for name in names if name in file.schema_arrow.names]
            if rows is None:
                rows = sum(row_group.rows for row_group in row_groups)
                table = file.read_row_groups(groups, in_file)
            else:
                table = _first_rows(file, groups, in_file, rows)
        with locating(of):
            check_dictionaries(table)
        return self._with_constants(table, rows, number, names)

    def _with_constants(
        self, table: pa.Table, rows: int, file: int, names: Sequence[str]
    ) -> pa.Table:
        """Put the columns that have one value in the file beside those read."""
        constants = self.constants(file)
        columns = [
            table[name] if name in table.column_names else _repeated(constants.get(name), rows)
            for name in names
        ]
        return pa.table(columns, names=list(names))

    @contextmanager
    def opened(
        self,
        number: int,
        names: Sequence[str] = (),
        of: str | None = None,
        *,
        large_reads: bool = False,
    ) -> Iterator[pq.ParquetFile]:
        """Open a file; `TraceError` if it has changed since its fingerprint was made.

        Errors name `of`. With `large_reads` it is never asked for few bytes.
        """
        stored = self.files[number]
        with in_parquet(stored, of), _opened(stored) as source:
            self._check_unchanged(
                number, _fingerprint_of(stored, source) if self.fingerprints else None
            )
            texts = [name for name in names if name in self.texts]
            metadata = _footer_cache.get(
                (stored, self.fingerprints[number]) if self.fingerprints else None
            )
            try:
                with pq.ParquetFile(
                    _LargeReads(source) if large_reads else source,
                    metadata=metadata,
                    read_dictionary=texts,
                    page_checksum_verification=True,
                ) as file:
                    if self.fingerprints:
                        _footer_cache.keep((stored, self.fingerprints[number]), file.metadata)
                    yield file
            except (pa.ArrowException, OSError):
                # A file that is being written looks damaged.
                self._check_unchanged(number, _current_fingerprint(stored))
                raise
            if stored.root is None:  # elsewhere a file is replaced as a whole, if at all
                self._check_unchanged(number, _current_fingerprint(stored))

    def _check_unchanged(self, number: int, now: Fingerprint | None) -> None:
        if self.fingerprints and now is not None and now != self.fingerprints[number]:
            change = _change(self.fingerprints[number], now)
            raise TraceError(
                f"the file has changed since it was opened ({change}): "
                f"scan the place again, when nobody writes to it"
            )


class _FooterCache:
    """The footers of the files opened last: those of many row groups take long to read."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any) -> Any:
        """Return the footer of a file with this fingerprint, if it is cached."""
        with self._lock:
            return self._kept.get(key)

    def keep(self, key: Any, metadata: Any) -> None:
        """Store the footer of a file, and drop the oldest one."""
        with self._lock:
            self._kept[key] = metadata
            while len(self._kept) > _CACHED_FOOTERS:
                self._kept.popitem(last=False)


_footer_cache = _FooterCache()


@run_after_fork
def _renew() -> None:
    global _footer_cache
    _footer_cache = _FooterCache()


def _opened(stored: StoredFile) -> Any:
    """Open a file; one that is gone is a `DamagedFile`."""
    try:
        return file_system(stored.root)[0].open_input_file(stored.path)
    except (OSError, pa.ArrowException) as error:
        named = storage_error(stored.name, stored.root, error)
        raise _NamedError(DamagedFile(str(named)) if is_missing(error) else named) from error


class _LargeReads:
    """A file that reads at least `_MIN_READ` bytes at a time, and caches the last read."""

    closed = False

    def __init__(self, source: Any) -> None:
        self._source, self._at = source, 0
        self._kept_from, self._kept = 0, b""

    def size(self) -> int:
        return int(self._source.size())

    def read_at(self, size: int, start: int) -> bytes:
        size, skipped = min(size, self.size() - start), start - self._kept_from
        if skipped < 0 or skipped + size > len(self._kept):
            self._kept_from, self._kept = start, self._source.read_at(size, start)
            skipped = 0
        return self._kept[skipped : skipped + size]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.size()}
        self._at = base[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._source.size()
        size = end - self._at if size < 0 else min(size, end - self._at)
        start = max(min(self._at, end - _MIN_READ), 0)
        content = self.read_at(max(self._at + size - start, _MIN_READ), start)
        content = content[self._at - start : self._at - start + size]
        self._at += len(content)
        return content

    def close(self) -> None:
        self.closed = True


class _NamedError(Exception):
    """An error that names its file already."""


def _fingerprint_of(stored: StoredFile, source: Any) -> Fingerprint:
    metadata = source.metadata() or {}
    tag = metadata.get("ETag", metadata.get(b"ETag"))
    if tag is not None:
        return Fingerprint(source.size(), tag.decode())
    info = file_system(stored.root)[0].get_file_info(stored.path)
    return Fingerprint(source.size(), info.mtime_ns)


def _current_fingerprint(stored: StoredFile) -> Fingerprint | None:
    """Return the present fingerprint of a file; None if it is gone."""
    try:
        with file_system(stored.root)[0].open_input_file(stored.path) as source:
            return _fingerprint_of(stored, source)
    except (OSError, pa.ArrowException):
        return None


def _change(before: Fingerprint, now: Fingerprint) -> str:
    if before.size != now.size:
        return f"it had {before.size:,} bytes, and has {now.size:,}"
    return "it was written again"


def _first_rows(
    file: pq.ParquetFile, groups: Sequence[int], names: Sequence[str], rows: int
) -> pa.Table:
    """Read the first rows of some row groups without decoding the others."""
    batches: list[pa.RecordBatch] = []
    rows_read = 0
    for batch in file.iter_batches(min(rows, 1 << 16), row_groups=groups, columns=list(names)):
        batches.append(batch)
        rows_read += batch.num_rows
        if rows_read >= rows:
            break
    return pa.Table.from_batches(batches).slice(0, rows)


def _repeated(value: Any, rows: int) -> pa.Array:
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [value])
    return pa.nulls(rows) if value is None else pa.repeat(pa.scalar(value), rows)


@contextmanager
def in_parquet(stored: StoredFile, of: str | None = None) -> Iterator[None]:
    """Raise errors of a file or its storage as a `TraceError`."""
    try:
        with locating(stored.name):
            yield
    except _NamedError as error:
        raise error.args[0] from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if ran_out_of_memory(error):
            raise
        if is_of_storage(error) if stored.root is not None else is_passing(error):
            raise storage_error(stored.name, stored.root, error) from error
        lines = str(error).splitlines() or [type(error).__name__]
        raise DamagedFile(
            f"{of or stored.name}: cannot be read as Parquet ({lines[0]}): the file looks damaged; "
            f"make it again, or leave it out with damaged='skip' (--damaged skip)"
        ) from error


def _span(groups: Sequence[int]) -> str:
    """Return the numbers of consecutive row groups as a text.

    >>> _span([3]), _span([3, 4, 5])
    (' 3', 's 3 to 5')
    """
    return f" {groups[0]}" if len(groups) == 1 else f"s {groups[0]} to {groups[-1]}"


def integer_keys(files: Sequence[StoredFile]) -> frozenset[str]:
    """Return the keys of folders whose values are integers, as they print, in all files.

    >>> named = [StoredFile("", f"/day={day}/city={city}/x") for day, city in ((1, 2), (3, "Ulm"))]
    >>> sorted(integer_keys(named))
    ['day']
    """
    values: dict[str, set[str]] = {}
    for file in files:
        for name, text in file.keys.items():
            values.setdefault(name, set()).update(() if text is None else (text,))
    return frozenset(
        name for name, texts in values.items() if texts and all(map(_INTEGER.fullmatch, texts))
    )


def footer_of(stored: StoredFiles, number: int, episode: Sequence[str]) -> Footer:
    """Read the footer of a file, with bounds of the columns that identify episodes."""
    try:
        return _footer_of(stored, number, episode)
    except DamagedFile:
        if not stored.skips:
            raise
        return Footer(_fingerprint_of_damaged(stored.files[number]), pa.schema([]), is_damaged=True)


def _fingerprint_of_damaged(stored: StoredFile) -> Fingerprint:
    """Return the fingerprint of an unreadable file; it may be gone."""
    try:
        with _opened(stored) as source, reaching(stored.name, stored.root):
            return _fingerprint_of(stored, source)
    except _NamedError as error:
        if isinstance(error.args[0], DamagedFile):
            return Fingerprint(-1, None)
        raise error.args[0] from error


def _footer_of(stored: StoredFiles, number: int, episode: Sequence[str]) -> Footer:
    file = stored.files[number]
    with in_parquet(file), _opened(file) as source:
        fingerprint = _fingerprint_of(file, source)
        start = source.read(_MIN_READ)[: len(_MAGIC)]
        source.seek(0)
        if start != _MAGIC:
            raise DamagedFile(
                "is no Parquet file: read it with read_traces, or with read_table or read_log"
            )
        read = source if file.root is None else _LargeReads(source)
        opened = pq.ParquetFile(read)
        metadata, schema = opened.metadata, opened.schema_arrow
        groups = range(metadata.num_row_groups)
        constants = stored.constants(number)
        column_places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        sources = [
            _Column(column_places.get(name), schema.types[schema.names.index(name)])
            if name in schema.names
            else _Constant(constants.get(name))
            for name in episode
        ]
        chunks = chunks_of(read) if episode else [[] for _ in groups]
        columns = metadata.num_columns if episode else 0
        if [len(columns_of_group) for columns_of_group in chunks] != [columns] * len(groups):
            raise pa.ArrowInvalid("the footer contradicts itself")
        return Footer(
            fingerprint,
            schema,
            tuple(metadata.row_group(group).num_rows for group in groups),
            tuple(_bounds(columns_of_group, sources) for columns_of_group in chunks),
        )


class _Constant(NamedTuple):
    value: Any


class _Column(NamedTuple):
    place: int | None
    kind: pa.DataType


def _bounds(chunks: Sequence[Chunk], sources: Sequence[_Column | _Constant]) -> Bounds | None:
    low: list[Any] = []
    high: list[Any] = []
    for source in sources:
        if isinstance(source, _Constant):
            least = most = source.value
        else:
            ends = None if source.place is None else chunks[source.place].bounds(source.kind)
            if ends is None:
                return None
            least, most = ends
        if not (isinstance(least, _ORDERED_TYPES) and isinstance(most, _ORDERED_TYPES)):
            return None
        low.append(least)
        high.append(most)
    return (tuple(low), tuple(high)) if sources else None
