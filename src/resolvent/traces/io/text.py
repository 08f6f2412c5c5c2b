"""Text files, plain or compressed → lines; a check that a file does not change while it is read."""

import codecs
import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

import pyarrow as pa

from resolvent._util.progress import FractionListener
from resolvent._util.text import amount
from resolvent._util.validation import (
    bytes_text,
    check_expansion,
    how_to_raise,
    limit,
    ran_out_of_memory,
)
from resolvent.errors import TooLarge, TraceError

BUFFER_BYTES = 1 << 20
_SECONDS_BETWEEN_REPORTS = 0.05
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


class Line(NamedTuple):
    """One line of a file, and its location in errors."""

    location: str
    text: bytes


def read_lines(
    file: "io.BufferedReader[Any]", name: str, progress: FractionListener | None = None
) -> Iterator[Line]:
    """Yield the lines that are not blank, decompressed if necessary, with their line ends."""
    size = os.fstat(file.fileno()).st_size  # 0 for a pipe, whose end is not known
    next_report = time.monotonic()
    number, held, longest = 0, 0, limit("line_bytes")
    compression = compression_of(file.peek(4))
    lines = file
    if compression is not None:
        lines = io.BufferedReader(pa.CompressedInputStream(file, compression), BUFFER_BYTES)
    try:
        for number, text in enumerate(iter(partial(lines.readline, longest + 1), b""), 1):
            held += len(text)
            if len(text) > longest:
                raise TooLarge(
                    f"{name}, line {number} is longer than the limit of {bytes_text(longest)}: put "
                    f"each episode on one line of its own; "
                    f"{how_to_raise('line_bytes', 4 * longest)}"
                )
            if compression and size:
                check_expansion(name, held, size)
            if progress and size and time.monotonic() >= next_report:
                progress(min(file.tell() / size, 1.0))
                next_report = time.monotonic() + _SECONDS_BETWEEN_REPORTS
            if number == 1:
                text = text.removeprefix(codecs.BOM_UTF8)
            if not text.isspace():
                yield Line(f"{name}, line {number}", text)
    except OSError as error:
        if ran_out_of_memory(error):
            raise
        raise TraceError(
            f"{name}: cannot be read past line {number} ({error}): "
            f"the file looks truncated or damaged; make it again"
        ) from error


def compression_of(start: bytes) -> str | None:
    r"""Return the compression of a file with this start, by its name in Arrow; None if none.

    >>> compression_of(b"\x1f\x8b\x08\x00"), compression_of(b"step")
    ('gzip', None)
    """
    return next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), None)


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
    with suppress(OSError):
        status = path.stat()
        if S_ISREG(status.st_mode):
            return status.st_size, status.st_ino, status.st_mtime_ns
    return None


def _change_error(path: Path, before: tuple[int, int, int] | None) -> TraceError | None:
    now = _file_state(path)
    if before is None or now == before:
        return None
    if now is None:
        change = "it is gone"
    elif now[0] != before[0]:
        change = f"it had {amount(before[0], 'byte')}, and has {now[0]:,}"
    else:
        change = "it was written again"
    return TraceError(
        f"{path} changed while it was read ({change}): read it again when nobody writes to it"
    )
