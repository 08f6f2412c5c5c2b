"""Text files → decompressed lines, decoded JSON, and headers of CSV files."""

import codecs
import csv
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import pyarrow as pa

from resolvent._util.progress import FractionListener
from resolvent._util.validation import (
    bytes_text,
    check_expansion,
    how_to_raise,
    limit,
    ran_out_of_memory,
)
from resolvent.errors import TooLarge, TraceError

T = TypeVar("T")

BUFFER_BYTES = 1 << 20
_SECONDS_BETWEEN_REPORTS = 0.05
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_DELIMITERS = (",", ";", "\t")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Texts of a CSV file that are missing values, unless the caller lists others."""


class Line(NamedTuple):
    """One line of a file, and its location in errors."""

    place: str
    text: bytes


def read_lines(
    file: "io.BufferedReader[Any]", name: str, progress: FractionListener | None = None
) -> Iterator[Line]:
    """Yield the lines that are not blank, decompressed if necessary, with their line ends."""
    size = os.fstat(file.fileno()).st_size  # 0 for a pipe, whose end is not known
    next_report = time.monotonic()
    number, longest = 0, limit("line_bytes")
    try:
        readline = _decompressed(file, name).readline
        for number, text in enumerate(iter(partial(readline, longest + 1), b""), 1):
            if len(text) > longest:
                raise TooLarge(
                    f"{name}, line {number} is longer than the limit of {bytes_text(longest)}: put "
                    f"each episode on one line of its own; "
                    f"{how_to_raise('line_bytes', 4 * longest)}"
                )
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
            f"the file looks cut short or damaged; make it again"
        ) from error


def _decompressed(file: "io.BufferedReader[Any]", name: str) -> "io.BufferedReader[Any]":
    compression = compression_of(file.peek(4))
    if compression is None:
        return file
    return io.BufferedReader(_Decompressed(file, compression, name), BUFFER_BYTES)


class _Decompressed(io.RawIOBase):
    """The content of a compressed file; `TooLarge` if it grows suspiciously beyond the file."""

    def __init__(self, file: "io.BufferedReader[Any]", compression: str, name: str) -> None:
        self._compressed = _CountedFile(file)
        self._stream = pa.CompressedInputStream(pa.PythonFile(self._compressed, "r"), compression)
        self._name = name
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._stream.readinto(buffer))
        self._read += count
        check_expansion(self._name, self._read, self._compressed.bytes_read)
        return count


class _CountedFile:
    """A file that counts the bytes read from it, for the size of a pipe is unknown."""

    closed = False

    def __init__(self, file: "io.BufferedReader[Any]") -> None:
        self._file = file
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        """Read some bytes."""
        data = self._file.read(size)
        self.bytes_read += len(data)
        return data

    def close(self) -> None:
        """Do nothing: the caller closes the file."""


def compression_of(start: bytes) -> str | None:
    r"""Return the compression of a file with this start, by its name in Arrow; None if none.

    >>> compression_of(b"\x1f\x8b\x08\x00"), compression_of(b"step")
    ('gzip', None)
    """
    return next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), None)


def decode_line(
    decoder: msgspec.json.Decoder[T], text: bytes, where: Callable[[str], str], shape: str
) -> T:
    """Decode a line of JSON; a `TraceError` describes the first mistake.

    `where` turns a path such as `$.rewards[3]` into words; `shape` shows a correct line.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        message = message[0].lower() + message[1:]
        place = f"{where(path.rstrip('`'))}: " if path else ""
        raise TraceError(f"{place}{message}; a line should be {shape}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(_malformed_text(text, error, where)) from error


def _malformed_text(text: bytes, error: Exception, where: Callable[[str], str]) -> str:
    # JSON has no NaN and no Infinity, yet much software writes them. Python's own decoder
    # accepts them, so it can locate them.
    try:
        not_finite = _first_not_finite(json.loads(text), "$")
    except (ValueError, RecursionError):
        not_finite = None
    if not_finite:
        path, number = not_finite
        return f"{where(path)} is {number}; numbers must be finite"
    if not text.endswith(b"\n"):
        return (
            f"the last line has no end and is not whole ({error}): "
            f"the file looks cut short; remove the line or make the file again"
        )
    return f"not valid JSON ({error}): put each episode on one line of its own, or remove the line"


def _first_not_finite(value: Any, path: str) -> tuple[str, float] | None:
    """Return the first NaN or infinity in a JSON value, with its path."""
    if isinstance(value, float) and not math.isfinite(value):
        return path, value
    inside: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, list):
        inside = ((f"{path}[{index}]", element) for index, element in enumerate(value))
    elif isinstance(value, dict):
        inside = ((f"{path}.{key}", element) for key, element in value.items())
    return next(filter(None, (_first_not_finite(element, at) for at, element in inside)), None)


def header_of(start: bytes, place: str, delimiter: str | None = None) -> tuple[list[str], str]:
    r"""Return the names in the first line of a CSV file that is not blank, and the delimiter.

    The default delimiter is the one of comma, semicolon and tab that gives most names. Quoted
    names may contain line ends, and lines may end in a carriage return alone.

    >>> header_of(b"session;event;answer, if any\n1;coin;ok\n", "log.csv")
    (['session', 'event', 'answer, if any'], ';')
    """
    text = start.decode("utf-8-sig", "surrogateescape")
    headers = []
    try:
        for separator in (delimiter,) if delimiter else _DELIMITERS:
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            headers.append((next(filter(None, rows), []), separator))
    except csv.Error as error:
        raise TraceError(f"{place} cannot be read as CSV ({error}): make it again") from error
    names, separator = max(headers, key=lambda header: len(header[0]))
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        raise TraceError(f"{place} is not UTF-8: save it as UTF-8") from error
    return names, separator
