"""Tables in CSV files, data frames and Arrow tables → Arrow tables with the columns of a schema.

Data frames and Arrow tables are read through the Arrow PyCapsule interface, which needs none of
their libraries. CSV files are read in batches, as dictionaries of texts, so that memory holds a
number for each row and each distinct text once. All distinct texts of a column determine its type.
If two of them are the same number, such as 7 and 007, all stay texts.
"""

import csv
import io
import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from resolvent._util.files import compression_of, first_line, unchanged
from resolvent._util.parallel import FractionListener
from resolvent._util.text import short, visible
from resolvent._util.validation import check_expansion, ran_out_of_memory
from resolvent.errors import OptionError, TraceError
from resolvent.traces.io.read_table import MISSING
from resolvent.traces.io.table import TableTraces, traces_of_table
from resolvent.traces.scan.listing import files_of
from resolvent.traces.scan.opening import read_files, read_footers
from resolvent.traces.schema import TableSchema, as_names, check_columns

_PARQUET_MAGIC = b"PAR1"
_DELIMITERS = (",", ";", "\t")
_BLOCK_BYTES = 1 << 22
_HEADER_BYTES = 1 << 16
_END = "\n\x1f"  # after the header; part of its last name only if a quote is not closed
_TEXT = pa.dictionary(pa.int32(), pa.string())
_BOOLEANS = {"true": True, "false": False}
_DECIMAL = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_WHOLE = r"^-?[0-9]+$"
# Arrow would pass the row to a handler as text, and it need not be valid text.
_WRONG_ROW = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_EXACT = float(1 << 53)  # bound below which every integer is exactly a float
_Load = Callable[[Sequence[str]], pa.Table]  # reads some columns of a table


def read_source(
    source: Any,
    schema: TableSchema,
    delimiter: str | None = None,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
) -> TableTraces:
    """Read a table of any source."""
    if not isinstance(source, str | Path):
        names, load = _table_in_memory(source)
        return traces_of_table(_loaded(load, names, schema.columns), schema, "row {}".format)
    path = Path(source)
    if _is_parquet(path):
        return read_files(files_of(source), schema, progress=progress)
    names, delimiter = _header_of_file(path, delimiter)
    events = as_names(schema.label) + as_names(schema.next_label)

    def read(columns: Sequence[str]) -> pa.Table:
        with unchanged(path):
            texts = _read_texts(path, columns, delimiter, missing, progress)
        typed = {}
        for name in columns:  # frees the texts of a column once its type is known
            # Decimals stay texts where they are names of events: 2.50 is not 2.5.
            typed[name] = _typed(texts[name], decimals=name not in events)
            texts = texts.drop_columns([name])
        return pa.table(typed)

    def locate(row: int) -> str:
        return f"{path}, line {row + 2}"  # lines count from 1, and the first is the header

    return traces_of_table(_loaded(read, names, schema.columns, path), schema, locate, str(path))


def _loaded(
    load: _Load, names: Sequence[str], columns: Sequence[str], path: Path | None = None
) -> pa.Table:
    """Load columns of a table; `TraceError` if one is missing, or if there are no rows."""
    check_columns(columns, names, str(path or ""))
    table = load(columns)
    if table.num_rows == 0:
        raise TraceError(f"{path or 'the table'} holds no rows: give at least one")
    return table


def columns_of_file(location: str, delimiter: str | None = None) -> list[str]:
    """Return the columns of a table in files; of Parquet files those of the first, and its keys."""
    path = Path(location)
    if path.is_file() and not _is_parquet(path):
        return _header_of_file(path, delimiter)[0]
    stored, (footer, *_) = read_footers(files_of(location)[:1])
    return [*footer.schema.names, *stored.files[0].keys]


