"""Grids with a Transition Machine and a Reward Machine behind them: a seed → tables.

Cells (x, y) run from 0 to `size` on both axes; an observation is x·(size+1) + y. The TM decides
which labeled cells are impassable, the RM the reward of a label; both read the label of the cell
after each step, also when the agent stayed there, as the authors' generator does.

That makes a Det-POMDP: the next cell depends on (cell, TM state, action), the reward of its
label on the RM state, and so the reward of a step is a function of
(observation, TM state, RM state, action) before it.

Paper: the appendix "Ablation Study Environment Generation".
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.validation import check_at_least, check_table
from resolvent.errors import OptionError
from resolvent.traces.symbols import NO_EVENT
from resolvent.worlds.mechanics import Mechanics

DIRECTIONS: Final = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}
"""In (x, y), in the order in which the authors number them."""

_STEP_BYTES: Final = 64  # memory of a cell and action in a state of both machines, for tables

# The paper does not state the probability of an RM edge. Few edges forward and many back
# make traces nearly as long as the paper's.
_FORWARD_PROBABILITY = 0.1
_BACK_PROBABILITY = 0.9

_MAX_DRAWS = 1_000


@dataclass(frozen=True)
class GridWorld:
    """A grid world and the machines behind it.

    Both machines start in state 0 and are complete: where a recipe or file
    defines nothing, the state stays and the reward is 0. The last RM state is terminal
    and ends the episode. Tables are indexed by state and label, `label_at` by observation;
    `blocked` holds the impassable observations of each TM state.
    """

    size: int
    label_at: tuple[int | None, ...]
    tm_transitions: tuple[tuple[int, ...], ...]
    blocked: tuple[frozenset[int], ...]
    rm_transitions: tuple[tuple[int, ...], ...]
    rm_rewards: tuple[tuple[float, ...], ...]

    @property
    def labels(self) -> int:
        """The number of labels."""
        return len(self.tm_transitions[0])

    @property
    def terminal(self) -> int:
        """The RM state that ends the episode."""
        return len(self.rm_transitions) - 1

    @property
    def starts(self) -> list[int]:
        """The observations an episode may begin with: both coordinates even."""
        even = range(0, self.size + 1, 2)
        return [x * (self.size + 1) + y for x in even for y in even]

    @cached_property
    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
        """The next states and rewards by state and action, and whether each state is reachable.

        A state is one number: (RM state, TM state, observation). Those with the terminal RM state
        are the last ones, and have no steps.
        """
        cells, tm_states = len(self.label_at), len(self.tm_transitions)
        check_table(
            cells * len(DIRECTIONS),
            tm_states * (self.terminal + 1),
            _STEP_BYTES,
            "the world's steps by states of its machines",
        )
        blocked = np.zeros((tm_states, cells), np.bool_)
        for state, impassable in enumerate(self.blocked):
            blocked[state, list(impassable)] = True
        stays = np.arange(cells)[:, None]
        side = self.size + 1
        there = np.stack(np.divmod(stays, side), axis=-1) + np.array(list(DIRECTIONS.values()))
        inside = ((there >= 0) & (there < side)).all(axis=-1)
        neighbor = np.where(inside, there @ np.array([side, 1]), stays)
        cell_after = np.where(blocked[:, neighbor], stays, neighbor)  # by TM state, cell, action

        # One more label, for cells without: it changes no state and has no reward.
        label = np.array([self.labels if label is None else label for label in self.label_at])[
            cell_after
        ]
        tm_state = np.arange(tm_states)[:, None, None]
        rm_state = np.arange(self.terminal)[:, None, None, None]
        next_tm = _with_no_event(self.tm_transitions)[tm_state, label]
        next_rm = _with_no_event(self.rm_transitions)[rm_state, label]
        rewards = np.pad(np.array(self.rm_rewards), ((0, 0), (0, 1)))
        next_state = ((next_rm * tm_states + next_tm) * cells + cell_after).astype(np.int32)
        next_state = next_state.reshape(-1, len(DIRECTIONS))
        reward = rewards[rm_state, label].reshape(-1, len(DIRECTIONS))
        reached = np.zeros((self.terminal + 1) * tm_states * cells, np.bool_)
        frontier = np.array(self.starts)
        while len(frontier):
            reached[frontier] = True
            targets = np.unique(next_state[frontier[frontier < len(next_state)]]).astype(np.int64)
            frontier = targets[~reached[targets]]
        return next_state, reward, reached

    def mechanics(self) -> Mechanics:
        """Return the world as an environment's tables, restricted to reachable states."""
        next_state, reward, reached = self.tables
        cells, tm_states = len(self.label_at), len(self.tm_transitions)
        states = np.flatnonzero(reached)
        live = int(np.count_nonzero(reached[: len(next_state)]))
        number = np.cumsum(reached, dtype=np.int32) - 1
        steps = np.repeat(np.arange(len(states), dtype=np.int32)[:, None], len(DIRECTIONS), axis=1)
        steps[:live] = number[next_state[states[:live]]]
        rewards = np.zeros(steps.shape)
        rewards[:live] = reward[states[:live]]
        memory, observation = np.divmod(states.astype(np.int32), np.int32(cells))
        label = np.array([0 if label is None else label + 1 for label in self.label_at], np.int32)
        return Mechanics(
            observations=range(cells),
            labels=(NO_EVENT, *(frozenset({str(code)}) for code in range(self.labels))),
            actions=tuple(DIRECTIONS),
            observation_of=observation,
            label_of=label[observation],
            next_state=steps,
            reward=rewards,
            ends=steps >= live,
            starts=number[self.starts],
            transition_memory=memory % tm_states,
            reward_memory=memory // tm_states,
            live=live,
        )


