"""An environment, or many side by side → resets and steps, each told apart, for whoever explores.

All that an environment may do wrong by itself is found here: it raises, returns something
else than it should, or has other spaces than it began with.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from resolvent.errors import OptionError, ResolventError, TraceError
from resolvent.traces.live.answering import ended, of_reset, of_step, telling
from resolvent.traces.live.making import check_maker
from resolvent.traces.live.naming import AnyEnv
from resolvent.traces.live.rolling import time_limit
from resolvent.traces.live.vector_naming import (
    VectorEnv,
    VectorEpisodes,
    check_single_resets,
    one_environment,
    split,
)

Shown: TypeAlias = tuple[Any, Mapping[str, Any]]
"""What a reset or a step shows: an observation and the info beside it."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of an action in one of the environments."""

    which: int
    action: Any
    observation: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


class SingleRunner:
    """An environment by itself, which has the number 0."""

    count = 1

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env, self._spaces = env, spaces_of(env)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Shown]:
        """Begin an episode in those environments that are named, each by its seed."""
        with telling("reset"):
            given = self.env.reset(seed=seeds[0])
        begun = of_reset(given)
        check_spaces(self._spaces, spaces_of(self.env))
        return {0: begun}

    def step(self, actions: Mapping[int, Any]) -> list[StepResult]:
        """Take a step in every environment."""
        with telling("step"):
            given = self.env.step(actions[0])
        observation, reward, terminated, truncated, info = of_step(given)
        ends = ended(terminated, "terminated"), ended(truncated, "truncated")
        return [StepResult(0, actions[0], observation, reward, *ends, info)]

    @property
    def has_limit(self) -> bool:
        """Whether episodes are cut by the environment itself."""
        return time_limit(self.env) is not None

    @contextmanager
    def one(self) -> Iterator[gym.Env[Any, Any]]:
        """Give one environment that is played alone."""
        yield self.env


class VectorRunner:
    """The environments of a vector environment, in whichever way it resets by itself.

    Whoever explores begins every episode by a seed of its own. So an episode that a vector
    environment begins by itself is begun again, and its mode makes no difference.
    """

    def __init__(self, envs: VectorEnv) -> None:
        check_single_resets(envs, "episodes cannot be begun one by one in environments")
        self.envs, self.count = envs, int(envs.num_envs)
        inner = envs.unwrapped
        self._seeds_each = isinstance(inner, gym.vector.SyncVectorEnv | gym.vector.AsyncVectorEnv)
        self._begun = False
        self._live = VectorEpisodes(envs, _no_label)
        self._spaces = spaces_of(envs)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Shown]:
        """Begin an episode in those environments that are named, each by its seed."""
        mask = np.full(self.count, not self._begun)  # none can be left out at first
        mask[list(seeds)] = True
        asked: Any = [seeds.get(number) for number in range(self.count)]
        if not self._seeds_each:  # one that draws for all of them is seeded once
            asked = None if self._begun else min(seeds.items())[1]
        self._begun = True
        options = None if mask.all() else {"reset_mask": mask.copy()}  # theirs to change
        with telling("reset"):
            given = self.envs.reset(seed=asked, options=options)
        observations, infos = of_reset(given)
        check_spaces(self._spaces, spaces_of(self.envs))
        self._live.reset(observations, infos, mask)
        told = self._live.told_at_reset(mask, infos)
        seen = split(self.envs.observation_space, observations)
        return {number: (seen[number], told[number]) for number in sorted(seeds)}

    def step(self, actions: Mapping[int, Any]) -> list[StepResult]:
        """Take a step in every environment."""
        batch = np.array([actions[one] for one in range(self.count)], self.envs.action_space.dtype)
        with telling("step"):
            given = self.envs.step(batch)
        observations, rewards, terminations, truncations, infos = of_step(given)
        self._live.step(batch, observations, rewards, terminations, truncations, infos)
        seen = split(self.envs.observation_space, observations)
        over = terminations | truncations
        if self._live.mode is AutoresetMode.SAME_STEP and over.any():
            for number, last in self._live.final_observations(over, infos).items():
                seen[number] = last
        told_of = self._live.told_after_step(infos)
        return [
            StepResult(
                number,
                actions[number],
                seen[number],
                rewards[number],
                bool(terminations[number]),
                bool(truncations[number]),
                told_of[number],
            )
            for number in range(self.count)
        ]

    @property
    def has_limit(self) -> bool:
        """Whether episodes are cut by the environments themselves."""
        with one_environment(self.envs) as one:
            if isinstance(one, gym.Env):
                return time_limit(one) is not None
        spec = self.envs.spec
        return spec is not None and spec.max_episode_steps is not None

    @contextmanager
    def one(self) -> Iterator[gym.Env[Any, Any]]:
        """Give one environment that is played alone."""
        with one_environment(self.envs) as one:
            if not isinstance(one, gym.Env):
                raise OptionError(
                    f"the world is random, and {type(self.envs.unwrapped).__name__} has no single "
                    f"environments: solve one of them, made by gym.make"
                )
            yield one


Runner: TypeAlias = SingleRunner | VectorRunner


def playing(env: AnyEnv) -> Runner:
    """Return how an environment, or a vector of them, is played."""
    return VectorRunner(env) if isinstance(env, gym.vector.VectorEnv) else SingleRunner(env)


def made_environment(env: AnyEnv | str | Callable[[], AnyEnv]) -> tuple[AnyEnv, bool]:
    """Return the environment, and whether it was made here."""
    if isinstance(env, gym.Env | gym.vector.VectorEnv):
        return env, False
    if isinstance(env, str):
        try:
            return gym.make(env), True
        except ResolventError:
            raise
        except Exception as error:  # of Gymnasium, or of the module that the name begins with
            raise OptionError(f"cannot make environment '{env}': {error}") from error
    if not callable(env):
        raise OptionError(
            f"solve needs a gymnasium.Env or VectorEnv, the id of one or a function that makes "
            f"one, not a {type(env).__name__}: use gym.make"
        )
    check_maker(env)
    made = env()
    if not isinstance(made, gym.Env | gym.vector.VectorEnv):
        raise OptionError(f"the function made a {type(made).__name__}: it has to make an Env")
    return made, True


def spaces_of(env: AnyEnv) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Return what may be done and seen in an environment, or in each of many side by side."""
    prefix = "single_" if isinstance(env, gym.vector.VectorEnv) else ""
    found = []
    for name in (f"{prefix}action_space", f"{prefix}observation_space"):
        space = getattr(env, name, None)
        if not isinstance(space, gym.Space):
            raise OptionError(
                f"the environment {type(env.unwrapped).__name__} has no {name}: give it a "
                f"gymnasium.Space"
            )
        found.append(space)
    return found[0], found[1]


def check_spaces(
    before: Sequence[gym.Space[Any]], now: Sequence[gym.Space[Any]], since: str = "at the beginning"
) -> None:
    """Refuse an environment whose actions or observations are others than they were."""
    for what, was, is_now in zip(("actions", "observations"), before, now, strict=True):
        if was is not is_now and was != is_now:
            raise TraceError(
                f"the environment's {what} are {is_now} and were {was} {since}: they have to "
                f"stay the same, so let its spaces hold all that may ever come"
            )


def _no_label(following: Any) -> None:
    """Labels are made by whoever explores."""
