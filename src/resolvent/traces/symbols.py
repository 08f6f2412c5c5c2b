"""Symbols and labels: any observation, action or set of events → one hashable value.

A symbol is a bool, int, finite float, string, or a tuple of symbols, so that it survives JSON. A
label is a frozenset of proposition names; the empty set is "no event".
"""

import enum
import hashlib
import inspect
import math
import reprlib
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from itertools import groupby, islice, repeat
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import short, visible
from resolvent._util.validation import quoted
from resolvent.errors import OptionError, TraceError

T = TypeVar("T")

Symbol: TypeAlias = Hashable
Label: TypeAlias = frozenset[str]

ONE = ("observation",)
STEP = ("observation", "action", "next_observation")
STEP_AND_INFO = ("observation", "action", "reward", "next_observation", "info")
"""Parameters of a labeling function; at a reset those of the step before are None."""

_SIGNATURES = " or ".join(f"({', '.join(names)})" for names in (ONE, STEP, STEP_AND_INFO))
PartPath: TypeAlias = tuple[Any, ...]  # keys and indices of a part, from the outside in
NO_EVENT: Label = frozenset()
NO_EVENT_TEXT = "no event"
INFO_KEYS = ("labels", "label", "events")  # keys of infos with labels, by precedence
DEEPEST = 100  # maximum depth of nested tuples: far below Python's limit for printing them
_COLLECTIONS = (frozenset, set, list, tuple, np.ndarray)  # named: a union is built at every call
_NUMBERS = {int, float, bool}
_RANKS = {bool: 0, int: 1, float: 2, str: 3, tuple: 4}
_SHORT_ROW = 12  # maximum number of numbers in a row that is always printed in full
_LINE = 60  # maximum number of characters of a symbol that is printed in full
_DIFFERENCES_SHOWN = 3
_DIFFERENCE_CHARACTERS = 40  # at most, of a differing value, which may be a long text


def as_symbol(value: Any, depth: int = 0) -> Symbol:
    """Convert an observation or action to a symbol.

    NumPy arrays and lists become nested tuples, mappings become tuples of
    (key, value) pairs in key order, enum members become their values. Fields of a named
    tuple that are None, such as the edges of a Gymnasium graph, are left out. `depth` is
    the number of collections that enclose the value.

    >>> as_symbol(np.array([[1, 2], [3, 4]]))
    ((1, 2), (3, 4))
    >>> as_symbol({"image": [0, 1], "direction": np.int64(3)})
    (('direction', 3), ('image', (0, 1)))
    """
    value_type = type(value)
    if value_type is int or value_type is bool or (value_type is str and value.isascii()):
        return value  # type: ignore[no-any-return]
    if isinstance(value, enum.Enum):
        return as_symbol(value.value, depth)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.ndim:
        return _symbol_of_array(value)
    if isinstance(value, np.generic | np.ndarray):
        return as_symbol(value.tolist(), depth)
    if isinstance(value, tuple | list | Mapping) and depth >= DEEPEST:
        raise TraceError(
            f"a value is nested more than {DEEPEST} deep: flatten it, or give it a name of its own"
        )
    if isinstance(value, tuple | list):
        if hasattr(value, "_fields"):  # a graph without edges has None there
            value = [part for part in value if part is not None]
        return tuple(map(as_symbol, value, repeat(depth + 1)))
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TraceError("a mapping can be a symbol only when its keys are strings")
        return tuple((key, as_symbol(value[key], depth + 1)) for key in sorted(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TraceError(f"{value} cannot be a symbol: it does not survive JSON")
        return float(value) + 0.0  # turns -0.0 into 0.0
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, int):
        return int(value)
    raise TraceError(
        f"a {value_type.__name__} cannot be a symbol: use bool, int, float, str, or tuples of these"
    )


def _symbol_of_array(array: NDArray[Any]) -> Symbol:
    """Convert an array of numbers without a Python call for each of them."""
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            return as_symbol(array[~finite][0])  # raises the error
        array = array + 0.0  # turns -0.0 into 0.0
    return _nested(array.tolist(), array.ndim)


def _nested(rows: list[Any], depth: int) -> tuple[Any, ...]:
    return tuple(rows) if depth == 1 else tuple(_nested(row, depth - 1) for row in rows)


def as_label(value: Any) -> Label:
    """Convert a label of an environment or a file to a set of propositions.

    Tuples and arrays of numbers are ordered: two or more elements are one proposition,
    which keeps their order.

    >>> sorted(as_label(["key", "door"])), as_label("key"), as_label(None), as_label(3)
    (['door', 'key'], frozenset({'key'}), frozenset(), frozenset({'3'}))
    >>> as_label((1, 2)), as_label((2, 1))
    (frozenset({'(1, 2)'}), frozenset({'(2, 1)'}))
    """
    if value is None:
        return NO_EVENT
    value_type = type(value)
    if value_type is str:
        return frozenset((_as_proposition(value),))
    if value_type is frozenset or value_type is set:
        return frozenset(map(_as_proposition, value))
    if isinstance(value, np.ndarray) and not value.ndim:
        return as_label(value.item())
    if isinstance(value, _COLLECTIONS):
        ordered = type(value) is tuple or (type(value) is np.ndarray and value.dtype.kind in "biuf")
        if ordered and len(value) > 1:
            return frozenset((event_text(as_symbol(value)),))
        return frozenset(map(_as_proposition, value))
    return frozenset((_as_proposition(value),))


def _as_proposition(value: Any) -> str:
    if type(value) is str and value and value.isascii():
        return value
    if isinstance(value, enum.Enum):
        value = value.name
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str):
        raise TraceError(
            f"{quoted(value)} cannot be a proposition of a label: use strings, such as {{'key'}}"
        )
    if not value:
        raise TraceError(
            "a proposition of a label is the empty string: give it a name, or none at all ([]) "
            "where nothing happens"
        )
    return _encodable(value)


