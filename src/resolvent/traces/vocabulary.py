"""Vocabularies: distinct values in a fixed order ↔ dense integer codes.

Readers intern values in the order they meet them (`Interner`); a `TraceSet`
keeps them in sorted order (`Vocabulary`), so that the order in which traces
come makes no difference.
"""

import reprlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent import _core
from resolvent.errors import TraceError

V = TypeVar("V", bound=Hashable)

Codes = NDArray[np.int32]

_SHOWN = reprlib.Repr()
_SHOWN.maxlist, _SHOWN.maxstring, _SHOWN.maxother = 10, 60, 60

DENSE = 1 << 24
"""Up to here a table over all numbers is cheaper than sorting or searching those that occur."""


class Vocabulary(Sequence[V], Generic[V]):
    """Distinct values; a value's code is its position.

    >>> rooms = Vocabulary(["attic", "cellar"])
    >>> rooms.code("cellar"), rooms[1], "garden" in rooms, rooms.get("garden")
    (1, 'cellar', False, None)
    """

    __slots__ = ("_codes", "_values")

    def __init__(self, values: Iterable[V]) -> None:
        self._values: tuple[V, ...] = tuple(values)
        self._codes: dict[V, int] = dict(zip(self._values, range(len(self._values)), strict=True))
        if len(self._codes) != len(self._values):
            raise ValueError("a vocabulary's values must be distinct")

    def code(self, value: V) -> int:
        """Return the code of a value; `KeyError` when it is not in the vocabulary."""
        return self._codes[value]

    def get(self, value: Any) -> int | None:
        """Return the code of a value, or None when it is not in the vocabulary."""
        return self._codes.get(value)

    def codes(self, values: Iterable[Any], missing: int) -> Iterator[int]:
        """Return the code of each value, or `missing` where it is not in the vocabulary."""
        return map(self._codes.get, values, repeat(missing))

    def __contains__(self, value: object) -> bool:
        return value in self._codes

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        return iter(self._values)

    def __getitem__(self, code: Any) -> Any:
        return self._values[code]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Vocabulary) and self._values == other._values)

    def __hash__(self) -> int:
        return hash(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary, (self._values,)

    def __repr__(self) -> str:
        """Show the values, the first of them where there are many.

        >>> Vocabulary("ab"), Vocabulary(range(1000))
        (Vocabulary(['a', 'b']), Vocabulary([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...], 1000 values))
        """
        first = _SHOWN.repr(list(self._values[: _SHOWN.maxlist + 1]))
        count = f", {len(self)} values" if len(self) > _SHOWN.maxlist else ""
        return f"Vocabulary({first}{count})"


class Interner(dict[V, int], Generic[V]):
    """Gives each new value the next code; the keys are the values in that order.

    All values must be of one type (ints among floats are taken as floats), for
    1, 1.0 and True are the same key of a dict and yet different symbols.

    >>> seen = Interner()
    >>> seen.encode(["b", "a", "b"]).tolist(), seen.values_in_order()
    ([0, 1, 0], ['b', 'a'])
    >>> seen.encode(["a", 7])
    Traceback (most recent call last):
    resolvent.errors.TraceError: step 1: 7 is an int, but the first value was a str; use one type
    """

    def __init__(self) -> None:
        super().__init__()
        self._types: set[type] = set()

    def __missing__(self, value: V) -> int:
        code = self[value] = len(self)
        return code

    def encode(self, values: Sequence[V], types: set[type] | None = None) -> Codes:
        """Return the codes of the values, as one array and without a Python loop.

        Pass the types of the values if they are known, to save looking.
        """
        if types is None:
            types = set(map(type, values))
        if not types <= self._types:
            self._admit(types, values)
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))

    def _admit(self, types: set[type], values: Sequence[V]) -> None:
        together = self._types | types
        if len(together) > 1 and together != {int, float}:
            usual = next(iter(self._types), type(values[0]))
            accepted = {int, float} if usual in (int, float) else {usual}
            step, odd = next(
                (step, value) for step, value in enumerate(values) if type(value) not in accepted
            )
            raise TraceError(
                f"step {step}: {odd!r} is {_a(type(odd))}, "
                f"but the first value was {_a(usual)}; use one type"
            )
        self._types = together

    @property
    def mixed(self) -> bool:
        """Whether there are ints among floats, which are taken as floats."""
        return self._types == {int, float}

    def values_in_order(self) -> list[V]:
        """Return the distinct values, each at the position that is its code."""
        if self.mixed:
            try:
                floats = [float(value) for value in self]  # type: ignore[arg-type]
            except OverflowError:
                floats = []
            if len(set(floats)) < len(self):
                raise TraceError(
                    "ints and floats are mixed, and some ints are too large to be floats; use one"
                )
            return floats  # type: ignore[return-value]
        return list(self)


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'aeiou' else 'a'} {kind.__name__}"


