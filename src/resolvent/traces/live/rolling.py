"""Environments that roll out whole episodes by themselves, much faster than step by step.

Such a world is recognised by what it can do, not by its class: it has a method
`rollouts` that gives the very traces that stepping it would.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from resolvent.traces.trace_set import TraceSet

_CHANGE_NOTHING = (OrderEnforcing, PassiveEnvChecker, TimeLimit)


@runtime_checkable
class RollingWorld(Protocol):
    """A world that plays random episodes by itself."""

    @property
    def rolls_out(self) -> bool:
        """Whether it does: a subclass that steps in its own way must say no."""

    def rollouts(
        self,
        episodes: int,
        seed: int | None,
        actions: np.random.Generator,
        max_steps: int | None,
        time_limit: int | None,
        progress: Callable[[float], object] | None,
    ) -> TraceSet:
        """Return the traces that resets and steps with these random numbers would give.

        `time_limit` is Gymnasium's, which calls an episode truncated even when it
        ends by itself in its last step; `max_steps` does not.
        """


def rolling_world(env: gym.Env[Any, Any]) -> RollingWorld | None:
    """Return the world inside, if it rolls out by itself and no wrapper changes what is seen."""
    while type(env) in _CHANGE_NOTHING:
        env = env.env  # type: ignore[attr-defined]
    return env if isinstance(env, RollingWorld) and env.rolls_out else None


def time_limit(env: gym.Env[Any, Any]) -> int | None:
    """Return the lowest limit that Gymnasium's `TimeLimit` sets around a world."""
    limits = []
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min(limits, default=None)
