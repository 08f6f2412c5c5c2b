"""The cost of the wrappers per step: wrapped less bare, both measured in one run.

The environments do almost nothing: they walk through the rooms of the house in a ring, whatever
the action, and report the label of each room. So the ratio to the bare environment is about the
worst possible one.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import resolvent as rs
from resolvent.rl.tracker import StateTracker
from resolvent.worlds import House

ROOMS = len(House.observation_names)
ACTIONS = len(House.action_names)
LABELS = [frozenset[str](), *map(frozenset, ({"key"}, {"toilet"}, {"sofa"}))]
MODES = ("dict", "flatten", "multidiscrete", "discrete")
EPISODE = 100  # steps


class Ring(gym.Env[int, int]):
    """One environment."""

    observation_names = House.observation_names
    action_names = House.action_names
    observation_space = spaces.Discrete(ROOMS)
    action_space = spaces.Discrete(ACTIONS)

    def reset(self, **options: Any) -> tuple[int, dict[str, Any]]:
        self.room = 0
        return 0, {"labels": LABELS[0]}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.room = (self.room + 1) % ROOMS
        return self.room, 0.0, False, False, {"labels": LABELS[self.room]}


class Rings(gym.vector.VectorEnv[Any, Any, Any]):
    """Many environments moved at once, of which one in a hundred ends at each step."""

    observation_names = House.observation_names
    action_names = House.action_names

    def __init__(self, count: int, mode: AutoresetMode) -> None:
        self.num_envs = count
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space = spaces.Discrete(ROOMS)
        self.single_action_space = spaces.Discrete(ACTIONS)
        self.observation_space = spaces.MultiDiscrete([ROOMS] * count)
        self.action_space = spaces.MultiDiscrete([ACTIONS] * count)
        self._labels = np.array(LABELS)
        self._all = np.ones(count, bool)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.rooms = np.zeros(self.num_envs, np.int64)
        self.steps = np.arange(self.num_envs) % EPISODE
        return self.rooms, self.told(self._all)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        ended = self.steps == EPISODE - 1
        self.rooms = (self.rooms + 1) % ROOMS
        self.steps = (self.steps + 1) % EPISODE
        infos: dict[str, Any] = {}
        if self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP and ended.any():
            infos = {"final_obs": self.rooms, "_final_obs": ended, "final_info": self.told(ended)}
            self.rooms = np.where(ended, 0, self.rooms)
        elif self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP:
            self.rooms = np.where(self.steps == 1, 0, self.rooms)
        infos.update(self.told(self._all))
        return self.rooms, np.zeros(self.num_envs), ~self._all, ended, infos

    def told(self, mask: Any) -> dict[str, Any]:
        return {"labels": self._labels[self.rooms], "_labels": mask}


def main() -> None:
    """Print a table for one environment and one for many."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000, help="of one environment")
    parser.add_argument("--environments", type=int, default=1_000)
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()
    house = rs.collect(gym.make("resolvent/House-v0"), episodes=500, seed=0)
    pair = rs.infer(house).machines

    memory = StateTracker(pair)
    memory.reset(LABELS[0])
    bare = Ring()
    measured: dict[str, Callable[[int], object]] = {
        "bare": stepping(bare, 0),
        "memory alone": lambda steps: [memory.step(label) for label in LABELS * (steps // ROOMS)],
    }
    for mode in MODES:
        wrapped = rs.AugmentObservation(Ring(), pair, mode=mode, knowledge=False)
        measured[mode] = stepping(wrapped, 0)
    measured["dict, knowledge"] = stepping(rs.AugmentObservation(Ring(), pair, knowledge=True), 0)
    print("\none environment\n")
    table(measured, options.steps, 1, options.repetitions)

    count = options.environments
    actions = np.zeros(count, np.int64)
    for autoreset in AutoresetMode:
        bare = Rings(count, autoreset)
        measured = {"bare": stepping(bare, actions)}
        for mode in MODES:
            wrapped = rs.wrappers.VectorAugmentObservation(Rings(count, autoreset), pair, mode=mode)
            measured[mode] = stepping(wrapped, actions)
        wrapped = rs.wrappers.VectorAugmentObservation(
            Rings(count, autoreset), pair, knowledge=True
        )
        measured["dict, knowledge"] = stepping(wrapped, actions)
        print(f"\n{count:,} environments, autoreset {autoreset.value}\n")
        table(measured, max(1, options.steps // 50), count, options.repetitions)


def stepping(env: Any, action: Any) -> Callable[[int], object]:
    """Return what steps an environment so many times."""
    env.reset()

    def work(steps: int) -> None:
        for _ in range(steps):
            env.step(action)

    return work


def table(
    measured: dict[str, Callable[[int], object]], steps: int, count: int, repetitions: int
) -> None:
    """Time all in turn, several times over, and print the median a step and environment."""
    times: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(repetitions):
        for name, work in measured.items():
            started = time.perf_counter()
            work(steps)
            times[name].append((time.perf_counter() - started) / (steps * count) * 1e6)
    bare = statistics.median(times["bare"])
    print(f"{'µs a step':<16}{'whole':>9}{'output_counts':>16}{'added':>9}{'of bare':>9}")
    for name, microseconds in times.items():
        middle = statistics.median(microseconds)
        output_counts = f"{min(microseconds):.3f}–{max(microseconds):.3f}"
        alone = name in ("bare", "memory alone")
        added, ratio = ("", "") if alone else (f"{middle - bare:.3f}", f"{middle / bare:.1f}")
        print(f"{name:<16}{middle:>9.3f}{output_counts:>16}{added:>9}{ratio:>9}")


if __name__ == "__main__":
    main()
