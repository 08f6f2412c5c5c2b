"""A model + the environment that shows its machines → steps that can be imagined there.

Situations keep the model's order; actions are in the order of the environment's. So a
learner that sees one step can be told what the same action would have done under the same
observation in every other state of the machines (Toro Icarte, Klassen, Valenzano and
McIlraith 2022).
"""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.model import Model
from resolvent.control.planning.situations import Situation
from resolvent.control.wrapping.augment_observation import AugmentObservation
from resolvent.errors import ModelError, OptionError
from resolvent.traces.live.naming import Names
from resolvent.traces.symbols import Symbol
from resolvent.traces.vocabulary import Codes
from resolvent.wording import listed

UNKNOWN, GOES_ON, ENDS = range(3)
"""What comes of a step, in `ImaginedSteps.outcome`."""


@dataclass(frozen=True, eq=False)
class ImaginedSteps:
    """All steps that a model knows, by situation and by action of an environment.

    `following` is −1 where a step ends the episode or is not known; `reward` is 0 where it is
    not known, and `outcome` says which of the two it is.
    """

    following: Codes
    reward: NDArray[np.float64]
    outcome: Codes

    @classmethod
    def of(cls, env: gym.Env[Any, Any], model: Model) -> "ImaginedSteps":
        """Take all steps that the model knows, for the actions of an environment."""
        if model.chances is not None:
            raise ModelError(
                "the machines answer with chance, and a learner would take imagined steps for "
                "sure: leave out counterfactual"
            )
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
            outcome[known, action] = np.where(model.ends[known, column], ENDS, GOES_ON)
        return cls(following, reward, outcome)


def shown_situations(augmented: AugmentObservation, model: Model) -> tuple[Situation, ...]:
    """Return the situations of a model, with observations as the environment inside gives them."""
    values = shown_values(augmented, model)
    columns = (column.tolist() for column in model.states.values())
    each = zip((values[code] for code in model.observation.tolist()), *columns, strict=True)
    return tuple(each)


def shown_values(augmented: AugmentObservation, model: Model) -> list[Any]:
    """Return the environment's observation for each of the model's, in the model's order."""
    machines = augmented.machines
    if list(machines) != list(model.states):
        raise ModelError(
            f"the model is about the machines {', '.join(model.states)}, and in view are "
            f"{listed(machines)}: put those in view that the model is about"
        )
    names = Names(augmented.env, "observation")
    known = names.of_space(augmented.env.observation_space)
    lacking = [] if known is None else [one for one in model.observations if one not in known]
    if lacking:
        raise ModelError(
            f"the model knows the observation {lacking[0]!r}, which the environment lacks: "
            "build it from traces of this environment"
        )
    sizes = (machine.states for machine in machines.values())
    columns = zip(model.states.values(), sizes, strict=True)
    if any(column.max(initial=-1) >= size for column, size in columns):
        raise ModelError(
            "the model has states that the machines lack: build it with the machines in view"
        )
    return list(map(names.value, model.observations))
