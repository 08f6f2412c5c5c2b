"""Records that hold arrays, compared by what the arrays hold."""

from dataclasses import fields
from typing import Any

import numpy as np


class ByValue:
    """Makes frozen dataclasses with arrays in them equal if all their fields are.

    Of floats, NaN counts as equal to itself: it stands for "not known".

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Paid(ByValue):
    ...     rewards: np.ndarray
    >>> Paid(np.array([0.0, np.nan])) == Paid(np.array([0.0, np.nan])) != Paid(np.array([1.0, 2.0]))
    True
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)  # type: ignore[arg-type]
        )

    def __hash__(self) -> int:
        values = (getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]
        return hash(tuple(one.shape for one in values if isinstance(one, np.ndarray)))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if type(one) is dict and type(other) is dict:
        return list(one) == list(other) and all(_equal(one[key], other[key]) for key in one)
    return bool(one == other)
