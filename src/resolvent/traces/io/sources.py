"""Tables in files, data frames and Arrow tables → some of their columns, as an Arrow table.

Data frames and Arrow tables are read through the Arrow PyCapsule interface, which needs none
of their libraries.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from resolvent._util.progress import FractionListener
from resolvent._util.text import short, visible
from resolvent.errors import OptionError, TraceError
from resolvent.traces.io.arrow import check_dictionaries, without_views
from resolvent.traces.io.csv import header, read_csv
from resolvent.traces.io.errors import first_line, readable, unchanged
from resolvent.traces.io.lines import MISSING

_PARQUET_MAGIC = b"PAR1"
_HEADER_LINES = 1

Load = Callable[[list[str]], pa.Table]


@dataclass(frozen=True)
class TableSource:
    """A table with known columns, yet to be read.

    Attributes:
        names: Its columns.
        load: Reads some of them.
        path: The file of the table; None if it is in memory.
        in_lines: Whether a row is a line of a file.
    """

    names: list[str]
    load: Load
    path: Path | None = None
    in_lines: bool = False

    def read(self, columns: Iterable[str]) -> pa.Table:
        """Read some columns; `TraceError` if one is missing, or if there are no rows."""
        columns = list(dict.fromkeys(columns))
        prefix = "" if self.path is None else f"{self.path}: "
        for name in columns:
            if name not in self.names:
                raise TraceError(
                    f"{prefix}there is no column `{visible(str(name))}`: there are {self.listed}"
                )
            if self.names.count(name) > 1:
                raise TraceError(
                    f"{prefix}there are several columns `{visible(name)}`: rename all but one"
                )
        table = without_views(self.load(columns))
        check_dictionaries(table)
        if table.num_rows == 0:
            raise TraceError(f"{self.path or 'the table'} holds no rows: give at least one")
        return table

    @property
    def listed(self) -> str:
        """The columns, as errors list them."""
        return ", ".join(visible(str(name)) for name in self.names)

    def place(self, row: int) -> str:
        """Return the location of a row in errors: rows from 0, lines from 1."""
        where = f"line {row + _HEADER_LINES + 1}" if self.in_lines else f"row {row}"
        return where if self.path is None else f"{self.path}, {where}"


def open_table(
    source: Any,
    *,
    delimiter: str | None = None,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
    events: Sequence[str] = (),
) -> TableSource:
    """Return a table with its columns, without reading it if it is a file.

    Columns in `events` of a CSV file contain names of events, not decimals.

    >>> opened = open_table(pa.table({"event": ["coin", "push"], "answer": [0, 1]}))
    >>> opened.names, opened.read(["answer"]).to_pydict()
    (['event', 'answer'], {'answer': [0, 1]})
    """
    if isinstance(source, str | Path):
        return _open_file(Path(source), delimiter, missing, progress, events)
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return _open_pandas(source)
    if hasattr(source, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(source)
        except pa.ArrowInvalid as error:  # a single column, such as a Series
            raise _no_table(source) from error
        return TableSource(reader.schema.names, _loader(reader))
    if hasattr(source, "__arrow_c_array__"):
        try:
            batch = pa.record_batch(source)
        except pa.ArrowInvalid as error:
            raise _no_table(source) from error
        return TableSource(batch.schema.names, pa.Table.from_batches([batch]).select)
    raise _no_table(source)


def _no_table(source: Any) -> TraceError:
    return TraceError(
        f"a {type(source).__name__} is no table: give a pandas or Polars data frame, an Arrow "
        f"table, or the path of a CSV or Parquet file"
    )


def _loader(reader: pa.RecordBatchReader) -> Load:
    def load(columns: list[str]) -> pa.Table:
        schema = pa.schema([reader.schema.field(name) for name in columns])
        return pa.Table.from_batches((batch.select(columns) for batch in reader), schema)

    return load


def _open_pandas(frame: Any) -> TableSource:
    names = [str(name) for name in frame.columns]  # they may be numbers

    def load(columns: list[str]) -> pa.Table:
        # Column by column: columns that are not read may have values without an Arrow type.
        return pa.table(
            {name: _pandas_column(frame.iloc[:, names.index(name)], name) for name in columns}
        )

    return TableSource(names, load)


def _pandas_column(series: Any, name: str) -> pa.Array:
    try:
        array = pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _no_one_type(series, name) from error
    except OverflowError as error:
        raise TraceError(
            f"the column `{visible(name)}` holds integers beyond 2**63: convert it to texts"
        ) from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type) and array.null_count:
        # pandas stores integers as floats if one of them is missing.
        with suppress(pa.ArrowInvalid):
            return array.cast(pa.int64())
    return array


def _no_one_type(series: Any, name: str) -> TraceError:
    """Return the error about a column of objects, with its first row of a second type."""
    first: dict[type, int] = {}
    for row, value in enumerate(series):
        if not (value is None or (isinstance(value, float) and math.isnan(value))):
            first.setdefault(type(value), row)
    usual, *rest = first  # types in order of appearance
    if rest:
        return TraceError(
            f"row {first[rest[0]]}: the column `{visible(name)}` holds values of several types, "
            f"{usual.__name__} and here {rest[0].__name__}: convert them to one type"
        )
    return TraceError(
        f"the column `{visible(name)}` holds values of type {usual.__name__}, which cannot be "
        f"symbols: use bool, int, float, str, or lists of these"
    )


def _open_file(
    path: Path,
    delimiter: str | None,
    missing: Sequence[str],
    progress: FractionListener | None,
    events: Sequence[str],
) -> TableSource:
    try:
        if path.is_dir():
            return _open_parquet(path)
        with path.open("rb") as file:
            start = file.read(len(_PARQUET_MAGIC))
    except FileNotFoundError as error:
        raise TraceError(f"{path} does not exist") from error
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise TraceError(f"{short(str(path))} cannot be read: {reason}") from error
    if not start:
        raise TraceError(f"{path} is empty: make it again, or name another file")
    if start == _PARQUET_MAGIC:
        return _open_parquet(path)
    if start.lstrip()[:1] in (b"{", b"["):
        raise TraceError(f"{path} looks like JSON lines, not a table: read it with read_traces")
    if delimiter is not None and len(delimiter) != 1:
        raise OptionError(
            f"the delimiter {delimiter!r} is not one character: give ',', ';' or a tab"
        )
    names, separator = header(path, delimiter)

    def load(columns: list[str]) -> pa.Table:
        return read_csv(path, columns, separator, missing, progress, events)

    return TableSource(names, load, path, in_lines=True)


def _open_parquet(path: Path) -> TableSource:
    """Open a Parquet file, or all files of a folder, concatenated in order of their names."""
    from resolvent.traces.io.parquet import check_rows, parquet_files

    files = parquet_files(path) if path.is_dir() else [path]
    with readable(files[0]):
        names = pq.read_schema(files[0]).names

    def load(columns: list[str]) -> pa.Table:
        tables = []
        for file in files:
            with unchanged(file), readable(file), pq.ParquetFile(file) as opened:
                check_rows(file, opened.metadata, len(columns))
                tables.append(opened.read(columns))
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowException as error:
            raise TraceError(
                f"{path}: the files' columns do not fit together ({first_line(error)})"
            ) from error

    return TableSource(names, load, path)
