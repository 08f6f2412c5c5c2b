"""Symbols and labels: any observation, action or set of events → one hashable value.

A symbol is a bool, int, finite float, string, or a tuple of symbols, so that it
survives JSON. A label is a frozenset of proposition names; the empty set is
"no event".
"""

import enum
import hashlib
import math
from collections.abc import Collection, Hashable, Mapping
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.arguments import shown
from resolvent.errors import TraceError
from resolvent.wording import visible

Symbol: TypeAlias = Hashable
Label: TypeAlias = frozenset[str]

NO_EVENT: Label = frozenset()
NO_EVENT_TEXT = "no event"

INFO_KEYS = ("labels", "label", "events")
"""Where environments put labels in their infos; the first that is there counts."""

DEEPEST = 100
"""Tuples within each other that a symbol may be made of: far below what Python can write out."""

_COLLECTIONS = (frozenset, set, list, tuple, np.ndarray)  # named: a union is built at every call
_NUMBERS = {int, float, bool}
_FEW = 12
"""Numbers up to which a row of them is written out, however long they are."""
_LINE = 60
"""Characters up to which a symbol is written out."""
_RANKS = {bool: 0, int: 1, float: 2, str: 3, tuple: 4}


def as_symbol(value: Any, depth: int = 0) -> Symbol:
    """Turn an observation or action into the symbol that stands for it.

    NumPy arrays and lists become nested tuples, mappings become tuples of
    (key, value) pairs in key order, enum members become their values. Of a named tuple,
    such as a graph of Gymnasium's, parts that are None are left out. `depth` says how many
    others it lies within.

    >>> as_symbol(np.array([[1, 2], [3, 4]]))
    ((1, 2), (3, 4))
    >>> as_symbol({"image": [0, 1], "direction": np.int64(3)})
    (('direction', 3), ('image', (0, 1)))
    """
    kind = type(value)
    if kind is int or kind is bool or (kind is str and value.isascii()):
        return value  # type: ignore[no-any-return]
    if isinstance(value, enum.Enum):
        return as_symbol(value.value, depth)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.ndim:
        return _symbol_of_array(value)
    if isinstance(value, np.generic | np.ndarray):
        return as_symbol(value.tolist(), depth)
    if isinstance(value, tuple | list):
        _check_depth(depth)
        if hasattr(value, "_fields"):  # a graph without edges has None there
            value = [part for part in value if part is not None]
        return tuple(map(as_symbol, value, repeat(depth + 1)))
    if isinstance(value, Mapping):
        _check_depth(depth)
        if not all(isinstance(key, str) for key in value):
            raise TraceError("a mapping can be a symbol only when its keys are strings")
        return tuple((key, as_symbol(value[key], depth + 1)) for key in sorted(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TraceError(f"{value} cannot be a symbol: it does not survive JSON")
        return float(value) + 0.0  # one zero, not two
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, int):
        return int(value)
    raise TraceError(
        f"a {kind.__name__} cannot be a symbol: use bool, int, float, str, or tuples of these"
    )


def _check_depth(depth: int) -> None:
    if depth >= DEEPEST:
        raise TraceError(
            f"a value is nested more than {DEEPEST} deep: flatten it, or give it a name of its own"
        )


def _symbol_of_array(array: NDArray[Any]) -> Symbol:
    """Turn numbers into nested tuples, all at once, for images have many."""
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            return as_symbol(array[~finite][0])  # which it refuses
        array = array + 0.0  # one zero, not two
    return _nested(array.tolist(), array.ndim)


def _nested(rows: list[Any], depth: int) -> tuple[Any, ...]:
    return tuple(rows) if depth == 1 else tuple(_nested(row, depth - 1) for row in rows)


def as_label(value: Any) -> Label:
    """Turn what an environment or a file calls a label into a set of propositions.

    A tuple has an order, and so have the numbers of an array: two or more of them are one
    proposition, in that order.

    >>> sorted(as_label(["key", "door"])), as_label("key"), as_label(None), as_label(3)
    (['door', 'key'], frozenset({'key'}), frozenset(), frozenset({'3'}))
    >>> as_label((1, 2)), as_label((2, 1))
    (frozenset({'(1, 2)'}), frozenset({'(2, 1)'}))
    """
    if value is None:
        return NO_EVENT
    kind = type(value)
    if kind is str:
        return frozenset((_as_proposition(value),))
    if kind is frozenset or kind is set:
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
            f"{shown(value)} cannot be a proposition of a label: use strings, such as {{'key'}}"
        )
    if not value:
        raise TraceError(
            "a proposition of a label is the empty string: give it a name, or none at all ([]) "
            "where nothing happens"
        )
    return _encodable(value)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TraceError(f"{text!r} is not valid Unicode: it does not survive JSON") from None
    return str(text)


def label_text(label: Label) -> str:
    """Write a label for people: its propositions, or "no event" for the empty set.

    What would not show, or change the terminal it shows on, is written out.

    >>> label_text(frozenset({"key"})), label_text(frozenset({"b", "a"})), label_text(frozenset())
    ('key', 'a & b', 'no event')
    """
    return visible(" & ".join(sorted(label))) if label else NO_EVENT_TEXT


