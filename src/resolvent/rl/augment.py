"""Show the states of machines in observations: `AugmentObservation` and its vector form."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from resolvent._util.validation import check_arguments
from resolvent.errors import OptionError
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.machines import Basis, Machines, load
from resolvent.machines.tables import BASIS_BY_CODE
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.augmentation import Mode, augmentation, decode, state_names
from resolvent.rl.env import LivePreprocessor, check_env, checked_reset, checked_step
from resolvent.rl.tracker import (
    BeliefTracker,
    EpisodeStates,
    Numbers,
    OnUnseen,
    StateTracker,
    Tracker,
    VectorBeliefTracker,
    VectorEpisodeStates,
    VectorStateTracker,
)
from resolvent.rl.vector_env import Mask, VectorEnv, one_environment, split
from resolvent.traces.symbols import Symbol
from resolvent.traces.vocabulary import MAX_TABLE_SIZE, codes_of

GivenMachines: TypeAlias = Machines | InferenceResult | str | Path  # or the path of a file
Levels: TypeAlias = dict[str, NDArray[np.int8]]  # codes of `BASIS_BY_CODE` by machine
_LEVEL_OF_CODE = np.array([*BASIS_BY_CODE, None], object)  # −1 is the last one


class AugmentObservation(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Add the states of all machines to the observations, which makes the world Markovian.

    | `mode` | observations |
    |---|---|
    | "dict" | {"observation", "transition_state", "reward_state"}; a Dict gains the keys |
    | "flatten" | one vector: the flattened observation, then the states one-hot |
    | "multidiscrete" | a row of numbers: observation(s), transition state, reward state |
    | "discrete" | one number, which `decode` takes apart |
    | "belief" | as "dict", with "transition_belief", …: the probability of each state |

    The states are in the order of the machines, each under the name of its machine: a third
    machine, which predicts "cost", is the last one, as "cost_state". A "discrete" number is
    ((o − start) · |Q| + q) · |U| + u, where |Q| and |U| are the numbers of states. All numbers
    count from 0 for any start of the inner space; "dict" leaves them unchanged unless some are
    below 0. Parts of nested observations get names such as "robot/arm", and a text becomes the
    numbers of its characters, so that deep learners take them; a `SpaceWarning` names the parts
    that they do not take.

    With mode="belief" the states are estimated, if labels are noisy or starts are hidden
    (`machines.state_uncertainty`), from the recorded labels and from the outcome of each step.
    `info["transition_state"]` is then the most likely state.

    Labels are those of `rs.collect`: pass the same `labeling_fn` and `observation_fn`, if any.
    Machines that were inferred with `labels="observation"` and the like make them by
    themselves; for machines inferred from traces that `collect` labeled so, pass the same
    `labels`. With on_unseen="stay" a label that is unseen in a machine's state leaves it
    unchanged; with "raise" it raises `ModelError`, except after the episode has terminated.
    `info["transition_state"]`, `info["reward_state"]` and `info["unseen"]`, the number of unseen
    labels in this episode, are there at reset and at every step. `info["knowledge"]` gives at
    every step the basis of each machine's prediction: "observed", "generalized" or "unseen". By
    default it is there if observations and actions are Discrete, which makes it a look-up of
    half a microsecond; or pass `knowledge=True` or `False`.

    `machines` may be a path: then `env.spec` can be written to JSON and made again anywhere the
    file is. With the machines themselves, or a `labeling_fn`, `gym.make(env.spec)` works in this
    process only, and `to_json` raises.

    >>> import gymnasium as gym, resolvent as rs
    >>> env = gym.make("resolvent/House-v0")
    >>> pair = rs.infer(rs.collect(env, episodes=200, seed=0)).machines
    >>> wrapped = AugmentObservation(env, pair)
    >>> wrapped.reset()[0]
    {'observation': 0, 'transition_state': 0, 'reward_state': 0}
    >>> wrapped.step(2)[0]  # left, to where the key is
    {'observation': 1, 'transition_state': 1, 'reward_state': 0}
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        machines: GivenMachines,
        *,
        mode: Mode = "dict",
        on_unseen: OnUnseen = "stay",
        labels: str | LabelingFunction | None = None,
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
        knowledge: bool | None = None,
    ) -> None:
        check_env(env, gym.Env, "AugmentObservation", "VectorAugmentObservation")
        checked_below = ["env", "machines", "labeling_fn"]
        check_arguments(AugmentObservation.__init__, locals(), leaving=checked_below)
        self.machines = _machines_of(machines)
        gym.utils.RecordConstructorArgs.__init__(
            self,
            machines=str(machines) if isinstance(machines, str | Path) else self.machines,
            mode=mode,
            on_unseen=on_unseen,
            labels=labels,
            labeling_fn=labeling_fn,
            observation_fn=observation_fn,
            knowledge=knowledge,
            _disable_deepcopy=True,
        )
        gym.Wrapper.__init__(self, env)
        live = LivePreprocessor(
            env, self.machines.preprocessor, labels, labeling_fn, observation_fn
        )
        self._belief: BeliefTracker | None = None
        self._tracker: Tracker = StateTracker(self.machines, on_unseen=on_unseen)
        if mode == "belief":
            self._tracker = self._belief = BeliefTracker(self.machines, live, on_unseen=on_unseen)
        self.episode = EpisodeStates(env, self.machines, live, self._tracker)
        spaces = env.observation_space, env.action_space
        if knowledge is None:
            knowledge = all(isinstance(space, gym.spaces.Discrete) for space in spaces)
        self._basis = StepBasis(self.machines, live, *spaces) if knowledge else None
        self._shape = augmentation(mode, env.observation_space, self.machines)
        self.observation_space = self._shape.space
        if mode == "discrete":
            self.observation_names = None  # the names of inner observations fit other numbers
        self.labeling_fn, self.observation_fn = live.labeling_fn, observation_fn
        self._state_names = state_names(self.machines)
        self._state_infos: dict[tuple[int, ...], dict[str, int]] = {}
        reads_reported_labels = live.labeling_fn is None and observation_fn is None
        self.is_plain = on_unseen == "stay" and reads_reported_labels and self._belief is None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; all machines start in their initial states."""
        observation, info = checked_reset(self.env.reset(seed=seed, options=options))
        self.episode.reset(observation, info)
        return self._augmented(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; all machines read the label it led to."""
        observation, reward, terminated, truncated, info = checked_step(self.env.step(action))
        episode = self.episode
        if self._basis is not None:
            levels = self._basis.single(episode.observation, action, self._tracker.values)
            info = {**info, "knowledge": levels}
        episode.step(action, observation, reward, terminated, info)
        augmented, info = self._augmented(observation, info)
        return augmented, reward, terminated, truncated, info

    @property
    def inner_observation(self) -> Any:
        """The last observation of the environment inside."""
        return self.episode.observation

    @property
    def augmented_state(self) -> tuple[Any, ...]:
        """The last inner observation and the states of all machines."""
        return self.episode.observation, *self._tracker.values

    def encode(self, observation: Any, *states: int) -> Any:
        """Return the augmented observation of an inner observation and states."""
        if self._belief is not None:
            raise OptionError('mode="belief" shows probabilities, not states: use another mode')
        return self._shape.augment(observation, states)

    def decode(self, observation: int) -> tuple[int, ...]:
        """Return the inner observation and all states of a "discrete" one."""
        return decode(self._shape, observation)

    def _augmented(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        tracker = self._tracker
        states = tracker.values
        state_infos = self._state_infos.get(states)
        if state_infos is None:
            state_infos = dict(zip(self._state_names, states, strict=True))
            self._state_infos[states] = state_infos
        info = {**info, **state_infos, "unseen": tracker.unseen}
        visible = states if self._belief is None else self._belief.probabilities
        return self._shape.augment(observation, visible), info


class VectorAugmentObservation(gym.vector.VectorWrapper):
    """`AugmentObservation` for a vector environment: all machines step at once.

    Modes, labels, unseen labels and knowledge are the same. All autoreset modes work. In next-step
    mode the call after an episode's end resets that environment's machines. In same-step mode
    `infos["final_obs"]` is augmented too, and `infos["final_info"]` has the states and the
    knowledge at the end. In disabled mode `options["reset_mask"]` says which machines to reset.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = gym.make("resolvent/House-v0")
    >>> pair = rs.infer(rs.collect(house, episodes=200, seed=0)).machines
    >>> envs = gym.make_vec("resolvent/House-v0", num_envs=3, vectorization_mode="sync")
    >>> wrapped = VectorAugmentObservation(envs, pair, mode="multidiscrete")
    >>> _ = wrapped.reset()
    >>> wrapped.step([2, 0, 3])[0].tolist()  # left, up, right
    [[1, 1, 0], [0, 0, 0], [3, 0, 0]]
    """

    def __init__(
        self,
        envs: gym.vector.VectorEnv[Any, Any, Any],
        machines: GivenMachines,
        *,
        mode: Mode = "dict",
        on_unseen: OnUnseen = "stay",
        labels: str | LabelingFunction | None = None,
        labeling_fn: Callable[..., Any] | None = None,
        observation_fn: Callable[[Any], Any] | None = None,
        knowledge: bool = False,
    ) -> None:
        check_env(envs, gym.vector.VectorEnv, "VectorAugmentObservation", "AugmentObservation")
        checked_below = ["envs", "machines", "labeling_fn"]
        check_arguments(VectorAugmentObservation.__init__, locals(), leaving=checked_below)
        super().__init__(envs)
        self.machines, count = _machines_of(machines), envs.num_envs
        spaces = envs.single_observation_space, envs.single_action_space
        with one_environment(envs) as env:
            live = LivePreprocessor(
                env, self.machines.preprocessor, labels, labeling_fn, observation_fn
            )
        self._tracker: VectorStateTracker | VectorBeliefTracker
        if mode == "belief":
            first = BeliefTracker(self.machines, live, on_unseen=on_unseen)
            self._tracker = VectorBeliefTracker(first, count)
        else:
            self._tracker = VectorStateTracker(self.machines, count, on_unseen=on_unseen)
        self._states = VectorEpisodeStates(
            envs, self.machines, live, self._tracker, remembers=knowledge
        )
        self._basis = StepBasis(self.machines, live, *spaces) if knowledge else None
        self._shape = augmentation(mode, spaces[0], self.machines)
        self.single_observation_space = self._shape.space
        self.observation_space = batch_space(self._shape.space, count)
        self._all = np.ones(count, bool)
        self._info_names = *state_names(self.machines), "unseen"

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        observations, infos, mask = self._states.reset(seed, options)
        return self._augmented(observations), {**infos, **self._state_infos(mask)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in all environments; their machines read the labels it led to."""
        returned = self.env.step(actions)
        observations, rewards, terminations, truncations, infos = returned
        states, levels = self._states, None
        if self._basis is not None:
            before = states.labels.observations
            levels = self._basis.batch(self.env, before, actions, self._tracker.values)
        step = states.step(actions, returned)
        not_final = step.stepped
        if step.begins:
            final = states.labels.episodes.reset_in_step
            if final.any():
                infos = self._with_final(final, infos, levels)
                not_final = ~final
            states.begin(step)
        infos = {**infos, **self._state_infos(self._all), **_level_infos(levels, not_final)}
        return self._augmented(observations), rewards, terminations, truncations, infos

    def decode(self, observations: Any) -> list[tuple[int, ...]]:
        """Return the observation and all states of each "discrete" one."""
        return [decode(self._shape, observation) for observation in observations]

    def _augmented(self, observations: Any) -> Any:
        return self._shape.augment_batch(observations, self._visible())

    def _visible(self) -> Sequence[NDArray[Any]]:
        """Return the shown columns: of states, or of their probabilities."""
        tracker = self._tracker
        return tracker.probabilities if isinstance(tracker, VectorBeliefTracker) else tracker.values

    def _state_infos(self, mask: Mask) -> dict[str, Any]:
        """Return the infos about the masked environments, by Gymnasium's convention."""
        columns = zip(self._info_names, (*self._tracker.values, self._tracker.unseen), strict=True)
        is_full = mask is self._all
        return _masked(
            {key: column.copy() if is_full else column * mask for key, column in columns}, mask
        )

    def _with_final(
        self, final: Mask, infos: dict[str, Any], levels: Levels | None
    ) -> dict[str, Any]:
        """Return the infos with the final observations augmented, by the states at the end."""
        observations = np.full(len(final), None, object)
        visible = self._visible()
        final_observations = self._states.labels.episodes.final_observations(infos)
        for number, observation in final_observations.items():
            states = [column[number] for column in visible]
            if isinstance(self._tracker, VectorStateTracker):
                states = [int(state) for state in states]
            observations[number] = self._shape.augment(observation, states)
        final_infos = {
            **infos.get("final_info", {}),
            **self._state_infos(final),
            **_level_infos(levels, final),
        }
        return {**infos, "final_obs": observations, "final_info": final_infos}


class StepBasis:
    """Whether each machine's prediction of a step is observed, generalized or unseen.

    The spaces are those of one environment. If both are Discrete, levels are looked up.
    """

    def __init__(
        self, machines: Machines, live: LivePreprocessor, observation_space: Any, action_space: Any
    ) -> None:
        self._machines, self._live = machines, live
        self._tables: Levels | None = None
        self._cache: dict[tuple[int, int, tuple[int, ...]], dict[str, Basis]] = {}
        observations = live.observations.of_space(observation_space)
        actions = live.actions.of_space(action_space)
        if observations is not None and actions is not None:
            self._first = int(observation_space.start), int(action_space.start)
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
        self, envs: VectorEnv, observations: Any, actions: Any, states: Sequence[Numbers]
    ) -> Levels:
        """Return the codes of the levels in the environments of a vector."""
        if self._tables is None:
            inputs = split(envs.observation_space, observations), split(envs.action_space, actions)
            columns = (column.tolist() for column in states)
            rows = [
                self._levels(row[0], row[1], row[2:]) for row in zip(*inputs, *columns, strict=True)
            ]
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
        symbol, action_symbol = self._live.observations(observation), self._live.actions(action)
        return {
            name: machine.basis(
                state, (symbol, states[0]) if machine.supplemented else symbol, action_symbol
            )
            for (name, machine), state in zip(self._machines.items(), states, strict=True)
        }

    def _table(
        self, name: str, observations: Sequence[Symbol], actions: Sequence[Symbol]
    ) -> NDArray[np.int8]:
        """Return the level by observation, action, transition state (or 1) and own state."""
        machine = self._machines[name]
        paired = self._machines.transition.states if machine.supplemented else 1
        symbols = product(observations, range(paired)) if machine.supplemented else observations
        observation = codes_of(symbols, machine.observations, -1).reshape(-1, 1, paired, 1)
        action = codes_of(actions, machine.actions, -1).reshape(1, -1, 1, 1)
        query = observation.astype(np.int64) * len(machine.actions) + action
        query[(observation < 0) | (action < 0)] = -1
        state, query = np.broadcast_arrays(np.arange(machine.states, dtype=np.int32), query)
        return machine.basis_many(state.ravel(), query.ravel()).reshape(query.shape)


def _level_infos(levels: Levels | None, mask: Mask) -> dict[str, Any]:
    """Return levels as infos of the masked environments, None in the others."""
    if levels is None:
        return {}
    named = {name: _LEVEL_OF_CODE[np.where(mask, codes, -1)] for name, codes in levels.items()}
    return _masked({"knowledge": _masked(named, mask)}, mask)


def _masked(columns: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """Return infos, each followed by the mask of the environments that it is about."""
    infos: dict[str, Any] = {}
    for key, column in columns.items():
        infos[key] = column
        infos[f"_{key}"] = mask.copy()
    return infos


def _machines_of(source: GivenMachines) -> Machines:
    return load(source) if isinstance(source, str | Path) else machines_of_result(source)
