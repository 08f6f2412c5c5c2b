"""Read the statistics of columns from the footer of a Parquet file.

PyArrow's own statistics end the process (`std::terminate`, seen with version 26) if a damaged
footer contradicts itself, in the type of a column or in the sizes of its histograms. So this module
parses the footer's bytes, in Thrift's compact protocol, and raises an error instead.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

_TAIL: Final = 8
"""Number of bytes after the footer: its length, and the letters PAR1."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_MAX_DEPTH: Final = 32
"""Maximum depth of nested structures; a footer has fewer than ten."""

# Field numbers of Parquet's definition of footers.
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_TYPE, _STATISTICS = 1, 12
_OLD_MAX, _OLD_MIN, _NULLS, _MAX, _MIN, _MAX_IS_EXACT, _MIN_IS_EXACT = 1, 2, 3, 5, 6, 7, 8
_INT32, _INT64, _TEXT = 1, 2, 6
_BYTES: Final = {_INT32: 4, _INT64: 8}


class Chunk(NamedTuple):
    """A column of a row group: its physical type, and its statistics by field number."""

    stored: int
    statistics: dict[int, Any]

    def bounds(self, dtype: pa.DataType) -> tuple[Any, Any] | None:
        """Return the minimum and maximum as values of a type; None if they are not exact."""
        statistics = self.statistics
        if statistics.get(_NULLS) != 0:
            return None
        if False in (statistics.get(_MAX_IS_EXACT), statistics.get(_MIN_IS_EXACT)):
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
            raise ValueError("no whole number")
        if pa.types.is_integer(dtype):
            signed = pa.types.is_signed_integer(dtype)
            return int.from_bytes(data, "little", signed=signed)
        if pa.types.is_timestamp(dtype) or pa.types.is_date32(dtype):
            return pa.scalar(int.from_bytes(data, "little", signed=True), dtype).as_py()
        raise ValueError("values without an order that is known")


def chunks_of(source: Any) -> list[list[Chunk]]:
    """Return the statistics of all columns of a file that Arrow opened, by row group.

    Raises:
        pyarrow.ArrowInvalid: when the footer cannot be understood, as Arrow raises it.
    """
    size = source.size()
    length = int.from_bytes(source.read_at(4, max(size - _TAIL, 0)), "little")
    start = size - _TAIL - length
    if start < 0:
        raise pa.ArrowInvalid("the footer is longer than the file")
    try:
        return _Footer(source.read_at(length, start)).row_groups()
    except (IndexError, ValueError, RecursionError) as error:
        raise pa.ArrowInvalid("the footer cannot be understood") from error


class _Footer:
    """A parser of Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def row_groups(self) -> list[list[Chunk]]:
        """Read the footer."""
        groups: list[list[Chunk]] = []
        for field, kind in self.fields():
            if field == _ROW_GROUPS and kind == _LIST:
                groups = [self.row_group() for _ in range(self.size_of_list())]
            else:
                self.skip(kind)
        return groups

    def row_group(self) -> list[Chunk]:
        """Read a row group."""
        chunks: list[Chunk] = []
        for field, kind in self.fields():
            if field == _COLUMNS and kind == _LIST:
                chunks = [self.chunk() for _ in range(self.size_of_list())]
            else:
                self.skip(kind)
        return chunks

    def chunk(self) -> Chunk:
        """Read a column of a row group."""
        stored, statistics = -1, {}
        for field, kind in self.fields():
            if field == _META_DATA and kind == _STRUCT:
                for inner, inside in self.fields():
                    if inner == _TYPE and _BYTE < inside < _DOUBLE:
                        stored = self.integer()
                    elif inner == _STATISTICS and inside == _STRUCT:
                        statistics = {number: self.value(of) for number, of in self.fields()}
                    else:
                        self.skip(inside)
            else:
                self.skip(kind)
        return Chunk(stored, statistics)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and type of each field; the caller reads the value next."""
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.integer()
            yield field, head & 15

    def size_of_list(self) -> int:
        """Read the number of structures in a list."""
        head = self.byte()
        size = head >> 4 if head >> 4 < 15 else self.varint()
        if head & 15 != _STRUCT or size > len(self.data) - self.at:
            raise ValueError("no list of structures")
        return size

    def value(self, kind: int) -> Any:
        """Read a boolean, an integer or bytes; return None for all else."""
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if _BYTE < kind < _DOUBLE:
            return self.integer()
        if kind == _BINARY:
            size = self.varint()
            start, self.at = self.at, self.at + size
            if self.at > len(self.data):
                raise ValueError("bytes beyond the end")
            return self.data[start : self.at]
        self.skip(kind)
        return None

    def byte(self) -> int:
        """Read a byte."""
        byte = self.data[self.at]
        self.at += 1
        return byte

    def integer(self) -> int:
        """Read an integer in zigzag encoding."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def varint(self) -> int:
        """Read an unsigned integer of up to ten bytes."""
        data, at = self.data, self.at
        number = shift = 0
        while True:
            part = data[at]
            at += 1
            number |= (part & 127) << shift
            if part < 128:
                self.at = at
                return number
            shift += 7
            if shift > 63:
                raise ValueError("a number without end")

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value."""
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        if kind in (_TRUE, _FALSE):
            return
        if _BYTE < kind < _DOUBLE:
            self.varint()
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            head = self.byte()
            size = head >> 4 if head >> 4 < 15 else self.varint()
            self.skip_all(size, (head & 15,), depth)
        elif kind == _MAP:
            size = self.varint()
            kinds = self.byte() if size else 0
            self.skip_all(size, (kinds >> 4, kinds & 15), depth)
        elif kind == _BINARY:
            size = self.varint()
            self.at += size
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BYTE:
            self.at += 1
        else:
            raise ValueError("no kind of value")
        if self.at > len(self.data):
            raise ValueError("values beyond the end")

    def skip_all(self, size: int, kinds: tuple[int, ...], depth: int) -> None:
        """Skip the values of a list or a map, where a boolean takes a byte."""
        if size > len(self.data) - self.at:
            raise ValueError("more values than bytes")
        for _ in range(size):
            for kind in kinds:
                self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)
