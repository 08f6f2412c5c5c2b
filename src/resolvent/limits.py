"""Limits of what files may make Resolvent hold, checked before the memory is taken.

A small file can ask for very much: a line that never ends, text that was compressed a
thousandfold, a table of a million states by a million labels. The numbers stand here
and nowhere else; who raises one knows why.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from resolvent.errors import OptionError, OutOfMemory, TooLarge

EXPANSION: Final = 200
"""Compressed files may always hold this many times their size: honest traces stay below."""

_DEFAULTS: Final = {
    "line_bytes": 256 << 20,
    "decompressed_bytes": 1 << 30,
    "labels": 1 << 20,
    "table_bytes": 2 << 30,
}
_UNITS: Final = {"K": 10, "M": 20, "G": 30, "T": 40}
_raised: list["Limits"] = []


@dataclass(frozen=True)
class Limits:
    """Sets other limits on what may be read or built, for this process inside a `with`.

    What is not given stays as it is. Environment variables set limits from outside, as
    commands need it: `RESOLVENT_MAX_LABELS=5000000`, `RESOLVENT_MAX_TABLE_BYTES=8G`.

    Attributes:
        line_bytes: The longest line of a text file, after decompression; usually 256 MiB.
        decompressed_bytes: What a compressed text file may hold, however small it is; usually
            1 GiB. Larger ones may always hold 200 times their size.
        labels: How many different labels there may be; usually 1,048,576.
        table_bytes: The largest table that a file of a machine or a world, or labels and states
            that are found, may ask for; usually 2 GiB.

    >>> import resolvent as rs
    >>> days = [rs.Trace(["hall", "attic"], [None, f"day {day}"], ["up"]) for day in range(3)]
    >>> with rs.Limits(labels=3):
    ...     rs.TraceSet(days)
    Traceback (most recent call last):
    resolvent.errors.TooLarge: 4 labels are more than the limit of 3: events should have few \
names; if that is meant, set RESOLVENT_MAX_LABELS=4 or use resolvent.Limits(labels=4)
    """

    line_bytes: int | None = None
    decompressed_bytes: int | None = None
    labels: int | None = None
    table_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in _DEFAULTS:
            given = getattr(self, name)
            if given is not None and (type(given) is not int or given < 1):
                raise OptionError(f"{name}={given!r} is no limit: use a whole number from 1 on")

    def __enter__(self) -> "Limits":
        _raised.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _raised.remove(self)


def limit(name: str) -> int:
    """Return a limit as it is now: as `Limits` says, else the environment, else as usual.

    >>> limit("labels")
    1048576
    """
    for limits in reversed(_raised):
        if (given := getattr(limits, name)) is not None:
            return int(given)
    text = os.environ.get(_variable(name))
    return _DEFAULTS[name] if text is None else _number(text, _variable(name))


def check_limit(name: str, asked: int, what: str, advice: str = "") -> None:
    """Raise `TooLarge` if more is asked for than a limit allows.

    `what` says what is so much, as a subject with its verb, and `advice` what to do about it
    but for raising the limit.

    >>> check_limit("table_bytes", 3 << 30, "a table of 3 GiB is", "use fewer labels; ")
    Traceback (most recent call last):
    resolvent.errors.TooLarge: a table of 3 GiB is more than the limit of 2 GiB: use fewer \
labels; if that is meant, set RESOLVENT_MAX_TABLE_BYTES=3221225472 or use \
resolvent.Limits(table_bytes=3221225472)
    """
    most = limit(name)
    if asked > most:
        shown = bytes_text(most) if name.endswith("_bytes") else f"{most:,}"
        raise TooLarge(
            f"{what} more than the limit of {shown}: {advice}{how_to_raise(name, asked)}"
        )


def check_table(rows: int, columns: int, bytes_each: int, what: str) -> None:
    """Raise `TooLarge` if a table of so many entries takes more memory than the limit.

    >>> check_table(10**5, 10**5, 4, "states by labels")
    Traceback (most recent call last):
    resolvent.errors.TooLarge: states by labels, 100,000 by 100,000, take 37.3 GiB, more than \
the limit of 2 GiB: if that is meant, set RESOLVENT_MAX_TABLE_BYTES=40000000000 or use \
resolvent.Limits(table_bytes=40000000000)
    """
    asked = rows * columns * bytes_each
    size = f"{rows:,} by {columns:,}, take {bytes_text(asked)}"
    check_limit("table_bytes", asked, f"{what}, {size},")


def check_expansion(name: str, held: int, size: int) -> None:
    """Raise `TooLarge` if a file holds far more bytes than its own size, and than the limit.

    >>> check_expansion("house.jsonl.gz", held=2 << 30, size=246_000)
    Traceback (most recent call last):
    resolvent.errors.TooLarge: house.jsonl.gz holds more than 1 GiB and than 200 times its own \
size: it looks made to fill the memory; if that is meant, set \
RESOLVENT_MAX_DECOMPRESSED_BYTES=8589934592 or use resolvent.Limits(decompressed_bytes=8589934592)
    """
    most = limit("decompressed_bytes")
    if held > most and held > EXPANSION * size:
        raise TooLarge(
            f"{name} holds more than {bytes_text(most)} and than {EXPANSION} times its own size: "
            f"it looks made to fill the memory; {how_to_raise('decompressed_bytes', 4 * held)}"
        )


def how_to_raise(name: str, enough: int) -> str:
    """Say how a limit is raised, to a number that is enough."""
    return (
        f"if that is meant, set {_variable(name)}={enough} or use resolvent.Limits({name}={enough})"
    )


@contextmanager
def telling_of_memory(work: str) -> Iterator[None]:
    """Say that memory ran out, rather than that anything is damaged, where it did.

    >>> with telling_of_memory("house.jsonl was read"):
    ...     bytearray(1 << 62)
    Traceback (most recent call last):
    resolvent.errors.OutOfMemory: memory ran out while house.jsonl was read: nothing is wrong with \
the data; use less of it at once, or a machine with more memory
    """
    try:
        yield
    except OutOfMemory:
        raise
    except (MemoryError, OSError) as error:
        if not ran_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"memory ran out while {work}: nothing is wrong with the data; use less of it at "
            f"once, or a machine with more memory"
        ) from error


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error is about memory; Arrow has its own, and zstd says it in words."""
    return (
        isinstance(error, MemoryError)
        or getattr(error, "errno", None) == errno.ENOMEM
        or "not enough memory" in str(error)
    )


def bytes_text(number: int) -> str:
    """Write a number of bytes in the unit that suits it.

    >>> bytes_text(300), bytes_text(2 << 30), bytes_text(3 << 19)
    ('300 bytes', '2 GiB', '1.5 MiB')
    """
    for unit, shift in reversed(_UNITS.items()):
        if number >= 1 << shift:
            return f"{number / (1 << shift):.3g} {unit}iB"
    return f"{number} bytes"


def _variable(name: str) -> str:
    return f"RESOLVENT_MAX_{name.upper()}"


def _number(text: str, variable: str) -> int:
    digits, unit = text.strip(), 0
    if digits[-1:].upper() in _UNITS:
        digits, unit = digits[:-1], _UNITS[digits[-1].upper()]
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19 and int(digits)):
        raise OptionError(f"{variable}={text!r} is no limit: use a number such as 5000000 or 8G")
    return int(digits) << unit
