"""Parquet files → blocks of rows, which are read one by one, and what is known of each.

A block is a row group. Its footer says how many rows it has and, mostly, between which values
its episodes lie, so that little has to be read to know which blocks share an episode.
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

from resolvent._util.processes import in_child
from resolvent._util.storage import (
    file_system,
    is_missing,
    is_of_storage,
    is_passing,
    is_without_room,
    reaching,
    storage_error,
)
from resolvent.errors import DamagedFile, StorageError, TraceError, locating
from resolvent.limits import ran_out_of_memory
from resolvent.traces.scan.episodes import Bounds
from resolvent.traces.scan.footer import Chunk, chunks_of
from resolvent.traces.scan.listing import StoredFile

FILE_NAME = "__filename"
"""A column that every file has: what it is called. PyArrow's data sets have it, too."""

_ENDS = 4
_MAGIC = b"PAR1"
_ROOM = 1 << 12
"""Bytes that storage is asked for at least, where it failed: its refusals take some hundred."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_IN_ORDER = (bool, int, str, bytes, date, datetime)


class Seal(NamedTuple):
    """What a file was like when it was opened: its size, and its ETag or time of change."""

    size: int
    changed: str | int | None


class Block(NamedTuple):
    """A row group: the number of its file and its own there, its first row, and how many."""

    file: int
    group: int
    first: int
    rows: int


@dataclass(frozen=True)
class Footer:
    """What the end of a file says of it.

    Attributes:
        seal: What the file is like.
        schema: Its columns.
        groups: The number of rows in each row group.
        bounds: Between which values the episodes of each row group lie, if that is known.
        is_damaged: Whether it cannot be read, and so says nothing.
    """

    seal: Seal
    schema: pa.Schema
    groups: tuple[int, ...] = ()
    bounds: tuple[Bounds | None, ...] = ()
    is_damaged: bool = False


@dataclass(frozen=True)
class StoredFiles:
    """Files that together hold a table, with a column for each key of their folders.

    Attributes:
        files: The files, in order.
        seals: What each was like when it was opened.
        whole: The keys whose values are integers everywhere.
        texts: Columns that hold texts in all files, and are read as codes of a dictionary.
        skips: Whether files that are damaged are left out.
    """

    files: Sequence[StoredFile]
    seals: Sequence[Seal] = ()
    whole: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    skips: bool = False

    def constants(self, file: int) -> dict[str, Any]:
        """Return the columns that have one value in a whole file."""
        stored = self.files[file]
        keys = {
            name: int(text) if text is not None and name in self.whole else text
            for name, text in stored.keys.items()
        }
        return {FILE_NAME: stored.name, **keys}

    def read(
        self, blocks: Sequence[Block], names: Sequence[str], rows: int | None = None
    ) -> pa.Table:
        """Read some columns of blocks of one file that follow each other, or of the first rows."""
        try:
            return self._read(blocks, names, rows)
        except StorageError as error:
            if not is_without_room(error):
                raise
        return self._read(blocks, names, rows, roomy=True)

    def _read(
        self,
        blocks: Sequence[Block],
        names: Sequence[str],
        rows: int | None,
        *,
        roomy: bool = False,
    ) -> pa.Table:
        number, groups = blocks[0].file, [block.group for block in blocks]
        of = self.files[number].name
        if blocks[0].rows:
            of += f", row group{_span(groups)}"
        with self.opened(number, names, of, roomy=roomy) as file:
            of_file = [name for name in names if name in file.schema_arrow.names]
            if rows is None:
                rows = sum(block.rows for block in blocks)
                table = file.read_row_groups(groups, of_file)
            else:
                table = _first_rows(file, groups, of_file, rows)
        return self._completed(table, rows, number, names)

    def _completed(self, table: pa.Table, rows: int, file: int, names: Sequence[str]) -> pa.Table:
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
        roomy: bool = False,
    ) -> Iterator[pq.ParquetFile]:
        """Open a file that has not changed since its seal was made; `TraceError` if it has.

        What cannot be read then is called `of`. A `roomy` file is never asked for few bytes.
        """
        stored = self.files[number]
        with in_parquet(stored, of), _opened(stored) as source:
            self._check_unchanged(number, _seal(stored, source) if self.seals else None)
            texts = [name for name in names if name in self.texts]
            known = _ends.get((stored, self.seals[number]) if self.seals else None)
            try:
                with pq.ParquetFile(
                    _Roomy(source) if roomy else source,
                    metadata=known,
                    read_dictionary=texts,
                    page_checksum_verification=True,
                ) as file:
                    if self.seals:
                        _ends.keep((stored, self.seals[number]), file.metadata)
                    yield file
            except (pa.ArrowException, OSError):
                # What somebody writes to meanwhile looks damaged, and is not.
                self._check_unchanged(number, _seal_now(stored))
                raise
            if stored.root is None:  # elsewhere a file is replaced as a whole, if at all
                self._check_unchanged(number, _seal_now(stored))

    def _check_unchanged(self, number: int, now: Seal | None) -> None:
        if self.seals and now is not None and now != self.seals[number]:
            raise TraceError(
                f"the file has changed since it was opened ({_change(self.seals[number], now)}): "
                f"scan the place again, when nobody writes to it"
            )


class _Ends:
    """The ends of files that were opened last: those of many row groups take long to read."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any) -> Any:
        """Return the end of a file with this seal, if it is still there."""
        with self._lock:
            return self._kept.get(key)

    def keep(self, key: Any, metadata: Any) -> None:
        """Keep the end of a file, and let go of the one that was kept longest ago."""
        with self._lock:
            self._kept[key] = metadata
            while len(self._kept) > _ENDS:
                self._kept.popitem(last=False)


