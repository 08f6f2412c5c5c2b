"""Records that hold arrays, compared by their content."""

from dataclasses import fields
from typing import Any

import numpy as np


class ByValue:
    """Makes frozen dataclasses with arrays equal if all their fields are.

    NaN counts as equal to itself: it stands for an unknown number.

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
            _equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)  # type: ignore[arg-type]
        )

    def __hash__(self) -> int:
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return hash(tuple(array.shape for array in values if isinstance(array, np.ndarray)))


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if type(left) is dict and type(right) is dict:
        return list(left) == list(right) and all(_equal(left[key], right[key]) for key in left)
    return bool(left == right)
