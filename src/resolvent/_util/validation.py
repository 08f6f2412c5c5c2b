"""Check the arguments of public calls against their signatures, with errors of one line."""

import errno
import inspect
import os
import re
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
    """
    for name, kind in _kinds_of(function).items():
        if name in arguments and name not in leaving and not _fits(arguments[name], kind):
            raise OptionError(f"{name}={quoted(arguments[name])}: give {_either(_words(kind))}")


def check_at_least(least: int, **numbers: int | None) -> None:
    """Refuse numbers below a minimum; None passes."""
    for name, number in numbers.items():
        if number is not None and number < least:
            raise OptionError(f"{name}={number}: use at least {least}")


def quoted(value: object) -> str:
    """Return the `repr` of any value in one short line, even if `repr` fails."""
    try:
        return short(repr(value), 80)
    except Exception:  # of objects that users wrote
        return f"a {type(value).__name__}"


def is_zero_dim(value: object) -> bool:
    """Whether a value is an array without dimensions, which claims to be iterable, but is not."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def needs_arguments(function: Callable[..., object]) -> bool:
    """Whether a function cannot be called without arguments, according to its signature."""
    try:
        inspect.signature(function).bind()
    except ValueError:  # it has none, as some of Python's own
        return False
    except TypeError:
        return True
    return False


@cache
def _kinds_of(function: Callable[..., object]) -> dict[str, Any]:
    return {
        name: parameter.annotation
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is not parameter.empty
        and parameter.kind is not parameter.VAR_KEYWORD
    }


_SCALARS: Final[dict[Any, tuple[Any, str]]] = {
    bool: (bool | np.bool_, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    Path: (os.PathLike, "a path"),
    None: (NoneType, "None"),
    NoneType: (NoneType, "None"),
}
"""Types of arguments with the types that count as such, and their names in messages."""


def _fits(value: Any, kind: Any) -> bool:
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in kinds)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in kinds)
    if kind in _SCALARS:
        return isinstance(value, _SCALARS[kind][0]) and _is_usable(value, kind)
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        if kinds[1:] == (Ellipsis,):
            kinds = kinds[:1] * len(value)
        return len(value) == len(kinds) and all(map(_fits, value, kinds))
    if isinstance(origin, type):
        return isinstance(value, origin) and _fits_parts(value, origin, kinds)
    try:
        return isinstance(value, kind)
    except TypeError:  # no class: a name in quotes, a type variable, `Any`
        return True


def _is_usable(value: Any, kind: Any) -> bool:
    """Whether a number is one that a float can hold, and a path one that systems open."""
    if kind is not float:
        return kind not in (str, Path) or "\0" not in str(value)
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _fits_parts(value: Any, origin: type, kinds: tuple[Any, ...]) -> bool:
    """Whether the elements of a collection fit, if they can be read without using it up."""
    if isinstance(value, np.ndarray):
        return not is_zero_dim(value)
    if issubclass(origin, Mapping):
        return len(kinds) != 2 or all(_fits(element, kinds[0]) for element in value)
    if len(kinds) == 1 and isinstance(value, list | tuple | set | frozenset):
        return isinstance(kinds[0], TypeVar) or all(_fits(element, kinds[0]) for element in value)
    return True


def _words(kind: Any) -> list[str]:
    """Return the accepted values, in words."""
    origin = get_origin(kind)
    inside = [word for part in get_args(kind) if origin is not Literal for word in _words(part)]
    if origin in (Union, UnionType):
        return list(dict.fromkeys(inside))
    if origin is Literal:
        return [repr(choice) for choice in get_args(kind)]
    if origin is tuple:
        return [f"a tuple of {' and '.join(inside)}"]
    if isinstance(kind, type | None) and kind in _SCALARS:
        return [_SCALARS[kind][1]]
    if origin is not None and issubclass(origin, Iterable):
        return [f"a {'mapping' if issubclass(origin, Mapping) else 'list'} of {_either(inside)}"]
    named = origin if isinstance(origin, type) else kind
    return ["a function" if named is Callable else f"a {getattr(named, '__name__', named)}"]


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


# --- Limits -------------------------------------------------------------------------------------

EXPANSION: Final = 200
"""Compressed files may always hold this many times their size: honest traces stay below."""

_DEFAULTS: Final = {
    "line_bytes": 256 << 20,
    "decompressed_bytes": 1 << 30,
    "labels": 1 << 20,
    "table_bytes": 2 << 30,
}
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
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
    """Return the current limit: from `Limits`, else the environment, else the default."""
    for limits in reversed(_raised):
        if (bound := getattr(limits, name)) is not None:
            return int(bound)
    variable = _variable(name)
    text = os.environ.get(variable)
    if text is None:
        return _DEFAULTS[name]
    match = re.fullmatch(r"\s*0*([1-9][0-9]{0,17})([KMGT]?)\s*", text, re.IGNORECASE)
    if match is None:
        raise OptionError(f"{variable}={text!r} is no limit: use a number such as 5000000 or 8G")
    return int(match[1]) << _UNITS[match[2].upper()]


def check_limit(name: str, requested: int, what: str, advice: str = "") -> None:
    """Raise `TooLarge` if a request exceeds a limit.

    `what` names the request, as a subject with its verb, and `advice` the remedies other than
    raising the limit.
    """
    most = limit(name)
    if requested > most:
        bound = bytes_text(most) if name.endswith("_bytes") else f"{most:,}"
        raise TooLarge(
            f"{what} more than the limit of {bound}: {advice}{how_to_raise(name, requested)}"
        )


def check_table(rows: int, columns: int, bytes_each: int, what: str) -> None:
    """Raise `TooLarge` if a table of this size takes more memory than the limit."""
    requested = rows * columns * bytes_each
    size = f"{rows:,} by {columns:,}, take {bytes_text(requested)}"
    check_limit("table_bytes", requested, f"{what}, {size},")


def check_expansion(name: str, held: int, size: int) -> None:
    """Raise `TooLarge` if a file holds far more bytes than its own size, and than the limit."""
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


def _variable(name: str) -> str:
    return f"RESOLVENT_MAX_{name.upper()}"


@contextmanager
def explain_memory_errors(work: str) -> Iterator[None]:
    """Report that memory ran out, rather than that a file is damaged."""
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
    """Write a number of bytes in a suitable unit."""
    if number < 1 << 10:
        return f"{number} bytes"
    unit, shift = [pair for pair in _UNITS.items() if number >= 1 << pair[1]][-1]
    return f"{number / (1 << shift):.3g} {unit}iB"
