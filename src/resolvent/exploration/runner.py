"""Reset and step one environment, or several side by side.

Input: seeds and actions by the number of the environment. Output: checked observations and steps.
Errors of the environment are detected here: it raises, returns wrong values, or changes its spaces.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from resolvent.errors import OptionError
from resolvent.exploration.environment import check_spaces, spaces_of
from resolvent.rl.env import (
    AnyEnv,
    checked_flag,
    checked_reset,
    checked_step,
    env_errors,
    time_limit,
)
from resolvent.rl.vector_env import (
    VectorEnv,
    VectorEpisodes,
    check_single_resets,
    one_environment,
    split,
)

Shown: TypeAlias = tuple[Any, Mapping[str, Any]]
"""The observation and the info of a reset or a step."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of an action in the environment with number `index`."""

    index: int
    action: Any
    observation: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


class SingleRunner:
    """Runs one environment, which has number 0."""

    count = 1

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env, self._spaces = env, spaces_of(env)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Shown]:
        """Begin an episode by its seed."""
        with env_errors("reset"):
            result = self.env.reset(seed=seeds[0])
        observation_and_info = checked_reset(result)
        check_spaces(self._spaces, spaces_of(self.env))
        return {0: observation_and_info}

    def step(self, actions: Mapping[int, Any]) -> list[StepResult]:
        """Take a step."""
        with env_errors("step"):
            result = self.env.step(actions[0])
        observation, reward, terminated, truncated, info = checked_step(result)
        ends = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
        return [StepResult(0, actions[0], observation, reward, *ends, info)]

    @property
    def has_limit(self) -> bool:
        """Whether the environment truncates episodes itself."""
        return time_limit(self.env) is not None

    @contextmanager
    def single_env(self) -> Iterator[gym.Env[Any, Any]]:
        """Yield the environment."""
        yield self.env


class VectorRunner:
    """Runs the environments of a vector environment, in any autoreset mode.

    Every episode has its own seed: one that an autoreset began is begun again, so the mode makes
    no difference.
    """

    def __init__(self, envs: VectorEnv) -> None:
        check_single_resets(envs, "episodes cannot be begun one by one in environments")
        self.envs, self.count = envs, int(envs.num_envs)
        inner = envs.unwrapped
        self._seeds_each = isinstance(inner, gym.vector.SyncVectorEnv | gym.vector.AsyncVectorEnv)
        self._begun = False
        self._live = VectorEpisodes(envs)
        self._spaces = spaces_of(envs)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Shown]:
        """Begin an episode in those environments that have a seed."""
        mask = np.full(self.count, not self._begun)  # none can be left out at first
        mask[list(seeds)] = True
        seed: Any = [seeds.get(index) for index in range(self.count)]
        if not self._seeds_each:  # an environment with one seed for all is seeded once
            seed = None if self._begun else min(seeds.items())[1]
        self._begun = True
        options = None if mask.all() else {"reset_mask": mask.copy()}  # theirs to change
        with env_errors("reset"):
            result = self.envs.reset(seed=seed, options=options)
        observations, infos = checked_reset(result)
        check_spaces(self._spaces, spaces_of(self.envs))
        self._live.reset(mask)
        info_of = self._live.infos_at_reset(mask, infos)
        observation_of = split(self.envs.observation_space, observations)
        return {index: (observation_of[index], info_of[index]) for index in sorted(seeds)}

    def step(self, actions: Mapping[int, Any]) -> list[StepResult]:
        """Take a step in every environment."""
        batch = np.array(
            [actions[index] for index in range(self.count)], self.envs.action_space.dtype
        )
        with env_errors("step"):
            result = self.envs.step(batch)
        observations, rewards, terminations, truncations, infos = checked_step(result)
        self._live.step(terminations, truncations)
        observation_of = self._live.reached(observations, infos)
        info_of = self._live.infos_after_step(self._live.all, infos)
        return [
            StepResult(
                index,
                actions[index],
                observation_of[index],
                rewards[index],
                bool(terminations[index]),
                bool(truncations[index]),
                info_of[index],
            )
            for index in range(self.count)
        ]

    @property
    def has_limit(self) -> bool:
        """Whether the environments truncate episodes themselves."""
        with one_environment(self.envs) as env:
            if isinstance(env, gym.Env):
                return time_limit(env) is not None
        spec = self.envs.spec
        return spec is not None and spec.max_episode_steps is not None

    @contextmanager
    def single_env(self) -> Iterator[gym.Env[Any, Any]]:
        """Yield one of the environments, to run alone."""
        with one_environment(self.envs) as env:
            if not isinstance(env, gym.Env):
                raise OptionError(
                    f"the world is random, and {type(self.envs.unwrapped).__name__} has no single "
                    f"environments: solve one of them, made by gym.make"
                )
            yield env


Runner: TypeAlias = SingleRunner | VectorRunner


def make_runner(env: AnyEnv) -> Runner:
    """Return the runner of an environment, or of a vector of them."""
    return VectorRunner(env) if isinstance(env, gym.vector.VectorEnv) else SingleRunner(env)
