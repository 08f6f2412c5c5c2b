"""The worlds on which all methods are compared, and the common evaluation of policies.

A policy is a function of observations; its value is the discounted return from every start,
followed on the tables of the world, as a share of the best. These worlds are deterministic, so one
episode from each start suffices.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent.worlds.mechanics import Mechanics

Codes: TypeAlias = NDArray[np.int64]
Acting: TypeAlias = Callable[[Codes, Codes, Codes], Codes]
"""What is done next in episodes side by side: given what is seen, the label, and the action
before (−1 at first), each as codes; −1 where nothing is known, and then nothing more is paid."""

UNKNOWN = -1
FORGOTTEN = 1e-3
"""What comes later than this share of the optimum, by the discount alone, is left out."""
ENOUGH = 0.95
"""The share of the optimum that counts as solved."""
IN_A_ROW = 3
"""At so many checkpoints one after another it has to hold; then a run may end."""
APART = 1.15
"""How many times more steps the next checkpoint comes after."""


@dataclass(frozen=True)
class Setting:
    """A world, when its episodes are cut, and what a reward one step later is worth."""

    name: str
    made: tuple[tuple[str, Any], ...]
    limit: int
    gamma: float = 0.95

    def env(self) -> gym.Env[Any, Any]:
        """Make the environment, with the limit that all methods get."""
        return gym.make(**dict(self.made), max_episode_steps=self.limit)

    @cached_property
    def world(self) -> Any:
        """The world itself, without wrappers."""
        return self.env().unwrapped

    @property
    def tables(self) -> Mechanics:
        """What the world does, as tables."""
        mechanics: Mechanics = self.world.mechanics
        return mechanics

    @cached_property
    def starts(self) -> Codes:
        """The states that episodes begin in, as often as they are drawn."""
        return self.tables.starts.astype(np.int64)

    @cached_property
    def optimum(self) -> float:
        """What the best policy is worth, in the mean over the starts."""
        return float(self.tables.optimal_values(self.gamma)[self.starts].mean())

    def share(self, begin: Callable[[int], Acting]) -> float:
        """Return what a way to act is worth, as a share of the optimum.

        `begin` is told how many episodes are played side by side.
        """
        tables, gamma = self.tables, self.gamma
        state, act = self.starts.copy(), begin(len(self.starts))
        before = np.full(len(state), UNKNOWN)
        active = np.ones(len(state), bool)
        paid, weight = np.zeros(len(state)), 1.0
        horizon = math.ceil(math.log(FORGOTTEN * self.optimum) / math.log(gamma))
        for _ in range(min(horizon, self.limit)):
            seen, labels = tables.observation_of[state], tables.label_of[state]
            action = act(seen.astype(np.int64), labels.astype(np.int64), before)
            active &= action != UNKNOWN
            before = np.where(active, action, 0)
            paid += np.where(active, weight * tables.reward[state, before], 0.0)
            weight *= gamma
            active &= ~tables.ends[state, before]
            if not active.any():
                break
            state = np.where(active, tables.next_state[state, before], state)
        return float(paid.mean()) / self.optimum


WORLDS = {
    setting.name: setting
    for setting in (
        Setting("House", (("id", "resolvent/House-v0"),), 500),
        Setting("HouseInterference", (("id", "resolvent/HouseInterference-v0"),), 500),
        Setting("PhaseGrid3", (("id", "resolvent/PhaseGrid3-v0"),), 500),
        Setting("TMaze", (("id", "resolvent/TMaze-v0"), ("length", 10)), 500),
        Setting("OfficeCoffee", (("id", "resolvent/OfficeCoffee-v0"),), 1_000),
        Setting("TMaze100", (("id", "resolvent/TMaze-v0"), ("length", 100)), 2_000, gamma=0.99),
    )
}


class Curve:
    """The share of the optimum at checkpoints, each so many times more steps than the last."""

    def __init__(self, setting: Setting, most: int, first: int = 10) -> None:
        self.setting, self.most = setting, most
        self.next = first
        self.steps: list[int] = []
        self.shares: list[float] = []

    def look(self, steps: int, begin: Callable[[int], Acting]) -> bool:
        """Judge a way to act if a checkpoint is due; say whether the run is over."""
        if steps >= min(self.next, self.most):
            self.finish(steps, begin)
        return self.over(steps)

    def finish(self, steps: int, begin: Callable[[int], Acting]) -> None:
        """Judge a way to act, at a checkpoint or at the end of a run."""
        if self.steps[-1:] != [steps]:
            self.steps.append(steps)
            self.shares.append(round(self.setting.share(begin), 6))
            self.next = max(steps + 1, math.ceil(APART * steps))

    def over(self, steps: int) -> bool:
        """Say whether the steps are spent, or it is solved and has been for a while."""
        held = self.shares[-IN_A_ROW:]
        return steps >= self.most or (len(held) == IN_A_ROW and min(held) >= ENOUGH - 1e-6)


def solved_at(steps: list[int], shares: list[float]) -> int | None:
    """Return the steps after which the share is enough and stays so, or None.

    It has to hold at three checkpoints in a row, or from there to the end.

    >>> solved_at([10, 20, 30, 40], [0.2, 0.96, 0.5, 1.0])
    40
    >>> solved_at([10, 20, 30, 40, 50], [1, 1, 1, 0, 0])
    10
    >>> solved_at([10, 20], [1, 0])
    """
    run = 0
    for place, share in enumerate(shares):
        run = run + 1 if share >= ENOUGH - 1e-6 else 0
        if run == IN_A_ROW:
            return steps[place - run + 1]
    return steps[len(steps) - run] if run else None