def finite_reward(value: Any) -> float:
    """Return a reward as a finite float."""
    try:
        reward = float(value) + 0.0  # turns -0.0 into 0.0
    except (TypeError, ValueError, OverflowError):
        raise TraceError(f"the reward is {quoted(value)}; rewards must be numbers") from None
    if not math.isfinite(reward):
        raise TraceError(f"the reward is {reward}; rewards must be finite")
    return reward


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TraceError(f"{text!r} is not valid Unicode: it does not survive JSON") from None
    return str(text)


def label_text(label: Label) -> str:
    """Return a label as text: its propositions, or "no event" for the empty set.

    Invisible and control characters are escaped.

    >>> label_text(frozenset({"key"})), label_text(frozenset({"b", "a"})), label_text(frozenset())
    ('key', 'a & b', 'no event')
    """
    return visible(" & ".join(sorted(label))) if label else NO_EVENT_TEXT


def symbol_text(symbol: Symbol) -> str:
    """Return a symbol as text: strings bare, everything else as Python prints it.

    A symbol longer than a line gets a short name that depends on the symbol alone: its kind,
    a few hash digits, and its shape. Invisible and control characters are escaped.

    >>> symbol_text("corridor"), symbol_text((1, 2)), symbol_text(0.5)
    ('corridor', '(1, 2)', '0.5')
    >>> symbol_text(as_symbol(np.zeros((7, 7, 3), int)))
    'image#f186cf2d02 (7×7×3)'
    >>> symbol_text(as_symbol({"image": np.zeros((7, 7, 3), int), "direction": 3}))
    '{direction: 3, image: image#f186cf2d02 (7×7×3)}'
    """
    if isinstance(symbol, str):
        return visible(symbol)
    text = repr(symbol)
    is_short_row = (
        isinstance(symbol, tuple)
        and len(symbol) <= _SHORT_ROW
        and set(map(type, symbol)) <= _NUMBERS
    )
    return visible(text if is_short_row or len(text) <= _LINE else _short_name(symbol, text))


def quoted_text(symbol: Symbol) -> str:
    """Return a symbol as `symbol_text` does, but strings in quotes."""
    return symbol_text(symbol) if isinstance(symbol, tuple) else repr(symbol)


