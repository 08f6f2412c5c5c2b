"""A model with chances as a planner sees it: pay, what may follow, and what unknown is worth."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.chance.chances import NOT_KNOWN
from resolvent.control.planning.chance.linear import Chain, Numbers, Rows
from resolvent.traces.vocabulary import Codes

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class View:
    """All steps, numbered situation by situation, action by action.

    `following` is the number of situations where the episode ends, and one more where nobody
    knows: then it is worth `beyond` to go on. A step that is not known is worth `unknown` in
    all. `pay` holds something for every step.
    """

    actions: int
    row: Rows
    following: Rows
    share: Numbers
    pay: Numbers
    known: Flags
    unknown: float
    beyond: float

    @classmethod
    def of(
        cls,
        step: Rows,
        following: Codes,
        share: Numbers,
        pay: Numbers,
        known: Flags,
        unknown: float,
        beyond: float,
    ) -> "View":
        """Make a view of a model's chances; pay and known are tables, as the model has them."""
        situations, actions = known.shape
        places = np.where(following < 0, situations, following).astype(np.int64)
        places[following == NOT_KNOWN] = situations + 1
        flat = known.ravel()
        paid = np.where(flat, pay.ravel(), unknown)
        return cls(actions, step, places, share, paid, flat, unknown, beyond)

    @cached_property
    def situations(self) -> int:
        """How many situations there are."""
        return len(self.pay) // self.actions

    def values(self, value: Numbers) -> Numbers:
        """Return what follows each step that may come is worth."""
        return np.append(value, [0.0, self.beyond])[self.following]

    def worth(self, value: Numbers, gamma: float, chance: Numbers, pay: Numbers) -> Numbers:
        """Return what each step is worth, as a table, if what follows is worth so much."""
        ahead = np.bincount(self.row, chance * self.values(value), len(self.pay))
        return (pay + gamma * ahead).reshape(-1, self.actions)

    def chain(self, policy: Rows, gamma: float, chance: Numbers, pay: Numbers) -> Chain:
        """Return the steps of one policy, with such chances and pay."""
        taken = np.arange(self.situations) * self.actions + policy
        place = np.full(len(self.pay), -1)
        place[taken] = np.arange(self.situations)
        at = np.flatnonzero(place[self.row] >= 0)
        row, following, chance = place[self.row[at]], self.following[at], chance[at]
        inside = following < self.situations
        lost = following == self.situations + 1
        more = np.bincount(row[lost], chance[lost] * self.beyond, self.situations)
        return Chain(row[inside], following[inside], chance[inside], pay[taken] + gamma * more)

    def with_pay(self, pay: Numbers) -> "View":
        """Return the same steps with other pay where they are known."""
        return replace(self, pay=np.where(self.known, pay.ravel(), self.unknown))

    def only(self, taken: Rows) -> "View":
        """Return the view of one step for each situation, as if there were no other action."""
        place = np.full(len(self.pay), -1)
        place[taken] = np.arange(len(taken))
        at = np.flatnonzero(place[self.row] >= 0)
        return replace(
            self,
            actions=1,
            row=place[self.row[at]],
            following=self.following[at],
            share=self.share[at],
            pay=self.pay[taken],
            known=self.known[taken],
        )
