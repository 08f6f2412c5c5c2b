"""Rewards that vary → the values that they vary around."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent._util.math import erfc
from resolvent._util.text import listed
from resolvent.errors import ModelError
from resolvent.traces.schema import REWARD
from resolvent.traces.trace_set import TraceSet

_SHOWN = 8


@dataclass(frozen=True)
class RewardLevels:
    """Takes each reward for the nearest of the values that rewards vary around.

    Where noise is added to what is paid, hardly two rewards are the same, and machines could
    not tell what a step pays. Seen through levels, rewards are few again. Where levels are
    so near to each other that the noise takes rewards from one to the next, some become the
    wrong one: that is noise on few answers, which a machine's distribution shows.

    Attributes:
        centres: The values that rewards vary around, from the lowest to the highest.
        sigma: The standard deviation of rewards around them, the same for all.
        exact: Values that are paid without any noise; all else is taken for the nearest of
            the centres.

    >>> levels = RewardLevels((0.0, 1.0), 0.1, exact=(-5.0,))
    >>> levels(0.93), levels(-5), levels(-4.9)
    (1.0, -5.0, 0.0)
    >>> print(levels)
    rewards vary by ±0.1 around 0, 1; exact is -5
    """

    centres: tuple[float, ...]
    sigma: float
    exact: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "centres", _ascending("centres", self.centres))
        put(self, "exact", _ascending("exact", self.exact))
        if not self.centres:
            raise ModelError("levels of rewards need a centre that rewards vary around")
        if not (isfinite(self.sigma) and self.sigma > 0):
            raise ModelError(f"rewards vary by {self.sigma}: that must be a number above 0")

    def __call__(self, reward: float) -> float:
        """Return what a reward is taken for."""
        return float(self.of([reward])[0])

    def of(self, rewards: ArrayLike) -> NDArray[np.float64]:
        """Return what each of many rewards is taken for."""
        given = np.asarray(rewards, np.float64)
        centres = np.array(self.centres)
        nearest = np.searchsorted((centres[:-1] + centres[1:]) / 2, given, side="right")
        return np.where(np.isin(given, self.exact), given, centres[nearest]) + 0.0

    def on(self, traces: TraceSet) -> TraceSet:
        """Return traces in which each reward is what it is taken for.

        To do so twice changes nothing, and neither does it to traces without rewards.
        """
        columns: dict[str, Any] = dict(traces.all_columns)
        if REWARD not in columns or not len(traces):
            return traces
        rewards, codes = columns[REWARD]
        values, of_value = np.unique(self.of(list(rewards)), return_inverse=True)
        if len(values) == len(rewards) and np.array_equal(values, list(rewards)):
            return traces
        columns[REWARD] = (values.tolist(), of_value.astype(np.int32)[codes])
        return TraceSet.taking_over(
            columns,
            offsets=traces.offsets,
            terminated=traces.terminated,
            truncated=traces.truncated,
        )

    def mistaken(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Return how often a reward of each value is taken for each of the values.

        Rows are the values that are paid, columns those that they are taken for. Values that
        are no centres are never mistaken.

        >>> RewardLevels((0.0, 2.0), 1.0).mistaken([0.0, 2.0]).round(2).tolist()
        [[0.84, 0.16], [0.16, 0.84]]
        """
        centres = np.array(self.centres)
        edges = (centres[:-1] + centres[1:]) / 2
        found = np.eye(len(values))
        for row, value in enumerate(values):
            if value in self.centres:
                apart = ((value - edges) / (self.sigma * 2**0.5)).tolist()
                below = [0.0, *(0.5 * erfc(one) for one in apart), 1.0]
                taken = dict(zip(self.centres, np.diff(below).tolist(), strict=True))
                found[row] = [taken.get(other, 0.0) for other in values]
        return found

    def worth(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Return what each of the values counts for in a mean of what was paid.

        Where rewards are taken for the wrong level now and then, the mean of levels is not
        the mean of rewards: next to a level of 2, one of 0 seems to pay a little more. With
        these numbers in place of the levels it is, however rewards mix.

        >>> RewardLevels((0.0, 2.0), 1.0).worth([0.0, 2.0]).round(2).tolist()
        [-0.46, 2.46]
        """
        mistaken = self.mistaken(values)
        found: NDArray[np.float64] = np.linalg.lstsq(mistaken, np.array(values, float))[0]
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values, from which `from_dict` makes an equal one.

        >>> RewardLevels((0.0, 1.0), 0.1).as_dict()
        {'centres': [0.0, 1.0], 'sigma': 0.1}
        """
        told: dict[str, Any] = {"centres": list(self.centres), "sigma": self.sigma}
        return told | ({"exact": list(self.exact)} if self.exact else {})

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "RewardLevels":
        """Return the one that `as_dict` told of.

        >>> RewardLevels.from_dict({"centres": [0, 1], "sigma": 0.1})
        RewardLevels(centres=(0.0, 1.0), sigma=0.1, exact=())
        >>> RewardLevels.from_dict({"centres": [0, 1]})
        Traceback (most recent call last):
        resolvent.errors.ModelError: levels of rewards have centres, sigma and exact, not centres
        """
        if not {"centres", "sigma"} <= set(told) <= {"centres", "sigma", "exact"}:
            raise ModelError(
                f"levels of rewards have centres, sigma and exact, not {listed(sorted(told))}"
            )
        sigma = told["sigma"]
        if isinstance(sigma, bool) or not isinstance(sigma, int | float):
            raise ModelError(f"rewards vary by {sigma!r}: that must be a number above 0")
        return cls(told["centres"], float(sigma), told.get("exact", ()))

    def __str__(self) -> str:
        told = f"rewards vary by ±{self.sigma:.2g} around {_numbers(self.centres)}"
        return told + (f"; exact is {_numbers(self.exact)}" if self.exact else "")


def _ascending(name: str, given: Any) -> tuple[float, ...]:
    numbers = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(type(one) in (int, float) and isfinite(one) for one in numbers):
        raise ModelError(f"levels of rewards: {name} must be numbers, not {given!r}")
    if any(one >= other for one, other in pairwise(numbers)):
        raise ModelError(f"levels of rewards: {name} must ascend, and {given!r} do not")
    return tuple(map(float, numbers))


def _numbers(numbers: tuple[float, ...]) -> str:
    shown = [f"{one:.6g}" for one in numbers[:_SHOWN]]
    more = len(numbers) - len(shown)
    return listed([*shown, f"{more} more"] if more else shown)
