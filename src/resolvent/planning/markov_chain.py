"""A policy and its chances → what it is worth: one sparse system of linear equations."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent.planning.stochastic_model import NOT_KNOWN, Outcomes

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

_DIRECTIONS = 40
_LOOKS = 8
_RESTARTS = 50
_SWEEPS = 100_000
_PRECISION = 1e-13
"""Of what values may be: what is left of the equations when they count as solved."""


@dataclass(frozen=True, slots=True, eq=False)
class MarkovChain:
    """One step from each of so many situations: pay, and where it may lead with which chance.

    Outcomes of a row may sum to less than 1: the rest leads nowhere, or is in the pay.
    """

    row: Rows
    following: Rows
    chance: Numbers
    pay: Numbers

    def ahead(self, value: Numbers) -> Numbers:
        """Return what the next situation is worth on average, from each."""
        ahead: Numbers = self.chance * value[self.following]
        return np.bincount(self.row, ahead, len(self.pay)).astype(float, copy=False)

    def plus(self, chance: Numbers, pay: float, following: Rows) -> "MarkovChain":
        """Return the chain with one more thing that may come of each step; −1 is an end."""
        more = np.flatnonzero((following >= 0) & (chance > 0))
        return MarkovChain(
            np.concatenate([self.row, more]),
            np.concatenate([self.following, following[more]]),
            np.concatenate([self.chance, chance[more]]),
            self.pay + chance * pay,
        )

    def worth(self, gamma: float, guess: Numbers) -> Numbers:
        """Return what going on like this is worth from each situation.

        The equations are solved by GMRES (Saad and Schultz 1986), and by sweeping where that
        gets nowhere, until they hold but for rounding.

        >>> half = MarkovChain(np.array([0]), np.array([0]), np.array([0.5]), np.array([1.0]))
        >>> half.worth(1.0, np.zeros(1)).round(9).tolist()
        [2.0]
        """
        value, scale = guess, float(np.abs(self.pay).max(initial=0.0))
        for _ in range(_RESTARTS):
            left = self.pay + gamma * self.ahead(value) - value
            enough = _precision(scale + float(np.abs(value).max(initial=0.0)))
            if np.abs(left).max(initial=0.0) <= enough:
                return value
            largest = float(np.abs(left).max())  # squares of large numbers would overflow
            value = value + largest * self._correction(gamma, left / largest, enough / largest)
        for _ in range(_SWEEPS):
            following = self.pay + gamma * self.ahead(value)
            moved = np.abs(following - value).max(initial=0.0)
            value = following
            if moved <= _precision(scale + float(np.abs(value).max(initial=0.0))):
                break
        return value

    def _correction(self, gamma: float, left: Numbers, enough: float) -> Numbers:
        """Return what takes most away of what is left, within a few directions."""
        length = float(np.linalg.norm(left))
        basis = np.zeros((_DIRECTIONS + 1, len(left)))
        images = np.zeros((_DIRECTIONS + 1, _DIRECTIONS))
        wanted = np.zeros(_DIRECTIONS + 1)
        basis[0], wanted[0] = left / length, length
        for k in range(_DIRECTIONS):
            image = basis[k] - gamma * self.ahead(basis[k])
            images[: k + 1, k] = along = basis[: k + 1] @ image
            image -= along @ basis[: k + 1]
            images[k + 1, k] = size = float(np.linalg.norm(image))
            last = size <= 1e-14 * length or k + 1 == _DIRECTIONS
            if last or (k + 1) % _LOOKS == 0:
                some = images[: k + 2, : k + 1]
                weights = np.linalg.lstsq(some, wanted[: k + 2], rcond=None)[0]
                if last or np.linalg.norm(some @ weights - wanted[: k + 2]) <= enough:
                    break
            basis[k + 1] = image / size
        correction: Numbers = weights @ basis[: k + 1]
        return correction


def _precision(scale: float) -> float:
    """Return how far equations between numbers of that size may be off; the least ones, by more."""
    return _PRECISION * scale + float(np.finfo(np.float64).tiny)


Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DecisionProcess:
    """All steps, numbered situation by situation, action by action.

    A step pays `pay`, and `extra` by what comes of it. `following` is the number of situations
    where the episode ends, and one more where nobody knows: then it is worth `beyond` to go on.
    A step that is not known pays what it is worth in all, and nothing comes of it. What never
    came of a step, but may, pays `odd` as an extra.
    """

    actions: int
    row: Rows
    following: Rows
    share: Numbers
    extra: Numbers
    pay: Numbers
    beyond: float
    odd: float

    @classmethod
    def of(
        cls,
        chances: Outcomes,
        known: Flags,
        mean: Numbers,
        otherwise: Numbers,
        odd: float,
        unknown: float,
        beyond: float,
    ) -> "DecisionProcess":
        """Make a view of chances.

        For each step, `mean` is what it pays if pay does not follow from what comes, and
        `otherwise` what it pays with that of which nobody knows what it pays.
        """
        situations, actions = known.shape
        following = chances.following.astype(np.int64)
        places = np.where(following < 0, situations, following)
        places[following == NOT_KNOWN] = situations + 1
        if chances.pay_follows:
            extra = np.where(np.isnan(chances.pay), otherwise[chances.step], chances.pay)
            pay = np.zeros(known.size)
        else:
            extra, pay, odd = np.zeros(len(places)), mean, 0.0
        pay = np.where(known.ravel(), pay, unknown)
        return cls(actions, chances.step, places, chances.share, extra, pay, beyond, odd)

    @cached_property
    def situations(self) -> int:
        """How many situations there are."""
        return len(self.pay) // self.actions

    @cached_property
    def known(self) -> Flags:
        """Which steps are known: something comes of them."""
        found: Flags = np.bincount(self.row, minlength=len(self.pay)) > 0
        return found

    def ahead(self, value: Numbers, gamma: float) -> Numbers:
        """Return what all that may come is worth, with what it pays as an extra."""
        return self.extra + gamma * np.append(value, [0.0, self.beyond])[self.following]

    def worth(self, ahead: Numbers, chance: Numbers) -> Numbers:
        """Return what each step is worth, as a table, by what lies ahead."""
        gain = np.bincount(self.row, chance * ahead, len(self.pay))
        return (self.pay + gain).reshape(-1, self.actions)

    def chain(self, policy: Rows, gamma: float, chance: Numbers | None = None) -> MarkovChain:
        """Return the steps of one policy, with the shares as chances unless others are given."""
        one = self.only(np.arange(self.situations) * self.actions + policy, chance)
        paid = one.extra + np.where(one.following == self.situations + 1, gamma * self.beyond, 0.0)
        pay = one.pay + np.bincount(one.row, one.share * paid, self.situations)
        inside = one.following < self.situations
        return MarkovChain(one.row[inside], one.following[inside], one.share[inside], pay)

    def only(self, taken: Rows, chance: Numbers | None = None) -> "DecisionProcess":
        """Return the view of one step for each situation, as if there were no other action."""
        place = np.full(len(self.pay), -1)
        place[taken] = np.arange(len(taken))
        at = np.flatnonzero(place[self.row] >= 0)
        return replace(
            self,
            actions=1,
            row=place[self.row[at]],
            following=self.following[at],
            share=(self.share if chance is None else chance)[at],
            extra=self.extra[at],
            pay=self.pay[taken],
        )
