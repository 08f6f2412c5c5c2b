"""Random grid worlds with known machines, for tests and benchmarks.

Paper: the appendix "Ablation Study Environment Generation". A world's cells
(x, y) run from 0 to `size` on both axes; an observation is x·(size+1) + y.
Labels lie on all cells with both coordinates odd. The transition machine (TM)
says which labelled cells are impassable now, the reward machine (RM) what a
label pays now; both read the label of the cell after each step, also when the
agent stayed there, as the authors' generator does.

That makes a Det-POMDP: the next cell depends on (cell, TM state, action), its
label pays by the RM state, and so the reward of a step is a function of
(observation, TM state, RM state, action) before it.
"""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))

# The paper does not say how likely an RM edge is. Few ways forward and many back
# make traces nearly as long as the paper's.
FORWARD_CHANCE = 0.1
BACK_CHANCE = 0.9


@dataclass(frozen=True)
class World:
    """One grid world and the machines behind it, as plain tables.

    Both machines start in state 0. `rm_transitions` and `rm_rewards` are
    complete: where the recipe defines nothing, the state stays and pays 0. The
    last RM state is terminal and ends the episode.
    """

    size: int
    label_at: tuple[int | None, ...]  # by observation
    tm_transitions: tuple[tuple[int, ...], ...]  # by TM state and label
    blocked: tuple[frozenset[int], ...]  # by TM state: observations it makes impassable
    rm_transitions: tuple[tuple[int, ...], ...]  # by RM state and label
    rm_rewards: tuple[tuple[float, ...], ...]  # by RM state and label

    @property
    def labels(self) -> int:
        return len(self.tm_transitions[0])

    @property
    def terminal(self) -> int:
        return len(self.rm_transitions) - 1

    @property
    def starts(self) -> list[int]:
        even = range(0, self.size + 1, 2)
        return [x * (self.size + 1) + y for x in even for y in even]

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

    @cached_property
    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.int32], list[float]]:
        """Next state and reward code by (state, action), and the rewards by code.

        A state is one integer, (RM state, TM state, observation), so that a
        step of any number of episodes is one look-up.
        """
        cells, tm_states = len(self.label_at), len(self.tm_transitions)
        shape = (self.terminal, tm_states, cells, len(MOVES))
        following = np.empty(shape, np.int32)
        paid = np.empty(shape)
        for u, q, o, a in np.ndindex(shape):
            next_o, next_q, next_u, paid[u, q, o, a] = self.step(o, q, u, a)
            following[u, q, o, a] = (next_u * tm_states + next_q) * cells + next_o
        rewards, codes = np.unique(paid, return_inverse=True)
        return following.ravel(), codes.ravel().astype(np.int32), rewards.tolist()

    def rollouts(self, episodes: int, seed: int, max_steps: int | None = None) -> TraceSet:
        """Random walks from random even-even cells until the RM ends, or `max_steps`."""
        following, reward_code, rewards = self.tables
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
            (rewards, reward_code[keys]),
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
    """Draw a world whose machines are minimal and can be told apart by walking.

    The defaults are the paper's. Draws that fall short are thrown away, so the
    same seed gives the same world.
    """
    for attempt in range(1, 1001):
        rng = np.random.default_rng([seed, attempt])
        label_at = _labels(rng, size, labels)
        world = World(
            size,
            label_at,
            _transition_machine(rng, tm_states, labels),
            _blocked(rng, label_at, tm_states, blocked_share),
            *_reward_machine(rng, rm_states, labels),
        )
        if shortcoming(world) is None:
            return world
    raise ValueError(f"no sound world in {attempt} draws: {shortcoming(world)}")


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