def symbol_text(symbol: Symbol) -> str:
    """Write a symbol for people: strings bare, everything else as Python does.

    What would be longer than a line has a short name instead, the same wherever it is
    met: the kind of thing, some digits that tell it from others, and its shape. What
    would not show, or change the terminal it shows on, is written out.

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
    few = isinstance(symbol, tuple) and len(symbol) <= _FEW and set(map(type, symbol)) <= _NUMBERS
    return visible(text if few or len(text) <= _LINE else _short_name(symbol, text))


def quoted_text(symbol: Symbol) -> str:
    """Write a symbol as `symbol_text` does, strings in quotes.

    >>> quoted_text("corridor"), quoted_text(7), quoted_text((0,) * 40)
    ("'corridor'", '7', 'row#b990af7155 (40)')
    """
    return symbol_text(symbol) if isinstance(symbol, tuple) else repr(symbol)


def event_text(symbol: Symbol) -> str:
    """Write a symbol as the name of an event: two symbols that differ have different names.

    >>> event_text("corridor"), event_text(7), event_text("7")
    ('corridor', '7', "'7'")
    """
    if not isinstance(symbol, str):
        return symbol_text(symbol)
    number = symbol[:1] in "-+0123456789" and "…" not in symbol  # which intervals are named with
    looks_otherwise = number or symbol[:1] in "({'\"" or symbol in ("True", "False")
    return repr(symbol) if looks_otherwise or "#" in symbol or "→" in symbol else symbol


def array_shape(symbol: Symbol) -> tuple[int, ...] | None:
    """Return the shape of the array of numbers that a symbol was; None if it was something else.

    >>> array_shape(((1, 2), (3, 4), (5, 6))), array_shape((1, (2, 3))), array_shape(1)
    ((3, 2), None, None)
    """
    array = as_array(symbol)
    return None if array is None else array.shape


def as_array(symbol: Symbol) -> NDArray[Any] | None:
    """Return the array of numbers that a symbol was; None if it was something else.

    >>> as_array(((1, 2), (3, 4))).sum(), as_array(("a", 1)), as_array(())
    (np.int64(10), None, None)
    """
    if not isinstance(symbol, tuple):
        return None
    try:
        array = np.array(symbol)
    except (ValueError, OverflowError):  # rows of different lengths
        return None
    # Numbers beyond 64 bits are objects, as are tuples of tuples and numbers.
    return array if array.dtype.kind in "biuf" and array.size else None


def is_mapping(symbol: Symbol) -> bool:
    """Whether a symbol was a mapping: a tuple of pairs, each of which begins with a key.

    >>> is_mapping(as_symbol({"direction": 3})), is_mapping((1, 2)), is_mapping(())
    (True, False, False)
    """
    return (
        isinstance(symbol, tuple)
        and len(symbol) > 0
        and all(
            isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in symbol
        )
    )


def _short_name(symbol: Any, text: str) -> str:
    """Name a symbol whose text is too long; the text makes it different from all others."""
    digits = hashlib.blake2b(text.encode(), digest_size=5).hexdigest()
    if isinstance(symbol, str):
        return f"text#{digits} ({len(symbol)} characters)"
    shape = array_shape(symbol)
    if shape is not None:
        kind = {1: "row", 2: "image", 3: "image"}.get(len(shape), "array")
        return f"{kind}#{digits} ({'×'.join(map(str, shape))})"
    if not isinstance(symbol, tuple):  # a very long number
        return f"number#{digits} ({len(text)} digits)"
    if is_mapping(symbol):
        named = "{" + ", ".join(f"{key}: {_part_text(value)}" for key, value in symbol) + "}"
    else:
        named = f"({', '.join(map(_part_text, symbol))})"
    return named if len(named) <= 2 * _LINE else f"tuple#{digits} ({len(symbol)} parts)"


def _part_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LINE else _short_name(value, text)


def symbol_order(symbol: Any) -> tuple[Any, ...]:
    """Sort key that orders all symbols, whatever their types.

    >>> sorted([(1, "b"), (1, 2), (0, "z")], key=symbol_order)
    [(0, 'z'), (1, 2), (1, 'b')]
    """
    if isinstance(symbol, tuple):
        return (_RANKS[tuple], tuple(map(symbol_order, symbol)))
    return (_RANKS[type(symbol)], symbol)


def label_order(label: Label) -> tuple[int, tuple[str, ...]]:
    """Sort key for labels: fewer propositions first, then by name."""
    return (len(label), tuple(label if len(label) < 2 else sorted(label)))


def in_writing(label: Label) -> Collection[str]:
    """Return the propositions as files list them, in order.

    Of very many labels nearly all have one proposition: those are lists as they are.

    >>> in_writing(frozenset({"key", "door"})), in_writing(frozenset({"key"}))
    (['door', 'key'], frozenset({'key'}))
    """
    return label if len(label) < 2 else sorted(label)
