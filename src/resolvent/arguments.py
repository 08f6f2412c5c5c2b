"""What a public call is given → refused in one line where it is not what its signature says."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np

from resolvent.errors import OptionError
from resolvent.wording import short

_MANY = (Iterable, Mapping)


def check_arguments(
    function: Callable[..., object], given: Mapping[str, Any], *, leaving: Iterable[str] = ()
) -> None:
    """Refuse arguments that are of other types than the signature of their function says.

    `given` holds them by name: `locals()`, at the beginning of the function. Those in `leaving`
    are for the function to judge. Numbers of NumPy count as numbers, lists as tuples; what a
    signature gives a name in quotes for, or `Any`, is taken as it is.

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
        if name in given and name not in leaving and not _fits(given[name], kind):
            raise OptionError(f"{name}={shown(given[name])}: give {_either(_words(kind))}")


def shown(value: object) -> str:
    """Write any value in one short line, even one that cannot write itself.

    >>> shown([1, 2]), shown("a" * 200)[:5]
    ('[1, 2]', "'aaaa")
    """
    try:
        return short(repr(value), 80)
    except Exception:  # whatever a stranger's object does
        return f"a {type(value).__name__}"


def is_single(value: object) -> bool:
    """Whether a value says that it can be gone through, and cannot: an array of one number.

    >>> is_single(np.array(3)), is_single(np.array([3]))
    (True, False)
    """
    return isinstance(value, np.ndarray) and value.ndim == 0


def needs_arguments(function: Callable[..., object]) -> bool:
    """Whether a function cannot be called with nothing, as far as its signature says.

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
        one.name: one.annotation
        for one in parameters
        if one.annotation is not one.empty and one.kind is not one.VAR_KEYWORD
    }


def _fits(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in get_args(kind))
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
        return all(_fits(one, kinds[0]) for one in value)
    return len(value) == len(kinds) and all(map(_fits, value, kinds))


def _fits_parts(value: Any, origin: type, kinds: tuple[Any, ...]) -> bool:
    """Whether what is in a collection fits, as far as it can be looked at without using it up."""
    if isinstance(value, np.ndarray):
        return not is_single(value)
    if issubclass(origin, Mapping):
        return len(kinds) != 2 or all(_fits(one, kinds[0]) for one in value)
    if len(kinds) == 1 and isinstance(value, list | tuple | set | frozenset):
        return isinstance(kinds[0], TypeVar) or all(_fits(one, kinds[0]) for one in value)
    return True


def _is_in_range(number: Any) -> bool:
    try:
        float(number)
    except OverflowError:
        return False
    return True


_SAID = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    None: "None",
    NoneType: "None",
}


def _words(kind: Any) -> list[str]:
    """Return what may be given, in words."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return list(dict.fromkeys(word for one in get_args(kind) for word in _words(one)))
    if origin is Literal:
        return [repr(one) for one in get_args(kind)]
    if origin is tuple:
        return ["a tuple of " + " and ".join(w for one in get_args(kind) for w in _words(one))]
    if isinstance(kind, type) and kind in _SAID:
        return [_SAID[kind]]
    if kind is None:
        return ["None"]
    if origin is not None and issubclass(origin, _MANY):
        inside = [word for one in get_args(kind) for word in _words(one)]
        return [f"a {'mapping' if issubclass(origin, Mapping) else 'list'} of {_either(inside)}"]
    named = origin if isinstance(origin, type) else kind
    return ["a function" if named is Callable else f"a {getattr(named, '__name__', named)}"]


def _either(words: list[str]) -> str:
    return words[-1] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
