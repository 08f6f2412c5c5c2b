"""Compute potentials for reward shaping from a plan, or from a model of machines.

Shaping adds γ·Φ(next) − Φ(here) to each reward. Along an episode these terms cancel except for the
first and the last potential, so they change exploration but not the optimal policy (Ng, Harada and
Russell 1999). The end of an episode has potential 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import ByValue
from resolvent._util.validation import shown
from resolvent.errors import OptionError
from resolvent.planning.model import Model
from resolvent.planning.plan import Plan
from resolvent.traces.symbols import Symbol

By: TypeAlias = Literal["situation", "states"]
"""Whether potentials are by augmented state, or by the machines' states alone."""

_TOLERANCE = 1e-9
"""Largest change of a value at which value iteration stops."""


@dataclass(frozen=True, eq=False)
class Potential(ByValue):
    """The potential of each augmented state of a model.

    `of_situation` has an entry for each augmented state of the model. `of_states` has an axis
    for each machine: it holds the potentials of augmented states that the model does not know.
    """

    model: Model
    of_situation: NDArray[np.float64]
    of_states: NDArray[np.float64]

    @classmethod
    def of_plan(cls, plan: Plan, *, by: By = "situation") -> "Potential":
        """Return the values of a plan, or of the states of its machines, as a potential.

        An augmented state that the plan does not know has the mean potential of those with the
        same machine states, or of all if there are none.

        >>> from resolvent.planning.plan import plan
        >>> from resolvent.worlds import House
        >>> from resolvent.inference.infer import infer
        >>> from resolvent.rl.collect import collect
        >>> traces = collect(House(), episodes=200, seed=0)
        >>> potential = Potential.of_plan(plan(infer(traces), traces))
        >>> round(potential.at("corridor", (0, 0)), 4), round(potential.at("nowhere", (1, 1)), 4)
        (0.7738, 0.9387)
        """
        if not isinstance(by, str) or by not in get_args(By):
            raise OptionError(f"by={shown(by)}: use one of {', '.join(map(repr, get_args(By)))}")
        model = plan.model
        sizes = tuple(plan.machines[name].states for name in model.states)
        if by == "states":
            if plan.gamma == 1:
                raise OptionError('by="states" needs a plan with gamma below 1')
            return cls.of_model(model, sizes, plan.gamma)
        values = plan.pessimistic if plan.expected is None else plan.expected
        if not np.isfinite(values).all():
            raise OptionError(
                "the plan is worth anything in some situations, since nothing is discounted: "
                "plan with gamma below 1, or with a reward_range"
            )
        place = np.ravel_multi_index(tuple(model.states.values()), sizes)
        count = np.bincount(place, minlength=prod(sizes))
        total = np.bincount(place, values, prod(sizes))
        mean = np.where(count > 0, total / np.maximum(count, 1), values.mean())
        return cls(model, values, mean.reshape(sizes))

    @classmethod
    def of_model(cls, model: Model, sizes: tuple[int, ...], gamma: float) -> "Potential":
        """Return the values of the machines' states, for any observation."""
        values = values_of_states(model, sizes, gamma)
        return cls(model, values[tuple(model.states.values())], values)

    def at(self, observation: Symbol, states: Sequence[int]) -> float:
        """Return the potential of an augmented state, known or not."""
        number = self.model.situation(observation, *states)
        if number is None:
            return float(self.of_states[tuple(states)])
        return self._listed[number]

    @cached_property
    def _listed(self) -> list[float]:
        values: list[float] = self.of_situation.tolist()
        return values


def values_of_states(model: Model, sizes: tuple[int, ...], gamma: float) -> NDArray[np.float64]:
    """Return the value of the machines' states: value iteration over the machines.

    The value of an augmented state is that of the best known path to the end or to other machine
    states, which have the mean value of their augmented states. So moves between machine states
    take their number of steps. Toro Icarte, Klassen, Valenzano and McIlraith (2022) count one step
    for each, which is too optimistic: a learner then tries everything everywhere first. Random
    transitions are replaced by their likeliest outcome, since any potential keeps the optimum.
    """
    place = np.ravel_multi_index(tuple(model.states.values()), sizes)
    size = prod(sizes)
    count = np.maximum(np.bincount(place, minlength=size), 1)
    goes_on = model.known & ~model.ends
    target = np.where(goes_on, model.following, 0)
    stays = place[target] == place[:, None]
    discount = np.where(goes_on, gamma, 0.0)
    reward = np.where(model.known, model.reward, -np.inf)
    is_lost = ~model.known.any(axis=1)
    of_states, values = np.zeros(size), np.zeros(len(model))
    while True:
        ahead = np.where(stays, values[target], of_states[place[target]])
        improved = (reward + discount * ahead).max(axis=1)
        improved[is_lost] = 0.0
        change = np.abs(improved - values).max(initial=0.0)
        values, of_states = improved, np.bincount(place, improved, size) / count
        if change <= _TOLERANCE:
            return of_states.reshape(sizes)
