"""The environment to explore, or several side by side: identify, reset and step them.

Input: an environment; then seeds and actions. Output: checked observations and
steps. Environments that raise, return invalid values or change their spaces are refused here.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from typing import Any, Final, TypeAlias

import gymnasium as gym
import msgspec
import numpy as np

from resolvent.errors import ModelError, OptionError, TraceError
from resolvent.rl.env import (
    AnyEnv,
    GuardedEnv,
    checked_flag,
    checked_reset,
    checked_step,
    env_errors,
    time_limit,
)
from resolvent.rl.rollout import Step
from resolvent.rl.vector_env import (
    VectorEnv,
    VectorEpisodes,
    check_single_resets,
    one_environment,
    split,
)

Shown: TypeAlias = tuple[Any, Mapping[str, Any]]
"""The observation and the info of a reset."""

MAX_ACTIONS: Final = 1_000
"""Maximum number of actions."""


def member_of(env: AnyEnv) -> AbstractContextManager[AnyEnv]:
    """Return the context of a single environment: this one, or one that stands for a vector."""
    return nullcontext(env) if isinstance(env, gym.Env) else one_environment(env)


def has_limit(env: AnyEnv) -> bool:
    """Return whether an environment, or each one in a vector, truncates episodes itself."""
    with member_of(env) as member:
        if isinstance(member, gym.Env):
            return time_limit(member) is not None
    return env.spec is not None and env.spec.max_episode_steps is not None


def spaces_of(env: AnyEnv) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Return the action and observation spaces of an environment, or of each one in a vector."""
    prefix = "single_" if isinstance(env, gym.vector.VectorEnv) else ""
    spaces = []
    for name in (f"{prefix}action_space", f"{prefix}observation_space"):
        space = getattr(env, name, None)
        if not isinstance(space, gym.Space):
            raise OptionError(
                f"the environment {type(env.unwrapped).__name__} has no {name}: give it a "
                f"gymnasium.Space"
            )
        spaces.append(space)
    return spaces[0], spaces[1]


def list_actions(space: gym.Space[Any]) -> list[Any]:
    """Return all values of an action space.

    >>> list_actions(gym.spaces.Discrete(3, start=1))
    [1, 2, 3]
    """
    if isinstance(space, gym.spaces.Discrete):
        lows, highs = [int(space.start)], [int(space.start + space.n)]
    elif isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        start = np.asarray(getattr(space, "start", np.zeros_like(space.nvec)))
        lows, highs = start.tolist(), (start + space.nvec).tolist()
    elif isinstance(space, gym.spaces.MultiBinary) and isinstance(space.n, int | np.integer):
        lows, highs = [0] * int(space.n), [2] * int(space.n)
    else:
        raise OptionError(
            f"the action space is {space}: solve needs a finite one, so wrap the environment to "
            f"have gymnasium.spaces.Discrete actions"
        )
    parts = list(map(range, lows, highs))
    if np.prod(list(map(len, parts)), dtype=float) > MAX_ACTIONS:
        raise OptionError(
            f"the action space is {space}, more than {MAX_ACTIONS:,} actions: wrap the environment "
            f"to have fewer"
        )
    if isinstance(space, gym.spaces.Discrete):
        return list(parts[0])
    return [np.array(choices, space.dtype) for choices in product(*parts)]


