"""One number → the name of the interval it lies in."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import OptionError, TraceError

EVERYTHING = "any number"


@dataclass(frozen=True)
class Intervals:
    """The intervals that edges cut numbers into, each with a name.

    An edge belongs to the interval above it. With `centres`, one for each interval,
    intervals are named after these.

    >>> heat = Intervals((18, 21.5))
    >>> heat(17.2), heat(18.0), heat(30)
    ('below 18', '18…21.5', 'above 21.5')
    >>> Intervals((1.0,), centres=(0.25, 3.0))(0.1)
    'about 0.25'
    """

    edges: tuple[float, ...]
    centres: tuple[float, ...] | None = None
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        edges = _floats(self.edges, "edges")
        if any(low >= high for low, high in pairwise(edges)):
            raise OptionError(f"edges must rise, and no two may be equal: {list(edges)} do not")
        object.__setattr__(self, "edges", edges)
        if self.centres is not None:
            centres = _floats(self.centres, "centres")
            if len(centres) != len(edges) + 1 or len(set(centres)) < len(centres):
                raise OptionError(
                    f"{len(edges)} edges make {len(edges) + 1} intervals: "
                    "give each a centre, no two of them equal"
                )
            object.__setattr__(self, "centres", centres)
        object.__setattr__(self, "names", self._named())

    def _named(self) -> tuple[str, ...]:
        if not self.edges:
            return (EVERYTHING,)
        if self.centres is not None:
            return tuple(f"about {number_text(centre)}" for centre in self.centres)
        texts = [number_text(edge) for edge in self.edges]
        between = [f"{low}…{high}" for low, high in pairwise(texts)]
        return (f"below {texts[0]}", *between, f"above {texts[-1]}")

    def __len__(self) -> int:
        return len(self.edges) + 1

    def __call__(self, value: Any) -> str:
        """Return the name of the interval that a number lies in; text stays as it is."""
        if isinstance(value, float) or type(value) is int:
            if not math.isfinite(value):
                raise TraceError(f"{value} lies in no interval: readings must be finite")
            return self.names[bisect_right(self.edges, value)]
        if isinstance(value, str):
            return value
        raise TraceError(f"{value!r} is no number, and only numbers lie in intervals")

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the place of each number's interval, counted from 0 at the lowest.

        >>> Intervals((18, 21.5)).places(np.array([30, 18, 17.2])).tolist()
        [2, 1, 0]
        """
        if not np.isfinite(values).all():
            odd = values[np.argmin(np.isfinite(values))]
            raise TraceError(f"{odd} lies in no interval: readings must be finite")
        return np.searchsorted(np.array(self.edges), values, side="right")


def number_text(number: float) -> str:
    """Write a number in as few digits as tell it from all others.

    >>> number_text(18.0), number_text(-0.05), number_text(1e-7)
    ('18', '-0.05', '1e-07')
    """
    return repr(number).removesuffix(".0")


def _floats(numbers: Iterable[Any], called: str) -> tuple[float, ...]:
    try:
        floats = tuple(float(number) + 0.0 for number in numbers)  # one zero, not two
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{called} must be a row of numbers, such as [-0.2, 0, 0.2]") from None
    if not all(map(math.isfinite, floats)):
        raise OptionError(f"{called} must be finite, but are {list(floats)}")
    return floats
