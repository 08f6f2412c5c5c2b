"""A labelled grid with a Transition Machine and a Reward Machine behind it, as tables.

Cells (x, y) run from 0 to `size` on both axes; an observation is x·(size+1) + y.
The TM says which labelled cells are impassable now, the RM what a label pays now;
both read the label of the cell after each step, also when the agent stayed there,
as the authors' generator does.

That makes a Det-POMDP: the next cell depends on (cell, TM state, action), its
label pays by the RM state, and so the reward of a step is a function of
(observation, TM state, RM state, action) before it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.validation import check_table
from resolvent.traces.symbols import NO_EVENT
from resolvent.worlds.mechanics import Mechanics

MOVES: Final = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}
"""In (x, y), in the order in which the authors number them."""


_STEP_BYTES: Final = 64
"""Memory for each cell and action in each state of both machines while tables are made."""


class GridTables(NamedTuple):
    """All steps of a grid world. A state is one number: (RM state, TM state, observation).

    `following` and `reward` go by state and action, for states whose RM state is
    not terminal; `reached` says which states walking from the starts can lead to.
    """

    following: NDArray[np.int32]
    reward: NDArray[np.float64]
    reached: NDArray[np.bool_]


@dataclass(frozen=True)
class GridWorld:
    """One grid world and the machines behind it.

    Both machines start in state 0 and are complete: where a recipe or file
    defines nothing, the state stays and pays 0. The last RM state is terminal
    and ends the episode.
    """

    size: int
    label_at: tuple[int | None, ...]  # by observation
    tm_transitions: tuple[tuple[int, ...], ...]  # by TM state and label
    blocked: tuple[frozenset[int], ...]  # by TM state: observations it makes impassable
    rm_transitions: tuple[tuple[int, ...], ...]  # by RM state and label
    rm_rewards: tuple[tuple[float, ...], ...]  # by RM state and label

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
    def tables(self) -> GridTables:
        """The tables of all steps, and the reachable states."""
        cells, tm_states = len(self.label_at), len(self.tm_transitions)
        check_table(
            cells * len(MOVES),
            tm_states * (self.terminal + 1),
            _STEP_BYTES,
            "the world's steps by states of its machines",
        )
        blocked = np.zeros((tm_states, cells), np.bool_)
        for state, impassable in enumerate(self.blocked):
            blocked[state, list(impassable)] = True
        neighbour = self._neighbours()
        stays = np.arange(cells)[:, None]
        arrived = np.where(blocked[:, neighbour], stays, neighbour)  # by TM state, cell, action

        # One label more, for cells without: it leads nowhere and pays nothing.
        label = np.array([self.labels if label is None else label for label in self.label_at])[
            arrived
        ]
        tm_states_now = np.arange(tm_states)[:, None, None]
        rm_states_now = np.arange(self.terminal)[:, None, None, None]
        next_tm = _with_no_event(self.tm_transitions)[tm_states_now, label]
        next_rm = _with_no_event(self.rm_transitions)[rm_states_now, label]
        paid = np.pad(np.array(self.rm_rewards), ((0, 0), (0, 1)))
        following = ((next_rm * tm_states + next_tm) * cells + arrived).astype(np.int32)
        following = following.reshape(-1, len(MOVES))
        return GridTables(
            following,
            paid[rm_states_now, label].reshape(-1, len(MOVES)),
            _reached(following, np.array(self.starts), (self.terminal + 1) * tm_states * cells),
        )

    def _neighbours(self) -> NDArray[np.int64]:
        """Return where each action leads from each cell when nothing is impassable."""
        side = self.size + 1
        here = np.stack(np.divmod(np.arange(side * side), side), axis=-1)
        there = here[:, None, :] + np.array(list(MOVES.values()))
        inside = ((there >= 0) & (there < side)).all(axis=-1)
        neighbours: NDArray[np.int64] = np.where(
            inside, there @ np.array([side, 1]), np.arange(side * side)[:, None]
        )
        return neighbours

    def mechanics(self) -> Mechanics:
        """Return the world as an environment's tables, restricted to reachable states."""
        following, reward, reached = self.tables
        cells, tm_states = len(self.label_at), len(self.tm_transitions)
        live_states = np.flatnonzero(reached)
        live = int(np.count_nonzero(reached[: len(following)]))
        number = np.cumsum(reached, dtype=np.int32) - 1
        steps = np.repeat(np.arange(len(live_states), dtype=np.int32)[:, None], len(MOVES), axis=1)
        steps[:live] = number[following[live_states[:live]]]
        paid = np.zeros(steps.shape)
        paid[:live] = reward[live_states[:live]]
        memory, observation = np.divmod(live_states.astype(np.int32), np.int32(cells))
        label = np.array([0 if label is None else label + 1 for label in self.label_at], np.int32)
        return Mechanics(
            observations=range(cells),
            labels=(NO_EVENT, *(frozenset({str(code)}) for code in range(self.labels))),
            actions=tuple(MOVES),
            observation_of=observation,
            label_of=label[observation],
            following=steps,
            reward=paid,
            ends=steps >= live,
            starts=number[self.starts],
            transition_memory=memory % tm_states,
            reward_memory=memory // tm_states,
            live=live,
        )


def _with_no_event(transitions: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    table = np.array(transitions)
    return np.hstack([table, np.arange(len(table))[:, None]])


def _reached(
    following: NDArray[np.int32], starts: NDArray[np.int64], states: int
) -> NDArray[np.bool_]:
    reached = np.zeros(states, np.bool_)
    frontier = starts
    while len(frontier):
        reached[frontier] = True
        arrived = np.unique(following[frontier[frontier < len(following)]]).astype(np.int64)
        frontier = arrived[~reached[arrived]]
    return reached
