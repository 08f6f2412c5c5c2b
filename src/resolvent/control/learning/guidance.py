"""A model → what a learner may take from it: imagined steps, and which states are promising.

Steps are given in the order of the environment's actions, situations in the
order of the model's.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.control.planning.model import Model
from resolvent.control.planning.situations import Situation
from resolvent.control.wrapping.augment_observation import AugmentObservation
from resolvent.errors import ModelError, OptionError
from resolvent.traces.live.naming import Names
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.wording import listed

_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Guidance:
    """What a learner takes from a model.

    `codes` are the model's codes of observations as the environment gives them,
    and `situations` the model's with such observations.
    `steps` is None where nothing is imagined; `potential` is what being in such
    states of the machines promises, all 0 where rewards are not shaped.
    """

    augmented: AugmentObservation
    codes: dict[Symbol, int]
    situations: tuple[Situation, ...]
    steps: _core.KnownSteps | None
    potential: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        augmented: AugmentObservation,
        model: Model,
        *,
        counterfactual: bool,
        shaping: bool,
        gamma: float,
    ) -> "Guidance":
        """Take from a model what was asked for."""
        machines = augmented.machines
        if counterfactual and model.chances is not None:
            raise ModelError(
                "the machines answer with chance, and a learner would take imagined steps for "
                "sure: leave out counterfactual"
            )
        if list(machines) != list(model.states):
            raise ModelError(
                f"the model is about the machines {', '.join(model.states)}, and in view are "
                f"{listed(machines)}: put those in view that the model is about"
            )
        values = _values(augmented.env, model)
        sizes = tuple(machine.states for machine in machines.values())
        columns = zip(model.states.values(), sizes, strict=True)
        if any(column.max(initial=-1) >= size for column, size in columns):
            raise ModelError(
                "the model has states that the machines lack: build it with the machines in view"
            )
        situations = zip(
            (values[code] for code in model.observation.tolist()),
            *(column.tolist() for column in model.states.values()),
            strict=True,
        )
        return cls(
            augmented,
            {as_symbol(value): code for code, value in enumerate(values)},
            tuple(situations),
            _steps(augmented.env, model) if counterfactual else None,
            potential(model, sizes, gamma) if shaping else np.zeros(sizes),
        )

    def observation_code(self, observation: Any) -> int | None:
        """Return the model's code of an observation as the environment gives it."""
        return self.codes.get(as_symbol(observation))


def _values(env: gym.Env[Any, Any], model: Model) -> list[Any]:
    """Return the environment's observation for each of the model's."""
    names = Names(env, "observation")
    known = names.of_space(env.observation_space)
    lacking = [] if known is None else [one for one in model.observations if one not in known]
    if lacking:
        raise ModelError(
            f"the model knows the observation {lacking[0]!r}, which the environment lacks: "
            "build it from traces of this environment"
        )
    return list(map(names.value, model.observations))


def _steps(env: gym.Env[Any, Any], model: Model) -> _core.KnownSteps:
    """Return all steps that the model knows."""
    space = env.action_space
    if not isinstance(space, gym.spaces.Discrete):
        raise OptionError(f"Q-learning needs Discrete actions, not {space}")
    named = Names(env, "action")
    symbols: list[Symbol] = [named(int(space.start) + action) for action in range(int(space.n))]
    columns = [model.actions.get(symbol) for symbol in symbols]
    shape = len(model), len(columns)
    following = np.full(shape, -1, np.int32)
    reward, outcome = np.zeros(shape), np.zeros(shape, np.int32)
    for action, column in enumerate(columns):
        if column is None:
            continue
        known = model.known[:, column]
        following[:, action] = model.following[:, column]
        reward[known, action] = model.reward[known, column]
        outcome[known, action] = np.where(model.ends[known, column], 2, 1)
    return _core.known_steps(
        np.ascontiguousarray(model.observation),
        len(model.observations),
        following.ravel(),
        reward.ravel(),
        outcome.ravel(),
        len(columns),
    )


def potential(model: Model, sizes: tuple[int, ...], gamma: float) -> NDArray[np.float64]:
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
