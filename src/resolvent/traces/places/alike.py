"""Checks that all files of a place have the columns that are read, and of the same kind."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from resolvent.errors import TraceError
from resolvent.wording import visible


def check_alike(
    names: Sequence[str], schemas: Sequence[pa.Schema], columns: Sequence[str], numbers: set[str]
) -> None:
    """Refuse files of which one has a column of another kind than the first that has it.

    Integers of any width are of one kind, and so are texts; of columns in `numbers`, which are
    compared as numbers, floats and decimals too. A column without any value is of every kind.

    >>> one, other = pa.schema([("answer", pa.int64())]), pa.schema([("answer", pa.string())])
    >>> check_alike(["a.parquet", "b.parquet"], [one, other], ["answer"], set())
    Traceback (most recent call last):
    resolvent.errors.TraceError: b.parquet: the column `answer` is of type string, but of type \
int64 in a.parquet: write both alike
    """
    for column in columns:
        first: tuple[str, pa.DataType] | None = None
        for name, schema in zip(names, schemas, strict=True):
            if column not in schema.names:
                continue
            kind = schema.field(column).type
            if pa.types.is_null(kind):
                continue
            if first is None:
                first = name, kind
            elif _kind(kind, column in numbers) != _kind(first[1], column in numbers):
                raise TraceError(
                    f"{name}: the column `{visible(column)}` is of type {kind}, but of type "
                    f"{first[1]} in {first[0]}: write both alike"
                )


def _kind(kind: pa.DataType, as_number: bool) -> Any:
    """Return what two types share whose values are the same symbols."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type, as_number)
    if pa.types.is_integer(kind):
        return "number" if as_number else "integer"
    if as_number and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return "timestamp", kind.tz is None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "list", _kind(kind.value_type, as_number)
    return str(kind)
