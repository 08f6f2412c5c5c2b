"""Show the states of machines in observations: `AugmentObservation` and its vector form."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from resolvent._util.validation import check_arguments
from resolvent.errors import OptionError
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.rl.env import LabelSource, checked_reset, checked_step
from resolvent.rl.observation import Mode
from resolvent.rl.tracker import (
    BeliefTracker,
    OnUnseen,
    StateTracker,
    VectorBeliefTracker,
    VectorStateTracker,
)
from resolvent.rl.vector_env import Mask, VectorEpisodes, VectorStep, one_environment, split
from resolvent.rl.wrappers.core import GivenMachines, Levels, WrapperCore, knowledge_infos


class AugmentObservation(
    gym.Wrapper[Any, Any, Any, Any],
    gym.utils.RecordConstructorArgs,
):
    """Add the states of all machines to the observations, which makes the world Markovian.

    | `mode` | observations |
    |---|---|
    | "dict" | {"observation", "transition_state", "reward_state"}; a Dict gains the keys |
    | "flatten" | one vector: the flattened observation, then the states one-hot |
    | "multidiscrete" | a row of numbers: observation(s), transition state, reward state |
    | "discrete" | one number, which `decode` takes apart |
    | "belief" | as "dict", with "transition_belief", …: the probability of each state |

    The states come in the order of the machines, each under the name of its machine: a third
    machine, which predicts "cost", comes last, as "cost_state". A "discrete" number is
    ((o − start) · |Q| + q) · |U| + u, where |Q| and |U| are the numbers of states. All numbers
    count from 0 for any start of the inner space; "dict" leaves them unchanged unless some are
    below 0. Parts of nested observations get names such as "robot/arm", and a text becomes the
    numbers of its characters, so that deep learners take them; a `SpaceWarning` names the parts
    that they do not take.

    With mode="belief" the states are estimated, if labels are noisy or starts are hidden
    (`machines.doubt`), from the recorded labels and from the outcome of each step.
    `info["transition_state"]` is then the most likely state.

    Labels are found as by `rs.collect`: pass the same `label_of` and `name_of`, if any.
    Machines that were inferred with `labels="observation"` and the like make them by
    themselves; for machines inferred from traces that `collect` labeled so, pass the same
    `labels`. With on_unseen="stay" a label that a machine was never shown leaves its state
    unchanged; with "raise" it raises `ModelError`, except after the episode has terminated.
    `info["transition_state"]`, `info["reward_state"]` and `info["unseen"]`, the number of unseen
    labels in this episode, are there at reset and at every step. `info["knowledge"]` gives at
    every step the basis of each machine's prediction: "witnessed", "assumed" or "unseen". By
    default it is there if observations and actions are Discrete, which makes it a look-up of
    half a microsecond; or pass `knowledge=True` or `False`.

    `machines` may be a path: then `env.spec` can be written to JSON and made again anywhere the
    file is. With the machines themselves, or a `label_of`, `gym.make(env.spec)` works in this
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
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
        knowledge: bool | None = None,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise OptionError(
                f"env is a {type(env).__name__}: give a gymnasium.Env, "
                "or use VectorAugmentObservation for a VectorEnv"
            )
        judged = ["env", "machines", "mode", "on_unseen", "label_of"]
        check_arguments(AugmentObservation.__init__, locals(), leaving=judged)
        spaces = env.observation_space, env.action_space
        has_basis = knowledge
        if has_basis is None:
            has_basis = all(isinstance(space, gym.spaces.Discrete) for space in spaces)
        core = WrapperCore(
            machines,
            env,
            spaces,
            mode,
            labels=labels,
            label_of=label_of,
            name_of=name_of,
            knowledge=has_basis,
        )
        self.machines = core.machines
        gym.utils.RecordConstructorArgs.__init__(
            self,
            machines=str(machines) if isinstance(machines, str | Path) else self.machines,
            mode=mode,
            on_unseen=on_unseen,
            labels=labels,
            label_of=label_of,
            name_of=name_of,
            knowledge=knowledge,
            _disable_deepcopy=True,
        )
        gym.Wrapper.__init__(self, env)
        self.live, self._shape, self._basis = core.live, core.shape, core.basis
        self.observation_space = core.shape.space
        if mode == "discrete":
            self.observation_names = None  # the names of inner observations fit other numbers
        self._belief = (
            BeliefTracker(self.machines, core.live, on_unseen=on_unseen)
            if mode == "belief"
            else None
        )
        self._memory = self._belief or StateTracker(self.machines, on_unseen=on_unseen)
        self.label_of, self.name_of = core.live.label_of, name_of
        self._labels = LabelSource(env, core.live.label_of)
        self._state_names = core.state_names
        self._state_infos: dict[tuple[int, ...], dict[str, int]] = {}
        self._observation: Any = None
        plainly_labeled = core.live.label_of is None and name_of is None
        self.is_plain = on_unseen == "stay" and plainly_labeled and self._belief is None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; all machines start in their initial states."""
        observation, info = checked_reset(self.env.reset(seed=seed, options=options))
        self._memory.reset(self._labels.at_reset(observation, info))
        return self._augmented(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; all machines read the label it led to."""
        observation, reward, terminated, truncated, info = checked_step(self.env.step(action))
        before = self._observation
        label = self._labels.after_step(before, action, reward, observation, info)
        if self._basis is not None:
            levels = self._basis.single(before, action, self._memory.values)
            info = {**info, "knowledge": levels}
        if self._belief is not None:
            self._belief.took(before, action, reward, observation, terminated)
        self._memory.step(label, terminated)
        augmented, info = self._augmented(observation, info)
        return augmented, reward, terminated, truncated, info

    @property
    def inner_observation(self) -> Any:
        """The last observation of the environment inside."""
        return self._observation

    @property
    def situation(self) -> tuple[Any, ...]:
        """The augmented state: the last inner observation and the states of all machines."""
        return self._observation, *self._memory.values

    def encode(self, observation: Any, *states: int) -> Any:
        """Return the augmented observation of an inner observation and states."""
        if self._belief is not None:
            raise OptionError('mode="belief" shows how likely states are: it encodes no states')
        return self._shape.augment(observation, states)

    def decode(self, observation: int) -> tuple[int, ...]:
        """Return the inner observation and all states of a "discrete" one."""
        return self._shape.decode(observation)

    def _augmented(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._observation = observation
        memory = self._memory
        states = memory.values
        state_infos = self._state_infos.get(states)
        if state_infos is None:
            state_infos = dict(zip(self._state_names, states, strict=True))
            self._state_infos[states] = state_infos
        info = {**info, **state_infos, "unseen": memory.unseen}
        places = states if self._belief is None else self._belief.shown
        return self._shape.augment(observation, places), info


def augmented_inside(env: gym.Env[Any, Any]) -> AugmentObservation | None:
    """Return the `AugmentObservation` around or inside an environment, None without one."""
    while isinstance(env, gym.Wrapper) and not isinstance(env, AugmentObservation):
        env = env.env
    return env if isinstance(env, AugmentObservation) else None


class VectorAugmentObservation(gym.vector.VectorWrapper):
    """`AugmentObservation` for a vector environment: all machines move at once.

    Modes, labels, unseen labels and knowledge are the same. All autoreset modes work. In
    next-step mode the call after an episode's end resets that environment's machines. In
    same-step mode `infos["final_obs"]` is augmented too, and `infos["final_info"]` has the
    states and the knowledge at the end. In disabled mode `options["reset_mask"]` says which
    machines to reset.

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
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
        knowledge: bool = False,
    ) -> None:
        if not isinstance(envs, gym.vector.VectorEnv):
            raise OptionError(
                f"envs is a {type(envs).__name__}: give a gymnasium.vector.VectorEnv, "
                "or use AugmentObservation for one environment"
            )
        judged = ["envs", "machines", "mode", "on_unseen", "label_of"]
        check_arguments(VectorAugmentObservation.__init__, locals(), leaving=judged)
        super().__init__(envs)
        with one_environment(envs) as env:
            core = WrapperCore(
                machines,
                env,
                (envs.single_observation_space, envs.single_action_space),
                mode,
                labels=labels,
                label_of=label_of,
                name_of=name_of,
                knowledge=knowledge,
            )
        self.machines, count = core.machines, envs.num_envs
        self._shape, self._basis = core.shape, core.basis
        self.single_observation_space = core.shape.space
        self.observation_space = batch_space(core.shape.space, count)
        self._belief: VectorBeliefTracker | None = None
        if mode == "belief":
            self._belief = VectorBeliefTracker(core.machines, count, core.live, on_unseen=on_unseen)
        self._memory = self._belief or VectorStateTracker(core.machines, count, on_unseen=on_unseen)
        self._episodes = VectorEpisodes(envs, core.live.label_of)
        self._all = np.ones(count, bool)
        self._state_names = core.state_names
        self._observations: Any = None

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        # Looked up before the reset, which removes it from the options.
        mask = (options or {}).get("reset_mask", self._all)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._memory.reset(self._episodes.reset(observations, infos, mask), mask)
        self._remember(observations)
        return self._augmented(observations), {**infos, **self._state_infos(mask)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in all environments; their machines read the labels it led to."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        step = self._episodes.step(actions, observations, rewards, terminations, truncations, infos)
        has_started = step.started.any()
        memory = self._memory
        levels = self._levels(actions)
        if self._belief is not None:
            self._weigh(actions, observations, rewards, terminations, step, infos)
        if has_started and self._episodes.mode is AutoresetMode.SAME_STEP:
            memory.step(step.labels, None, terminations)
            infos = self._with_final(step.started, infos, levels)
            not_final = ~step.started
        else:
            memory.step(step.labels, step.stepped if has_started else None, terminations)
            not_final = step.stepped
        if has_started:
            memory.reset(step.first_labels, step.started)
        infos = {**infos, **self._state_infos(self._all), **_level_infos(levels, not_final)}
        self._remember(observations)
        return self._augmented(observations), rewards, terminations, truncations, infos

    def decode(self, observations: Any) -> list[tuple[int, ...]]:
        """Return the observation and all states of each "discrete" one."""
        return [self._shape.decode(observation) for observation in observations]

    def _augmented(self, observations: Any) -> Any:
        places = self._memory.values if self._belief is None else self._belief.shown
        return self._shape.augment_batch(observations, places)

    def _weigh(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        terminations: Any,
        step: VectorStep,
        infos: dict[str, Any],
    ) -> None:
        """Update the beliefs by the outcomes of the steps, before labels are read."""
        if self._belief is None:
            return
        spaces = self.env.observation_space, self.env.action_space
        following = self._episodes.reached(split(spaces[0], observations), step.started, infos)
        before = self._observations
        self._belief.took(spaces, before, actions, rewards, following, terminations, step.stepped)

    def _state_infos(self, mask: Mask) -> dict[str, Any]:
        """Return the infos about the masked environments, by Gymnasium's convention."""
        infos: dict[str, Any] = {}
        columns = (*self._memory.values, self._memory.unseen)
        for key, column in zip((*self._state_names, "unseen"), columns, strict=True):
            infos[key] = column.copy() if mask is self._all else column * mask
            infos[f"_{key}"] = mask.copy()
        return infos

    def _levels(self, actions: Any) -> Levels | None:
        """Return the basis of the predictions of a step with these actions, if it is shown."""
        if self._basis is None:
            return None
        before = self.env.observation_space, self._observations
        return self._basis.batch(*before, self.env.action_space, actions, self._memory.values)

    def _remember(self, observations: Any) -> None:
        if self._basis is not None or self._belief is not None:
            # A copy: some vector environments overwrite their batches.
            self._observations = copy.deepcopy(observations)

    def _with_final(
        self, ended: Mask, infos: dict[str, Any], levels: Levels | None
    ) -> dict[str, Any]:
        """Return the infos with the final observations augmented, by the states at the end."""
        final = np.full(len(ended), None, object)
        for number, observation in self._episodes.final_observations(ended, infos).items():
            states: list[Any] = [int(column[number]) for column in self._memory.values]
            if self._belief is not None:
                states = self._belief.of(number).shown
            final[number] = self._shape.augment(observation, states)
        final_infos = {
            **infos.get("final_info", {}),
            **self._state_infos(ended),
            **_level_infos(levels, ended),
        }
        return {**infos, "final_obs": final, "final_info": final_infos}


def _level_infos(levels: Levels | None, mask: Mask) -> dict[str, Any]:
    if levels is None:
        return {}
    return {"knowledge": knowledge_infos(levels, mask), "_knowledge": mask.copy()}
