"""Arrow tables → distinct values and codes of columns, and rows sorted by episode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import visible
from resolvent.errors import DamagedFile, TraceError
from resolvent.traces.columns import Column
from resolvent.traces.vocabulary import Codes, Interner

Locate = Callable[[int], str]  # returns the location of a row in errors, given its number
_NARROW = 1 << 16  # maximum span of integers that are encoded by a table instead of a hash map
_SEPARATOR = "\x1f"  # the ASCII unit separator, which texts hardly ever contain

_ORDERED_TEXTS = (
    pa.int64(),
    pa.float64(),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
    pa.time64("ns"),
)
"""Types of texts that can order rows."""


def nulls(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return whether each row of a column is null."""
    if not column.null_count:
        return np.zeros(len(column), bool)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def without_views(table: pa.Table) -> pa.Table:
    """Return a table whose texts and bytes have types that Arrow can sort and encode."""
    schema = pa.schema([(field.name, _without_view(field.type)) for field in table.schema])
    return table if "_view" not in str(table.schema.types) else table.cast(schema)


def _without_view(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(dtype):
        return pa.large_string()
    if pa.types.is_binary_view(dtype):
        return pa.large_binary()
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, _without_view(dtype.value_type))
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.large_list(_without_view(dtype.value_type))
    return dtype


