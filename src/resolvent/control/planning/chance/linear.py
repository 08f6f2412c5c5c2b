"""A policy and its chances → what it is worth: one sparse system of linear equations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

_DIRECTIONS = 40
_RESTARTS = 50
_SWEEPS = 100_000
_PRECISION = 1e-13
"""Of what values may be: what is left of the equations when they count as solved."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """One step from each of so many situations: pay, and where it may lead with which chance.

    Chances of a row may sum to less than 1: the rest leads nowhere, or is in the pay.
    """

    row: Rows
    following: Rows
    chance: Numbers
    pay: Numbers

    def ahead(self, value: Numbers) -> Numbers:
        """Return what the next situation is worth on average, from each."""
        ahead: Numbers = self.chance * value[self.following]
        return np.bincount(self.row, ahead, len(self.pay)).astype(float, copy=False)

    def plus(self, chance: Numbers, pay: float, following: int | None) -> "Chain":
        """Return the chain with one more thing that may come of each step; None is an end."""
        paid = self.pay + chance * pay
        if following is None:
            return Chain(self.row, self.following, self.chance, paid)
        return Chain(
            np.concatenate([self.row, np.arange(len(paid))]),
            np.concatenate([self.following, np.full(len(paid), following)]),
            np.concatenate([self.chance, chance]),
            paid,
        )

    def worth(self, gamma: float, guess: Numbers) -> Numbers:
        """Return what going on like this is worth from each situation.

        The equations are solved by GMRES (Saad and Schultz 1986), and by sweeping where that
        gets nowhere, until they hold but for rounding.

        >>> half = Chain(np.array([0]), np.array([0]), np.array([0.5]), np.array([1.0]))
        >>> half.worth(1.0, np.zeros(1)).round(9).tolist()
        [2.0]
        """
        value, scale = guess, float(np.abs(self.pay).max(initial=0.0))
        for _ in range(_RESTARTS):
            left = self.pay + gamma * self.ahead(value) - value
            enough = _PRECISION * (scale + float(np.abs(value).max(initial=0.0)))
            if np.abs(left).max(initial=0.0) <= enough:
                return value
            value = value + self._correction(gamma, left)
        for _ in range(_SWEEPS):
            following = self.pay + gamma * self.ahead(value)
            moved = np.abs(following - value).max(initial=0.0)
            value = following
            if moved <= _PRECISION * (scale + float(np.abs(value).max(initial=0.0))):
                break
        return value

    def _correction(self, gamma: float, left: Numbers) -> Numbers:
        """Return what takes most away of what is left, within a few directions."""
        length = float(np.linalg.norm(left))
        basis = np.zeros((_DIRECTIONS + 1, len(left)))
        images = np.zeros((_DIRECTIONS + 1, _DIRECTIONS))
        basis[0] = left / length
        used = _DIRECTIONS
        for k in range(_DIRECTIONS):
            image = basis[k] - gamma * self.ahead(basis[k])
            for _ in range(2):  # the second time takes away what rounding left
                along = basis[: k + 1] @ image
                images[: k + 1, k] += along
                image = image - along @ basis[: k + 1]
            images[k + 1, k] = size = float(np.linalg.norm(image))
            if size <= 1e-14:
                used = k + 1
                break
            basis[k + 1] = image / size
        wanted = np.zeros(used + 1)
        wanted[0] = length
        weights = np.linalg.lstsq(images[: used + 1, :used], wanted, rcond=None)[0]
        correction: Numbers = weights @ basis[:used]
        return correction
