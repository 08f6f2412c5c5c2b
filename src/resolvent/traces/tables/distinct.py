"""Arrow columns → their distinct values, and a code for each row, without a loop over rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolvent import _core
from resolvent.errors import TraceError
from resolvent.traces.given_columns import Column
from resolvent.traces.vocabulary import Codes, Interner

_NEAR = 1 << 16
"""Integers are looked up in a table if the largest is no further from the least than this."""

_SEPARATOR = "\x1f"  # the ASCII unit separator, which text hardly ever holds


def distinct(column: pa.ChunkedArray) -> tuple[list[Any], Codes]:
    """Return a column's distinct values (at least those) and the code of each row.

    >>> distinct(pa.chunked_array([["b", "a"], ["b", None]]))
    (['b', 'a', None], array([0, 1, 0, 2], dtype=int32))
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _distinct_of_dictionary(column)
    if pa.types.is_nested(kind):
        return _listed(column), np.arange(len(column), dtype=np.int32)
    if pa.types.is_integer(kind) and not column.null_count and kind != pa.uint64():
        found = _core.distinct_integers(column.to_numpy().astype(np.int64, copy=False), _NEAR)
        if found is not None:
            return found[0].tolist(), found[1]
    encoded = pc.dictionary_encode(_in_one(column), null_encoding="encode")
    return _listed(encoded.dictionary), encoded.indices.to_numpy().astype(np.int32)


def _distinct_of_dictionary(column: pa.ChunkedArray) -> tuple[list[Any], Codes]:
    """Return the values of a dictionary that occur; a dictionary may hold others."""
    encoded = _in_one(column.unify_dictionaries())
    if not encoded.null_count and encoded.indices.type == pa.int32():
        codes = encoded.indices.to_numpy()
        if _core.used_codes(codes, len(encoded.dictionary)).all():
            order = pc.sort_indices(encoded.dictionary)  # as trace sets have them
            rank = np.empty(len(order), np.int32)
            rank[order.to_numpy()] = np.arange(len(order))
            return _listed(encoded.dictionary.take(order)), _core.recode(codes, rank)
    kept, codes = distinct(pa.chunked_array([encoded.indices]))
    values = encoded.dictionary
    if len(kept) < len(values):  # one of a large file may hold far more than these rows
        values, kept = values.take(pa.array(kept, pa.int64())), [*range(len(kept))]
    listed = _listed(values)
    return [None if place is None else listed[place] for place in kept], codes


def _listed(values: Any) -> list[Any]:
    """Return values of Arrow's as those of Python."""
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError as error:
        raise TraceError(
            f"a text is not in UTF-8 ({error.reason}): make the file again, or leave it out"
        ) from error


def _in_one(column: pa.ChunkedArray) -> Any:
    """Return a column that is not in chunks, and is not copied if it is one."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def distinct_labels(column: pa.ChunkedArray) -> tuple[list[Any], Codes]:
    """Return the distinct labels (at least those) of texts or lists, and the code of each row."""
    if not pa.types.is_nested(column.type):
        return distinct(column)
    try:
        lists = column.cast(pa.list_(pa.string())).combine_chunks()
        names = lists.flatten()
        # What cannot be joined and split again without loss is taken one by one.
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
    return _listed(column), np.arange(len(column), dtype=np.int32)


def converted(
    values: Sequence[Any],
    codes: Codes,
    convert: Callable[[Any], Any],
    place: Callable[[int], str],
) -> Column:
    """Convert each distinct value once; an error says at which row the value first stands.

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