class EnvironmentId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identifies an environment.

    `name` is its Gymnasium id, or its class, and `arguments` are the plain values among its
    arguments.
    """

    name: str
    arguments: str
    actions: str
    observations: str

    @classmethod
    def of(cls, env: AnyEnv) -> "EnvironmentId":
        """Return the identity of an environment, for a vector that of one of its members.

        >>> import gymnasium as gym
        >>> identity = EnvironmentId.of(gym.make("resolvent/TMaze-v0", length=5))
        >>> identity.name, identity.arguments, identity.actions
        ('resolvent/TMaze-v0', 'length=5', 'Discrete(4)')
        """
        with member_of(env) as member:
            return cls(*_named(member), *map(str, spaces_of(env)))

    def check(self, before: "EnvironmentId") -> None:
        """Refuse to resume in this environment from the result of another one."""
        for name in self.__struct_fields__:
            now, was = getattr(self, name) or "none", getattr(before, name) or "none"
            if now != was:
                verbs = ("is", "was") if name == "name" else ("are", "were")
                raise ModelError(
                    f"this is not the environment to resume in: its {name} {verbs[0]} {now} and "
                    f"{verbs[1]} {was}; use the same environment, or start in a new folder"
                )


def _named(env: AnyEnv) -> tuple[str, str]:
    spec = env.spec
    if spec is None:
        return type(env.unwrapped).__qualname__.rsplit(".", 1)[-1], ""
    arguments = sorted(spec.kwargs.items())
    return spec.id, ", ".join(f"{name}={value!r}" for name, value in arguments if _is_plain(value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


class CheckedEnv(GuardedEnv):
    """An environment that has to keep its spaces, and whose mistakes are trace errors."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._spaces = spaces_of(env)

    def reset(self, **options: Any) -> Any:
        """Begin an episode."""
        shown = super().reset(**options)
        _check_spaces(self._spaces, spaces_of(self.env))
        return shown


class SingleRunner:
    """Runs one environment, which has number 0."""

    count = 1

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env = CheckedEnv(env)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Shown]:
        """Begin an episode by its seed."""
        return {0: self.env.reset(seed=seeds[0])}

    def step(self, actions: Sequence[Any]) -> list[Step]:
        """Take a step."""
        observation, reward, terminated, truncated, info = self.env.step(actions[0])
        ends = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
        return [(observation, reward, *ends, info)]


class VectorRunner:
    """Runs the environments of a vector environment, in any autoreset mode.

    Every episode has its own seed: one that an autoreset began is begun again, so the mode makes
    no difference.
    """

    def __init__(self, envs: VectorEnv) -> None:
        check_single_resets(envs, "episodes cannot be begun one by one in environments")
        self.env, self.count = envs, int(envs.num_envs)
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
            result = self.env.reset(seed=seed, options=options)
        observations, infos = checked_reset(result)
        _check_spaces(self._spaces, spaces_of(self.env))
        self._live.reset(mask)
        info_of = self._live.infos_at_reset(mask, infos)
        observation_of = split(self.env.observation_space, observations)
        return {index: (observation_of[index], info_of[index]) for index in sorted(seeds)}

    def step(self, actions: Sequence[Any]) -> list[Step]:
        """Take a step in every environment."""
        batch = np.array(actions, self.env.action_space.dtype)
        with env_errors("step"):
            result = self.env.step(batch)
        observations, rewards, terminations, truncations, infos = checked_step(result)
        self._live.step(terminations, truncations)
        reached = self._live.reached(observations, infos)
        info_of = self._live.infos_after_step(self._live.all, infos)
        infos_in_order = (info_of[index] for index in range(self.count))
        ends = map(bool, terminations), map(bool, truncations)
        return list(zip(reached, rewards, *ends, infos_in_order, strict=True))


Runner: TypeAlias = SingleRunner | VectorRunner


def make_runner(env: AnyEnv) -> Runner:
    """Return the runner of an environment, or of a vector of them."""
    return VectorRunner(env) if isinstance(env, gym.vector.VectorEnv) else SingleRunner(env)


def _check_spaces(before: Sequence[gym.Space[Any]], now: Sequence[gym.Space[Any]]) -> None:
    """Refuse an environment whose spaces have changed."""
    for name, was, is_now in zip(("actions", "observations"), before, now, strict=True):
        if was is not is_now and was != is_now:
            raise TraceError(
                f"the environment's {name} are {is_now} and were {was} at the beginning: define "
                f"spaces that contain every value and stay the same"
            )
