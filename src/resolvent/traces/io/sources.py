"""Tables in files, data frames and Arrow tables → traces, given the roles of their columns.

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

from resolvent._util.progress import FractionListener
from resolvent._util.text import short, visible
from resolvent.errors import TraceError
from resolvent.traces.io.csv import header, read_csv
from resolvent.traces.io.read_table import MISSING
from resolvent.traces.io.table import TableTraces, traces_of_table
from resolvent.traces.scan.listing import files_of
from resolvent.traces.scan.opening import read_files, read_footers
from resolvent.traces.schema import TableSchema, as_names

_PARQUET_MAGIC = b"PAR1"
_HEADER_LINES = 1

Load = Callable[[list[str]], pa.Table]


@dataclass(frozen=True)
class _Table:
    """A table with known columns, yet to be read.

    Attributes:
        names: Its columns.
        load: Reads some of them.
        path: The CSV file of the table; None if it is in memory.
    """

    names: list[str]
    load: Load
    path: Path | None = None

    def read(self, columns: Iterable[str]) -> pa.Table:
        """Read some columns; `TraceError` if one is missing, or if there are no rows."""
        columns = list(columns)
        prefix = "" if self.path is None else f"{self.path}: "
        for name in columns:
            if name not in self.names:
                existing = ", ".join(map(visible, self.names))
                raise TraceError(
                    f"{prefix}there is no column `{visible(name)}`: there are {existing}"
                )
            if self.names.count(name) > 1:
                raise TraceError(
                    f"{prefix}there are several columns `{visible(name)}`: rename all but one"
                )
        table = self.load(columns)
        if table.num_rows == 0:
            raise TraceError(f"{self.path or 'the table'} holds no rows: give at least one")
        return table

    def locate(self, row: int) -> str:
        """Return the location of a row in errors: rows from 0, lines from 1."""
        if self.path is None:
            return f"row {row}"
        return f"{self.path}, line {row + _HEADER_LINES + 1}"


def read_source(
    source: Any,
    schema: TableSchema,
    delimiter: str | None = None,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
) -> TableTraces:
    """Read a table of any source.

    >>> schema = TableSchema(observation="see")
    >>> read_source(pa.table({"see": ["hall", "attic"]}), schema).traces[0].observations
    ('hall', 'attic')
    """
    if isinstance(source, str | Path):
        path = Path(source)
        if _is_parquet(path):
            return read_files(files_of(source), schema, progress=progress)
        names, delimiter = header(path, delimiter)
        events = as_names(schema.label) + as_names(schema.next_label)

        def load(columns: list[str]) -> pa.Table:
            return read_csv(path, columns, delimiter, missing, progress, events)

        table = _Table(names, load, path)
    else:
        table = _table_in_memory(source)
    name = None if table.path is None else str(table.path)
    return traces_of_table(table.read(schema.columns), schema, table.locate, name)


def columns_of_file(location: str, delimiter: str | None = None) -> list[str]:
    """Return the columns of a table in files; of Parquet files those of the first, and its keys."""
    path = Path(location)
    if path.is_file() and not _is_parquet(path):
        return header(path, delimiter)[0]
    stored, (footer, *_) = read_footers(files_of(location)[:1])
    return [*footer.schema.names, *stored.files[0].keys]


def _is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, or a folder; `TraceError` if it is no table."""
    try:
        if path.is_dir():
            return True
        with path.open("rb") as file:
            start = file.read(len(_PARQUET_MAGIC))
    except FileNotFoundError as error:
        raise TraceError(f"{path} does not exist") from error
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise TraceError(f"{short(str(path))} cannot be read: {reason}") from error
    if not start:
        raise TraceError(f"{path} is empty: make it again, or name another file")
    if start.lstrip()[:1] in (b"{", b"["):
        raise TraceError(f"{path} looks like JSON lines, not a table: read it with read_traces")
    return start == _PARQUET_MAGIC


def _table_in_memory(source: Any) -> _Table:
    try:
        if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
            return _pandas_table(source)
        if hasattr(source, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(source)
            return _Table(reader.schema.names, _loader(reader))
        if hasattr(source, "__arrow_c_array__"):
            batch = pa.record_batch(source)
            return _Table(batch.schema.names, pa.Table.from_batches([batch]).select)
    except pa.ArrowInvalid:
        pass  # a single column, such as a Series
    raise TraceError(
        f"a {type(source).__name__} is no table: give a pandas or Polars data frame, an Arrow "
        f"table, or the path of a CSV or Parquet file"
    )


def _loader(reader: pa.RecordBatchReader) -> Load:
    def load(columns: list[str]) -> pa.Table:
        schema = pa.schema([reader.schema.field(name) for name in columns])
        return pa.Table.from_batches((batch.select(columns) for batch in reader), schema)

    return load


def _pandas_table(frame: Any) -> _Table:
    names = [str(name) for name in frame.columns]  # they may be numbers

    def load(columns: list[str]) -> pa.Table:
        # Column by column: columns that are not read may have values without an Arrow type.
        return pa.table(
            {name: _pandas_column(frame.iloc[:, names.index(name)], name) for name in columns}
        )

    return _Table(names, load)


def _pandas_column(series: Any, name: str) -> pa.Array:
    try:
        array = pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _mixed_types_error(series, name) from error
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


def _mixed_types_error(series: Any, name: str) -> TraceError:
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
