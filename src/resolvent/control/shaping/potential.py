"""A plan, or a model of machines → what each situation promises: the potential that shapes rewards.

A step is paid γ·Φ(next) − Φ(here) on top of its reward. Along an episode these payments
cancel but for the first and the last potential, so that they change what is tried first
and not what is best (Ng, Harada and Russell 1999). What ends an episode promises nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from resolvent.arguments import shown
from resolvent.by_value import ByValue
from resolvent.control.planning.model import Model
from resolvent.control.planning.plans import Plan
from resolvent.errors import OptionError
from resolvent.traces.symbols import Symbol

By: TypeAlias = Literal["situation", "states"]
"""Whether each situation has a potential of its own, or all in the same states one."""

_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Potential(ByValue):
    """What each situation of a model promises.

    `of_situation` goes by the situations of the model. `of_states` has an axis for each
    machine: it is what a situation promises that the model does not know, by the states
    that the machines are in.
    """

    model: Model
    of_situation: NDArray[np.float64]
    of_states: NDArray[np.float64]

    @classmethod
    def of_plan(cls, plan: Plan, *, by: By = "situation") -> "Potential":
        """Take what acting by a plan is worth, or what the states of its machines promise.

        A situation that the plan does not know promises what those in the same states do
        on average, and if it knows none of these, what all do on average.

        >>> from resolvent.control.planning.plans import plan
        >>> from resolvent.environments import House
        >>> from resolvent.pipeline import infer
        >>> from resolvent.traces.live.collecting import collect
        >>> traces = collect(House(), episodes=200, seed=0)
        >>> promise = Potential.of_plan(plan(infer(traces), traces))
        >>> round(promise.at("corridor", (0, 0)), 4), round(promise.at("nowhere", (1, 1)), 4)
        (0.7738, 0.9387)
        """
        if not isinstance(by, str) or by not in get_args(By):
            raise OptionError(f"by={shown(by)}: use one of {', '.join(map(repr, get_args(By)))}")
        model = plan.model
        sizes = tuple(plan.machines[kind].states for kind in model.states)
        if by == "states":
            if plan.gamma == 1:
                raise OptionError('by="states" needs a plan with gamma below 1')
            return cls.of_model(model, sizes, plan.gamma)
        worth = plan.pessimistic if plan.expected is None else plan.expected
        if not np.isfinite(worth).all():
            raise OptionError(
                "the plan is worth anything in some situations, since nothing is discounted: "
                "plan with gamma below 1, or with a reward_range"
            )
        place = np.ravel_multi_index(tuple(model.states.values()), sizes)
        count = np.bincount(place, minlength=prod(sizes))
        total = np.bincount(place, worth, prod(sizes))
        mean = np.where(count > 0, total / np.maximum(count, 1), worth.mean())
        return cls(model, worth, mean.reshape(sizes))

    @classmethod
    def of_model(cls, model: Model, sizes: tuple[int, ...], gamma: float) -> "Potential":
        """Take what the states of the machines promise, whatever is observed in them."""
        promise = promise_of_states(model, sizes, gamma)
        return cls(model, promise[tuple(model.states.values())], promise)

    def at(self, observation: Symbol, states: Sequence[int]) -> float:
        """Return what a situation promises, known or not."""
        number = self.model.situation(observation, *states)
        if number is None:
            return float(self.of_states[tuple(states)])
        return self._listed[number]

    @cached_property
    def _listed(self) -> list[float]:
        values: list[float] = self.of_situation.tolist()
        return values


def promise_of_states(model: Model, sizes: tuple[int, ...], gamma: float) -> NDArray[np.float64]:
    """Return what the states of the machines promise: value iteration over the machines.

    From anywhere in such states, take the best way that the model knows to any
    others, whose promise one then gets, or to the end. The mean of that over all
    situations in these states is their promise. So moves between states take the
    time they take. Toro Icarte, Klassen, Valenzano and McIlraith (2022) let each
    take one step, which promises too much: a learner then tries everything
    everywhere before it believes otherwise. Where there is chance, the likeliest is taken to
    follow: any promise leaves the best policy what it is.
    """
    place = np.ravel_multi_index(tuple(model.states.values()), sizes)
    size = prod(sizes)
    count = np.maximum(np.bincount(place, minlength=size), 1)
    goes_on = model.known & ~model.ends
    target = np.where(goes_on, model.following, 0)
    stays = place[target] == place[:, None]
    going_on = np.where(goes_on, gamma, 0.0)
    paid = np.where(model.known, model.reward, -np.inf)
    lost = ~model.known.any(axis=1)
    promise, values = np.zeros(size), np.zeros(len(model))
    while True:
        ahead = np.where(stays, values[target], promise[place[target]])
        improved = (paid + going_on * ahead).max(axis=1)
        improved[lost] = 0.0
        change = np.abs(improved - values).max(initial=0.0)
        values, promise = improved, np.bincount(place, improved, size) / count
        if change <= _CLOSE:
            return promise.reshape(sizes)