def codes_of(wanted: Iterable[Any], known: Vocabulary[Any], missing: int) -> Codes:
    """Return the code of each wanted value in `known`, or `missing`."""
    if isinstance(wanted, Vocabulary) and wanted == known:
        return np.arange(len(known), dtype=np.int32)
    return np.fromiter(known.codes(wanted, missing), np.int32)


def distinct_pairs(
    first: Codes, second: Codes, firsts: int, seconds: int
) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct pairs of codes, and for each row the place of its pair among them.

    A pair is the number `first * seconds + second`; they come in rising order.

    >>> kept, codes = distinct_pairs(np.int32([1, 0, 1]), np.int32([2, 1, 2]), 2, 3)
    >>> kept.tolist(), codes.tolist()
    ([1, 5], [1, 0, 1])
    """
    if firsts * seconds <= DENSE:
        narrow, codes = _core.distinct_pairs(first, second, firsts, seconds)
        return narrow.astype(np.int64), codes
    kept, inverse = np.unique(first.astype(np.int64) * seconds + second, return_inverse=True)
    return kept, inverse.astype(np.int32)


def as_codes(codes: ArrayLike, size: int) -> Codes:
    """Return an array of codes for so many values, or refuse what are no such codes.

    >>> as_codes([0, 1, 0], 2)
    array([0, 1, 0], dtype=int32)
    >>> as_codes([0, 2, 0], 2)
    Traceback (most recent call last):
    resolvent.errors.TraceError: position 1: the code is 2, but only 0 to 1 stand for a value
    """
    array = np.asarray(codes)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise TraceError(
            f"codes must be one row of integers, not of type {array.dtype} and shape {array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() >= size):
        position = int(np.argmax((array < 0) | (array >= size)))
        raise TraceError(
            f"position {position}: the code is {array[position]}, "
            + (f"but only 0 to {size - 1} stand for a value" if size else "but there are no values")
        )
    return np.ascontiguousarray(array, np.int32)


def distinct_numbers(
    numbers: NDArray[np.int64], bound: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct numbers, rising, and the place of each among them.

    All are at least 0 and below the bound.

    >>> kept, places = distinct_numbers(np.array([7, 2, 7]), 10)
    >>> kept.tolist(), places.tolist()
    ([2, 7], [1, 0, 1])
    """
    if bound > DENSE:
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(bound, bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def canonical(
    values: Sequence[V], codes: ArrayLike, order: Callable[[V], Any] | None
) -> tuple[Vocabulary[V], Codes]:
    """Drop values no code uses, sort the rest, and rewrite the codes to match.

    Without an order, the values are sorted already.
    """
    codes = as_codes(codes, len(values))
    kept = np.flatnonzero(_core.used_codes(codes, len(values))).tolist()
    if order is not None:
        kept.sort(key=lambda code: order(values[code]))
    if kept == list(range(len(values))):
        return values if isinstance(values, Vocabulary) else Vocabulary(values), codes
    new_code = np.full(len(values), -1, dtype=np.int32)
    new_code[kept] = np.arange(len(kept), dtype=np.int32)
    return Vocabulary([values[code] for code in kept]), _core.recode(codes, new_code)
