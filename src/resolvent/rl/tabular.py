"""Tables for Q-learning: of the world inside an environment, and of a model of its machines.

`TabularView` looks through wrappers with a known effect at a tabular environment, on whose tables
policies are evaluated exactly. `VisibleModel` has the known steps of a model in the observations of
an environment: a counterfactual step is the outcome of an action under the same observation in
another state of the machines (Toro Icarte, Klassen, Valenzano and McIlraith 2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import FrameStackObservation
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import listed
from resolvent.errors import ModelError, OptionError
from resolvent.machines import MachinePair
from resolvent.planning.model import Model
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.env import TRANSPARENT, SymbolEncoder, TabularEnv, time_limit
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes, codes_of

UNKNOWN, GOES_ON, ENDS = range(3)  # values of `CounterfactualSteps.outcome`


@dataclass(frozen=True, eq=False)
class TabularView:
    """A tabular environment, and the form in which its observations reach the agent.

    They have the states of a pair of machines (`augmented`, with the codes observation, transition
    state, reward state), or are the last few (`stack`), or unchanged.
    """

    world: TabularEnv
    augmented: AugmentObservation | None = None
    stack: int | None = None
    max_steps: int | None = None

    @property
    def width(self) -> int:
        """The number of codes of an observation."""
        return 3 if self.augmented is not None else self.stack or 1

    def symbol(self, codes: Sequence[int]) -> Symbol:
        """Return the symbol of the environment's observation with these codes."""
        if self.augmented is not None:
            return as_symbol(self.augmented.encode(*codes))
        return codes[0] if self.stack is None else tuple(codes)

    def numbering(
        self, symbols: Sequence[Symbol]
    ) -> tuple[_core.TabularTrainer, NDArray[np.int64]]:
        """Return tables that number the observable symbols, and the indices of these."""
        codes, tables = [self._codes_of(symbol) for symbol in symbols], self.episode_tables()
        tables.add_states(np.array([row for row in codes if row is not None], np.int32).ravel())
        indices = [index for index, row in enumerate(codes) if row is not None]
        return tables, np.array(indices, np.int64)

    def episode_tables(
        self,
        known: _core.KnownSteps | None = None,
        known_observation: Codes | None = None,
        potential: NDArray[np.float64] | None = None,
    ) -> _core.TabularTrainer:
        """Return the tables, ready for episodes that a learner plays in them."""
        world = self.world.mechanics
        transition = reward = np.zeros(len(world.labels), np.int32)
        reads_first = lags = False
        if self.augmented is not None:
            pair = self.augmented.machines
            transition = pair.transition.transitions_for(world.labels).ravel()
            reward = pair.reward.transitions_for(world.labels).ravel()
            reads_first, lags = pair.timing.first == 0, pair.timing.lag > 0
        codes = np.zeros(0, np.int32) if known_observation is None else known_observation
        return _core.tabular_trainer(
            np.ascontiguousarray(world.next_state.ravel()),
            world.ends.ravel().astype(np.int32),
            len(world.actions),
            np.ascontiguousarray(world.reward.ravel()),
            world.observation_of,
            world.label_of,
            len(world.labels),
            transition=transition,
            reward_transitions=reward,
            reads_first=reads_first,
            lags=lags,
            stack=0 if self.augmented is not None else self.width,
            known=known,
            known_observation=codes,
            potential=np.zeros(0) if potential is None else potential.ravel(),
        )

    def _codes_of(self, symbol: Symbol) -> tuple[int, ...] | None:
        """Return the codes of a symbol; None if the environment cannot show it."""
        if self.augmented is not None:
            return self._augmented_codes.get(symbol)
        codes: Any = symbol if self.stack else (symbol,)
        is_row = isinstance(codes, tuple) and len(codes) == self.width
        return codes if is_row and all(type(code) is int for code in codes) else None

    @cached_property
    def _augmented_codes(self) -> dict[Symbol, tuple[int, ...]]:
        """The codes of all augmented observations."""
        machines: Any = () if self.augmented is None else self.augmented.machines.values()
        sizes = len(self.world.mechanics.observations), *(machine.states for machine in machines)
        return {self.symbol(codes): codes for codes in np.ndindex(*sizes)}


