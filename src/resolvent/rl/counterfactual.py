"""Extract counterfactual steps, potentials and initial values for a learner from a model.

Augmented states keep the model's order, actions the environment's. A counterfactual step is the
outcome of an action under the same observation in another state of the machines (Toro Icarte,
Klassen, Valenzano and McIlraith 2022).
"""

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import listed
from resolvent.errors import ModelError, OptionError
from resolvent.machines.situations import AugmentedState
from resolvent.planning.model import Model
from resolvent.rl.env import SymbolEncoder
from resolvent.rl.potential import Potential
from resolvent.rl.tabular import TabularView
from resolvent.rl.wrappers.augment import AugmentObservation
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.rl.q_table import QTable

UNKNOWN, GOES_ON, ENDS = range(3)
"""Values of `CounterfactualSteps.outcome`."""


@dataclass(frozen=True, eq=False)
class CounterfactualSteps:
    """All steps that a model knows, by augmented state and by action of an environment.

    `following` is −1 if a step ends the episode or is unknown; `outcome` distinguishes these.
    `reward` is 0 for unknown steps.
    """

    following: Codes
    reward: NDArray[np.float64]
    outcome: Codes

    @classmethod
    def of(cls, env: gym.Env[Any, Any], model: Model) -> "CounterfactualSteps":
        """Return the steps of a model for the actions of an environment."""
        if model.chances is not None:
            raise ModelError(
                "the machines answer with chance, and a learner would take imagined steps for "
                "sure: leave out counterfactual"
            )
        space = env.action_space
        if not isinstance(space, gym.spaces.Discrete):
            raise OptionError(f"Q-learning needs Discrete actions, not {space}")
        names = SymbolEncoder(env, "action")
        symbols: list[Symbol] = [names(int(space.start) + action) for action in range(int(space.n))]
        columns = [model.actions.get(symbol) for symbol in symbols]
        shape = len(model), len(columns)
        following = np.full(shape, -1, np.int32)
        reward, outcome = np.zeros(shape), np.zeros(shape, np.int32)
        for action, column in enumerate(columns):
            if column is None:
                continue
            is_known = model.known[:, column]
            following[:, action] = model.following[:, column]
            reward[is_known, action] = model.reward[is_known, column]
            outcome[is_known, action] = np.where(model.ends[is_known, column], ENDS, GOES_ON)
        return cls(following, reward, outcome)


def inner_situations(augmented: AugmentObservation, model: Model) -> tuple[AugmentedState, ...]:
    """Return a model's augmented states, with the inner environment's observations."""
    values = inner_values(augmented, model)
    columns = (column.tolist() for column in model.states.values())
    rows = zip((values[code] for code in model.observation.tolist()), *columns, strict=True)
    return tuple(rows)


def inner_values(augmented: AugmentObservation, model: Model) -> list[Any]:
    """Return the environment's value of each of the model's observations, in their order."""
    machines = augmented.machines
    if list(machines) != list(model.states):
        raise ModelError(
            f"the model is about the machines {', '.join(model.states)}, and in view are "
            f"{listed(machines)}: put those in view that the model is about"
        )
    names = SymbolEncoder(augmented.env, "observation")
    symbols = names.of_space(augmented.env.observation_space)
    for observation in model.observations:
        if symbols is not None and observation not in symbols:
            raise ModelError(
                f"the model knows the observation {observation!r}, which the environment lacks: "
                "build it from traces of this environment"
            )
    sizes = (machine.states for machine in machines.values())
    columns = zip(model.states.values(), sizes, strict=True)
    if any(column.max(initial=-1) >= size for column, size in columns):
        raise ModelError(
            "the model has states that the machines lack: build it with the machines in view"
        )
    return list(map(names.value, model.observations))


@dataclass(frozen=True, eq=False)
class Guidance:
    """The parts of a model that a learner uses.

    `values` are the environment's values of the model's observations, `codes` the model's codes
    of these, and `situations` the model's augmented states with such values. `steps` is None
    without counterfactual steps; `potential` is 0 everywhere without shaping.
    """

    augmented: AugmentObservation
    values: tuple[Any, ...]
    codes: dict[Symbol, int]
    situations: tuple[AugmentedState, ...]
    steps: _core.KnownSteps | None
    potential: Potential

    @classmethod
    def of(
        cls,
        augmented: AugmentObservation,
        model: Model,
        *,
        counterfactual: bool,
        potential: Potential | None,
    ) -> "Guidance":
        """Return the selected parts of a model."""
        if potential is not None and potential.model != model:
            raise ModelError(
                "the plan to shape rewards by is of another model than the one given: leave out "
                "model, and it is the plan's own"
            )
        values = inner_values(augmented, model)
        sizes = tuple(machine.states for machine in augmented.machines.values())
        return cls(
            augmented,
            tuple(values),
            {as_symbol(value): code for code, value in enumerate(values)},
            inner_situations(augmented, model),
            _known_steps(augmented, model) if counterfactual else None,
            potential or Potential(model, np.zeros(len(model)), np.zeros(sizes)),
        )

    def observation_code(self, observation: Any) -> int | None:
        """Return the model's code of an observation of the environment inside."""
        return self.codes.get(as_symbol(observation))

    def potentials(self) -> dict[Symbol, float]:
        """Return the potential of each augmented state with an observation of the model."""
        augmented, potential = self.augmented, self.potential
        by_symbol = {
            as_symbol(augmented.encode(value, *states)): float(potential.of_states[states])
            for value in self.values
            for states in product(*map(range, potential.of_states.shape))
        }
        of_situation = potential.of_situation.tolist()
        for situation, value in zip(self.situations, of_situation, strict=True):
            by_symbol[as_symbol(augmented.encode(*situation))] = value
        return by_symbol


def _known_steps(augmented: AugmentObservation, model: Model) -> _core.KnownSteps:
    steps = CounterfactualSteps.of(augmented.env, model)
    return _core.known_steps(
        np.ascontiguousarray(model.observation),
        len(model.observations),
        steps.following.ravel(),
        steps.reward.ravel(),
        steps.outcome.ravel(),
        steps.following.shape[1],
    )


@dataclass(frozen=True, eq=False)
class InitialValues:
    """An augmented state, its potential, and the initial returns of each action in it."""

    symbol: Symbol
    potential: float
    values: NDArray[np.float64]


def initial_values(
    start: "QTable",
    actions: gym.spaces.Discrete,
    guidance: Guidance | None,
    view: TabularView | str,
) -> list[InitialValues]:
    """Return initial values from a table, in its order.

    States that the environment cannot show are left out. If a guidance shapes rewards, so are
    states with an observation that the model does not know.
    """
    if start.q.shape[1] != int(actions.n) or start.first_action != int(actions.start):
        raise OptionError(
            f"start has values for {start.q.shape[1]} actions from {start.first_action} on, and "
            f"the environment's are {actions}: begin with what was learned in this one"
        )
    symbols = start.situations
    if isinstance(view, TabularView):
        rows = view.rows(symbols)
        symbols = tuple(symbol for symbol in symbols if symbol in rows)
    potentials = dict.fromkeys(symbols, 0.0) if guidance is None else guidance.potentials()
    returns = dict(zip(start.situations, start.returns, strict=True))
    return [
        InitialValues(symbol, potentials[symbol], returns[symbol])
        for symbol in symbols
        if symbol in potentials
    ]
