"""CSV files → Arrow tables, read in batches, with a type for each whole column.

Columns are read as dictionaries of texts, so that memory holds a number for each row and
each distinct text once. All distinct texts of a column determine its type, not only those
at the beginning of the file. Different texts stay different: if two of them are the same
number, such as 7 and 007, all stay texts.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from resolvent._util.progress import FractionListener
from resolvent._util.validation import check_expansion, ran_out_of_memory
from resolvent.errors import OptionError, TraceError
from resolvent.traces.io.arrow import first_line
from resolvent.traces.io.text import compression_of, unchanged

_DELIMITERS = (",", ";", "\t")
_BLOCK_BYTES = 1 << 22
_HEADER_BYTES = 1 << 16
_END = "\n\x1f"
"""Appended to the header; part of its last name only if a quote is not closed."""
_TEXT = pa.dictionary(pa.int32(), pa.string())
_BOOLEANS = {"true": True, "false": False}
_DECIMAL = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_WHOLE = r"^-?[0-9]+$"
# Arrow would pass the row to a handler as text, and it need not be valid text.
_WRONG_ROW = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_EXACT = float(1 << 53)
"""Bound below which every integer is exactly a float."""

_Parser = Callable[[pa.Array], pa.Array | None]
"""Converts distinct texts to numbers; None if they are no such numbers."""


def header(path: Path, delimiter: str | None = None) -> tuple[list[str], str]:
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
    r"""Return the names in the first line of a CSV file that is not blank, and the delimiter.

    The default delimiter is the one of comma, semicolon and tab that gives most names. Quoted
    names may contain line ends, and lines may end in a carriage return alone.

    >>> header_of(b"session;event;answer, if any\n1;coin;ok\n", "log.csv")
    (['session', 'event', 'answer, if any'], ';')
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


def read_csv(
    path: Path,
    columns: Sequence[str],
    delimiter: str,
    missing: Sequence[str],
    progress: FractionListener | None = None,
    events: Sequence[str] = (),
) -> pa.Table:
    """Read some columns of a CSV file, plain or compressed by gzip or zstd.

    Decimals stay texts in columns in `events`, where they are names: 2.50 is not 2.5.
    """
    with unchanged(path):
        texts = _read_texts(path, columns, delimiter, missing, progress)
    typed = {}
    for name in columns:  # frees the texts of a column once its type is known
        typed[name] = _typed(texts[name], (_integers,) if name in events else (_integers, _floats))
        texts = texts.drop_columns([name])
    return pa.table(typed)


def _read_texts(
    path: Path,
    columns: Sequence[str],
    delimiter: str,
    missing: Sequence[str],
    progress: FractionListener | None,
) -> pa.Table:
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


def _typed(column: pa.ChunkedArray, parsers: Sequence[_Parser]) -> pa.ChunkedArray:
    """Return a column of texts as booleans, integers or floats, if all its texts are."""
    encoded = column.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no rows
        return column
    values = _typed_values(encoded.dictionary, parsers)
    if pa.types.is_string(values.type):
        return pa.chunked_array([encoded])
    return pa.chunked_array([values.take(encoded.indices)])


def _typed_values(texts: pa.Array, parsers: Sequence[_Parser]) -> pa.Array:
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
    for parse in parsers:
        if (numbers := parse(trimmed)) is not None:
            return numbers
    return texts


def _integers(texts: pa.Array) -> pa.Array | None:
    """Return integers for texts as Python prints them: 7, but neither 007 nor 0x7."""
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers if numbers.cast(pa.string()).equals(texts) else None


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