def tabular_view(env: gym.Env[Any, Any]) -> TabularView | str:
    """Return the view of the tabular environment inside, or the reason why there is none."""
    augmented: AugmentObservation | None = None
    stack: int | None = None
    inner = env
    while isinstance(inner, gym.Wrapper):
        is_changed = augmented is not None or stack is not None
        if type(inner) is AugmentObservation and inner.is_plain and not is_changed:
            if not isinstance(inner.machines, MachinePair):
                return f"its tables cannot hold the machines {', '.join(inner.machines)}"
            augmented = inner
        elif type(inner) is FrameStackObservation and not is_changed:
            if inner.padding_type != "reset":
                return "FrameStackObservation pads with other observations than the first"
            stack = inner.stack_size
        elif type(inner) not in TRANSPARENT:
            return f"{type(inner).__name__} may change observations or rewards"
        inner = inner.env
    if not isinstance(inner, TabularEnv) or not inner.rolls_out:
        return f"{type(inner).__name__} is not a world of tables"
    if inner.mechanics.draws:
        return f"the steps of {type(inner).__name__} are random"
    return TabularView(inner, augmented, stack, time_limit(env))


@dataclass(frozen=True)
class Evaluation:
    """The mean discounted return of a policy.

    `ended` is the share of starts, or of episodes, from which an end is reached. If `exact`,
    the policy was followed on the tables from all starts, without a step limit and even through
    cycles. During learning, `episode` and `steps` count the episodes and steps before it.
    """

    value: float
    ended: float
    exact: bool
    episode: int | None = None
    steps: int | None = None


def evaluate_exactly(
    view: TabularView, tables: _core.TabularTrainer, policy: NDArray[np.int64], gamma: float
) -> Evaluation:
    """Evaluate a policy, with an action for each number of the tables, from every start."""
    starts = np.ascontiguousarray(view.world.mechanics.starts)
    value, ends = tables.value_of(policy.astype(np.int32), gamma, starts)
    return Evaluation(float(value.mean()), float(ends.mean()), exact=True)


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

    `values` are the environment's values of the model's observations, `augmented_states` the
    model's augmented states with such values, and `sizes` the machines' numbers of states.
    """

    def __init__(self, augmented: AugmentObservation, model: Model) -> None:
        self.augmented, self.model = augmented, model
        self.sizes = tuple(machine.states for machine in augmented.machines.values())
        encoder = SymbolEncoder(augmented.env, "observation")
        self._check(encoder.of_space(augmented.env.observation_space))
        self.values = list(map(encoder.value, model.observations))
        columns = (column.tolist() for column in model.states.values())
        observed = (self.values[code] for code in model.observation.tolist())
        self.augmented_states = list(zip(observed, *columns, strict=True))
        self._codes = {as_symbol(value): code for code, value in enumerate(self.values)}

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
        column = codes_of(actions, model.actions, -1)  # −1 is the last column, and not known
        is_known = model.known[:, column] & (column >= 0)
        outcome = np.where(model.ends[:, column], ENDS, GOES_ON)
        return CounterfactualSteps(
            np.where(is_known, model.next_state[:, column], -1).astype(np.int32),
            np.where(is_known, model.reward[:, column], 0.0),
            np.where(is_known, outcome, UNKNOWN).astype(np.int32),
        )

    def known_steps(self) -> _core.KnownSteps:
        """Return the known steps for a learner in the core."""
        steps = self.steps()
        return _core.known_steps(
            np.ascontiguousarray(self.model.observation),
            len(self.model.observations),
            steps.next_state.ravel(),
            steps.reward.ravel(),
            steps.outcome.ravel(),
            steps.next_state.shape[1],
        )

    def _check(self, symbols: Sequence[Symbol] | None) -> None:
        """Raise `ModelError` unless the model fits the machines and the environment's symbols."""
        model, machines = self.model, self.augmented.machines
        if list(machines) != list(model.states):
            raise ModelError(
                f"the model has the machines {', '.join(model.states)}, and the environment shows "
                f"{listed(machines)}: wrap it with the machines of the model"
            )
        for observation in model.observations:
            if symbols is not None and observation not in symbols:
                raise ModelError(
                    f"the model knows the observation {observation!r}, which the environment "
                    "lacks: build it from traces of this environment"
                )
        for column, size in zip(model.states.values(), self.sizes, strict=True):
            if column.max(initial=-1) >= size:
                raise ModelError(
                    "the model has states that the machines lack: build it with the machines that "
                    "the environment shows"
                )
