"""Run machines beside an environment: its resets and steps → the states of the machines.

`EpisodeStates` and `VectorEpisodeStates` are shared by all wrappers. `StepBasis` says what the
machines' predictions of live steps are based on.
"""

from collections.abc import Iterable, Sequence
from itertools import islice, product
from math import prod
from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import Basis, Machines
from resolvent.machines.augmented_state import AugmentedState
from resolvent.machines.tables import BASIS_BY_CODE
from resolvent.rl.env import LabelSource, LivePreprocessor
from resolvent.rl.tracker import Numbers, SideBySide, Tracker, VectorStateTracker
from resolvent.rl.vector_env import Mask, VectorEnv, VectorLabels, VectorStep, split
from resolvent.traces.symbols import Symbol
from resolvent.traces.vocabulary import MAX_TABLE_SIZE, codes_of

Levels: TypeAlias = dict[str, NDArray[np.int8]]
"""For each machine a code of `BASIS_BY_CODE` for every environment."""


class EpisodeStates:
    """The states of machines in the present episode of an environment.

    `observation` is the environment's last one.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        machines: Machines,
        live: LivePreprocessor,
        tracker: Tracker,
    ) -> None:
        check_fit(machines, live, env.observation_space, env.action_space)
        self.machines, self.live, self.tracker = machines, live, tracker
        self.observation: Any = None
        self._labels = LabelSource(env, live.labeling_fn)
        self._weighs_outcomes = tracker.weighs_outcomes

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Begin an episode: all machines are in their initial states."""
        self.tracker.reset(self._labels.at_reset(observation, info))
        self.observation = observation

    def step(
        self, action: Any, observation: Any, reward: Any, terminated: bool, info: dict[str, Any]
    ) -> None:
        """Read the label of a step, given its action and what the environment returned."""
        before, self.observation = self.observation, observation
        label = self._labels.after_step(before, action, reward, observation, info)
        if self._weighs_outcomes:
            self.tracker.weigh(before, action, reward, observation, terminated)
        self.tracker.step(label, terminated)

    def augmented_state(self, names: Iterable[str]) -> AugmentedState:
        """Return the symbol of the observation and the states of some machines."""
        states = dict(zip(self.machines, self.tracker.values, strict=True))
        return self.live.observations(self.observation), *(states[name] for name in names)


class VectorEpisodeStates:
    """The states of machines in the present episodes of a vector environment.

    After `step` they are those at the ends of steps, also in environments that the same step has
    reset; `begin` then begins these episodes.
    """

    def __init__(
        self,
        envs: VectorEnv,
        machines: Machines,
        live: LivePreprocessor,
        tracker: VectorStateTracker | SideBySide,
        *,
        remembers: bool = False,
    ) -> None:
        check_fit(machines, live, envs.single_observation_space, envs.single_action_space)
        self.live, self.tracker = live, tracker
        remembers = remembers or tracker.weighs_outcomes
        self.labels = VectorLabels(envs, live.labeling_fn, remembers=remembers)
        self._envs = envs

    def reset(self, seed: Any, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any], Mask]:
        """Reset all environments or those of a mask in the options; return the mask, too."""
        # Looked up before the reset, which removes it from the options.
        mask = (options or {}).get("reset_mask", self.labels.episodes.all)
        observations, infos = self._envs.reset(seed=seed, options=options)
        self.tracker.reset(self.labels.reset(observations, infos, mask), mask)
        return observations, infos, mask

    def step(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        terminations: Mask,
        truncations: Mask,
        infos: dict[str, Any],
    ) -> VectorStep:
        """Read the labels of a step, given its actions and what the environments returned."""
        before = self.labels.observations
        step = self.labels.step(actions, observations, rewards, terminations, truncations, infos)
        if isinstance(self.tracker, SideBySide):
            self.tracker.weigh(
                step.stepped,
                split(self._envs.observation_space, before),
                split(self._envs.action_space, actions),
                rewards,
                self.labels.episodes.reached(observations, infos),
                terminations,
            )
        self.tracker.step(step.labels, step.stepped, terminations)
        return step

    def begin(self, step: VectorStep) -> None:
        """Begin the episodes that a step has started."""
        self.tracker.reset(step.first_labels, step.started)


