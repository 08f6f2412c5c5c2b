"""Many environments + machines → the same environments with the machines' states in view."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from resolvent.control.wrapping.augmentation import Mode, augmentation
from resolvent.control.wrapping.fitting import GivenMachines, check_fit, pair_of
from resolvent.control.wrapping.memory import OnUnseen
from resolvent.control.wrapping.vector_memory import VectorMemory
from resolvent.errors import OptionError
from resolvent.traces.vector_live import Mask, VectorEpisodes, one_environment


class VectorAugmentObservation(gym.vector.VectorWrapper):
    """`AugmentObservation` for a vector environment: one memory for each, all moved at once.

    Modes, labels and unseen labels are as there. Every way of automatic reset is
    followed: when the call after an episode's end is the reset, that call begins
    the memory anew; when the end and the reset come in the same step, the
    observations in `infos["final_obs"]` are augmented too, and
    `infos["final_info"]` has the states at the end; without automatic resets,
    `options["reset_mask"]` says whose memory begins anew.

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
        label_of: Callable[..., Any] | None = None,
    ) -> None:
        if not isinstance(envs, gym.vector.VectorEnv):
            raise OptionError(
                f"envs is a {type(envs).__name__}: give a gymnasium.vector.VectorEnv, "
                "or use AugmentObservation for one environment"
            )
        super().__init__(envs)
        self.machines = pair_of(machines)
        with one_environment(envs) as env:
            check_fit(self.machines, env, envs.single_observation_space, envs.single_action_space)
        self._augmentation = augmentation(mode, envs.single_observation_space, self.machines)
        self.single_observation_space = self._augmentation.space
        self.observation_space = batch_space(self._augmentation.space, envs.num_envs)
        self._memory = VectorMemory(self.machines, envs.num_envs, on_unseen=on_unseen)
        self._episodes = VectorEpisodes(envs, label_of)
        self._all = np.ones(envs.num_envs, bool)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        # Looked up before the reset, which takes it out of the options.
        mask = (options or {}).get("reset_mask", self._all)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._memory.reset(self._episodes.reset(observations, infos, mask), mask)
        return self._augmented(observations), {**infos, **self._states(mask)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in all environments; their machines read the labels it led to."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        step = self._episodes.step(actions, observations, terminations, truncations, infos)
        started = step.started.any()
        memory = self._memory
        if started and self._episodes.mode is AutoresetMode.SAME_STEP:
            memory.step(step.labels, None, terminations)
            infos = self._with_ends(step.started, infos)
        else:
            memory.step(step.labels, step.stepped if started else None, terminations)
        if started:
            memory.reset(step.first_labels, step.started)
        infos = {**infos, **self._states(self._all)}
        return self._augmented(observations), rewards, terminations, truncations, infos

    def decode(self, observations: Any) -> list[tuple[int, int, int]]:
        """Return the observation, transition state and reward state of each "discrete" one."""
        return [self._augmentation.decode(observation) for observation in observations]

    def _augmented(self, observations: Any) -> Any:
        memory = self._memory
        return self._augmentation.many(observations, memory.transition_state, memory.reward_state)

    def _states(self, mask: Mask) -> dict[str, Any]:
        """Return the infos about the masked environments, by Gymnasium's convention."""
        told = {}
        for key in ("transition_state", "reward_state", "unseen"):
            column = getattr(self._memory, key)
            told[key] = column.copy() if mask is self._all else column * mask
            told[f"_{key}"] = mask.copy()
        return told

    def _with_ends(self, ended: Mask, infos: dict[str, Any]) -> dict[str, Any]:
        """Return the infos with the ends of episodes augmented, by the states they ended in."""
        memory = self._memory
        final = np.full(len(ended), None, object)
        for number, observation in self._episodes.final_observations(ended, infos).items():
            states = memory.transition_state[number], memory.reward_state[number]
            final[number] = self._augmentation.one(observation, *map(int, states))
        told = {**infos.get("final_info", {}), **self._states(ended)}
        return {**infos, "final_obs": final, "final_info": told}