_ends = _Ends()


@in_child
def _renew() -> None:
    global _ends
    _ends = _Ends()


def _opened(stored: StoredFile) -> Any:
    """Open a file where it is stored; one that is gone, and was there, is an error by name."""
    try:
        return file_system(stored.root)[0].open_input_file(stored.path)
    except (OSError, pa.ArrowException) as error:
        found = storage_error(stored.name, stored.root, error)
        raise _Stored(DamagedFile(str(found)) if is_missing(error) else found) from error


class _Roomy:
    """A file of which many bytes are read at a time, also where few are asked for.

    What was read last is kept, so that looking at it again asks for nothing.
    """

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
        start = max(min(self._at, end - _ROOM), 0)
        found = self.read_at(max(self._at + size - start, _ROOM), start)
        found = found[self._at - start : self._at - start + size]
        self._at += len(found)
        return found

    def close(self) -> None:
        self.closed = True


class _Stored(Exception):  # noqa: N818
    """An error that names its file already."""


def _seal(stored: StoredFile, source: Any) -> Seal:
    told = source.metadata() or {}
    tag = told.get("ETag", told.get(b"ETag"))
    if tag is not None:
        return Seal(source.size(), tag.decode())
    info = file_system(stored.root)[0].get_file_info(stored.path)
    return Seal(source.size(), info.mtime_ns)


def _seal_now(stored: StoredFile) -> Seal | None:
    """Return what a file is like that may have changed while it was open; None if it is gone."""
    try:
        with file_system(stored.root)[0].open_input_file(stored.path) as source:
            return _seal(stored, source)
    except (OSError, pa.ArrowException):
        return None


def _change(before: Seal, now: Seal) -> str:
    if before.size != now.size:
        return f"it had {before.size:,} bytes, and has {now.size:,}"
    return "it was written again"


