"""A space of actions → all of them, where there are few enough to try each in every situation."""

from itertools import product
from typing import Any, Final

import gymnasium as gym
import numpy as np

from resolvent.errors import OptionError

MOST_ACTIONS: Final = 1_000
"""More actions than these cannot all be tried in every situation."""


def list_actions(space: gym.Space[Any]) -> list[Any]:
    """Return all values of a space of actions.

    >>> listed_actions(gym.spaces.Discrete(3, start=1))
    [1, 2, 3]
    """
    parts: list[range] | None = None
    if isinstance(space, gym.spaces.Discrete):
        parts = [range(int(space.start), int(space.start + space.n))]
    elif isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1:
        start = getattr(space, "start", np.zeros_like(space.nvec))
        parts = [range(int(s), int(s + n)) for s, n in zip(start, space.nvec, strict=True)]
    elif isinstance(space, gym.spaces.MultiBinary) and isinstance(space.n, int | np.integer):
        parts = [range(2)] * int(space.n)
    if parts is None:
        raise OptionError(
            f"the actions are {space}: exploring needs actions that can be listed, so wrap the "
            f"environment in one with a few (gymnasium.spaces.Discrete)"
        )
    if np.prod([len(one) for one in parts], dtype=float) > MOST_ACTIONS:
        raise OptionError(
            f"the actions are {space}, more than {MOST_ACTIONS:,}: wrap the environment in one "
            f"with fewer"
        )
    if isinstance(space, gym.spaces.Discrete):
        return list(parts[0])
    return [np.array(one, space.dtype) for one in product(*parts)]
