"""A model whose augmented states an environment shows: known steps and potentials.

Augmented states keep the model's order, actions the environment's. A counterfactual step is the
outcome of an action under the same observation in another state of the machines (Toro Icarte,
Klassen, Valenzano and McIlraith 2022).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import listed
from resolvent.errors import ModelError, OptionError
from resolvent.planning.model import Model
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.env import SymbolEncoder
from resolvent.rl.shape import Potential
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes

UNKNOWN, GOES_ON, ENDS = range(3)
"""Values of `CounterfactualSteps.outcome`."""


class CounterfactualSteps(NamedTuple):
    """All steps that a model knows, by augmented state and by action of an environment.

    `next_state` is −1 if a step ends the episode or is unknown; `outcome` distinguishes these.
    `reward` is 0 for unknown steps.
    """

    next_state: Codes
    reward: NDArray[np.float64]
    outcome: Codes


class VisibleModel:
    """A model of the machines that an environment shows, with the environment's observations.

    `values` are the environment's values of the model's observations, and `augmented_states` the
    model's augmented states with such values.
    """

    def __init__(self, augmented: AugmentObservation, model: Model) -> None:
        self.augmented, self.model = augmented, model
        self.values = _values(augmented, model)
        columns = (column.tolist() for column in model.states.values())
        observed = (self.values[code] for code in model.observation.tolist())
        self.augmented_states = list(zip(observed, *columns, strict=True))
        self._codes = {as_symbol(value): code for code, value in enumerate(self.values)}

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of states of each machine."""
        return tuple(machine.states for machine in self.augmented.machines.values())

    def code(self, observation: Any) -> int | None:
        """Return the model's code of an observation of the environment inside."""
        return self._codes.get(as_symbol(observation))

    def symbols(self) -> list[Symbol]:
        """Return the symbols of the augmented observations of all augmented states."""
        return [as_symbol(self.augmented.encode(*state)) for state in self.augmented_states]

    def steps(self) -> CounterfactualSteps:
        """Return the known steps for the actions of the environment."""
        model, space = self.model, self.augmented.action_space
        if model.outcomes is not None:
            raise ModelError(
                "outputs of the machines are random, and a learner would take counterfactual "
                "steps for certain: leave out counterfactual"
            )
        if not isinstance(space, gym.spaces.Discrete):
            raise OptionError(f"Q-learning needs Discrete actions, not {space}")
        actions = SymbolEncoder(self.augmented.env, "action").of_space(space) or ()
        columns = [model.actions.get(symbol) for symbol in actions]
        shape = len(model), len(columns)
        next_state = np.full(shape, -1, np.int32)
        reward, outcome = np.zeros(shape), np.zeros(shape, np.int32)
        for action, column in enumerate(columns):
            if column is not None:
                is_known = model.known[:, column]
                next_state[:, action] = model.next_state[:, column]
                reward[is_known, action] = model.reward[is_known, column]
                outcome[is_known, action] = np.where(model.ends[is_known, column], ENDS, GOES_ON)
        return CounterfactualSteps(next_state, reward, outcome)


def _values(augmented: AugmentObservation, model: Model) -> list[Any]:
    """Return the environment's values of the model's observations, if the model fits."""
    machines = augmented.machines
    if list(machines) != list(model.states):
        raise ModelError(
            f"the model is about the machines {', '.join(model.states)}, and in view are "
            f"{listed(machines)}: put those in view that the model is about"
        )
    encoder = SymbolEncoder(augmented.env, "observation")
    symbols = encoder.of_space(augmented.env.observation_space)
    for observation in model.observations:
        if symbols is not None and observation not in symbols:
            raise ModelError(
                f"the model knows the observation {observation!r}, which the environment lacks: "
                "build it from traces of this environment"
            )
    for column, machine in zip(model.states.values(), machines.values(), strict=True):
        if column.max(initial=-1) >= machine.states:
            raise ModelError(
                "the model has states that the machines lack: build it with the machines in view"
            )
    return list(map(encoder.value, model.observations))


@dataclass(frozen=True, eq=False)
class Guidance:
    """The parts of a model that a Q-learner uses.

    `steps` is None without counterfactual steps; `potential` is 0 everywhere without shaping.
    """

    model: VisibleModel
    steps: _core.KnownSteps | None
    potential: Potential

    @classmethod
    def of(
        cls, model: VisibleModel, *, counterfactual: bool, potential: Potential | None
    ) -> "Guidance":
        """Return the selected parts of a model."""
        if potential is None:
            potential = Potential(model.model, np.zeros(len(model.model)), np.zeros(model.sizes))
        return cls(model, _known_steps(model) if counterfactual else None, potential)


def _known_steps(model: VisibleModel) -> _core.KnownSteps:
    steps = model.steps()
    return _core.known_steps(
        np.ascontiguousarray(model.model.observation),
        len(model.model.observations),
        steps.next_state.ravel(),
        steps.reward.ravel(),
        steps.outcome.ravel(),
        steps.next_state.shape[1],
    )
