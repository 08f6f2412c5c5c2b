"""Two symbols whose names are short → words that say where they differ.

An image or a Dict is told by a name, not written out: that two names differ says
nothing to a reader, who wants to know which pixel or which key made the difference.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias

from resolvent.traces.symbols import Symbol, array_shape, is_mapping, symbol_text
from resolvent.wording import short

_MOST_SHOWN = 3
_LONGEST = 40
"""Characters of a value, which may be a long text."""

Place: TypeAlias = tuple[Any, ...]
"""How to get from a symbol to one of its parts: keys and indices, from the outside in."""


def difference_text(one: Symbol, other: Symbol) -> str:
    """Say in which places two symbols differ; nothing where both can be read in full anyway.

    >>> difference_text(((0,) * 40), ((0,) * 39 + (5,)))
    'differ in 1 of 40 places: [39] is 0 and 5'
    >>> room = {"image": ((0,) * 7,) * 7, "direction": 3}
    >>> from resolvent.traces.symbols import as_symbol
    >>> difference_text(as_symbol(room), as_symbol(room | {"direction": 1}))
    'differ in 1 of 50 places: direction is 3 and 1'
    >>> difference_text(((0, 0),) * 40, ((0, 0),) * 39 + ((0, 0, 1),))
    'differ in 1 of 79 places: [39] is (0, 0) and (0, 0, 1)'
    >>> difference_text((1, 2), (1, 3))
    ''
    """
    if one == other or not isinstance(one, tuple) or not isinstance(other, tuple):
        return ""
    if all(symbol_text(symbol) == repr(symbol) for symbol in (one, other)):
        return ""
    if _parts(one, other) is None:
        return f"differ in form: {_form(one)} and {_form(other)}"
    pairs = list(_leaves(one, other, ()))
    differing = [leaf for leaf in pairs if leaf[1] != leaf[2]]
    told = [
        f"{place_text(place)} is {_value_text(first)} and {_value_text(second)}"
        for place, first, second in islice(differing, _MOST_SHOWN)
    ]
    more = [f"and {len(differing) - _MOST_SHOWN:,} more"] * (len(differing) > _MOST_SHOWN)
    counted = f"{len(differing):,} of {len(pairs):,} places"
    return f"differ in {counted}: {', '.join([*told, *more])}"


def place_text(place: Place) -> str:
    """Write a place within a symbol, keys with dots and indices in brackets.

    >>> place_text((3, 2, 0)), place_text(("image", 3, 2)), place_text(("robot", "arm"))
    ('[3, 2, 0]', 'image[3, 2]', 'robot.arm')
    """
    text, indices = "", list[str]()
    for step in place:
        if isinstance(step, int):
            indices.append(str(step))
            continue
        text += f"[{', '.join(indices)}]" if indices else ""
        indices = []
        text += f".{short(step)}" if text else short(step)
    return text + (f"[{', '.join(indices)}]" if indices else "")


def _leaves(one: Any, other: Any, place: Place) -> Iterator[tuple[Place, Any, Any]]:
    """Yield the parts of both that are in the same place, down to where their forms differ."""
    parts = _parts(one, other)
    if parts is None:
        yield place, one, other
        return
    for step, first, second in parts:
        yield from _leaves(first, second, (*place, step))


def _parts(one: Any, other: Any) -> list[tuple[Any, Any, Any]] | None:
    """Return the parts of two symbols side by side; None if they are values or differ in form."""
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return None
    if len(one) != len(other) or not one or is_mapping(one) != is_mapping(other):
        return None
    if not is_mapping(one):
        return list(zip(range(len(one)), one, other, strict=True))
    if [key for key, _ in one] != [key for key, _ in other]:
        return None
    return [(key, first, second) for (key, first), (_, second) in zip(one, other, strict=True)]


def _form(symbol: Any) -> str:
    if is_mapping(symbol):
        return f"the keys {', '.join(short(key, _LONGEST) for key, _ in symbol[:6])}"
    shape = array_shape(symbol)
    return f"{len(symbol):,} parts" if shape is None else "×".join(map(str, shape))


def _value_text(value: Any) -> str:
    return short(repr(value) if isinstance(value, str) else symbol_text(value), _LONGEST)
