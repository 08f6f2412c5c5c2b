"""All spaces of Gymnasium, an environment that shows their values, and machines."""

from functools import cache

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import resolvent as rs


def box(*shape, dtype=np.float32, low=-1, high=1):
    return spaces.Box(low, high, shape, dtype)


class Missions(gym.Space):
    """A custom space, which Gymnasium cannot flatten."""

    def __init__(self):
        super().__init__(None, str)

    def sample(self, mask=None, probability=None):
        return str(self.np_random.choice(["open the door", "get the key"]))

    def contains(self, one):
        return isinstance(one, str)

    def __eq__(self, other):
        return isinstance(other, Missions)

    __hash__ = None


NAMES = {
    "Discrete": spaces.Discrete(4),
    "Discrete from 2": spaces.Discrete(4, start=2),
    "Discrete from −1": spaces.Discrete(4, start=-1),
    "MultiDiscrete": spaces.MultiDiscrete([3, 4]),
    "MultiDiscrete from 1 and 2": spaces.MultiDiscrete([3, 4], start=[1, 2]),
    "MultiDiscrete, 2×2": spaces.MultiDiscrete([[3, 4], [2, 5]]),
    "MultiBinary": spaces.MultiBinary(5),
    "MultiBinary, 2×3": spaces.MultiBinary([2, 3]),
    "Box, float32": box(3),
    "Box, float64, 2×3": box(2, 3, dtype=np.float64),
    "Box, float16": box(3, dtype=np.float16),
    "Box, int64": box(2, dtype=np.int64, low=-5, high=5),
    "Box, bool": box(3, dtype=bool, low=0),
    "Box, a single number": box(),
    "Box, without bounds": box(3, low=-np.inf, high=np.inf),
    "Box, a picture": box(40, 40, 3, dtype=np.uint8, low=0, high=255),
    "Box, 7×7×3 codes": box(7, 7, 3, dtype=np.uint8, low=0, high=10),
    "Text": spaces.Text(6),
    "OneOf": spaces.OneOf([spaces.Discrete(3), box(2)]),
    "Tuple": spaces.Tuple([spaces.Discrete(3), box(2)]),
    "Tuple of Dict and Tuple": spaces.Tuple(
        [spaces.Dict(a=spaces.Discrete(2)), spaces.Tuple([spaces.Discrete(3)])]
    ),
    "Dict": spaces.Dict(a=spaces.Discrete(3), b=box(2)),
    "Dict with a picture": spaces.Dict(
        image=box(40, 40, 3, dtype=np.uint8, low=0, high=255), direction=spaces.Discrete(4)
    ),
    "Dict with a Text": spaces.Dict(mission=spaces.Text(5), direction=spaces.Discrete(4)),
    "Dict in Dict": spaces.Dict(
        a=spaces.Dict(b=spaces.Discrete(3), c=spaces.Dict(d=spaces.MultiBinary(2))), e=box(2)
    ),
    "Sequence": spaces.Sequence(spaces.Discrete(3)),
    "Sequence, stacked": spaces.Sequence(box(2), stack=True),
    "Graph": spaces.Graph(box(2), spaces.Discrete(3)),
    "Graph without edges": spaces.Graph(box(2), None),
    "OneOf with a Sequence": spaces.OneOf(
        [spaces.Discrete(3), spaces.Sequence(spaces.Discrete(3))]
    ),
    "Dict with a Sequence": spaces.Dict(
        items=spaces.Sequence(spaces.Discrete(3)), direction=spaces.Discrete(4)
    ),
    "Dict with a space of one's own": spaces.Dict(mission=Missions(), direction=spaces.Discrete(4)),
}

FREE = [name for name in NAMES if any(one in name for one in ("Sequence", "Graph", "own"))]
"""Names of spaces with a part without fixed size."""

FIXED = [name for name in NAMES if name not in FREE]


class Shows(gym.Env):
    """Shows given values one after the other; its two actions have no effect."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, values):
        self.observation_space, self.values = space, values

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_number = 0
        return self.values[0], {"labels": ()}

    def step(self, action):
        self.step_number += 1
        labels = ("bell",) if self.step_number == 2 else ()
        seen = self.values[self.step_number % len(self.values)]
        return seen, float(action), self.step_number == 6, False, {"labels": labels}


@cache
def machines_of_shows():
    """Return machines with two reward states that have one number of each numeric space."""
    traces = rs.TraceSet(
        rs.Trace([seen] * 3, [None, label, None], [0, 0], [0, pay])
        for label, pay in ((None, 0), ("bell", 1))
        for seen in (2, 0, -9)
    )
    return rs.infer(traces).machines
