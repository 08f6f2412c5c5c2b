"""What acting by a policy is worth: exactly in a built-in world, by playing anywhere else."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.control.learning.world_view import WorldView
from resolvent.errors import OptionError
from resolvent.traces.live.answering import ended, of_reset, of_step
from resolvent.traces.live.naming import finite_reward


@dataclass(frozen=True)
class Evaluation:
    """The mean discounted return of a policy.

    `ended` is the share of starts, or of episodes, from which it comes to an end.
    `exact` says that all starts of a built-in world were followed on its tables,
    those that go round for ever included, and no step limit counted. During
    learning, `episode` and `steps` say after how many.
    """

    value: float
    ended: float
    exact: bool
    episode: int | None = None
    steps: int | None = None


def best_actions(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the best action of each row of values, the lowest of those equally good."""
    best: NDArray[np.int64] = np.argmax(values, axis=1)
    return best


def evaluate_exactly(
    view: WorldView,
    tables: _core.Lessons,
    policy: NDArray[np.int64],
    gamma: float,
    *,
    episode: int | None = None,
    steps: int | None = None,
) -> Evaluation:
    """Follow a policy from every start of a world; it has an action for all the tables number."""
    starts = np.ascontiguousarray(view.world.mechanics.starts)
    value, ends = tables.worth(policy.astype(np.int32), gamma, starts)
    return Evaluation(float(value.mean()), float(ends.mean()), True, episode, steps)


def evaluate_by_playing(
    env: gym.Env[Any, Any],
    action: Callable[[Any], Any],
    gamma: float,
    *,
    episodes: int,
    seed: int | None,
    max_steps: int,
) -> Evaluation:
    """Play episodes by a policy, each cut after `max_steps`."""
    if episodes < 1:
        raise OptionError(f"episodes={episodes}: play at least one")
    if max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step")
    if seed is not None and seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
    seeds = [seed, *[None] * (episodes - 1)]
    played = [_play(env, action, gamma, one, max_steps) for one in seeds]
    return Evaluation(
        math.fsum(paid for paid, _ in played) / episodes,
        sum(ended for _, ended in played) / episodes,
        exact=False,
    )


def _play(
    env: gym.Env[Any, Any],
    action: Callable[[Any], Any],
    gamma: float,
    seed: int | None,
    max_steps: int,
) -> tuple[float, bool]:
    observation, _ = of_reset(env.reset(seed=seed))
    paid, weight = 0.0, 1.0
    for _ in range(max_steps):
        given = env.step(action(observation))
        observation, reward, terminated, truncated, _ = of_step(given)
        paid += weight * finite_reward(reward)
        weight *= gamma
        done = ended(terminated, "terminated")
        if done or ended(truncated, "truncated"):
            return paid, done
    return paid, False
