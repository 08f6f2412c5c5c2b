"""Errors about files in one line: unreadable or damaged files, and files that change meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

import pyarrow as pa

from resolvent._util.validation import ran_out_of_memory
from resolvent.errors import TraceError, locating

_TYPE_ERRORS = pa.ArrowNotImplementedError, pa.ArrowTypeError
"""Errors of Arrow about columns of unsupported types."""


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
    except _TYPE_ERRORS as error:
        raise _type_error(name, error) from error


def _type_error(name: str, error: Exception) -> TraceError:
    return TraceError(
        f"{name}: has a column of a type that is not read ({first_line(error)}): write it as "
        f"text, numbers or booleans"
    )


def first_line(error: Exception) -> str:
    """Return the first line of an error of Arrow; the others are about Arrow's own code."""
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors of Arrow about a Parquet file into a `TraceError` of one line."""
    try:
        with locating(str(path)):
            yield
    except _TYPE_ERRORS as error:
        raise _type_error(str(path), error) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if ran_out_of_memory(error):
            raise
        raise TraceError(
            f"{path}: cannot be read as Parquet ({first_line(error)}): the file looks damaged; "
            f"make it again"
        ) from error


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raise `TraceError` if a file changes while the block reads it.

    Errors of the block are not reported then, because the change may be their cause. Pipes
    are read once and have nothing to compare.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     size = path.write_text("a")
    ...     with unchanged(path):
    ...         size = path.write_text("ab")
    Traceback (most recent call last):
    resolvent.errors.TraceError: ...log.csv changed while it was read (it had 1 byte, and has 2): \
read it again when nobody writes to it
    """
    before = _file_state(path)
    try:
        yield
    except TraceError as error:
        raise (_change_error(path, before) or error) from error
    if (changed := _change_error(path, before)) is not None:
        raise changed


def _file_state(path: Path) -> tuple[int, int, int] | None:
    """Return the size, inode and modification time of a file; None if it is no regular file."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not S_ISREG(status.st_mode):
        return None
    return status.st_size, status.st_ino, status.st_mtime_ns


def _change_error(path: Path, before: tuple[int, int, int] | None) -> TraceError | None:
    now = _file_state(path)
    if before is None or now == before:
        return None
    if now is None:
        change = "it is gone"
    elif now[0] != before[0]:
        noun = "byte" if before[0] == 1 else "bytes"
        change = f"it had {before[0]:,} {noun}, and has {now[0]:,}"
    else:
        change = "it was written again"
    return TraceError(
        f"{path} changed while it was read ({change}): read it again when nobody writes to it"
    )
