"""Small environments of our own, for tests of exploring."""

from typing import Any

import gymnasium as gym
from gymnasium import spaces


class TwoMissions(gym.Env[str, int]):
    """Five rooms in a row; a mission is told at reset, by its label alone.

    Delivering in the first room pays on mission a, in the last room on mission b; it ends the
    episode anywhere. What is seen is the room, so that whoever knows one mission only is paid in
    half of the episodes.
    """

    action_names = ("left", "right", "deliver")
    rooms = ("depot a", "west", "desk", "east", "depot b")

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Text(10)
        self.place, self.mission = 2, "a"

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.mission = 2, "ab"[int(self.np_random.integers(2))]
        return "desk", {"labels": {f"mission {self.mission}"}}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == 2:
            right = self.rooms[self.place] == f"depot {self.mission}"
            return self.rooms[self.place], float(right), True, False, {"labels": set()}
        self.place = min(max(self.place + (1 if action == 1 else -1), 0), 4)
        return self.rooms[self.place], 0.0, False, False, {"labels": set()}


class SecondMission(gym.Env[str, int]):
    """Five rooms in a row; a bell in the middle one gives mission a, rung again mission b.

    Delivering in the first room pays 1 on mission a, in the last one 5 on mission b.
    """

    action_names = ("left", "right", "ring", "deliver")
    rooms = TwoMissions.rooms

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Text(10)
        self.place, self.rung = 2, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.rung = 2, 0
        return "desk", {"labels": set()}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        room, label = self.rooms[self.place], set[str]()
        if action == 3:
            paid = {("depot a", 1): 1.0, ("depot b", 2): 5.0}.get((room, self.rung), 0.0)
            return room, paid, paid > 0, False, {"labels": label}
        if action == 2 and room == "desk":
            self.rung, label = self.rung + 1, {"bell"}
        elif action < 2:
            self.place = min(max(self.place + (1 if action == 1 else -1), 0), 4)
        return self.rooms[self.place], 0.0, False, False, {"labels": label}


class Coin(gym.Env[int, int]):
    """A coin is tossed: heads pay for going on, tails do not."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Discrete(3)
        self.at = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return 0, {"labels": set()}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.at == 0:
            self.at = 1 + int(self.np_random.random() < (0.8 if action else 0.3))
            return self.at, 0.0, False, False, {"labels": set()}
        paid = float(self.at == 2)
        return 0, paid, True, False, {"labels": set()}


class Lamp(gym.Env[int, int]):
    """A line of four cells; by chance, a lamp beside the second one is lit or dark: labels say so.

    Pressing a button at the end pays 1 if the lamp was lit, and ends the episode.
    """

    def __init__(self, pays_dark: float) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Discrete(4)
        self.pays_dark, self.at, self.lit = pays_dark, 0, False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.lit = 0, False
        return 0, {"labels": set()}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action == 2:
            paid = (1.0 if self.lit else self.pays_dark) if self.at == 3 else 0.0
            return self.at, paid, self.at == 3, False, {"labels": set()}
        self.at = min(max(self.at + (1 if action else -1), 0), 3)
        label = set[str]()
        if self.at == 1:
            self.lit = bool(self.np_random.random() < 0.5)
            label = {"lit" if self.lit else "dark"}
        return self.at, 0.0, False, False, {"labels": label}


class Unlabelled(gym.Wrapper[Any, Any, Any, Any]):
    """A world whose labels are taken away."""

    def reset(self, **given: Any) -> Any:
        """Begin, and tell nothing beside what is seen."""
        return self.env.reset(**given)[0], {}

    def step(self, action: Any) -> Any:
        """Act, and tell nothing beside what is seen."""
        return *self.env.step(action)[:4], {}


class Bells(gym.Env[str, int]):
    """Three rooms in a row; whoever has rung often enough in the middle one is paid on the right.

    On the left there is always a little to be had. Nothing shows how often the bell was rung
    but that it pays, so that each ring is a state more.
    """

    action_names = ("left", "right", "ring", "take")
    rooms = ("west", "tower", "east")

    def __init__(self, rings: int) -> None:
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Text(10)
        self.rings, self.place, self.rung = rings, 1, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.rung = 1, 0
        return "tower", {"labels": set()}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        room, label = self.rooms[self.place], set[str]()
        if action == 3:
            paid = {"west": 1.0, "east": 5.0 * (self.rung >= self.rings)}.get(room, 0.0)
            return room, paid, room != "tower", False, {"labels": label}
        if action == 2 and room == "tower":
            self.rung, label = self.rung + 1, {"bell"}
        elif action < 2:
            self.place = min(max(self.place + (1 if action == 1 else -1), 0), 2)
        return self.rooms[self.place], 0.0, False, False, {"labels": label}


class TwoDoors(gym.Env[int, int]):
    """Seven places; a lever in one of them is pulled by going there, and stays so.

    Acting 2 in place 5 pays 1. It leads out before the lever is pulled, and leads nowhere after
    it, so that it pays for ever. A door is seen in place 5 and in place 0, and from place 0
    nothing that pays is reached without going through a door once more.
    """

    following = ((5, 3, 1), (6, 2, 2), (4, 5, 1), (2, 0, 4), (0, 5, 3), (1, 1, 1), (3, 3, 1))
    labels = ("door", None, None, None, None, "door", "lever")

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Discrete(7)
        self.place, self.pulled, self.taken = 0, False, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.pulled, self.taken = 0, False, 0
        return 0, {"labels": {"door"}}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        pays = (self.place, action) == (5, 2)
        if not (pays and self.pulled):
            self.place = self.following[self.place][action]
        label = self.labels[self.place]
        self.pulled, self.taken = self.pulled or label == "lever", self.taken + 1
        labels = set[str]() if label is None else {label}
        return self.place, float(pays), False, self.taken == 200, {"labels": labels}