def _with_no_event(transitions: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    table = np.array(transitions)
    return np.hstack([table, np.arange(len(table))[:, None]])


# --- Random worlds -------------------------------------------------------------------------------


def random_grid_world(
    seed: int,
    size: int = 25,
    labels: int = 5,
    tm_states: int = 7,
    rm_states: int = 3,
    blocked_share: float = 0.3,
) -> GridWorld:
    """Draw a world whose machines are minimal and can be distinguished by walking.

    The defaults are the paper's. Labels lie on all cells with both coordinates
    odd. Worlds with a shortcoming are rejected, so the same seed gives the same world.
    """
    check_at_least(0, seed=seed)
    check_at_least(1, size=size, labels=labels, tm_states=tm_states)
    check_at_least(2, rm_states=rm_states)
    if not 0 <= blocked_share <= 1:
        raise OptionError(f"blocked_share={blocked_share}: use a share from 0 to 1")
    for attempt in range(1, _MAX_DRAWS + 1):
        rng = np.random.default_rng([seed, attempt])
        label_at = _labels(rng, size, labels)
        world = GridWorld(
            size,
            label_at,
            _transition_machine(rng, tm_states, labels),
            _blocked(rng, label_at, tm_states, blocked_share),
            *_reward_machine(rng, rm_states, labels),
        )
        if shortcoming(world) is None:
            return world
    raise OptionError(
        f"no suitable world in {_MAX_DRAWS:,} draws: {shortcoming(world)}; "
        "use more labels, fewer states or a larger grid"
    )


def shortcoming(world: GridWorld) -> str | None:
    """Return why traces cannot show that these machines are minimal, or None if they can.

    Any two states of a machine must have different outputs for some observation and
    action that occur in both: partition refinement that ends in one round.
    """
    next_state, reward, reached = world.tables
    cells, tm_states = len(world.label_at), len(world.tm_transitions)
    shape = (world.terminal, tm_states, cells, len(DIRECTIONS))
    occurs = reached[: len(next_state)].reshape(shape[:-1])
    if not reached.reshape(-1, tm_states * cells).any(axis=1).all():
        return "an RM state cannot be reached"
    if not occurs.any(axis=(0, 2)).all():
        return "a TM state cannot be reached"

    occurs_in_tm = np.logical_or.reduce(occurs, axis=0)
    cell_after = next_state.reshape(shape)[0] % cells
    for q, p in combinations(range(tm_states), 2):
        differ = (cell_after[q] != cell_after[p]).any(axis=-1)
        if not (differ & occurs_in_tm[q] & occurs_in_tm[p]).any():
            return "two TM states cannot be distinguished"
    rewards = reward.reshape(shape)
    for u, v in combinations(range(world.terminal), 2):
        differ = (rewards[u] != rewards[v]).any(axis=-1)
        if not (differ & occurs[u] & occurs[v]).any():
            return "two RM states cannot be distinguished"

    can_end = np.arange(len(reached)) >= len(next_state)
    while (grown := can_end[next_state].any(axis=1) & ~can_end[: len(next_state)]).any():
        can_end[: len(next_state)] |= grown
    return None if can_end[reached].all() else "an episode may never end"


def _labels(rng: np.random.Generator, size: int, labels: int) -> tuple[int | None, ...]:
    axis = range(size + 1)
    return tuple(int(rng.integers(labels)) if x % 2 and y % 2 else None for x in axis for y in axis)


def _transition_machine(
    rng: np.random.Generator, states: int, labels: int
) -> tuple[tuple[int, ...], ...]:
    """Draw a cycle through all states, then a target for every other (state, label).

    The paper adds extra random transitions first and completes later; both give
    a free (state, label) a random target, so one draw does the two.
    """
    table = rng.integers(states, size=(states, labels))
    table[np.arange(states), rng.integers(labels, size=states)] = np.arange(1, states + 1) % states
    return tuple(map(tuple, table.tolist()))


def _blocked(
    rng: np.random.Generator, label_at: tuple[int | None, ...], states: int, share: float
) -> tuple[frozenset[int], ...]:
    """Draw for each TM state a share of the labeled cells, none of them in every state."""
    labeled = [observation for observation, label in enumerate(label_at) if label is not None]
    count = int(share * len(labeled))
    draws = (rng.choice(labeled, count, replace=False).tolist() for _ in range(states))
    blocked = [set(draw) for draw in draws]
    for cell in set.intersection(*blocked):
        blocked[rng.integers(states)].remove(cell)
    return tuple(map(frozenset, blocked))


def _reward_machine(
    rng: np.random.Generator, states: int, labels: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]:
    """Draw forward edges with rewards and back edges with higher costs."""
    terminal = states - 1
    edges: list[dict[int, tuple[int, float]]] = [{} for _ in range(states)]

    def add(source: int, target: int, reward: float) -> None:
        free = [label for label in range(labels) if label not in edges[source]]
        if free:  # few labels may leave none for some edges
            edges[source][int(rng.choice(free))] = (target, round(reward, 2))

    def add_forward(source: int, target: int) -> None:
        low, high = (1.0, 2.0) if target == terminal else (0.01, 1.0)
        add(source, target, rng.uniform(low, high))

    for source in range(terminal):
        for target in range(source + 1, states):
            if rng.random() < _FORWARD_PROBABILITY:
                add_forward(source, target)
        # So far all edges lead forward, so a dead end is a state without any.
        if not edges[source]:
            add_forward(source, terminal)

    # The largest total reward on a path forward, short of the terminal state. Each back edge
    # costs more than that, so that a cycle is always a loss.
    largest = [0.0] * states
    for source in reversed(range(terminal)):
        for target, reward in edges[source].values():
            if target != terminal:
                largest[source] = max(largest[source], reward + largest[target])
    for source in range(terminal):
        for target in range(source):
            if rng.random() < _BACK_PROBABILITY:
                add(source, target, -max(largest) - rng.uniform(0.5, 5.0))

    rows = [
        [edges[source].get(label, (source, 0.0)) for label in range(labels)]
        for source in range(states)
    ]
    return (
        tuple(tuple(target for target, _ in row) for row in rows),
        tuple(tuple(reward for _, reward in row) for row in rows),
    )
