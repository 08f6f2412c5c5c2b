"""Random grid worlds for tests and benchmarks: the package's, with slow and plain ways to walk.

`World` adds to the package's tables what tests compare them with, one step at a
time, and rollouts that do not depend on the compiled core.
"""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.worlds.grid_world import GridWorld, random_grid_world, shortcoming

__all__ = ["World", "random_world", "shortcoming", "with_decoys"]

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


class World(GridWorld):
    """A grid world that can be walked step by step."""

    def move(self, observation: int, tm_state: int, action: int) -> int:
        """Where an action leads: off the grid and onto blocked cells it leads nowhere."""
        x, y = divmod(observation, self.size + 1)
        x, y = x + MOVES[action][0], y + MOVES[action][1]
        target = x * (self.size + 1) + y
        inside = 0 <= x <= self.size and 0 <= y <= self.size
        return target if inside and target not in self.blocked[tm_state] else observation

    def step(
        self, observation: int, tm_state: int, rm_state: int, action: int
    ) -> tuple[int, int, int, float]:
        """One step: the next observation, TM state and RM state, and the reward."""
        following = self.move(observation, tm_state, action)
        label = self.label_at[following]
        if label is None:
            return following, tm_state, rm_state, 0.0
        return (
            following,
            self.tm_transitions[tm_state][label],
            self.rm_transitions[rm_state][label],
            self.rm_rewards[rm_state][label],
        )

    def rollouts(self, episodes: int, seed: int, max_steps: int | None = None) -> TraceSet:
        """Random walks from random even-even cells until the RM ends, or `max_steps`."""
        next_state, reward, _ = self.tables
        following = next_state.ravel()
        rewards, reward_code = np.unique(reward.ravel(), return_inverse=True)
        rng = np.random.default_rng(seed)
        cells = len(self.label_at)
        ending = self.terminal * len(self.tm_transitions) * cells
        start = rng.choice(np.array(self.starts, dtype=np.int32), episodes)

        # All episodes walk in step; `walking` are those that have not ended.
        walking, state = np.arange(episodes), start
        episode_parts, key_parts, length = [], [], np.zeros(episodes, np.int64)
        steps = 0
        while len(walking) and (max_steps is None or steps < max_steps):
            key = state * len(MOVES) + rng.integers(len(MOVES), size=len(walking), dtype=np.int32)
            episode_parts.append(walking)
            key_parts.append(key)
            length[walking] += 1
            state = following[key]
            alive = state < ending
            walking, state = walking[alive], state[alive]
            steps += 1
        terminated = np.ones(episodes, bool)
        terminated[walking] = False

        # From step-major to episode-major: a stable sort keeps the steps of each in order.
        order = np.argsort(np.concatenate(episode_parts), kind="stable")
        keys = np.concatenate(key_parts)[order]
        offsets = np.concatenate([[0], np.cumsum(length)])
        seen = np.empty(offsets[-1] + episodes, np.int32)
        seen[offsets[:-1] + np.arange(episodes)] = start
        arrived = np.arange(offsets[-1]) + np.repeat(np.arange(episodes), length) + 1
        seen[arrived] = following[keys] % cells
        label_code = np.array([0 if label is None else label + 1 for label in self.label_at])
        label_values: list[Label] = [
            frozenset(),
            *(frozenset({str(i)}) for i in range(self.labels)),
        ]
        return TraceSet.from_columns(
            (range(cells), seen),
            (label_values, label_code.astype(np.int32)[seen]),
            (range(len(MOVES)), keys % len(MOVES)),
            (rewards.tolist(), reward_code.astype(np.int32)[keys]),
            offsets=offsets,
            terminated=terminated,
            truncated=~terminated,
        )

    def write_paper_format(self, path: str | Path, episodes: int, seed: int) -> None:
        """Write rollouts as the authors do: the last step repeats its action and reward."""
        with Path(path).open("w", encoding="utf-8") as file:
            for trace in self.rollouts(episodes, seed):
                seen = [
                    [int(next(iter(label))) if label else "None", observation]
                    for label, observation in zip(trace.labels, trace.observations, strict=True)
                ]
                actions = [*trace.actions, trace.actions[-1]]
                rewards = [*trace.rewards, trace.rewards[-1]]
                lines = [list(step) for step in zip(seen, actions, rewards, strict=True)]
                file.write(json.dumps(lines) + "\n")


def random_world(
    seed: int,
    size: int = 25,
    labels: int = 5,
    tm_states: int = 7,
    rm_states: int = 3,
    blocked_share: float = 0.3,
) -> World:
    """Draw a world; the same seed gives the same."""
    drawn = random_grid_world(seed, size, labels, tm_states, rm_states, blocked_share)
    return World(**{field.name: getattr(drawn, field.name) for field in fields(drawn)})


def with_decoys(world: World, decoys: int, seed: int = 0, share: float = 0.3) -> World:
    """Add labels that change no state and pay nothing, on a share of the unlabelled cells.

    They are numbered after the world's own. Starts stay unlabelled.
    """
    rng = np.random.default_rng([seed, decoys])
    label_at = list(world.label_at)
    for observation, label in enumerate(label_at):
        free = label is None and observation not in world.starts
        if free and rng.random() < share:
            label_at[observation] = world.labels + int(rng.integers(decoys))

    def looping(table: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple((*row, *[state] * decoys) for state, row in enumerate(table))

    return replace(
        world,
        label_at=tuple(label_at),
        tm_transitions=looping(world.tm_transitions),
        rm_transitions=looping(world.rm_transitions),
        rm_rewards=tuple((*row, *[0.0] * decoys) for row in world.rm_rewards),
    )
