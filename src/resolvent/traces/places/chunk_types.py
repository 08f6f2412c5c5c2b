"""The footer of a Parquet file → a refusal where it contradicts itself on the types of columns.

Arrow ends the process (`std::terminate`, seen with version 26) when it is asked for statistics of a
column whose type in a row group is not the one in the schema. So that is looked at before, in the
footer's own bytes: Thrift's compact protocol, of which nothing is kept but those types.
"""

from typing import Any, Final

from resolvent.errors import DamagedFile

_TAIL: Final = 8
"""Bytes at the end of a file: the length of the footer, and the letters PAR1."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DEEPEST: Final = 32
"""Structures inside each other; a footer has fewer than ten."""

# Fields by their numbers in Parquet's own description of footers.
_SCHEMA, _ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE = 2, 4, 1, 3, 1


def check_chunk_types(source: Any) -> None:
    """Raise `DamagedFile` if a row group has another type for a column than the schema.

    `source` is a file of Arrow's that ends in a footer which Arrow could read.
    """
    size = source.size()
    length = int.from_bytes(source.read_at(4, size - _TAIL), "little")
    start = size - _TAIL - length
    if start < 0:
        raise DamagedFile("the footer is longer than the file")
    try:
        schema, groups = _Footer(source.read_at(length, start)).types()
    except (IndexError, ValueError, RecursionError) as error:
        raise DamagedFile("the footer cannot be understood") from error
    for number, types in enumerate(groups):
        if types != schema:
            raise DamagedFile(f"row group {number} has columns of other types than the schema")


class _Footer:
    """Bytes in Thrift's compact protocol, and how far they were read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def types(self) -> tuple[list[int], list[list[int]]]:
        """Return the types of all columns, as the schema has them and as each row group does."""
        schema: list[int] = []
        groups: list[list[int]] = []
        for field, kind in self.fields():
            if field == _SCHEMA and kind == _LIST:
                found = (self.only_type() for _ in range(self.size_of_list()))
                schema = [one for one in found if one is not None]  # groups of columns have none
            elif field == _ROW_GROUPS and kind == _LIST:
                groups = [self.group() for _ in range(self.size_of_list())]
            else:
                self.skip(kind)
        return schema, groups

    def group(self) -> list[int]:
        """Read a row group, and return the types of its columns."""
        types: list[int] = []
        for field, kind in self.fields():
            if field == _COLUMNS and kind == _LIST:
                types = [self.chunk() for _ in range(self.size_of_list())]
            else:
                self.skip(kind)
        return types

    def chunk(self) -> int:
        """Read what is said of one column in a row group, and return its type."""
        found = None
        for field, kind in self.fields():
            if field == _META_DATA and kind == _STRUCT:
                found = self.only_type()
            else:
                self.skip(kind)
        return -1 if found is None else found

    def only_type(self) -> int | None:
        """Read a structure whose first field is a type, and return that."""
        found = None
        for field, kind in self.fields():
            if field == _TYPE and kind not in (_BINARY, _STRUCT):
                found = self.varint()
            else:
                self.skip(kind)
        return found

    def fields(self) -> Any:
        """Go through the fields of a structure: number and kind, the value is to be read next."""
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.varint() >> 1
            yield field, head & 15

    def size_of_list(self) -> int:
        """Read how many structures follow."""
        head = self.byte()
        if head & 15 != _STRUCT:
            raise ValueError("a list of something else")
        return head >> 4 if head >> 4 < 15 else self.varint()

    def byte(self) -> int:
        """Read a byte."""
        found = self.data[self.at]
        self.at += 1
        return found

    def varint(self) -> int:
        """Read a whole number of up to ten bytes, as it stands there."""
        data, at = self.data, self.at
        found = shift = 0
        while True:
            part = data[at]
            at += 1
            found |= (part & 127) << shift
            if part < 128:
                self.at = at
                return found
            shift += 7
            if shift > 63:
                raise ValueError("a number without end")

    def skip(self, kind: int, depth: int = 0) -> None:
        """Read past a value."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        if kind in (_TRUE, _FALSE):
            return
        if kind == _STRUCT:
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
        elif _BYTE < kind < _DOUBLE:
            self.varint()
        else:
            raise ValueError("no kind of value")
        if self.at > len(self.data):
            raise ValueError("values beyond the end")

    def skip_all(self, size: int, kinds: tuple[int, ...], depth: int) -> None:
        """Read past the values of a list or a map, in which each yes or no has a byte."""
        if size > len(self.data) - self.at:
            raise ValueError("more values than bytes")
        for _ in range(size):
            for kind in kinds:
                self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)
