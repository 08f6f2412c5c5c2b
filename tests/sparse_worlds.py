"""Environments without labels whose only reward follows a long sequence of invisible events."""

from typing import Any

import gymnasium as gym
from gymnasium import spaces


class HiddenButtons(gym.Env[int, int]):
    """A square grid; pressing the buttons in order pays 1, and nothing else shows anything.

    Another button starts the order again; if `is_strict`, so does pressing where there is none.
    With an exit, the reward is paid for going there after all of them.
    """

    action_names = ("up", "right", "down", "left", "press")
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))

    def __init__(
        self,
        size: int = 7,
        order: tuple[int, ...] = (8, 40),
        exit_at: int | None = None,
        *,
        is_strict: bool = False,
    ) -> None:
        self.action_space = spaces.Discrete(5)
        self.observation_space = spaces.Discrete(size * size)
        self.size, self.order, self.exit_at, self.is_strict = size, order, exit_at, is_strict
        self.place, self.pressed = 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.pressed = self.size * self.size // 2, 0
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        is_complete = self.pressed == len(self.order)
        if action < 4:
            row, column = divmod(self.place, self.size)
            row = min(max(row + self.moves[action][0], 0), self.size - 1)
            column = min(max(column + self.moves[action][1], 0), self.size - 1)
            self.place = row * self.size + column
            is_paid = is_complete and self.place == self.exit_at
        else:
            if not is_complete and self.place == self.order[self.pressed]:
                self.pressed += 1
            elif not is_complete and (self.is_strict or self.place in self.order):
                self.pressed = int(self.place == self.order[0])
            is_paid = self.pressed == len(self.order) and self.exit_at is None
        return self.place, float(is_paid), is_paid, False, {}


class SwitchCode(gym.Env[int, int]):
    """A corridor with four invisible switches; the end pays once three are pressed in order."""

    action_names = ("left", "right", "press")
    switches, code, length = (2, 4, 7, 9), (7, 2, 9), 12

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Discrete(self.length)
        self.place, self.pressed = 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.pressed = 0, 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action < 2:
            self.place = min(max(self.place + (1 if action else -1), 0), self.length - 1)
        elif self.pressed < 3 and self.place in self.switches:
            is_next = self.place == self.code[self.pressed]
            self.pressed = self.pressed + 1 if is_next else int(self.place == self.code[0])
        is_paid = self.pressed == 3 and self.place == self.length - 1
        return self.place, float(is_paid), is_paid, False, {}


class KeyAndChest(gym.Env[int, int]):
    """Two square rooms with a door between them: a key in one opens a chest in the other.

    The key is taken by grasping, which shows nothing; the chest is opened by grasping, too.
    """

    action_names = ("up", "right", "down", "left", "grasp")
    moves = HiddenButtons.moves

    def __init__(self, size: int = 11) -> None:
        self.size, self.width = size, 2 * size + 1
        self.key, self.chest, self.door = (size - 1, 0), (0, 2 * size), (size // 2, size)
        self.action_space = spaces.Discrete(5)
        self.observation_space = spaces.Discrete(size * self.width)
        self.place, self.has_key = (0, 0), False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.has_key = (0, 0), False
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action < 4:
            (row, column), (down, right) = self.place, self.moves[action]
            row, column = row + down, column + right
            is_inside = 0 <= row < self.size and 0 <= column < self.width
            if is_inside and (column != self.size or (row, column) == self.door):
                self.place = row, column
        self.has_key |= action == 4 and self.place == self.key
        is_paid = action == 4 and self.has_key and self.place == self.chest
        return self.place[0] * self.width + self.place[1], float(is_paid), is_paid, False, {}
