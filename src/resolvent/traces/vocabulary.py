"""Vocabularies: distinct values in a fixed order ↔ dense integer codes.

Readers intern values in order of appearance (`Interner`). A `TraceSet` keeps them in
sorted order (`Vocabulary`), so that the order of the traces makes no difference.
"""

import reprlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import TraceError, locating
from resolvent.traces.schema import check_same_columns, column_text

if TYPE_CHECKING:
    from resolvent.traces.trace_set import TraceSet

V = TypeVar("V", bound=Hashable)

Codes = NDArray[np.int32]

_REPR = reprlib.Repr()
_REPR.maxlist, _REPR.maxstring, _REPR.maxother = 10, 60, 60

MAX_TABLE_SIZE = 1 << 24  # up to which a table over a range is cheaper than sorting or searching


class Vocabulary(Sequence[V], Generic[V]):
    """Distinct values; the code of a value is its position.

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

    def values(self, codes: Codes) -> list[V]:
        """Return the values with these codes."""
        return list(map(self._values.__getitem__, codes.tolist()))

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
        first = _REPR.repr(list(self._values[: _REPR.maxlist + 1]))
        count = f", {len(self)} values" if len(self) > _REPR.maxlist else ""
        return f"Vocabulary({first}{count})"


class Interner(dict[V, int], Generic[V]):
    """Assigns codes to values in order of appearance.

    All values must be of one type, because 1, 1.0 and True are the same key of a dict and
    yet different symbols. Ints mixed with floats become floats.
    """

    def __init__(self) -> None:
        super().__init__()
        self._types: set[type] = set()

    def __missing__(self, value: V) -> int:
        code = self[value] = len(self)
        return code

    def encode(self, values: Sequence[V], types: set[type] | None = None) -> Codes:
        """Return the codes of the values without a loop; `types` are theirs, if determined."""
        types = set(map(type, values)) if types is None else types
        if not types <= self._types:
            self._admit(types, values)
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))

    def _admit(self, types: set[type], values: Sequence[V]) -> None:
        union = self._types | types
        if len(union) > 1 and union != {int, float}:
            first = next(iter(self._types), type(values[0]))
            accepted = {int, float} if first in (int, float) else {first}
            step, wrong = next(
                (step, value) for step, value in enumerate(values) if type(value) not in accepted
            )
            raise TraceError(
                f"step {step}: {wrong!r} is {_with_article(type(wrong))}, "
                f"but the first value was {_with_article(first)}; use one type"
            )
        self._types = union

    @property
    def mixed(self) -> bool:
        """Whether ints and floats are mixed; all of them become floats."""
        return self._types == {int, float}

    def values_in_order(self) -> list[V]:
        """Return the distinct values by code."""
        values: list[Any] = list(self)
        if self.mixed:
            floats: list[Any] = []
            with suppress(OverflowError):
                floats = list(map(float, values))
            if len(set(floats)) < len(self):
                raise TraceError(
                    "ints and floats are mixed, and some ints are too large to be floats; use one"
                )
            return floats
        return values


def _with_article(value_type: type) -> str:
    return f"{'an' if value_type.__name__[0] in 'aeiou' else 'a'} {value_type.__name__}"


def codes_of(values: Iterable[Any], vocabulary: Vocabulary[Any], missing: int) -> Codes:
    """Return the code of each value in a vocabulary, or `missing`."""
    if isinstance(values, Vocabulary) and values == vocabulary:
        return np.arange(len(vocabulary), dtype=np.int32)
    return np.fromiter(vocabulary.codes(values, missing), np.int32)


def distinct_pairs(
    first: Codes, second: Codes, firsts: int, seconds: int
) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct pairs of codes in rising order, and the index of each row's pair.

    `firsts` and `seconds` are the numbers of values of the columns. A pair is encoded as
    `first * seconds + second`.
    """
    if firsts * seconds <= MAX_TABLE_SIZE:
        pairs, codes = _core.distinct_pairs(first, second, firsts, seconds)
        return pairs.astype(np.int64), codes
    distinct, inverse = np.unique(first.astype(np.int64) * seconds + second, return_inverse=True)
    return distinct, inverse.astype(np.int32)


def distinct_numbers(
    numbers: NDArray[np.int64], bound: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct numbers in rising order, and the index of each number among them.

    All numbers are at least 0 and below `bound`.
    """
    if bound > min(MAX_TABLE_SIZE, 32 * len(numbers)):
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(bound, bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


class JointVocabularies:
    """Joint codes for the values of several trace sets, which need the columns of the first."""

    def __init__(self) -> None:
        self._interners: dict[str, Interner[Any]] = {}
        self._first = ""

    def add(self, values: Mapping[str, Sequence[Any]], called: str) -> None:
        """Add the values of a trace set's columns; `called` is its name in errors."""
        if not self._interners:
            self._first = called
            self._interners = {name: Interner() for name in values}
        with locating(called):
            check_same_columns(values, self._interners, self._first)
        for name, interner in self._interners.items():
            with locating(f"{called}, joined to those before it: {column_text(name)}"):
                interner.encode(values[name])

    def values(self) -> dict[str, list[Any]]:
        """Return the values of every column by code."""
        return {name: interner.values_in_order() for name, interner in self._interners.items()}

    @property
    def made_floats(self) -> bool:
        """Whether ints of some sets became floats, so that values are not theirs."""
        return any(interner.mixed for interner in self._interners.values())

    def codes(self, traces: "TraceSet") -> dict[str, Codes]:
        """Return the columns of an added trace set in the joint codes."""
        return {
            name: _core.recode(
                codes, np.array([self._interners[name][value] for value in values], np.int32)
            )
            for name, (values, codes) in traces.all_columns.items()
        }