def shortcoming(world: World) -> str | None:
    """Say why traces cannot show these machines to be minimal, or None when they can.

    Any two states of a machine must answer differently to some observation and
    action that occur in both: partition refinement that ends in one round.
    """
    rm_reached: set[int] = set()
    ahead = {0}
    while ahead:
        rm_reached |= ahead
        ahead = {v for u in ahead for v in world.rm_transitions[u]} - rm_reached
    if len(rm_reached) <= world.terminal:
        return "an RM state cannot be reached"

    following, reward_code, _ = world.tables
    cells, tm_states = len(world.label_at), len(world.tm_transitions)
    shape = (world.terminal, tm_states, cells, len(MOVES))
    following = following.reshape(-1, len(MOVES))

    reached = np.zeros((world.terminal + 1) * tm_states * cells, bool)
    frontier = np.array(world.starts)
    while len(frontier):
        reached[frontier] = True
        arrived = np.unique(following[frontier[frontier < len(following)]])
        frontier = arrived[~reached[arrived]]
    running = reached[: len(following)].reshape(shape[:-1])
    if not running.any(axis=(0, 2)).all():
        return "a TM state cannot be reached"

    occurs = np.logical_or.reduce(running, axis=0)
    cell_after = following.reshape(shape)[0] % cells
    for q, p in combinations(range(tm_states), 2):
        differ = (cell_after[q] != cell_after[p]).any(axis=-1)
        if not (differ & occurs[q] & occurs[p]).any():
            return "two TM states cannot be told apart"
    paid = reward_code.reshape(shape)
    for u, v in combinations(range(world.terminal), 2):
        differ = (paid[u] != paid[v]).any(axis=-1)
        if not (differ & running[u] & running[v]).any():
            return "two RM states cannot be told apart"

    can_end = np.arange(len(reached)) >= len(following)
    while (grown := can_end[following].any(axis=1) & ~can_end[: len(following)]).any():
        can_end[: len(following)] |= grown
    return None if can_end[reached].all() else "an episode may never end"


def _labels(rng: np.random.Generator, size: int, labels: int) -> tuple[int | None, ...]:
    axis = range(size + 1)
    return tuple(int(rng.integers(labels)) if x % 2 and y % 2 else None for x in axis for y in axis)


def _transition_machine(
    rng: np.random.Generator, states: int, labels: int
) -> tuple[tuple[int, ...], ...]:
    """A cycle through all states, then a random target for every other (state, label).

    The paper adds extra random transitions first and completes later; both give
    a free (state, label) a random target, so one draw does the two.
    """
    table = rng.integers(states, size=(states, labels))
    table[np.arange(states), rng.integers(labels, size=states)] = np.arange(1, states + 1) % states
    return tuple(map(tuple, table.tolist()))


def _blocked(
    rng: np.random.Generator, label_at: tuple[int | None, ...], states: int, share: float
) -> tuple[frozenset[int], ...]:
    """For each TM state a share of the labelled cells, none of them in every state."""
    labelled = [observation for observation, label in enumerate(label_at) if label is not None]
    count = int(share * len(labelled))
    draws = (rng.choice(labelled, count, replace=False).tolist() for _ in range(states))
    blocked = [set(draw) for draw in draws]
    for cell in set.intersection(*blocked):
        blocked[rng.integers(states)].remove(cell)
    return tuple(map(frozenset, blocked))


def _reward_machine(
    rng: np.random.Generator, states: int, labels: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]:
    """Forward edges that pay, back edges that cost more: transitions and rewards."""
    terminal = states - 1
    edges: list[dict[int, tuple[int, float]]] = [{} for _ in range(states)]

    def add(source: int, target: int, reward: float) -> None:
        free = [label for label in range(labels) if label not in edges[source]]
        if free:  # with few labels, some edges find none left
            edges[source][int(rng.choice(free))] = (target, round(reward, 2))

    def add_forward(source: int, target: int) -> None:
        low, high = (1.0, 2.0) if target == terminal else (0.01, 1.0)
        add(source, target, rng.uniform(low, high))

    for source in range(terminal):
        for target in range(source + 1, states):
            if rng.random() < FORWARD_CHANCE:
                add_forward(source, target)
        # Edges only go up so far, so a dead end is a state without any.
        if not edges[source]:
            add_forward(source, terminal)

    # The most that any way up can pay short of the terminal state. Each back edge
    # costs more than that, so a cycle of any number of them loses on the whole.
    most = [0.0] * states
    for source in reversed(range(terminal)):
        for target, reward in edges[source].values():
            if target != terminal:
                most[source] = max(most[source], reward + most[target])
    for source in range(terminal):
        for target in range(source):
            if rng.random() < BACK_CHANCE:
                add(source, target, -max(most) - rng.uniform(0.5, 5.0))

    rows = [
        [edges[source].get(label, (source, 0.0)) for label in range(labels)]
        for source in range(states)
    ]
    return (
        tuple(tuple(target for target, _ in row) for row in rows),
        tuple(tuple(reward for _, reward in row) for row in rows),
    )
