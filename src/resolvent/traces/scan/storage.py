"""Parquet files, on this machine or elsewhere → their footers, and tables of their row groups.

A footer states the number of rows of each row group and, mostly, the bounds of its episodes, so
that row groups which may share an episode are found without reading them. A file is checked at
each opening: it must be as it was when its footer was read first.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from resolvent._util.files import (
    file_system,
    first_line,
    is_missing,
    is_of_storage,
    is_passing,
    is_read_too_small,
    storage_error,
)
from resolvent._util.validation import ran_out_of_memory
from resolvent.errors import DamagedFile, StorageError, TraceError, locating
from resolvent.traces.io.arrow import check_dictionaries
from resolvent.traces.scan.footer import Bounds, Chunk, bounds_of, chunks_of
from resolvent.traces.scan.listing import StoredFile

FILE_NAME = "__filename"  # name of a column with the name of the file, as in PyArrow's data sets
_MAGIC = b"PAR1"
_LARGE_READ = 1 << 12  # least bytes of a read after storage failed: refusals take hundreds
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


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
    """The footer of a file: the rows and bounds of each row group; or why it cannot be read.

    `constants` are the columns that have one value in the file.
    """

    name: str
    constants: dict[str, Any]
    fingerprint: Fingerprint
    schema: pa.Schema
    groups: tuple[int, ...] = ()
    bounds: tuple[Bounds | None, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class StoredFiles:
    """Files that together hold a table, with a column for each key of their folders.

    `integer_keys` have only integers as values; `errors` are those of unreadable footers, by file.
    """

    files: tuple[StoredFile, ...]
    integer_keys: frozenset[str]
    fingerprints: tuple[Fingerprint, ...] = ()
    errors: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Sequence[StoredFile]) -> "StoredFiles":
        """Return files with unread footers; keys are integers if all values print as such."""
        values: dict[str, set[str]] = {}
        for file in files:
            for name, text in file.keys.items():
                values.setdefault(name, set()).update(() if text is None else (text,))
        integers = (
            name for name, texts in values.items() if texts and all(map(_INTEGER.fullmatch, texts))
        )
        return cls(tuple(files), frozenset(integers))

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
        if row_groups[0].file in self.errors:
            raise DamagedFile(self.errors[row_groups[0].file])
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
        span = f" {groups[0]}" if len(groups) == 1 else f"s {groups[0]} to {groups[-1]}"
        name = f"{self.files[number].name}, row group{span}"
        with self._opened(number, names, name, large_reads=large_reads) as file:
            in_file = [column for column in names if column in file.schema_arrow.names]
            if rows is None:
                rows = sum(row_group.rows for row_group in row_groups)
                table = file.read_row_groups(groups, in_file)
            else:
                # Batches, because the rows after the first need not be decoded.
                batches: list[pa.RecordBatch] = []
                for batch in file.iter_batches(min(rows, 1 << 16), groups, in_file):
                    batches.append(batch)
                    if sum(map(len, batches)) >= rows:
                        break
                table = pa.Table.from_batches(batches).slice(0, rows)
            with locating(name):
                check_dictionaries(table)
        constants = self.constants(number)
        columns = [
            table[column] if column in in_file else _repeated(constants.get(column), rows)
            for column in names
        ]
        return pa.table(columns, names=list(names))

    @contextmanager
    def _opened(
        self, number: int, names: Sequence[str], name: str, *, large_reads: bool
    ) -> Iterator[pq.ParquetFile]:
        """Open a file to read columns; with `large_reads` it is never asked for few bytes.

        Errors about its content call it by `name`. `TraceError` if it has changed.
        """
        stored = self.files[number]
        with _open(stored) as source, _parquet_errors(stored, name):
            self._check_unchanged(number, _fingerprint_of(stored, source))
            read = io.BufferedReader(source, _LARGE_READ) if large_reads else source
            try:
                metadata = pq.read_metadata(read)
                texts = {
                    field.name
                    for field in metadata.schema.to_arrow_schema()
                    if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
                }
                with pq.ParquetFile(
                    read,
                    metadata=metadata,
                    read_dictionary=[name for name in names if name in texts],
                    page_checksum_verification=True,
                ) as file:
                    yield file
            except (pa.ArrowException, OSError):
                # A file that is being written looks damaged.
                self._check_unchanged(number, _current_fingerprint(stored))
                raise
            if stored.root is None:  # elsewhere a file is replaced as a whole, if at all
                self._check_unchanged(number, _current_fingerprint(stored))

    def _check_unchanged(self, number: int, now: Fingerprint | None) -> None:
        before = self.fingerprints[number]
        if now is not None and now != before:
            change = f"it had {before.size:,} bytes, and has {now.size:,}"
            raise TraceError(
                f"the file has changed since it was opened "
                f"({'it was written again' if before.size == now.size else change}): read it again "
                f"when nobody writes to it"
            )

    def footer(self, number: int, episode: Sequence[str], *, skips: bool = False) -> Footer:
        """Read a footer, with bounds of episodes; with `skips` it may be damaged or gone."""
        stored, constants = self.files[number], self.constants(number)
        try:
            with _open(stored) as source, _parquet_errors(stored):
                fingerprint = _fingerprint_of(stored, source)
                if source.read(_LARGE_READ)[: len(_MAGIC)] != _MAGIC:
                    raise DamagedFile(
                        "is not a Parquet file: read it with read_traces in the format that it "
                        "has, or with read_table or read_log"
                    )
                source.seek(0)
                metadata = pq.read_metadata(source)
                groups = tuple(
                    metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)
                )
                schema = metadata.schema.to_arrow_schema()
                bounds: tuple[Bounds | None, ...] = (None,) * len(groups)
                if episode:
                    bounds = _bounds(source, metadata, schema, episode, constants)
                return Footer(stored.name, constants, fingerprint, schema, groups, bounds)
        except DamagedFile as error:
            if not skips:
                raise
            unread = Fingerprint(-1, None), pa.schema([])
            return Footer(stored.name, constants, *unread, error=str(error))


def _bounds(
    source: Any,
    metadata: pq.FileMetaData,
    schema: pa.Schema,
    episode: Sequence[str],
    constants: Mapping[str, Any],
) -> tuple[Bounds | None, ...]:
    """Return the bounds of the episodes of each row group of a file."""
    groups = chunks_of(source)
    if [len(chunks) for chunks in groups] != [metadata.num_columns] * metadata.num_row_groups:
        raise pa.ArrowInvalid("the footer contradicts itself")
    paths = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}

    def bounds(chunks: list[Chunk], name: str) -> tuple[Any, Any] | None:
        if name not in schema.names:
            return constants.get(name), constants.get(name)
        dtype = schema.types[schema.names.index(name)]
        return chunks[paths[name]].bounds(dtype) if name in paths else None  # nested

    return tuple(bounds_of([bounds(chunks, name) for name in episode]) for chunks in groups)


def _open(stored: StoredFile) -> Any:
    """Open a file; one that is gone is a `DamagedFile`."""
    try:
        return file_system(stored.root)[0].open_input_file(stored.path)
    except (OSError, pa.ArrowException) as error:
        named = storage_error(stored.name, stored.root, error)
        raise (DamagedFile(str(named)) if is_missing(error) else named) from error


@contextmanager
def _parquet_errors(stored: StoredFile, name: str | None = None) -> Iterator[None]:
    """Raise errors of a file or its storage as a `TraceError`."""
    try:
        with locating(stored.name):
            yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if ran_out_of_memory(error):
            raise
        if is_of_storage(error) if stored.root is not None else is_passing(error):
            raise storage_error(stored.name, stored.root, error) from error
        raise DamagedFile(
            f"{name or stored.name}: cannot be read as Parquet ({first_line(error)}): the file "
            f"looks damaged; make it again, or skip it: scan_traces(..., damaged='skip'), "
            f"--damaged skip"
        ) from error


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


def _repeated(value: Any, rows: int) -> pa.Array:
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [value])
    return pa.nulls(rows) if value is None else pa.repeat(pa.scalar(value), rows)
