"""Stochastic models as Markov decision processes, and the values of policies in them.

Input: outcomes of steps, and assumed values of unknown ones. Output: arrays whose backups are
sums by row, and the value of a policy as the solution of a sparse linear system.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from resolvent.planning.confidence import Numbers, Rows
from resolvent.planning.stochastic_model import NOT_KNOWN, Outcomes
from resolvent.planning.transitions import Flags

_DIRECTIONS: Final = 40
"""Maximum number of Krylov vectors before a restart."""

_CHECK_EVERY: Final = 8
"""Number of Krylov vectors between two checks of the residual."""

_RESTARTS: Final = 50
_SWEEPS: Final = 100_000
_PRECISION: Final = 1e-13
"""Residual of solved equations, as a share of their largest number."""


@dataclass(frozen=True, slots=True, eq=False)
class MarkovChain:
    """One step from each situation: its reward, and the probabilities of the next situations.

    Probabilities of a row may sum to less than 1: the rest ends, or is part of the reward.
    """

    row: Rows
    following: Rows
    chance: Numbers
    pay: Numbers

    def ahead(self, value: Numbers) -> Numbers:
        """Return the mean value of the next situation, from each situation."""
        ahead: Numbers = self.chance * value[self.following]
        return np.bincount(self.row, ahead, len(self.pay)).astype(float, copy=False)

    def plus(self, chance: Numbers, pay: float, following: Rows) -> "MarkovChain":
        """Return the chain with one more outcome of each step; −1 is an end."""
        more = np.flatnonzero((following >= 0) & (chance > 0))
        return MarkovChain(
            np.concatenate([self.row, more]),
            np.concatenate([self.following, following[more]]),
            np.concatenate([self.chance, chance[more]]),
            self.pay + chance * pay,
        )

    def value(self, gamma: float, guess: Numbers) -> Numbers:
        """Return the value of each situation.

        The equations are solved by GMRES (Saad and Schultz 1986), and by value iteration if that
        does not converge, until they hold up to rounding.

        >>> half = MarkovChain(np.array([0]), np.array([0]), np.array([0.5]), np.array([1.0]))
        >>> half.value(1.0, np.zeros(1)).round(9).tolist()
        [2.0]
        """
        value, scale = guess, float(np.abs(self.pay).max(initial=0.0))
        for _ in range(_RESTARTS):
            residual = self.pay + gamma * self.ahead(value) - value
            enough = _precision(scale + float(np.abs(value).max(initial=0.0)))
            if np.abs(residual).max(initial=0.0) <= enough:
                return value
            largest = float(np.abs(residual).max())  # squares of large numbers would overflow
            value = value + largest * self._correction(gamma, residual / largest, enough / largest)
        for _ in range(_SWEEPS):
            following = self.pay + gamma * self.ahead(value)
            change = np.abs(following - value).max(initial=0.0)
            value = following
            if change <= _precision(scale + float(np.abs(value).max(initial=0.0))):
                break
        return value

    def _correction(self, gamma: float, residual: Numbers, enough: float) -> Numbers:
        """Return the correction that reduces the residual most, within a few directions."""
        length = float(np.linalg.norm(residual))
        basis = np.zeros((_DIRECTIONS + 1, len(residual)))
        images = np.zeros((_DIRECTIONS + 1, _DIRECTIONS))
        target = np.zeros(_DIRECTIONS + 1)
        basis[0], target[0] = residual / length, length
        for k in range(_DIRECTIONS):
            image = basis[k] - gamma * self.ahead(basis[k])
            images[: k + 1, k] = along = basis[: k + 1] @ image
            image -= along @ basis[: k + 1]
            images[k + 1, k] = size = float(np.linalg.norm(image))
            last = size <= 1e-14 * length or k + 1 == _DIRECTIONS
            if last or (k + 1) % _CHECK_EVERY == 0:
                hessenberg = images[: k + 2, : k + 1]
                weights = np.linalg.lstsq(hessenberg, target[: k + 2], rcond=None)[0]
                if last or np.linalg.norm(hessenberg @ weights - target[: k + 2]) <= enough:
                    break
            basis[k + 1] = image / size
        correction: Numbers = weights @ basis[: k + 1]
        return correction


def _precision(scale: float) -> float:
    """Return the largest residual of solved equations between numbers of this scale."""
    return _PRECISION * scale + float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class DecisionProcess:
    """All steps, numbered by situation, then action, with their outcomes.

    A step pays `pay`, and `extra` for each outcome. `following` is the number of situations for
    an end of the episode, and one more where it is not known: then the rest is worth `beyond`.
    A step that is not known pays its whole value, and has no outcomes. An outcome that never
    occurred pays `unseen_pay` as an extra.
    """

    actions: int
    row: Rows
    following: Rows
    share: Numbers
    extra: Numbers
    pay: Numbers
    beyond: float
    unseen_pay: float

    @classmethod
    def of(
        cls,
        outcomes: Outcomes,
        is_known: Flags,
        mean: Numbers,
        unknown_pay: Numbers,
        unseen_pay: float,
        unknown: float,
        beyond: float,
    ) -> "DecisionProcess":
        """Return the decision process of outcomes.

        For each step, `mean` is the reward if rewards do not follow from outcomes, and
        `unknown_pay` the reward of outcomes whose reward is not known. A step that is not known
        is worth `unknown`.
        """
        situations, actions = is_known.shape
        following = outcomes.following.astype(np.int64)
        places = np.where(following < 0, situations, following)
        places[following == NOT_KNOWN] = situations + 1
        if outcomes.pay_follows:
            extra = np.where(np.isnan(outcomes.pay), unknown_pay[outcomes.step], outcomes.pay)
            pay = np.zeros(is_known.size)
        else:
            extra, pay, unseen_pay = np.zeros(len(places)), mean, 0.0
        pay = np.where(is_known.ravel(), pay, unknown)
        return cls(actions, outcomes.step, places, outcomes.share, extra, pay, beyond, unseen_pay)

    @cached_property
    def situations(self) -> int:
        """The number of situations."""
        return len(self.pay) // self.actions

    @cached_property
    def known(self) -> Flags:
        """Whether each step is known: it has outcomes."""
        has_outcomes: Flags = np.bincount(self.row, minlength=len(self.pay)) > 0
        return has_outcomes

    @cached_property
    def has_extra(self) -> Flags:
        """Whether some outcome of each step has a reward."""
        has_extra: Flags = np.bincount(self.row, self.extra != 0, len(self.pay)) > 0
        return has_extra

    def ahead(self, value: Numbers, gamma: float) -> Numbers:
        """Return the value of each outcome, its reward included."""
        return self.extra + gamma * np.append(value, [0.0, self.beyond])[self.following]

    def backup(self, ahead: Numbers, chance: Numbers) -> Numbers:
        """Return the value of each step as [situation, action], given that of its outcomes."""
        gain = np.bincount(self.row, chance * ahead, len(self.pay))
        return (self.pay + gain).reshape(-1, self.actions)

    def chain(self, policy: Rows, gamma: float, chance: Numbers | None = None) -> MarkovChain:
        """Return the chain of a policy; its probabilities are the shares unless given."""
        own = self.only(np.arange(self.situations) * self.actions + policy, chance)
        reward = own.extra + np.where(
            own.following == self.situations + 1, gamma * self.beyond, 0.0
        )
        pay = own.pay + np.bincount(own.row, own.share * reward, self.situations)
        inside = own.following < self.situations
        return MarkovChain(own.row[inside], own.following[inside], own.share[inside], pay)

    def only(self, steps: Rows, chance: Numbers | None = None) -> "DecisionProcess":
        """Return the process with a single action in each situation."""
        place = np.full(len(self.pay), -1)
        place[steps] = np.arange(len(steps))
        at = np.flatnonzero(place[self.row] >= 0)
        return replace(
            self,
            actions=1,
            row=place[self.row[at]],
            following=self.following[at],
            share=(self.share if chance is None else chance)[at],
            extra=self.extra[at],
            pay=self.pay[steps],
        )
