"""Arrow columns → their distinct values and a code for each row; errors of Arrow in one line."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

_NARROW = 1 << 16
"""Maximum span of integers that are encoded by a table instead of a hash map."""

_SEPARATOR = "\x1f"  # the ASCII unit separator, which texts hardly ever contain


@contextmanager
def type_errors_located(name: str) -> Iterator[None]:
    """Turn Arrow's errors about the types of columns into a `TraceError` of one line.

    >>> with type_errors_located("log.parquet"):
    ...     pa.array([[1]]).cast(pa.int64())
    Traceback (most recent call last):
    resolvent.errors.TraceError: log.parquet: has a column of a type that is not read (...): \
write it as text, numbers or booleans
    """
    try:
        yield
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise TraceError(
            f"{name}: has a column of a type that is not read ({first_line(error)}): write it as "
            f"text, numbers or booleans"
        ) from error


def first_line(error: Exception) -> str:
    """Return the first line of an error of Arrow; the others are about Arrow's own code."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def nulls(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return whether each row of a column is null."""
    if not column.null_count:
        return np.zeros(len(column), bool)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def without_views(table: pa.Table) -> pa.Table:
    """Return a table whose texts and bytes have types that Arrow can sort and encode."""
    schema = pa.schema([(field.name, _without_view(field.type)) for field in table.schema])
    return table if "_view" not in str(table.schema.types) else table.cast(schema)


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.large_list(_without_view(kind.value_type))
    return kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds texts, possibly as a dictionary."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_dictionaries(table: pa.Table) -> None:
    """Raise `DamagedFile` if a column has dictionary indices without a value.

    Arrow does not check the indices that it reads from a file, and computes with them
    outside of its memory.

    >>> indices, values = pa.array([0, 2], pa.int32()), pa.array(["a", "b"])
    >>> column = pa.DictionaryArray.from_arrays(indices, values, safe=False)
    >>> check_dictionaries(pa.table({"room": column}))
    Traceback (most recent call last):
    resolvent.errors.DamagedFile: the column `room` has the dictionary index 2, but 2 values: \
the file looks damaged; make it again
    """
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
    """Return the distinct values of a column and the code of each row.

    Nested values may repeat, because Arrow cannot compare them.

    >>> distinct(pa.chunked_array([["b", "a"], ["b", None]]))
    (['b', 'a', None], array([0, 1, 0, 2], dtype=int32))
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _distinct_of_dictionary(column)
    if pa.types.is_nested(kind):
        return _values(column), np.arange(len(column), dtype=np.int32)
    if pa.types.is_integer(kind) and not column.null_count and kind != pa.uint64():
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
    values = encoded.dictionary
    if len(indices) < len(values):  # the dictionary of a large file may be far larger
        values, indices = values.take(pa.array(indices, pa.int64())), [*range(len(indices))]
    plain = _values(values)
    return [None if index is None else plain[index] for index in indices], codes


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
    """Return the distinct labels of a column of texts or lists, and the code of each row.

    Lists that Arrow cannot compare may repeat.
    """
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
    values: Sequence[Any],
    codes: Codes,
    convert: Callable[[Any], Any],
    place: Callable[[int], str],
) -> Column:
    """Convert each distinct value once; an error names the first row of the value.

    >>> converted(["1", "1.0", "2"], np.int32([2, 1, 0]), float, str)
    ([1.0, 2.0], array([1, 0, 0], dtype=int32))
    """
    results = []
    for code, value in enumerate(values):
        try:
            results.append(convert(value))
        except TraceError as error:
            row = int(np.argmax(codes == code))
            raise TraceError(f"{place(row)}: {error}") from error
    # Two values may be one symbol, as 0.0 and -0.0 are.
    interner: Interner[Any] = Interner()
    new_codes = interner.encode(results)
    if len(interner) == len(values):
        return interner.values_in_order(), codes
    return interner.values_in_order(), new_codes[codes]
