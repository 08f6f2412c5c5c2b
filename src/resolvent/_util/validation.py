"""Check the arguments of public calls against their signatures, with errors of one line."""

import errno
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

import numpy as np

from resolvent._util.text import short
from resolvent.errors import OptionError, OutOfMemory, TooLarge


def check_arguments(
    function: Callable[..., object], arguments: Mapping[str, Any], *, leaving: Iterable[str] = ()
) -> None:
    """Refuse arguments whose types do not match the signature of their function.

    `arguments` holds them by name: `locals()`, at the beginning of the function. Those in
    `leaving` are left to the function. NumPy numbers count as numbers, lists as tuples; names in
    quotes and `Any` in a signature accept everything.

    >>> def wait(seconds: float, until: Literal["noon", "night"] | None = None) -> None:
    ...     check_arguments(wait, locals())
    >>> wait(2, "noon")
    >>> wait("2")
    Traceback (most recent call last):
    resolvent.errors.OptionError: seconds='2': give a number
    >>> wait(2, "dawn")
    Traceback (most recent call last):
    resolvent.errors.OptionError: until='dawn': give 'noon', 'night' or None
    """
    for name, kind in _kinds_of(function).items():
        if name in arguments and name not in leaving and not _fits(arguments[name], kind):
            raise OptionError(f"{name}={quoted(arguments[name])}: give {_either(_words(kind))}")


def check_at_least(least: int, **numbers: int | None) -> None:
    """Refuse numbers below a minimum; None passes.

    >>> check_at_least(1, max_steps=None, episodes=0)
    Traceback (most recent call last):
    resolvent.errors.OptionError: episodes=0: use at least 1
    """
    for name, number in numbers.items():
        if number is not None and number < least:
            raise OptionError(f"{name}={number}: use at least {least}")


def quoted(value: object) -> str:
    """Return the `repr` of any value in one short line, even if `repr` fails.

    >>> quoted([1, 2]), quoted("a" * 200)[:5]
    ('[1, 2]', "'aaaa")
    """
    try:
        return short(repr(value), 80)
    except Exception:  # of objects that users wrote
        return f"a {type(value).__name__}"


def is_zero_dim(value: object) -> bool:
    """Whether a value is an array without dimensions, which claims to be iterable, but is not.

    >>> is_zero_dim(np.array(3)), is_zero_dim(np.array([3]))
    (True, False)
    """
    return isinstance(value, np.ndarray) and value.ndim == 0


def needs_arguments(function: Callable[..., object]) -> bool:
    """Whether a function cannot be called without arguments, according to its signature.

    >>> needs_arguments(len), needs_arguments(lambda size=3: size)
    (True, False)
    """
    try:
        inspect.signature(function).bind()
    except ValueError:  # it has none, as some of Python's own
        return False
    except TypeError:
        return True
    return False


@cache
def _kinds_of(function: Callable[..., object]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {
        parameter.name: parameter.annotation
        for parameter in parameters
        if parameter.annotation is not parameter.empty
        and parameter.kind is not parameter.VAR_KEYWORD
    }


def _fits(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(kind))
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if kind in (None, NoneType):
        return value is None
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is int:
        return isinstance(value, Integral)
    if kind is float:
        return isinstance(value, Real) and _is_in_range(value)
    if kind is str or kind is Path:
        wanted = str if kind is str else os.PathLike
        return isinstance(value, wanted) and "\0" not in str(value)  # no system opens such a path
    if origin is tuple:
        return _fits_tuple(value, get_args(kind))
    if isinstance(origin, type):
        return isinstance(value, origin) and _fits_parts(value, origin, get_args(kind))
    try:
        return isinstance(value, kind)
    except TypeError:  # no class: a name in quotes, a type variable, `Any`
        return True


def _fits_tuple(value: Any, kinds: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple | list):
        return False
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return all(_fits(element, kinds[0]) for element in value)
    return len(value) == len(kinds) and all(map(_fits, value, kinds))


def _fits_parts(value: Any, origin: type, kinds: tuple[Any, ...]) -> bool:
    """Whether the elements of a collection fit, if they can be read without using it up."""
    if isinstance(value, np.ndarray):
        return not is_zero_dim(value)
    if issubclass(origin, Mapping):
        return len(kinds) != 2 or all(_fits(element, kinds[0]) for element in value)
    if len(kinds) == 1 and isinstance(value, list | tuple | set | frozenset):
        return isinstance(kinds[0], TypeVar) or all(_fits(element, kinds[0]) for element in value)
    return True


def _is_in_range(number: Any) -> bool:
    try:
        float(number)
    except OverflowError:
        return False
    return True


_TYPE_NAMES = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    NoneType: "None",
}


def _words(kind: Any) -> list[str]:
    """Return the accepted values, in words."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return list(dict.fromkeys(word for part in get_args(kind) for word in _words(part)))
    if origin is Literal:
        return [repr(choice) for choice in get_args(kind)]
    if origin is tuple:
        return ["a tuple of " + " and ".join(w for part in get_args(kind) for w in _words(part))]
    if isinstance(kind, type) and kind in _TYPE_NAMES:
        return [_TYPE_NAMES[kind]]
    if kind is None:
        return ["None"]
    if origin is not None and issubclass(origin, Iterable):
        inside = [word for part in get_args(kind) for word in _words(part)]
        return [f"a {'mapping' if issubclass(origin, Mapping) else 'list'} of {_either(inside)}"]
    named = origin if isinstance(origin, type) else kind
    return ["a function" if named is Callable else f"a {getattr(named, '__name__', named)}"]


def _either(words: list[str]) -> str:
    return words[-1] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


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
    """Sets limits on the sizes of inputs and tables, for this process inside a `with`.

    Limits that are not given are unchanged. Environment variables set limits for
    commands: `RESOLVENT_MAX_LABELS=5000000`, `RESOLVENT_MAX_TABLE_BYTES=8G`.

    Attributes:
        line_bytes: The longest line of a text file, after decompression; usually 256 MiB.
        decompressed_bytes: The largest content of a small compressed text file; usually
            1 GiB. Larger files may always hold 200 times their size.
        labels: The largest number of different labels; usually 1,048,576.
        table_bytes: The largest table for a file of a machine or a world, or for the labels and
            states of inferred machines; usually 2 GiB.

    >>> import resolvent as rs
    >>> days = [rs.Trace(["hall", "attic"], [None, f"day {day}"], ["up"]) for day in range(3)]
    >>> with rs.config.Limits(labels=3):
    ...     rs.TraceSet(days)
    Traceback (most recent call last):
    resolvent.errors.TooLarge: trace 2: labels: 4 labels are more than the limit of 3: events \