class StepBasis:
    """Whether each machine's prediction of a step is observed, generalized or unseen.

    The spaces are those of one environment. If both are Discrete, levels are looked up.

    >>> from resolvent.worlds import House
    >>> house = House()
    >>> machines, live = house.machines(), LivePreprocessor(house, house.machines().preprocessor)
    >>> spaces = house.observation_space, house.action_space
    >>> print(StepBasis(machines, live, *spaces).single(0, 2, (0, 0))["transition"])
    observed
    """

    def __init__(
        self,
        machines: Machines,
        live: LivePreprocessor,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
    ) -> None:
        self._machines = machines
        self._observations, self._actions = live.observations, live.actions
        self._tables: Levels | None = None
        self._first = 0, 0
        self._cache: dict[tuple[int, int, tuple[int, ...]], dict[str, Basis]] = {}
        if isinstance(observation_space, gym.spaces.Discrete) and isinstance(
            action_space, gym.spaces.Discrete
        ):
            self._first = int(observation_space.start), int(action_space.start)
            observations = self._observations.of_space(observation_space) or ()
            actions = self._actions.of_space(action_space) or ()
            size = prod(machine.states for machine in machines.values())
            if len(observations) * len(actions) * size <= MAX_TABLE_SIZE:
                self._tables = {name: self._table(name, observations, actions) for name in machines}

    def single(self, observation: Any, action: Any, states: Sequence[int]) -> dict[str, Basis]:
        """Return the level of each machine's prediction in these states."""
        if self._tables is None:
            return self._levels(observation, action, states)
        step = int(observation), int(action), tuple(states)
        levels = self._cache.get(step)
        if levels is None:
            levels = self._cache[step] = self._levels(observation, action, states)
        return levels.copy()

    def batch(
        self,
        observation_space: gym.Space[Any],
        observations: Any,
        action_space: gym.Space[Any],
        actions: Any,
        states: Sequence[Numbers],
    ) -> Levels:
        """Return the codes of the levels in many environments, with their batched spaces."""
        if self._tables is None:
            each = zip(
                split(observation_space, observations),
                split(action_space, actions),
                *(column.tolist() for column in states),
                strict=True,
            )
            rows = [self._levels(row[0], row[1], row[2:]) for row in each]
            return {
                name: np.array([BASIS_BY_CODE.index(levels[name]) for levels in rows], np.int8)
                for name in self._machines
            }
        observation = np.asarray(observations, np.int64) - self._first[0]
        action = np.asarray(actions, np.int64) - self._first[1]
        return {
            name: table[observation, action, states[0] if table.shape[2] > 1 else 0, column]
            for (name, table), column in zip(self._tables.items(), states, strict=True)
        }

    def _levels(self, observation: Any, action: Any, states: Sequence[int]) -> dict[str, Basis]:
        symbol, action_symbol = self._observations(observation), self._actions(action)
        return {
            name: machine.basis(
                state, (symbol, states[0]) if machine.supplemented else symbol, action_symbol
            )
            for (name, machine), state in zip(self._machines.items(), states, strict=True)
        }

    def _table(
        self, name: str, observations: Sequence[Symbol], actions: Sequence[Symbol]
    ) -> NDArray[np.int8]:
        """Return the level for each observation, action, transition state and own state.

        For machines that are not supplemented the third axis has length 1.
        """
        machine = self._machines[name]
        paired = self._machines.transition.states if machine.supplemented else 1
        symbols = product(observations, range(paired)) if machine.supplemented else observations
        observation_codes = codes_of(symbols, machine.observations, -1)
        observation_codes = observation_codes.reshape(len(observations), 1, paired, 1)
        action_codes = codes_of(actions, machine.actions, -1).reshape(1, len(actions), 1, 1)
        queries = observation_codes.astype(np.int64) * len(machine.actions) + action_codes
        queries[(observation_codes < 0) | (action_codes < 0)] = -1
        states = np.arange(machine.states, dtype=np.int32).reshape(1, 1, 1, -1)
        shape = np.broadcast_shapes(queries.shape, states.shape)
        every_state = np.broadcast_to(states, shape).ravel()
        every_query = np.broadcast_to(queries, shape).ravel()
        return machine.basis_many(every_state, every_query).reshape(shape)


def check_fit(
    machines: Machines,
    live: LivePreprocessor,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
) -> None:
    """Raise `ModelError` for machines that were certainly inferred in another environment.

    Traces may lack actions and observations of the environment, and may be from a larger
    one. But machines cannot have actions that the environment lacks, nor lack all of its
    observations. Spaces whose values cannot be listed are not checked.

    >>> from resolvent.worlds import House
    >>> from resolvent.inference.infer import infer
    >>> from resolvent.traces import Trace, TraceSet
    >>> shop = infer(TraceSet([Trace(["street", "shop"], [None, "bell"], ["enter"], [0])]))
    >>> live = LivePreprocessor(House(), shop.machines.preprocessor)
    >>> check_fit(shop.machines, live, House().observation_space, House().action_space)
    Traceback (most recent call last):
    resolvent.errors.ModelError: the machines know the action 'enter', which the environment lacks \
(it has 'up', 'down', 'left', …): they were inferred in another environment
    """
    actions = live.actions.of_space(action_space)
    if actions is not None:
        of_machines = dict.fromkeys(
            action for machine in machines.values() for action in machine.actions
        )
        lacking = [action for action in of_machines if action not in actions]
        if lacking:
            raise ModelError(
                f"the machines know the action {_examples(lacking)}, which the environment lacks "
                f"(it has {_examples(actions)}): they were inferred in another environment"
            )
    symbols: Iterable[Any] = (  # without the states that they are paired with
        symbol[0] if machine.supplemented else symbol
        for machine in machines.values()
        for symbol in cast("Iterable[Any]", machine.observations)
    )
    of_machines = dict.fromkeys(symbols)
    observations = live.observations.of_space(observation_space)
    if observations is None or not of_machines:
        return
    if not any(observation in of_machines for observation in observations):
        raise ModelError(
            f"the machines know none of the environment's observations "
            f"(they know {_examples(of_machines)}; it has {_examples(observations)}): "
            f"they were inferred in another environment"
        )


def _examples(symbols: Iterable[Symbol]) -> str:
    first = list(islice(symbols, 4))
    return ", ".join([*map(repr, first[:3]), *("…" for _ in first[3:])])
