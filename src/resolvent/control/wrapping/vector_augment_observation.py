"""Many environments + machines → the same environments with the machines' states in view."""

import copy
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from resolvent.arguments import check_arguments
from resolvent.control.wrapping.augmentation import Mode, augmentation, state_names
from resolvent.control.wrapping.belief_memory import VectorBeliefMemory
from resolvent.control.wrapping.fitting import GivenMachines, check_fit, machines_from
from resolvent.control.wrapping.memory import OnUnseen
from resolvent.control.wrapping.step_knowledge import Levels, StepKnowledge, knowledge_infos
from resolvent.control.wrapping.vector_memory import VectorMemory
from resolvent.errors import OptionError
from resolvent.senses.live import LiveSenses
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.vector_naming import (
    Mask,
    VectorEpisodes,
    VectorStep,
    one_environment,
    split,
)


class VectorAugmentObservation(gym.vector.VectorWrapper):
    """`AugmentObservation` for a vector environment: one memory for each, all moved at once.

    Modes, labels, unseen labels and knowledge are as there. Every way of automatic reset is
    followed: when the call after an episode's end is the reset, that call begins
    the memory anew; when the end and the reset come in the same step, the
    observations in `infos["final_obs"]` are augmented too, and
    `infos["final_info"]` has the states, and the knowledge, at the end; without automatic resets,
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
        labels: str | Labelling | None = None,
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
        self.machines = machines_from(machines)
        spaces = envs.single_observation_space, envs.single_action_space
        self._knowledge: StepKnowledge | None = None
        with one_environment(envs) as env:
            live = LiveSenses(env, self.machines.senses, labels, label_of, name_of)
            check_fit(self.machines, live, *spaces)
            if knowledge:
                self._knowledge = StepKnowledge(self.machines, live, *spaces)
        self._augmentation = augmentation(mode, envs.single_observation_space, self.machines)
        self.single_observation_space = self._augmentation.space
        self.observation_space = batch_space(self._augmentation.space, envs.num_envs)
        self._belief: VectorBeliefMemory | None = None
        if mode == "belief":
            self._belief = VectorBeliefMemory(
                self.machines, envs.num_envs, live, on_unseen=on_unseen
            )
        self._memory = self._belief or VectorMemory(
            self.machines, envs.num_envs, on_unseen=on_unseen
        )
        self._episodes = VectorEpisodes(envs, live.label_of)
        self._all = np.ones(envs.num_envs, bool)
        self._state_names = state_names(self.machines)
        self._seen: Any = None

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        # Looked up before the reset, which takes it out of the options.
        mask = (options or {}).get("reset_mask", self._all)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._memory.reset(self._episodes.reset(observations, infos, mask), mask)
        self._remember(observations)
        return self._augmented(observations), {**infos, **self._states(mask)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in all environments; their machines read the labels it led to."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        step = self._episodes.step(actions, observations, rewards, terminations, truncations, infos)
        started = step.started.any()
        memory = self._memory
        levels = self._levels(actions)
        self._infer(actions, observations, rewards, terminations, step, infos)
        if started and self._episodes.mode is AutoresetMode.SAME_STEP:
            memory.step(step.labels, None, terminations)
            infos = self._with_ends(step.started, infos, levels)
            told = ~step.started
        else:
            memory.step(step.labels, step.stepped if started else None, terminations)
            told = step.stepped
        if started:
            memory.reset(step.first_labels, step.started)
        infos = {**infos, **self._states(self._all), **_told(levels, told)}
        self._remember(observations)
        return self._augmented(observations), rewards, terminations, truncations, infos

    def decode(self, observations: Any) -> list[tuple[int, ...]]:
        """Return the observation and all states of each "discrete" one."""
        return [self._augmentation.decode(observation) for observation in observations]

    def _augmented(self, observations: Any) -> Any:
        shown = self._memory.values if self._belief is None else self._belief.shown
        return self._augmentation.many(observations, shown)

    def _infer(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        terminations: Any,
        step: VectorStep,
        infos: dict[str, Any],
    ) -> None:
        """Tell the beliefs what the steps came to, before labels are read."""
        if self._belief is None:
            return
        following = list(split(self.env.observation_space, observations))
        if step.started.any() and self._episodes.mode is AutoresetMode.SAME_STEP:
            for number, last in self._episodes.final_observations(step.started, infos).items():
                following[number] = last
        spaces = self.env.observation_space, self.env.action_space
        seen = self._seen
        self._belief.took(spaces, seen, actions, rewards, following, terminations, step.stepped)

    def _states(self, mask: Mask) -> dict[str, Any]:
        """Return the infos about the masked environments, by Gymnasium's convention."""
        told: dict[str, Any] = {}
        columns = (*self._memory.values, self._memory.unseen)
        for key, column in zip((*self._state_names, "unseen"), columns, strict=True):
            told[key] = column.copy() if mask is self._all else column * mask
            told[f"_{key}"] = mask.copy()
        return told

    def _levels(self, actions: Any) -> Levels | None:
        """Return what the machines know of a step with these actions, where that is told."""
        if self._knowledge is None:
            return None
        seen = self.env.observation_space, self._seen
        return self._knowledge.many(*seen, self.env.action_space, actions, self._memory.values)

    def _remember(self, observations: Any) -> None:
        if (
            self._knowledge is not None or self._belief is not None
        ):  # a copy: some vector environments write over their batches
            self._seen = copy.deepcopy(observations)

    def _with_ends(
        self, ended: Mask, infos: dict[str, Any], levels: Levels | None
    ) -> dict[str, Any]:
        """Return the infos with the ends of episodes augmented, by the states they ended in."""
        final = np.full(len(ended), None, object)
        for number, observation in self._episodes.final_observations(ended, infos).items():
            states: list[Any] = [int(column[number]) for column in self._memory.values]
            if self._belief is not None:
                states = self._belief.of(number).shown
            final[number] = self._augmentation.one(observation, states)
        told = {**infos.get("final_info", {}), **self._states(ended), **_told(levels, ended)}
        return {**infos, "final_obs": final, "final_info": told}


def _told(levels: Levels | None, mask: Mask) -> dict[str, Any]:
    if levels is None:
        return {}
    return {"knowledge": knowledge_infos(levels, mask), "_knowledge": mask.copy()}