def event_text(symbol: Symbol) -> str:
    """Return the name of a symbol as an event; different symbols have different names."""
    if not isinstance(symbol, str):
        return symbol_text(symbol)
    is_number = symbol[:1] in "-+0123456789" and "…" not in symbol  # names of intervals have "…"
    looks_like_python = is_number or symbol[:1] in "({'\"" or symbol in ("True", "False")
    return repr(symbol) if looks_like_python or "#" in symbol or "→" in symbol else symbol


def as_array(symbol: Symbol) -> NDArray[Any] | None:
    """Return a symbol that was an array of numbers as an array; None for other symbols."""
    if not isinstance(symbol, tuple):
        return None
    try:
        array = np.array(symbol)
    except (ValueError, OverflowError):  # rows of different lengths
        return None
    # Numbers beyond 64 bits are objects, as are tuples of tuples and numbers.
    return array if array.dtype.kind in "biuf" and array.size else None


def is_mapping(symbol: Symbol) -> bool:
    """Return whether a symbol was a mapping: a tuple of pairs that begin with a string key."""
    if not isinstance(symbol, tuple) or not symbol:
        return False
    return all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in symbol
    )


def _short_name(symbol: Any, text: str) -> str:
    """Return the short name of a symbol with a long text, which identifies it."""
    digits = hashlib.blake2b(text.encode(), digest_size=5).hexdigest()
    if isinstance(symbol, str):
        return f"text#{digits} ({len(symbol)} characters)"
    array = as_array(symbol)
    if array is not None:
        noun = {1: "row", 2: "image", 3: "image"}.get(array.ndim, "array")
        return f"{noun}#{digits} ({'×'.join(map(str, array.shape))})"
    if not isinstance(symbol, tuple):  # a very long number
        return f"number#{digits} ({len(text)} digits)"
    if is_mapping(symbol):
        parts = "{" + ", ".join(f"{key}: {_part_text(value)}" for key, value in symbol) + "}"
    else:
        parts = f"({', '.join(map(_part_text, symbol))})"
    return parts if len(parts) <= 2 * _LINE else f"tuple#{digits} ({len(symbol)} parts)"


def _part_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LINE else _short_name(value, text)


def symbol_order(symbol: Any) -> tuple[Any, ...]:
    """Return a sort key that orders symbols of all types.

    >>> sorted([(1, "b"), (1, 2), (0, "z")], key=symbol_order)
    [(0, 'z'), (1, 2), (1, 'b')]
    """
    if isinstance(symbol, tuple):
        return (_RANKS[tuple], tuple(map(symbol_order, symbol)))
    return (_RANKS[type(symbol)], symbol)


def label_order(label: Label) -> tuple[int, tuple[str, ...]]:
    """Return a sort key for labels: fewer propositions first, then by name."""
    return (len(label), tuple(ordered_propositions(label)))


def ordered_propositions(label: Label) -> Collection[str]:
    """Return the propositions of a label in the order of files."""
    return label if len(label) < 2 else sorted(label)  # one of very many labels is the usual case


def difference_text(first: Symbol, second: Symbol) -> str:
    """Describe where two symbols differ; empty if both are printed in full anyway.

    Short names of images and Dicts do not name the pixel or key that differs.
    """
    if first == second or not isinstance(first, tuple) or not isinstance(second, tuple):
        return ""
    if all(symbol_text(symbol) == repr(symbol) for symbol in (first, second)):
        return ""
    if _keys(first) != _keys(second):
        return f"differ in form: {_form(first)} and {_form(second)}"
    pairs = list(_paired_values(first, second, ()))
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    texts = [
        f"{path_text(path)} is {_short_value(left)} and {_short_value(right)}"
        for path, left, right in islice(differing, _DIFFERENCES_SHOWN)
    ]
    if len(differing) > _DIFFERENCES_SHOWN:
        texts.append(f"and {len(differing) - _DIFFERENCES_SHOWN:,} more")
    return f"differ in {len(differing):,} of {len(pairs):,} values: {', '.join(texts)}"


def path_text(path: PartPath) -> str:
    """Return the text of a path within a symbol, as `robot.arm[3, 2]`."""
    text = ""
    for is_index, keys in groupby(path, lambda key: isinstance(key, int)):
        if is_index:
            text += f"[{', '.join(map(str, keys))}]"
        else:
            text += f"{'.' if text else ''}{'.'.join(map(short, keys))}"
    return text


