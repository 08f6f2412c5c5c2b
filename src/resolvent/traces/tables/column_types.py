"""Columns of types that nothing can be made of: what Arrow has against them → one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from resolvent.errors import TraceError

OF_TYPES = pa.ArrowNotImplementedError, pa.ArrowTypeError
"""What Arrow raises for columns of such types."""


@contextmanager
def known_types(name: str) -> Iterator[None]:
    """Turn what Arrow has against the types of columns into a `TraceError` of one line.

    >>> with known_types("log.parquet"):
    ...     pa.array([[1]]).cast(pa.int64())
    Traceback (most recent call last):
    resolvent.errors.TraceError: log.parquet: has a column of a type that is not read (...): \
write it as text, numbers or booleans
    """
    try:
        yield
    except OF_TYPES as error:
        raise TraceError(f"{name}: {words_of_types(error)}") from error


def words_of_types(error: Exception) -> str:
    """Say that a column is of a type that is not read, and what to do."""
    return (
        f"has a column of a type that is not read ({first_line(error)}): write it as text, "
        f"numbers or booleans"
    )


def first_line(error: Exception) -> str:
    """Return the first line of what Arrow says; others are about its own code."""
    return (str(error).splitlines() or [type(error).__name__])[0]
