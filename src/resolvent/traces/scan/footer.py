"""Statistics in the footer of a Parquet file → bounds of the episodes of its row groups.

PyArrow's own statistics end the process (`std::terminate`, seen with version 26) if a damaged
footer contradicts itself, in the type of a column or in the sizes of its histograms. So this module
parses the footer's bytes, in Thrift's compact protocol, and raises an error instead.
"""

from collections.abc import Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa

_TAIL: Final = 8  # number of bytes after the footer: its length, and the letters PAR1
_FIRST_READ: Final = 1 << 16  # bytes at the end of a file that are read at once: most footers
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_MAX_DEPTH: Final = 32  # of nested structures; a footer has fewer than ten

# Field numbers of Parquet's definition of footers.
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_TYPE, _STATISTICS = 1, 12
_OLD_MAX, _OLD_MIN, _NULLS, _MAX, _MIN, _MAX_IS_EXACT, _MIN_IS_EXACT = 1, 2, 3, 5, 6, 7, 8
_INT32, _INT64, _TEXT = 1, 2, 6
_BYTES: Final = {_INT32: 4, _INT64: 8}

_ORDERED_TYPES = (bool, int, str, bytes, date, datetime)
Episode = tuple[Any, ...]  # the values that identify an episode, column by column
Bounds = tuple[Episode, Episode]  # least and greatest values, column by column


class Chunk(NamedTuple):
    """A column of a row group: its physical type, and its statistics by field number."""

    stored: Any
    statistics: dict[int, Any]

    def bounds(self, dtype: pa.DataType) -> tuple[Any, Any] | None:
        """Return the minimum and maximum as values of a type; None if they are not exact."""
        statistics = self.statistics
        is_exact = False not in (statistics.get(_MAX_IS_EXACT), statistics.get(_MIN_IS_EXACT))
        if statistics.get(_NULLS) != 0 or not is_exact:
            return None
        if pa.types.is_dictionary(dtype):
            dtype = dtype.value_type
        ends = statistics.get(_MIN), statistics.get(_MAX)
        if ends == (None, None) and pa.types.is_signed_integer(dtype):
            # The old fields are sorted for signed integers alone.
            ends = statistics.get(_OLD_MIN), statistics.get(_OLD_MAX)
        try:
            return self._value(ends[0], dtype), self._value(ends[1], dtype)
        except (ValueError, TypeError, pa.ArrowException):
            return None

    def _value(self, data: Any, dtype: pa.DataType) -> Any:
        """Decode bytes, or raise a `ValueError`."""
        if not isinstance(data, bytes):
            raise ValueError("no bytes")
        if self.stored == _TEXT and (pa.types.is_string(dtype) or pa.types.is_large_string(dtype)):
            return data.decode()
        if self.stored == _TEXT and (pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype)):
            return data
        if len(data) != _BYTES.get(self.stored):
            raise ValueError("no integer")
        number = int.from_bytes(data, "little", signed=not pa.types.is_unsigned_integer(dtype))
        if pa.types.is_integer(dtype):
            return number
        if pa.types.is_timestamp(dtype) or pa.types.is_date32(dtype):
            return pa.scalar(number, dtype).as_py()
        raise ValueError("values without an order that is known")


def chunks_of(source: Any) -> list[list[Chunk]]:
    """Return the statistics of a file's columns by row group; `ArrowInvalid` if it is damaged."""
    size = source.size()
    start = max(size - _FIRST_READ, 0)
    end = source.read_at(size - start, start)
    length = int.from_bytes(end[-_TAIL : -_TAIL + 4], "little")
    if length > size - _TAIL:
        raise pa.ArrowInvalid("the footer is longer than the file")
    if length > len(end) - _TAIL:
        end = source.read_at(length + _TAIL, size - _TAIL - length)
    try:
        footer = _Parser(end[-_TAIL - length : -_TAIL]).struct()
        return [
            [
                Chunk(metadata.get(_TYPE), dict(metadata.get(_STATISTICS, ())))
                for metadata in (column.get(_META_DATA, {}) for column in group[_COLUMNS])
            ]
            for group in footer.get(_ROW_GROUPS, ())
        ]
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise pa.ArrowInvalid("the footer cannot be understood") from error


