"""The house of the paper's Figure 1: four rooms, a key, a toilet and a sofa."""

from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from resolvent.errors import OptionError

Pays: TypeAlias = Literal["sofa", "cyanroom"]
Code: TypeAlias = int | np.int64  # steps give ints, Discrete spaces draw np.int64

_DOORS = {
    ("corridor", "left"): "orangeroom",
    ("corridor", "up"): "cyanroom",
    ("corridor", "right"): "limegreenroom",
    ("orangeroom", "right"): "corridor",
    ("cyanroom", "down"): "corridor",
    ("limegreenroom", "left"): "corridor",
}

_LABELS = {
    "corridor": frozenset[str](),
    "orangeroom": frozenset({"key"}),
    "cyanroom": frozenset({"toilet"}),
    "limegreenroom": frozenset({"sofa"}),
}


class House(gym.Env[Code, Code]):
    """Fetch the key, visit the toilet, sit on the sofa, seeing only the room you are in.

    The cyanroom is locked until the key has been taken. Being in the orangeroom
    takes the key, being in the cyanroom visits the toilet; neither shows in the
    observation. Sitting in the limegreenroom ends the episode and pays 1 if the
    toilet has been visited. `info["labels"]` holds what the room shows.

    With `pays="cyanroom"` it is instead entering the cyanroom that pays 1 and
    ends the episode, and sitting on the sofa ends it unpaid.

    Paper: Figure 1, and the example "Transition-Reward Interference".

    >>> house = House()
    >>> _ = house.reset()
    >>> room, reward, *_ = house.step(House.action_names.index("up"))
    >>> House.observation_names[room], reward
    ('corridor', 0.0)
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    observation_names = ("corridor", "orangeroom", "cyanroom", "limegreenroom")
    action_names = ("up", "down", "left", "right", "sit")

    def __init__(self, *, pays: Pays = "sofa", render_mode: Literal["ansi"] | None = None) -> None:
        if pays not in get_args(Pays):
            raise OptionError(f"pays={pays!r}: use 'sofa' or 'cyanroom'")
        if render_mode not in (None, "ansi"):
            raise OptionError(f"render_mode={render_mode!r}: use 'ansi' or None")
        self.pays = pays
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(len(self.observation_names))
        self.action_space = spaces.Discrete(len(self.action_names))
        self._start()

    def _start(self) -> None:
        self._room = "corridor"
        self._key_taken = False
        self._toilet_visited = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Code, dict[str, Any]]:
        """Put the agent in the corridor and the key in the orangeroom."""
        super().reset(seed=seed)
        self._start()
        return self._seen()

    def step(self, action: Code) -> tuple[Code, float, bool, bool, dict[str, Any]]:
        """Do one of `action_names`, given by its position there."""
        if not self.action_space.contains(action):
            names = ", ".join(f"{code} {name}" for code, name in enumerate(self.action_names))
            raise OptionError(f"action {action!r} is not one of {names}")
        name = self.action_names[int(action)]
        before = self._room
        room = _DOORS.get((before, name), before)
        if room == "cyanroom" and not self._key_taken:
            room = before
        self._room = room
        self._key_taken |= room == "orangeroom"
        self._toilet_visited |= room == "cyanroom"

        on_sofa = name == "sit" and room == "limegreenroom"
        if self.pays == "sofa":
            done, paid = on_sofa, on_sofa and self._toilet_visited
        else:
            paid = room == "cyanroom" and before != "cyanroom"
            done = paid or on_sofa
        observation, info = self._seen()
        return observation, float(paid), done, False, info

    def _seen(self) -> tuple[Code, dict[str, Any]]:
        return self.observation_names.index(self._room), {"labels": _LABELS[self._room]}

    def render(self) -> str | None:
        """Draw the house as text when `render_mode` is "ansi"."""
        if self.render_mode is None:
            return None
        things = {
            "corridor": "",
            "orangeroom": "" if self._key_taken else "key",
            "cyanroom": "toilet",
            "limegreenroom": "sofa",
        }
        cyan, orange, corridor, limegreen = (
            [f"{line:^15}" for line in (room, things[room], "(agent)" * (room == self._room))]
            for room in ("cyanroom", "orangeroom", "corridor", "limegreenroom")
        )
        wall, door = "-" * 15, "open" if self._key_taken else "locked"
        lines = [
            f"{'':16}+{wall}+",
            *(f"{'':16}|{line}|" for line in cyan),
            f"+{wall}+{door:-^15}+{wall}+",
            *(f"|{'|'.join(row)}|" for row in zip(orange, corridor, limegreen, strict=True)),
            f"+{wall}+{wall}+{wall}+",
            f"key {'taken' if self._key_taken else 'not taken'}, "
            f"toilet {'visited' if self._toilet_visited else 'not visited'}",
        ]
        return "\n".join(lines)