def is_text(dtype: pa.DataType) -> bool:
    """Return whether a column of this type holds texts, possibly as a dictionary."""
    if pa.types.is_dictionary(dtype):
        return is_text(dtype.value_type)
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def check_dictionaries(table: pa.Table) -> None:
    """Raise `DamagedFile` for dictionary indices without a value, which Arrow does not check."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_dictionary(column.type):
            continue
        for chunk in column.chunks:
            extremes = pc.min_max(chunk.indices).as_py()
            for index in extremes.values():
                if index is not None and not 0 <= index < len(chunk.dictionary):
                    raise DamagedFile(
                        f"the column `{visible(name)}` has the dictionary index {index}, but "
                        f"{len(chunk.dictionary)} values: the file looks damaged; make it again"
                    )


def distinct(column: pa.ChunkedArray) -> tuple[list[Any], Codes]:
    """Return the distinct values (nested ones may repeat) of a column and the code of each row."""
    dtype = column.type
    if pa.types.is_dictionary(dtype):
        return _distinct_of_dictionary(column)
    if pa.types.is_nested(dtype):
        return _values(column), np.arange(len(column), dtype=np.int32)
    if pa.types.is_integer(dtype) and not column.null_count and dtype != pa.uint64():
        encoded = _core.distinct_integers(column.to_numpy().astype(np.int64, copy=False), _NARROW)
        if encoded is not None:
            return encoded[0].tolist(), encoded[1]
    encoded = pc.dictionary_encode(_in_one_chunk(column), null_encoding="encode")
    return _values(encoded.dictionary), encoded.indices.to_numpy().astype(np.int32)


def _distinct_of_dictionary(column: pa.ChunkedArray) -> tuple[list[Any], Codes]:
    """Return the values of a dictionary that occur; a dictionary may have others."""
    encoded = _in_one_chunk(column.unify_dictionaries())
    if not encoded.null_count and encoded.indices.type == pa.int32():
        codes = encoded.indices.to_numpy()
        if _core.used_codes(codes, len(encoded.dictionary)).all():
            order = pc.sort_indices(encoded.dictionary)  # the order of trace sets
            rank = np.empty(len(order), np.int32)
            rank[order.to_numpy()] = np.arange(len(order))
            return _values(encoded.dictionary.take(order)), _core.recode(codes, rank)
    indices, codes = distinct(pa.chunked_array([encoded.indices]))
    # The dictionary of a large file may be far larger; an index of null takes null.
    return _values(encoded.dictionary.take(pa.array(indices, pa.int64()))), codes


def _values(values: Any) -> list[Any]:
    """Return Arrow values as Python values."""
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError as error:
        raise TraceError(
            f"a text is not in UTF-8 ({error.reason}): make the file again, or leave it out"
        ) from error


def _in_one_chunk(column: pa.ChunkedArray) -> Any:
    """Return a column as one array, without a copy if it has one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def distinct_labels(column: pa.ChunkedArray) -> tuple[list[Any], Codes]:
    """Return the distinct labels of texts or lists (these may repeat), and each row's code."""
    if not pa.types.is_nested(column.type):
        return distinct(column)
    try:
        lists = column.cast(pa.list_(pa.string())).combine_chunks()
        names = lists.flatten()
        # Lists that cannot be joined and split again without loss are converted one by one.
        joinable = not (
            names.null_count
            or pc.any(pc.equal(names, "")).as_py()
            or pc.any(pc.match_substring(names, _SEPARATOR)).as_py()
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        joinable = False
    if joinable:
        values, codes = distinct(pa.chunked_array([pc.binary_join(lists, _SEPARATOR)]))
        return [text.split(_SEPARATOR) if text else None for text in values], codes
    return _values(column), np.arange(len(column), dtype=np.int32)


def converted(
    values: Sequence[Any], codes: Codes, convert: Callable[[Any], Any], locate: Locate
) -> Column:
    """Convert each distinct value once; an error names the first row of the value."""
    results = []
    for code, value in enumerate(values):
        try:
            results.append(convert(value))
        except TraceError as error:
            row = int(np.argmax(codes == code))
            raise TraceError(f"{locate(row)}: {error}") from error
    # Two values may be one symbol, as 0.0 and -0.0 are.
    interner: Interner[Any] = Interner()
    new_codes = interner.encode(results)
    if len(interner) < len(values):
        codes = new_codes[codes]
    return interner.values_in_order(), codes


# --- Rows by episode ----------------------------------------------------------------------------


@dataclass(frozen=True)
class EpisodeTable:
    """A table whose rows are in order, episode after episode; `starts` has their first rows."""

    table: pa.Table
    starts: NDArray[np.int64]
    locate: Locate
    was_sorted: bool = True

    @property
    def ends(self) -> NDArray[np.int64]:
        """The row after the last one of each episode."""
        return np.append(self.starts[1:], self.table.num_rows)


def sort_by_episode(
    table: pa.Table, episode: Sequence[str], order: Sequence[str], locate: Locate
) -> EpisodeTable:
    """Sort rows by episode, and by order within each; episodes are sorted by their values.

    Without `episode` all rows are one episode; without `order` the rows of an episode keep
    the order of the table.
    """
    for name in (*episode, *order):
        if table[name].null_count:
            row = int(np.argmax(nulls(table[name])))
            raise TraceError(
                f"{locate(row)}: the column `{visible(name)}` has no value: every row needs its own"
            )
    groups = [_ranks(table[name], name) for name in episode]
    times = [_times(table[name], name, locate) for name in order]
    keys = [*groups, *times]
    if all(key.dtype.kind in "iu" and np.can_cast(key.dtype, np.int64) for key in keys):
        starts = _core.starts_in_order(  # most tables are sorted already
            [key.astype(np.int64, copy=False) for key in groups],
            [key.astype(np.int64, copy=False) for key in times],
            table.num_rows,
        )
        if starts is not None:
            return EpisodeTable(table, starts, locate)
    rows = np.lexsort(keys[::-1])
    same = np.ones(len(rows) - 1, bool)
    for key in groups:
        same &= np.diff(key[rows]) == 0
    if times:
        repeated = same.copy()
        for key in times:
            repeated &= key[rows][1:] == key[rows][:-1]
        if np.any(repeated):
            at = int(np.argmax(repeated))
            first, second = sorted(rows[at : at + 2].tolist())
            of_both = " and ".join(
                f"`{visible(', '.join(names))}`" for names in (order, episode) if names
            )
            raise TraceError(
                f"{locate(second)}: the same {of_both} as {locate(first)}, so their order is "
                f"unknown: order by a further column, or leave out the order if the rows are sorted"
            )
    return EpisodeTable(
        table.take(rows),
        np.append(0, np.flatnonzero(~same) + 1),
        lambda row: locate(int(rows[row])),
        was_sorted=False,
    )


def _ranks(column: pa.ChunkedArray, name: str) -> NDArray[Any]:
    """Return integers in the order of the values."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    values, codes = distinct(column)
    try:
        ordered = {value: rank for rank, value in enumerate(sorted(set(values)))}
    except TypeError as error:
        raise TraceError(
            f"the column `{visible(name)}` is of type {column.type}: distinguish episodes by "
            f"numbers, texts or times"
        ) from error
    return np.array([ordered[value] for value in values])[codes]


def _times(column: pa.ChunkedArray, name: str, locate: Locate) -> NDArray[Any]:
    """Return numbers in the order of the rows' times."""
    if is_text(column.type):
        column = _parsed(column, name)
    dtype = column.type
    if pa.types.is_integer(dtype):
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(dtype):
        numbers = np.asarray(column.to_numpy())
        if np.any(wrong := ~np.isfinite(numbers)):
            row = int(np.argmax(wrong))
            raise TraceError(
                f"{locate(row)}: `{visible(name)}` is {numbers[row]}, which cannot be ordered: "
                f"give it a finite number"
            )
        return numbers
    if pa.types.is_decimal(dtype):
        return _ranks(column, name)
    if pa.types.is_temporal(dtype):
        width = pa.int32() if dtype.bit_width == 32 else pa.int64()
        return np.asarray(column.cast(width).to_numpy())
    raise TraceError(
        f"the column `{visible(name)}` is of type {dtype}: order rows by numbers or times"
    )


def _parsed(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return texts as numbers or times; `TraceError` for other texts, which have no order."""
    values, codes = distinct(column)
    texts = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
    for dtype in _ORDERED_TEXTS:
        try:
            parsed = pc.cast(texts, dtype)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        if pa.types.is_floating(dtype) and pc.all(pc.is_finite(parsed)).as_py():
            # Integers with many digits would become the same float.
            numbers = [Decimal(text) for text in texts.to_pylist()]
            rank_of = {number: rank for rank, number in enumerate(sorted(set(numbers)))}
            parsed = pa.array([rank_of[number] for number in numbers], pa.int64())
        return pa.chunked_array([parsed.take(pa.array(codes))])
    raise TraceError(
        f"the column `{visible(name)}` holds texts such as {values[0]!r}, which "
        f"are neither numbers nor ISO 8601 times: convert them, or leave out the order if the rows "
        f"are sorted"
    )
