"""Columns and arrays that callers pass → columns that a `TraceSet` owns, checked."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent._util.validation import check_limit
from resolvent.errors import TraceError, locating
from resolvent.traces.schema import column_text
from resolvent.traces.trace import Trace
from resolvent.traces.vocabulary import Codes, Interner

Column: TypeAlias = tuple[Sequence[Any], Codes]
"""Values in any order, and the index of each entry's value among them."""


def list_of_traces(traces: Any) -> list[Trace]:
    """Return traces as a list; `TraceError` if they are something else."""
    try:
        elements: list[Trace] = list(traces)
    except TypeError:
        raise TraceError(f"{type(traces).__name__} is no row of traces: give a list") from None
    for number, trace in enumerate(elements):
        if not isinstance(trace, Trace):
            kind = type(trace).__name__
            raise TraceError(f"trace {number} is of type {kind}: make it a resolvent.Trace")
    return elements


def encoded(name: str, parts: Iterable[Sequence[Any]]) -> Column:
    """Encode one column of all traces, given the symbols of each trace."""
    interner: Interner[Any] = Interner()
    codes = [np.empty(0, np.int32)]
    for number, values in enumerate(parts):
        with locating(f"trace {number}, {column_text(name)}"):
            codes.append(interner.encode(values))
    return interner.values_in_order(), np.concatenate(codes)


def own_column(name: str, column: Any) -> Column:
    """Return a copy of a caller's column."""
    if not (isinstance(column, tuple | list) and len(column) == 2):
        raise TraceError(f"{column_text(name)}: give (values, codes), each code the place of one")
    values, codes = column
    if not isinstance(values, Sequence | np.ndarray):
        raise TraceError(f"{column_text(name)}: {type(values).__name__} is no list of values")
    return list(values), own_array(column_text(name), codes)


def own_array(name: str, array: ArrayLike) -> NDArray[Any]:
    """Return a copy of a caller's array."""
    try:
        return np.array(array)
    except ValueError:
        raise TraceError(f"{name} must be one row, not rows of different lengths") from None


def integers(name: str, array: ArrayLike) -> NDArray[np.int64]:
    """Return a nonempty row of integers, such as offsets."""
    array = np.asarray(array)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise TraceError(f"{name} must be one row of integers, the first of them 0")
    return np.ascontiguousarray(array, np.int64)


def flags(name: str, array: ArrayLike) -> NDArray[np.bool_]:
    """Return a row of booleans, one for each trace."""
    array = np.asarray(array)
    if array.ndim != 1 or (array.dtype.kind not in "biu" and array.size):
        raise TraceError(f"{name} must be one row of booleans, one for each trace")
    return np.ascontiguousarray(array, bool)


def numbers_of_traces(numbers: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the numbers of the traces that a caller selects, counted from 0."""
    try:
        array = np.asarray(numbers)
    except ValueError:  # rows of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.dtype.kind not in "biu" and array.size):
        raise IndexError("give the numbers of traces as a list of integers, or a mark for each")
    if array.dtype == bool:
        if len(array) != count:
            raise IndexError(f"{len(array)} marks for {count} traces: give each trace one")
        return np.flatnonzero(array)
    if np.any(wrong := (array < -count) | (array >= count)):
        raise IndexError(f"there is no trace {array[np.argmax(wrong)]}: there are {count}")
    chosen = array.astype(np.int64)
    return np.where(chosen < 0, chosen + count, chosen)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def check_labels(count: int) -> None:
    """Raise `TooLarge` if there are more labels than the limit."""
    check_limit("labels", count, f"{count:,} labels are", "events should have few names; ")
