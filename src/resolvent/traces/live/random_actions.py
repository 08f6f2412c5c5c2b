"""An environment and a seed → a space that draws its actions at random."""

import copy
from typing import Any

import gymnasium as gym
import numpy as np

from resolvent.arguments import shown
from resolvent.errors import OptionError
from resolvent.traces.live.naming import AnyEnv


def random_actions(env: AnyEnv, seed: int | None) -> gym.Space[Any]:
    """Return a copy of the environment's actions that draws by a seed of its own.

    The environment is reset by `seed` itself. Were the actions drawn by it, too, both
    would draw the same numbers, and random actions would guess each toss of a coin.

    >>> from resolvent.environments import House
    >>> first, second = random_actions(House(), seed=0), random_actions(House(), seed=0)
    >>> [first.sample() for _ in range(9)] == [second.sample() for _ in range(9)]
    True
    """
    # A copy, so that the environment's own space draws as if nobody had drawn from it.
    space = copy.deepcopy(env.action_space)
    if not isinstance(space, gym.Space):
        raise OptionError(
            f"the environment's action_space is {shown(space)}: it has to be a gymnasium space"
        )
    space.seed(None if seed is None else _seed_of_actions(seed))
    return space


def _seed_of_actions(seed: int) -> int:
    if seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
    return int(np.random.SeedSequence((seed, 1)).generate_state(1)[0])