def _first_rows(
    file: pq.ParquetFile, groups: Sequence[int], names: Sequence[str], rows: int
) -> pa.Table:
    """Read the first rows of some row groups without decoding the others."""
    batches: list[pa.RecordBatch] = []
    found = 0
    for batch in file.iter_batches(min(rows, 1 << 16), row_groups=groups, columns=list(names)):
        batches.append(batch)
        found += batch.num_rows
        if found >= rows:
            break
    return pa.Table.from_batches(batches).slice(0, rows)


def _repeated(value: Any, rows: int) -> pa.Array:
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [value])
    return pa.nulls(rows) if value is None else pa.repeat(pa.scalar(value), rows)


@contextmanager
def in_parquet(stored: StoredFile, of: str | None = None) -> Iterator[None]:
    """Turn what is wrong with a file, or with where it is stored, into a `TraceError`."""
    try:
        with locating(stored.name):
            yield
    except _Stored as error:
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
    """Name row groups that follow each other.

    >>> _span([3]), _span([3, 4, 5])
    (' 3', 's 3 to 5')
    """
    return f" {groups[0]}" if len(groups) == 1 else f"s {groups[0]} to {groups[-1]}"


def whole_keys(files: Sequence[StoredFile]) -> frozenset[str]:
    """Return the keys of folders whose values are integers, as they print, in all files.

    >>> named = [StoredFile("", f"/day={day}/city={city}/x") for day, city in ((1, 2), (3, "Ulm"))]
    >>> sorted(whole_keys(named))
    ['day']
    """
    values: dict[str, set[str]] = {}
    for file in files:
        for name, text in file.keys.items():
            values.setdefault(name, set()).update(() if text is None else (text,))
    return frozenset(
        name for name, texts in values.items() if texts and all(map(_WHOLE.fullmatch, texts))
    )


def footer_of(stored: StoredFiles, number: int, episode: Sequence[str]) -> Footer:
    """Read what the end of a file says, with bounds of the values of these columns."""
    try:
        return _footer_of(stored, number, episode)
    except DamagedFile:
        if not stored.skips:
            raise
        return Footer(_seal_of(stored.files[number]), pa.schema([]), is_damaged=True)


def _seal_of(stored: StoredFile) -> Seal:
    """Return what a file is like that cannot be read; it may be gone."""
    try:
        with _opened(stored) as source, reaching(stored.name, stored.root):
            return _seal(stored, source)
    except _Stored as error:
        if isinstance(error.args[0], DamagedFile):
            return Seal(-1, None)
        raise error.args[0] from error


def _footer_of(stored: StoredFiles, number: int, episode: Sequence[str]) -> Footer:
    file = stored.files[number]
    with in_parquet(file), _opened(file) as source:
        seal = _seal(file, source)
        start = source.read(_ROOM)[: len(_MAGIC)]
        source.seek(0)
        if start != _MAGIC:
            raise DamagedFile(
                "is no Parquet file: read it with read_traces, or with read_table or read_log"
            )
        read = source if file.root is None else _Roomy(source)
        opened = pq.ParquetFile(read)
        metadata, schema = opened.metadata, opened.schema_arrow
        groups = range(metadata.num_row_groups)
        constants = stored.constants(number)
        places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        sources = [
            _Column(places.get(name), schema.types[schema.names.index(name)])
            if name in schema.names
            else _Constant(constants.get(name))
            for name in episode
        ]
        told = chunks_of(read) if episode else [[] for _ in groups]
        columns = metadata.num_columns if episode else 0
        if [len(one) for one in told] != [columns] * len(groups):
            raise pa.ArrowInvalid("the footer contradicts itself")
        return Footer(
            seal,
            schema,
            tuple(metadata.row_group(group).num_rows for group in groups),
            tuple(_bounds(one, sources) for one in told),
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
            told = None if source.place is None else chunks[source.place].bounds(source.kind)
            if told is None:
                return None
            least, most = told
        if not (isinstance(least, _IN_ORDER) and isinstance(most, _IN_ORDER)):
            return None
        low.append(least)
        high.append(most)
    return (tuple(low), tuple(high)) if sources else None
