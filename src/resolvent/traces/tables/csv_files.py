"""CSV files → Arrow tables, a batch at a time, with the type that each whole column has.

Texts are coded as they are read, so that memory holds a number for each row and
each distinct text once. Which type a column has is then told by its distinct
texts, all of them: not by those at the beginning of the file. Texts that differ
stay different: where two of them are the same number, as 7 and 007 are, all stay texts.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from resolvent.errors import TraceError
from resolvent.limits import check_expansion, ran_out_of_memory
from resolvent.progress import FractionListener
from resolvent.traces.files.changes import unchanged
from resolvent.traces.files.lines import compression_of
from resolvent.traces.tables.headers import MISSING, header_of

_BLOCK_BYTES = 1 << 22
_HEADER_BYTES = 1 << 16
_END = "\n\x1f"
"""Put after the header, this is part of its last name only if a quote is not closed."""
_TEXT = pa.dictionary(pa.int32(), pa.string())
_BOOLEANS = {"true": True, "false": False}
_DECIMAL = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_WHOLE = r"^-?[0-9]+$"
# A handler of Arrow's would be given the row as text, which it need not be.
_ODD_ROW = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_EXACT = float(1 << 53)
"""Below this, every integer is a float."""

_Reading = Callable[[pa.Array], pa.Array | None]
"""Makes numbers of distinct texts, or None if they are none of its kind."""


def header(path: Path, delimiter: str | None = None) -> tuple[list[str], str]:
    """Return the names in the first line of a CSV file, and what separates them.

    Unless it is given, the delimiter is the one of comma, semicolon and tab that
    makes most names.
    """
    try:
        with pa.OSFile(str(path)) as raw:
            start = bytes(_decompressed(raw).read(_HEADER_BYTES))
    except OSError as error:
        raise _unreadable(path, error) from error
    names, found = header_of(start + _END.encode(), str(path), delimiter)
    if names and names[-1].endswith(_END):
        raise TraceError(
            f"{path}: a quote in the header is not closed, before {names[-1][:20]!r}: close it"
        )
    return names, found


def read_csv(
    path: Path,
    columns: Sequence[str],
    delimiter: str,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
    events: Sequence[str] = (),
) -> pa.Table:
    """Read some columns of a CSV file, plain or compressed by gzip or zstd.

    Decimals stay texts in columns of `events`, whose names they are: 2.50 is not 2.5 there.
    """
    with unchanged(path):
        texts = _read_texts(path, columns, delimiter, missing, progress)
    typed = {}
    for name in columns:  # the texts of a column are let go as soon as its type is known
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
        size = max(os.path.getsize(path), 1)  # noqa: PTH202 -- of what may be a pipe
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
                batches, held = [], 0
                for batch in reader:
                    batches.append(batch)
                    held += batch.nbytes
                    check_expansion(str(path), held, raw.tell())
                    if progress:
                        progress(min(raw.tell() / size, 1.0))
                return pa.Table.from_batches(batches, reader.schema)
        except (pa.ArrowException, OSError) as error:
            if ran_out_of_memory(error):
                raise
            raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> TraceError:
    if odd := _ODD_ROW.search(str(error)):
        number, expected, found, text = odd.groups()
        where = f", line {number}" if number else ""
        return TraceError(
            f"{path}{where}: {found} fields where the header has {expected} ({text[:60]!r}): "
            f"complete the row or remove it, and quote fields that hold the delimiter"
        )
    reason = str(error).splitlines()[0]
    if "UTF8" in reason or "UTF-8" in reason:
        return TraceError(f"{path} is not UTF-8: save it as UTF-8")
    return TraceError(f"{path} cannot be read as CSV ({reason}): make it again")


def _decompressed(raw: Any) -> Any:
    compression = compression_of(raw.read(4))
    raw.seek(0)
    return pa.CompressedInputStream(raw, compression) if compression else raw


def _typed(column: pa.ChunkedArray, readings: Sequence[_Reading]) -> pa.ChunkedArray:
    """Return a column of texts as booleans, integers or floats, if all of its texts are such."""
    encoded = column.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of no rows
        return column
    values = _typed_values(encoded.dictionary, readings)
    if pa.types.is_string(values.type):
        return pa.chunked_array([encoded])
    return pa.chunked_array([values.take(encoded.indices)])


def _typed_values(texts: pa.Array, readings: Sequence[_Reading]) -> pa.Array:
    """Return numbers or booleans for distinct texts, unless that would make two texts one."""
    if not len(texts):
        return texts
    trimmed = pc.utf8_trim_whitespace(texts)
    if {text.lower() for text in trimmed[:3].to_pylist()} <= set(_BOOLEANS):
        lowered = pc.utf8_lower(trimmed).to_pylist()
        if set(lowered) <= set(_BOOLEANS):
            return pa.array([_BOOLEANS[text] for text in lowered])
    if pc.count_distinct(trimmed).as_py() < len(texts):
        return texts
    for numbers_of in readings:
        if (numbers := numbers_of(trimmed)) is not None:
            return numbers
    return texts


def _integers(texts: pa.Array) -> pa.Array | None:
    """Return integers for texts that are just how these print: 7, but neither 007 nor 0x7."""
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers if numbers.cast(pa.string()).equals(texts) else None


def _floats(texts: pa.Array) -> pa.Array | None:
    """Return floats for decimals of which no two are the same number, as 1e3 and 1000 are."""
    if not pc.all(pc.match_substring_regex(texts, _DECIMAL)).as_py():
        return None
    numbers = texts.cast(pa.float64())
    written_whole = numbers.filter(pc.match_substring_regex(texts, _WHOLE))
    if not pc.all(pc.less(pc.abs(written_whole), _EXACT), min_count=0).as_py():
        return None
    # Both zeros that a float has are written by programs, and are one number everywhere.
    zeros = len({"0.0", "-0.0"}.intersection(texts.to_pylist()))
    different = len(np.unique(numbers.to_numpy())) + max(zeros - 1, 0)
    finite = pc.all(pc.is_finite(numbers)).as_py()
    return numbers if finite and different == len(texts) else None