class _Parser:
    """A parser of Thrift's compact protocol; each error is one that `chunks_of` catches."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read a structure as its values by field number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            type_code = head & 15
            is_boolean = type_code in (_TRUE, _FALSE)
            fields[number] = type_code == _TRUE if is_boolean else self._value(type_code, depth)
        return fields

    def _value(self, type_code: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        if _BYTE < type_code < _DOUBLE:
            return self._integer()
        if type_code == _STRUCT:
            return self.struct(depth + 1)
        if type_code == _BINARY:
            return self._bytes(self._varint())
        if type_code in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            return self._values(size, (head & 15,), depth)
        if type_code == _MAP:
            size = self._varint()
            type_codes = self._byte() if size else 0
            return self._values(size, (type_codes >> 4, type_codes & 15), depth)
        if type_code == _DOUBLE:
            return self._bytes(8)
        if type_code in (_TRUE, _FALSE, _BYTE):  # a boolean in a list takes a byte
            return self._byte()
        raise ValueError("no kind of value")

    def _values(self, size: int, type_codes: Sequence[int], depth: int) -> list[Any]:
        """Read the values of a list, or in turn the keys and values of a map."""
        if size > len(self._data) - self._at:
            raise ValueError("more values than bytes")
        return [self._value(type_code, depth + 1) for _ in range(size) for type_code in type_codes]

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _bytes(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise ValueError("bytes beyond the end")
        return self._data[start : self._at]

    def _integer(self) -> int:
        """Read an integer in zigzag encoding."""
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        """Read an unsigned integer of up to ten bytes."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("a number without end")


def bounds_of(columns: Sequence[tuple[Any, Any] | None]) -> Bounds | None:
    """Return the bounds of a row group, given those of each column; None if one is unknown."""
    if not columns or None in columns:
        return None
    low, high = zip(*columns, strict=True)
    are_ordered = all(isinstance(value, _ORDERED_TYPES) for value in (*low, *high))
    return (low, high) if are_ordered else None


def are_disjoint(first: Bounds | None, second: Bounds | None) -> bool:
    """Return whether two row groups certainly share no episode; bounds may lack last columns."""
    if first is None or second is None:
        return False
    columns = min(len(first[0]), len(second[0]))
    try:
        return first[1][:columns] < second[0][:columns] or second[1][:columns] < first[0][:columns]
    except TypeError:
        return False


def common_bounds(bounds: Sequence[Bounds | None]) -> Bounds | None:
    """Return the bounds of all row groups of a shard together."""
    stated = [pair for pair in bounds if pair is not None]
    if len(stated) < len(bounds):
        return None
    try:
        return min(low for low, _ in stated), max(high for _, high in stated)
    except TypeError:
        return None


def boundary_episode(first: Bounds | None, second: Bounds | None) -> Episode | None:
    """Return the only episode that two shards may share, at the boundary between them."""
    if first is None or second is None:
        return None
    episode = first[1] if first[1] == second[0] else first[0]
    return episode if all(type(value) in (int, str) for value in episode) else None


def are_in_sequence(bounds: Sequence[Bounds | None]) -> bool:
    """Return whether shards certainly share no episode, except for one with a neighbor."""
    if len(bounds) < 2:
        return True
    stated = [(pair, number) for number, pair in enumerate(bounds) if pair is not None]
    try:
        ordered = sorted(stated)
    except TypeError:
        return False
    return len(stated) == len(bounds) and all(
        low[1] < high[0] or (low[1] == high[0] and abs(first - second) == 1)
        for (low, first), (high, second) in pairwise(ordered)
    )