def _is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, or a folder; `TraceError` if it is not a table."""
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


# --- Tables in memory ---------------------------------------------------------------------------


def _table_in_memory(source: Any) -> tuple[list[str], _Load]:
    """Return the columns of a table, and the function that reads some of them."""
    try:
        if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
            names = [str(name) for name in source.columns]  # they may be numbers
            # Column by column: columns that are not read may have values without an Arrow type.
            return names, lambda columns: pa.table(
                {name: _pandas_column(source.iloc[:, names.index(name)], name) for name in columns}
            )
        if hasattr(source, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(source)

            def load(columns: Sequence[str]) -> pa.Table:
                schema = pa.schema([reader.schema.field(name) for name in columns])
                return pa.Table.from_batches((batch.select(columns) for batch in reader), schema)

            return reader.schema.names, load
        if hasattr(source, "__arrow_c_array__"):
            batch = pa.record_batch(source)
            return batch.schema.names, pa.Table.from_batches([batch]).select
    except pa.ArrowInvalid:
        pass  # a single column, such as a Series
    raise TraceError(
        f"a {type(source).__name__} is not a table: give a pandas or Polars data frame, an Arrow "
        f"table, or the path of a CSV or Parquet file"
    )


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


# --- CSV files ----------------------------------------------------------------------------------


def _header_of_file(path: Path, delimiter: str | None = None) -> tuple[list[str], str]:
    """Return the column names of a CSV file and its delimiter, as `header_of` does."""
    if delimiter is not None and len(delimiter) != 1:
        raise OptionError(
            f"the delimiter {delimiter!r} is not one character: give ',', ';' or a tab"
        )
    try:
        with pa.OSFile(str(path)) as raw:
            start = bytes(_decompressed(raw).read(_HEADER_BYTES))
    except OSError as error:
        raise _unreadable(path, error) from error
    names, delimiter = header_of(start + _END.encode(), str(path), delimiter)
    if names and names[-1].endswith(_END):
        raise TraceError(
            f"{path}: a quote in the header is not closed, before {names[-1][:20]!r}: close it"
        )
    return names, delimiter


def header_of(start: bytes, location: str, delimiter: str | None = None) -> tuple[list[str], str]:
    """Return the names in the first line of a CSV file that is not blank, and the delimiter.

    The default delimiter is the one of comma, semicolon and tab that gives most names. Quoted
    names may contain line ends, and lines may end in a carriage return alone.
    """
    text = start.decode("utf-8-sig", "surrogateescape")
    headers = []
    try:
        for separator in (delimiter,) if delimiter else _DELIMITERS:
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            headers.append((next(filter(None, rows), []), separator))
    except csv.Error as error:
        raise TraceError(f"{location} cannot be read as CSV ({error}): make it again") from error
    names, separator = max(headers, key=lambda header: len(header[0]))
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        raise TraceError(f"{location} is not UTF-8: save it as UTF-8") from error
    return names, separator


def _read_texts(
    path: Path,
    columns: Sequence[str],
    delimiter: str,
    missing: Sequence[str],
    progress: FractionListener | None,
) -> pa.Table:
    """Read some columns of a CSV file, plain or compressed by gzip or zstd, as texts."""
    with pa.OSFile(str(path)) as raw:
        size = max(os.path.getsize(path), 1)  # noqa: PTH202 -- it may be a pipe
        try:
            with pa_csv.open_csv(
                _decompressed(raw),
                read_options=pa_csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=list(columns),
                    column_types=dict.fromkeys(columns, _TEXT),
                    null_values=list(missing),
                    strings_can_be_null=True,
                ),
            ) as reader:
                batches, size_in_memory = [], 0
                for batch in reader:
                    batches.append(batch)
                    size_in_memory += batch.nbytes
                    check_expansion(str(path), size_in_memory, raw.tell())
                    if progress:
                        progress(min(raw.tell() / size, 1.0))
                return pa.Table.from_batches(batches, reader.schema)
        except (pa.ArrowException, OSError) as error:
            if ran_out_of_memory(error):
                raise
            raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> TraceError:
    if match := _WRONG_ROW.search(str(error)):
        number, expected, count, text = match.groups()
        where = f", line {number}" if number else ""
        return TraceError(
            f"{path}{where}: {count} fields where the header has {expected} ({text[:60]!r}): "
            f"complete the row or remove it, and quote fields that hold the delimiter"
        )
    reason = first_line(error)
    if "UTF8" in reason or "UTF-8" in reason:
        return TraceError(f"{path} is not UTF-8: save it as UTF-8")
    return TraceError(f"{path} cannot be read as CSV ({reason}): make it again")


def _decompressed(raw: Any) -> Any:
    compression = compression_of(raw.read(4))
    raw.seek(0)
    return pa.CompressedInputStream(raw, compression) if compression else raw


def _typed(column: pa.ChunkedArray, *, decimals: bool) -> pa.ChunkedArray:
    """Return a column of texts as booleans, integers or floats, if all its texts are."""
    encoded = column.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no rows
        return column
    values = _typed_values(encoded.dictionary, decimals=decimals)
    if pa.types.is_string(values.type):
        return pa.chunked_array([encoded])
    return pa.chunked_array([values.take(encoded.indices)])


def _typed_values(texts: pa.Array, *, decimals: bool) -> pa.Array:
    """Return distinct texts as numbers or booleans, unless two texts would become equal."""
    if not len(texts):
        return texts
    trimmed = pc.utf8_trim_whitespace(texts)
    if {text.lower() for text in trimmed[:3].to_pylist()} <= set(_BOOLEANS):
        lowered = pc.utf8_lower(trimmed).to_pylist()
        if set(lowered) <= set(_BOOLEANS):
            return pa.array([_BOOLEANS[text] for text in lowered])
    if pc.count_distinct(trimmed).as_py() < len(texts):
        return texts
    with suppress(pa.ArrowInvalid):
        numbers = trimmed.cast(pa.int64())
        if numbers.cast(pa.string()).equals(trimmed):  # 7, but neither 007 nor 0x7
            return numbers
    floats = _floats(trimmed) if decimals else None
    return texts if floats is None else floats


def _floats(texts: pa.Array) -> pa.Array | None:
    """Return floats for decimals, unless two are the same number, such as 1e3 and 1000."""
    if not pc.all(pc.match_substring_regex(texts, _DECIMAL)).as_py():
        return None
    numbers = texts.cast(pa.float64())
    whole_numbers = numbers.filter(pc.match_substring_regex(texts, _WHOLE))
    if not pc.all(pc.less(pc.abs(whole_numbers), _EXACT), min_count=0).as_py():
        return None
    # Programs write both zeros of a float, and they are one number everywhere.
    zeros = len({"0.0", "-0.0"}.intersection(texts.to_pylist()))
    distinct = len(np.unique(numbers.to_numpy())) + max(zeros - 1, 0)
    finite = pc.all(pc.is_finite(numbers)).as_py()
    return numbers if finite and distinct == len(texts) else None
