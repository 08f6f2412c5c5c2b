"""Plain data ↔ bytes: numbers, texts, arrays, collections, and records of kinds that are named.

What comes back is equal to what went in, type by type: 1, 1.0 and True stay three things. Bytes
can make no object but of the kinds that a reader asks for, so they may come from anywhere.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec
import numpy as np

from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Vocabulary

_PLAIN = {type(None), bool, float, str, bytes}
NameOf = Callable[[type], str]
"""What a kind of records is called, or an error if it is not known."""

_NUMBERS = re.compile(r"[<>|][biufcSUV][0-9]{1,9}")
"""What NumPy calls a kind of numbers or texts."""

_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Packing:
    """Plain data ↔ bytes, with records of some kinds: dataclasses, named tuples, enumerations.

    >>> packing = Packing()
    >>> packing.unpack(packing.pack({"a": (1, 1.0, frozenset("b"))}))
    {'a': (1, 1.0, frozenset({'b'}))}
    >>> packing.unpack(packing.pack(np.arange(3, dtype=np.int16)))
    array([0, 1, 2], dtype=int16)
    """

    kinds: tuple[type, ...] = ()

    def pack(self, value: Any) -> bytes:
        """Return a value as bytes; `TypeError` if it is not plain, or of no kind that is known."""
        known = {*self.kinds}

        def name_of(kind: type) -> str:
            if kind not in known:
                raise TypeError(f"a {kind.__name__} is no plain data")
            return kind.__name__

        return msgspec.msgpack.encode(_packed(value, name_of))

    def unpack(self, content: bytes) -> Any:
        """Return the value that bytes stand for; `ValueError` if they stand for none."""
        named = {kind.__name__: kind for kind in self.kinds}
        try:
            return _unpacked(msgspec.msgpack.decode(content), named)
        except (msgspec.DecodeError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise ValueError(f"no packed data ({error})") from error


def digest_of(*values: Any) -> str:
    """Return a SHA-256 over values, which equal ones share whatever made them.

    Any dataclass counts by its name and its fields.

    >>> digest_of(1, "a") == digest_of(1, "a"), digest_of(1) == digest_of(1.0)
    (True, False)
    """
    packed = _packed(values, lambda kind: f"{kind.__module__}.{kind.__qualname__}")
    return hashlib.sha256(msgspec.msgpack.encode(packed)).hexdigest()


def _packed(value: Any, name_of: NameOf) -> Any:
    """Return a value as what msgpack knows; all but plain ones as a list that begins with a tag."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return value if _LEAST <= value <= _MOST else ["int", str(value)]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of Python objects is no plain data")
        descr = _packed(np.lib.format.dtype_to_descr(value.dtype), name_of)
        return ["array", descr, list(value.shape), np.ascontiguousarray(value).tobytes()]
    if kind is tuple or kind is list:
        return [kind.__name__, _all(value, name_of)]
    if kind is frozenset:
        parts = _all(value, name_of)
        return ["frozenset", sorted(parts, key=msgspec.msgpack.encode)]
    if isinstance(value, Vocabulary):
        return ["Vocabulary", _all(tuple(value), name_of)]
    if isinstance(value, TraceSet):
        columns = {name: tuple(column) for name, column in value.all_columns.items()}
        rest = (value.offsets, value.terminated, value.truncated)
        return ["TraceSet", _packed(columns, name_of), *_all(rest, name_of)]
    if isinstance(value, Enum):
        return ["enum", name_of(kind), _packed(value.value, name_of)]
    if is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value) if field.init]
        return ["record", name_of(kind), _all(parts, name_of)]
    if isinstance(value, tuple):  # a named one
        return ["record", name_of(kind), _all(value, name_of)]
    if isinstance(value, Mapping):
        return ["dict", _all(value.keys(), name_of), _all(value.values(), name_of)]
    raise TypeError(f"a {kind.__name__} is no plain data")


def _all(values: Iterable[Any], name_of: NameOf) -> list[Any]:
    listed = list(values)
    kinds = set(map(type, listed))  # vocabularies may be long, and are of one kind mostly
    if kinds <= _PLAIN or (kinds == {int} and min(listed) >= _LEAST and max(listed) <= _MOST):
        return listed
    return [_packed(one, name_of) for one in listed]


def _unpacked(packed: Any, named: Mapping[str, type]) -> Any:
    if type(packed) is not list:
        return packed
    tag, *parts = packed
    match tag:
        case "int":
            return int(parts[0])
        case "array":
            descr, shape, content = parts
            kind = np.lib.format.descr_to_dtype(_checked(_unpacked(descr, named)))
            return np.frombuffer(content, kind).reshape(shape).copy()
        case "tuple":
            return tuple(_each(parts[0], named))
        case "list":
            return _each(parts[0], named)
        case "frozenset":
            return frozenset(_each(parts[0], named))
        case "Vocabulary":
            return Vocabulary(_each(parts[0], named))
        case "TraceSet":
            columns, *rest = _each(parts, named)
            offsets, terminated, truncated = rest
            return TraceSet.taking_over(
                columns, offsets=offsets, terminated=terminated, truncated=truncated
            )
        case "enum":
            return named[parts[0]](_unpacked(parts[1], named))
        case "record":
            return named[parts[0]](*_each(parts[1], named))
        case "dict":
            keys, values = (_each(part, named) for part in parts)
            return dict(zip(keys, values, strict=True))
    raise ValueError(f"no packed data (there is a {str(tag)[:20]!r})")


def _checked(descr: Any) -> Any:
    """Return what an array is made of, as NumPy says it today.

    NumPy knows older names for the same kinds, and warns of them.
    """
    if isinstance(descr, list):  # columns: a name, what it is made of, perhaps a shape
        for column in descr:
            _checked(column[1] if isinstance(column, tuple) else column)
    elif isinstance(descr, tuple):  # rows of numbers: what they are, and how many
        _checked(descr[0])
    elif not (isinstance(descr, str) and _NUMBERS.fullmatch(descr)):
        raise ValueError(f"no packed data (an array of {str(descr)[:20]!r})")
    return descr


def _each(parts: list[Any], named: Mapping[str, type]) -> list[Any]:
    if list not in set(map(type, parts)):
        return parts
    return [_unpacked(one, named) for one in parts]
