"""How likely a machine held the answers that came, as sums of whole numbers that add up."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log

_BINS = 20
_UNIT = 10**9
"""Chances and losses are summed in billionths: whole numbers add up the same in any order."""


class Calibration(NamedTuple):
    """The steps whose main answer had a chance from `lower` to `upper`, and how many were right.

    Of a machine that is calibrated, about a share of `predicted` is right.
    """

    lower: float
    upper: float
    predicted: float
    """The mean chance of the main answers."""
    right: float
    """The share of steps at which the main answer came."""
    steps: int


class Bin(NamedTuple):
    """Steps whose main answers were about equally likely."""

    steps: int = 0
    right: int = 0
    predicted: int = 0

    def plus(self, other: "Bin") -> "Bin":
        """Return the sums of two."""
        return Bin(*(mine + yours for mine, yours in zip(self, other, strict=True)))

    def minus(self, other: "Bin") -> "Bin":
        """Return the differences of two."""
        return Bin(*(mine - yours for mine, yours in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Forecasts:
    """How likely a machine held answers to be, and what came.

    `loss` is the sum of −ln p over the steps it has an answer for, p being the chance it
    gave to what came. `bins` split those steps by the chance of the main answer. Both are
    in billionths.
    """

    loss: int = 0
    bins: tuple[Bin, ...] = (Bin(),) * _BINS

    @classmethod
    def of(
        cls,
        chance: NDArray[np.float64],
        main: NDArray[np.float64],
        right: NDArray[np.bool_],
        count: NDArray[np.int64],
    ) -> "Forecasts":
        """Sum up steps: the chances of what came and of the main answer, if that came, how often.

        >>> right, often = np.array([True, False]), np.array([3, 1])
        >>> told = Forecasts.of(np.array([0.8, 0.2]), np.array([0.8, 0.8]), right, often)
        >>> round(told.log_loss, 4), [tuple(map(float, row)) for row in told.calibration]
        (0.5697, [(0.8, 0.85, 0.8, 0.75, 4.0)])
        """
        which = np.minimum((main * _BINS).astype(np.int64), _BINS - 1)
        bins = [
            Bin(
                int(count[inside].sum()),
                int(count[inside & right].sum()),
                _total(main[inside], count[inside]),
            )
            for inside in (which == number for number in range(_BINS))
        ]
        return cls(_total(-log(chance), count), tuple(bins))

    @property
    def steps(self) -> int:
        """How many steps there is an answer for."""
        return sum(one.steps for one in self.bins)

    @property
    def log_loss(self) -> float | None:
        """The mean of −ln p over these steps; None if there are none."""
        return self.loss / _UNIT / self.steps if self.steps else None

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """How often the main answer came, by how likely it was; only where there are steps."""
        return tuple(
            Calibration(
                number / _BINS,
                (number + 1) / _BINS,
                one.predicted / _UNIT / one.steps,
                one.right / one.steps,
                one.steps,
            )
            for number, one in enumerate(self.bins)
            if one.steps
        )

    def __add__(self, other: "Forecasts") -> "Forecasts":
        return Forecasts(self.loss + other.loss, tuple(map(Bin.plus, self.bins, other.bins)))

    def __sub__(self, other: "Forecasts") -> "Forecasts":
        """Return what is left without some of the steps."""
        return Forecasts(self.loss - other.loss, tuple(map(Bin.minus, self.bins, other.bins)))


def _total(values: NDArray[np.float64], count: NDArray[np.int64]) -> int:
    """Sum values up, each so often, in billionths; as two numbers, which do not overflow."""
    high, low = np.divmod(np.rint(values * _UNIT).astype(np.int64), 1 << 20)
    return (int(high @ count) << 20) + int(low @ count)
