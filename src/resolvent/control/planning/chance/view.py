"""A model with chances as a planner sees it: pay, what may follow, and what unknown is worth."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.chance.chances import NOT_KNOWN, Chances
from resolvent.control.planning.chance.linear import Chain, Numbers, Rows

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class View:
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
        chances: Chances,
        known: Flags,
        mean: Numbers,
        otherwise: Numbers,
        odd: float,
        unknown: float,
        beyond: float,
    ) -> "View":
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

    def chain(self, policy: Rows, gamma: float, chance: Numbers | None = None) -> Chain:
        """Return the steps of one policy, with the shares as chances unless others are given."""
        one = self.only(np.arange(self.situations) * self.actions + policy, chance)
        paid = one.extra + np.where(one.following == self.situations + 1, gamma * self.beyond, 0.0)
        pay = one.pay + np.bincount(one.row, one.share * paid, self.situations)
        inside = one.following < self.situations
        return Chain(one.row[inside], one.following[inside], one.share[inside], pay)

    def only(self, taken: Rows, chance: Numbers | None = None) -> "View":
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