should have few names; if that is meant, set RESOLVENT_MAX_LABELS=4 or use \
resolvent.config.Limits(labels=4)
    """

    line_bytes: int | None = None
    decompressed_bytes: int | None = None
    labels: int | None = None
    table_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in _DEFAULTS:
            bound = getattr(self, name)
            if bound is not None and (type(bound) is not int or bound < 1):
                raise OptionError(f"{name}={bound!r} is no limit: use a whole number of at least 1")

    def __enter__(self) -> "Limits":
        _raised.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _raised.remove(self)


def limit(name: str) -> int:
    """Return the current limit: from `Limits`, else the environment, else the default.

    >>> limit("labels")
    1048576
    """
    for limits in reversed(_raised):
        if (bound := getattr(limits, name)) is not None:
            return int(bound)
    text = os.environ.get(_variable(name))
    return _DEFAULTS[name] if text is None else _number(text, _variable(name))


def check_limit(name: str, requested: int, what: str, advice: str = "") -> None:
    """Raise `TooLarge` if a request exceeds a limit.

    `what` names the request, as a subject with its verb, and `advice` the remedies other than
    raising the limit.

    >>> check_limit("table_bytes", 3 << 30, "a table of 3 GiB is", "use fewer labels; ")
    Traceback (most recent call last):
    resolvent.errors.TooLarge: a table of 3 GiB is more than the limit of 2 GiB: use fewer \
labels; if that is meant, set RESOLVENT_MAX_TABLE_BYTES=3221225472 or use \
resolvent.config.Limits(table_bytes=3221225472)
    """
    most = limit(name)
    if requested > most:
        bound = bytes_text(most) if name.endswith("_bytes") else f"{most:,}"
        raise TooLarge(
            f"{what} more than the limit of {bound}: {advice}{how_to_raise(name, requested)}"
        )


def check_table(rows: int, columns: int, bytes_each: int, what: str) -> None:
    """Raise `TooLarge` if a table of this size takes more memory than the limit.

    >>> check_table(10**5, 10**5, 4, "states by labels")
    Traceback (most recent call last):
    resolvent.errors.TooLarge: states by labels, 100,000 by 100,000, take 37.3 GiB, more than \
the limit of 2 GiB: if that is meant, set RESOLVENT_MAX_TABLE_BYTES=40000000000 or use \
resolvent.config.Limits(table_bytes=40000000000)
    """
    requested = rows * columns * bytes_each
    size = f"{rows:,} by {columns:,}, take {bytes_text(requested)}"
    check_limit("table_bytes", requested, f"{what}, {size},")


def check_expansion(name: str, held: int, size: int) -> None:
    """Raise `TooLarge` if a file holds far more bytes than its own size, and than the limit.

    >>> check_expansion("house.jsonl.gz", held=2 << 30, size=246_000)
    Traceback (most recent call last):
    resolvent.errors.TooLarge: house.jsonl.gz holds more than 1 GiB and than 200 times its own \
size: it may be made to exhaust memory; if that is meant, set \
RESOLVENT_MAX_DECOMPRESSED_BYTES=8589934592 or use \
resolvent.config.Limits(decompressed_bytes=8589934592)
    """
    most = limit("decompressed_bytes")
    if held > most and held > EXPANSION * size:
        raise TooLarge(
            f"{name} holds more than {bytes_text(most)} and than {EXPANSION} times its own size: "
            f"it may be made to exhaust memory; {how_to_raise('decompressed_bytes', 4 * held)}"
        )


def how_to_raise(name: str, enough: int) -> str:
    """Describe how to raise a limit to a sufficient number."""
    setting = f"{_variable(name)}={enough}"
    return f"if that is meant, set {setting} or use resolvent.config.Limits({name}={enough})"


@contextmanager
def explain_memory_errors(work: str) -> Iterator[None]:
    """Report that memory ran out, rather than that a file is damaged.

    >>> with explain_memory_errors("house.jsonl was read"):
    ...     bytearray(1 << 62)
    Traceback (most recent call last):
    resolvent.errors.OutOfMemory: memory ran out while house.jsonl was read: nothing is wrong with \
the data; use less of it at once, or a machine with more memory
    """
    try:
        yield
    except (MemoryError, OSError) as error:
        if isinstance(error, OutOfMemory) or not ran_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"memory ran out while {work}: nothing is wrong with the data; use less of it at "
            f"once, or a machine with more memory"
        ) from error


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error is about memory; Arrow has its own type, and zstd only a message."""
    return (
        isinstance(error, MemoryError)
        or getattr(error, "errno", None) == errno.ENOMEM
        or "not enough memory" in str(error)
    )


def bytes_text(number: int) -> str:
    """Write a number of bytes in a suitable unit.

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