def _paired_values(first: Any, second: Any, path: PartPath) -> Iterator[tuple[PartPath, Any, Any]]:
    """Yield the values of both symbols at each path, down to where their forms differ."""
    keys = _keys(first)
    if not keys or keys != _keys(second):
        yield path, first, second
        return
    for key, (_, left), (_, right) in zip(keys, _items(first), _items(second), strict=True):
        yield from _paired_values(left, right, (*path, key))


def _keys(symbol: Any) -> list[Any]:
    return [key for key, _ in _items(symbol)]


def _items(symbol: Any) -> list[Any]:
    """Return the pairs of a mapping, or of index and part of another tuple; none for others."""
    if is_mapping(symbol):
        return list(symbol)
    return list(enumerate(symbol)) if isinstance(symbol, tuple) else []


def _form(symbol: Any) -> str:
    if is_mapping(symbol):
        keys = ", ".join(short(key, _DIFFERENCE_CHARACTERS) for key, _ in symbol[:6])
        return f"the keys {keys}"
    array = as_array(symbol)
    return f"{len(symbol):,} parts" if array is None else "×".join(map(str, array.shape))


def _short_value(value: Any) -> str:
    return short(quoted_text(value), _DIFFERENCE_CHARACTERS)


# --- Labeling functions -------------------------------------------------------------------------


class LabelFunction:
    """Calls a labeling function with what it `reads`; if `checked`, errors show the call."""

    def __init__(self, labeling_fn: Callable[..., Any], *, checked: bool = True) -> None:
        self._labeling_fn, self._checked = labeling_fn, checked
        self.reads = parameters_of(labeling_fn)

    @property
    def of_step(self) -> bool:
        """Whether labels depend on more than the observation that a step led to."""
        return len(self.reads) > 1

    def at_reset(self, observation: Any, info: Mapping[str, Any]) -> Label:
        """Return the label of an episode's first observation."""
        if self.reads == STEP:
            return NO_EVENT
        return self.after_step(None, None, None, observation, info)

    def after_step(
        self,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any,
        info: Mapping[str, Any],
    ) -> Label:
        """Return the label of the observation that a step led to."""
        arguments: tuple[Any, ...] = (next_observation,)
        if self.reads == STEP:
            arguments = (observation, action, next_observation)
        elif self.reads == STEP_AND_INFO:
            arguments = (observation, action, reward, next_observation, info)
        if not self._checked:
            return self._labeling_fn(*arguments)  # type: ignore[no-any-return]
        return checked_call("labeling_fn", self._labeling_fn, arguments, as_label)


def checked_call(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], convert: Callable[[Any], T]
) -> T:
    """Call a user's function and convert its result; a `TraceError` shows the call."""
    try:
        result = function(*arguments)
    except Exception as error:
        raise TraceError(f"{_call_text(name, arguments)} raised {error_text(error)}") from error
    try:
        return convert(result)
    except TraceError as error:
        call = _call_text(name, arguments)
        raise TraceError(f"{call} gave {reprlib.repr(result)}: {error}") from error


def error_text(error: BaseException) -> str:
    """Return an exception that a user's code raised as one line."""
    return f"{type(error).__name__}: {short(str(error), 400)}".removesuffix(": ")


def parameters_of(labeling_fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameters of a labeling function: `ONE`, `STEP` or `STEP_AND_INFO`."""
    if not callable(labeling_fn):
        raise OptionError(
            f"labeling_fn is a {type(labeling_fn).__name__}: give a function of {_SIGNATURES}"
        )
    try:
        parameters = inspect.signature(labeling_fn).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return ONE
    # Parameters with defaults are often constants bound to a lambda, so they do not count.
    required = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    signatures = {0: ONE, **{len(names): names for names in (ONE, STEP, STEP_AND_INFO)}}
    if len(required) not in signatures:
        raise OptionError(f"labeling_fn has {len(required)} parameters: give it {_SIGNATURES}")
    return signatures[len(required)]


def _call_text(name: str, arguments: tuple[Any, ...]) -> str:
    return f"{name}({', '.join(map(reprlib.repr, arguments))})"
