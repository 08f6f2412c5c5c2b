"""Observations of several parts → the same with some of their numbers named by intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount, short
from resolvent.errors import TraceError
from resolvent.senses.intervals import Intervals
from resolvent.senses.readings import Place, key_position
from resolvent.traces.symbols import Symbol, symbol_text
from resolvent.traces.vocabulary import distinct_numbers

Coded: TypeAlias = tuple[list[Symbol], NDArray[np.int64]]
"""Distinct symbols, and the position among them of what each row became."""


@dataclass(frozen=True)
class Parts:
    """What becomes of a tuple: some of its parts, by position or key, are read by others.

    >>> read = Parts((0, "heat"), (Intervals((0.5,)), Intervals((20,))))
    >>> read((0.25, ("heat", 18.5), "dusk"))
    ('below 0.5', ('heat', 'below 20'), 'dusk')
    """

    keys: tuple[int | str, ...]
    readers: tuple["Part", ...]
    size: int | None = None

    def __call__(self, symbol: Symbol) -> Symbol:
        """Return a tuple with the parts that are read replaced."""
        if not isinstance(symbol, tuple):
            raise TraceError(f"it is {short(symbol_text(symbol))} where {self._expected}")
        parts = list(symbol)
        if self.size is not None and len(parts) != self.size:
            raise TraceError(f"it has {amount(len(parts), 'part')} where {self._expected}")
        for key, reader in zip(self.keys, self.readers, strict=True):
            position = key_position(symbol, key)
            if position is None:
                raise TraceError(f"it has no part {key!r} where {self._expected}")
            part = symbol[position]
            parts[position] = reader(part) if type(key) is int else (key, reader(part[1]))
        return tuple(parts)

    @property
    def _expected(self) -> str:
        shape = f"with part {self.keys[0]!r}"
        if self.size is not None:
            shape = f"of {amount(self.size, 'part')}"
        return f"a tuple {shape} should be: fit Discretise on observations of this shape"


Part: TypeAlias = Intervals | Parts
"""What reads an observation, or a part of one."""


def parts_of(intervals: Mapping[Place, Intervals], sizes: Mapping[Place, int]) -> Part:
    """Return what reads whole observations, from what reads the number at each place.

    >>> parts_of({(1,): Intervals((0.5,))}, {(): 2})(("dawn", 0.7))
    ('dawn', 'above 0.5')
    """
    return _reader((), intervals, sizes)


def _reader(place: Place, intervals: Mapping[Place, Intervals], sizes: Mapping[Place, int]) -> Part:
    if place in intervals:
        return intervals[place]
    depth = len(place)
    keys = dict.fromkeys(one[depth] for one in intervals if one[:depth] == place)
    readers = tuple(_reader((*place, key), intervals, sizes) for key in keys)
    return Parts(tuple(keys), readers, sizes.get(place))


def coded(reader: Part | None, symbols: Sequence[Any]) -> Coded:
    """Return what becomes of many symbols, column by column rather than one by one.

    Without a reader they stay as they are.

    >>> values, codes = coded(Parts((0,), (Intervals((0.5,)),)), [(0.1, 7), (0.9, 7), (0.2, 7)])
    >>> values, codes.tolist()
    ([('below 0.5', 7), ('above 0.5', 7)], [0, 1, 0])
    """
    kinds = set(map(type, symbols))
    if isinstance(reader, Intervals) and kinds == {float}:
        return list(reader.names), reader.places(np.array(symbols, np.float64))
    if isinstance(reader, Parts) and kinds == {tuple} and len(set(map(len, symbols))) == 1:
        of_position = _readers_by_position(reader, symbols)
        if of_position is not None:
            columns = zip(*symbols, strict=True)
            parts = [coded(of_position.get(at), column) for at, column in enumerate(columns)]
            begun: Coded = [()], np.zeros(len(symbols), np.int64)
            return reduce(_paired, parts, begun)
    return _interned(symbols if reader is None else list(map(reader, symbols)))


def _readers_by_position(reader: Parts, symbols: Sequence[Any]) -> dict[int, Part] | None:
    """Return the reader of each part; None where symbols differ in what stands where."""
    first = symbols[0]
    if reader.size not in (None, len(first)):
        return None
    found: dict[int, Part] = {}
    for key, one in zip(reader.keys, reader.readers, strict=True):
        position = key_position(first, key)
        if position is None:
            return None
        if isinstance(key, str):
            if any(key_position(symbol, key) != position for symbol in symbols):
                return None
            one = Parts((1,), (one,))  # of the pair of key and value
        found[position] = one
    return found


def _paired(rows: Coded, column: Coded) -> Coded:
    """Return rows with one more part."""
    begun: list[Any]
    begun, codes = rows
    values, added = column
    pairs, places = distinct_numbers(codes * len(values) + added, len(begun) * len(values))
    split = (divmod(pair, len(values)) for pair in pairs.tolist())
    return [(*begun[row], values[value]) for row, value in split], places


def _interned(symbols: Sequence[Symbol]) -> Coded:
    codes: dict[Symbol, int] = {}
    of_row = [codes.setdefault(symbol, len(codes)) for symbol in symbols]
    return list(codes), np.array(of_row, np.int64)
