"""Environments of the stochastic table with hidden state that has to be remembered."""

from typing import Any, ClassVar

import gymnasium as gym

WIDTH, HEIGHT, SLIP = 5, 4, 0.1
CELLS = WIDTH * HEIGHT


class Signpost(gym.Env[int, int]):
    """A slippery field, and a goal in one of two corners: a sign that is passed first tells which.

    From the start, at the foot of a field five cells wide, the only way leads to the cell with
    the sign, and on into the field. The goal is in the corner at the top left or at the top
    right; the other corner ends the episode and pays nothing. One step in ten goes in any
    direction. States are numbered by cell, those with the goal at the right after all others;
    `P` and `initial_state_distrib` say how they follow each other, as in Gymnasium's own tables.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    start = (HEIGHT - 1) * WIDTH + WIDTH // 2
    sign = start - WIDTH
    corners = (0, WIDTH - 1)

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Discrete(2 * CELLS)
        self.action_space = gym.spaces.Discrete(4)
        self.P = {
            state: {action: self._leads(state, action) for action in range(4)}
            for state in range(2 * CELLS)
        }
        self.initial_state_distrib = [
            0.5 * (state % CELLS == self.start) for state in range(2 * CELLS)
        ]
        self._state = self.start

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Draw in which corner the goal is, and begin below the sign."""
        super().reset(seed=seed)
        self._state = int(self.np_random.integers(2)) * CELLS + self.start
        return self._state, {"labels": set()}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Go up, right, down or left, or slip."""
        leads = self.P[self._state][int(action)]
        chances = [chance for chance, *_ in leads]
        _, self._state, pay, ends = leads[self.np_random.choice(len(leads), p=chances)]
        goal, cell = divmod(self._state, CELLS)
        labels = {("left", "right")[goal]} if cell == self.sign else set()
        return self._state, pay, ends, False, {"labels": labels}

    def _leads(self, state: int, action: int) -> list[tuple[float, int, float, bool]]:
        goal, cell = divmod(state, CELLS)
        leads = []
        for direction in range(4):
            to = _beside(cell, direction, self.start)
            chance = SLIP / 4 + (1 - SLIP) * (direction == action)
            leads.append(
                (chance, goal * CELLS + to, float(to == self.corners[goal]), to in self.corners)
            )
        return leads


def _beside(cell: int, direction: int, start: int) -> int:
    row, column = divmod(cell, WIDTH)
    row += (-1, 0, 1, 0)[direction]
    column += (0, 1, 0, -1)[direction]
    to = row * WIDTH + column
    inside = 0 <= column < WIDTH and (0 <= row < HEIGHT - 1 or to == start)
    return to if inside else cell


class TaxiEvents(gym.Wrapper[int, int, int, int]):
    """Taxi with the passenger hidden, and what picking up and putting down came to as labels."""

    depots: ClassVar[dict[int, str]] = {0: "red", 4: "green", 20: "yellow", 23: "blue"}

    def reset(self, **options: Any) -> tuple[int, dict[str, Any]]:
        """Begin anew: nothing was tried yet."""
        seen, info = super().reset(**options)
        return seen, {**info, "labels": set()}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Act, and say what came of it where passengers get in or out."""
        seen, pay, terminated, truncated, info = super().step(action)
        labels, depot = set(), self.depots.get(seen // 4)
        allowed = float(pay) == -1
        if depot and action == 4:
            labels = {"taken" if allowed else f"not at {depot}"}
        elif depot and action == 5 and allowed:
            labels = {f"left at {depot}"}
        return seen, float(pay), terminated, truncated, {**info, "labels": labels}
