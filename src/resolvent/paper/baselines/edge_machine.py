"""Tables of states and labels ↔ machines with rewards on their edges.

Input: a table, and the traces that it explains. Output: an `EdgeRewardMachine` with guards and
rewards; and for such a machine its tables, and the number of rewards that it predicts wrongly.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines import EdgeRewardMachine
from resolvent.machines.memory import number_states
from resolvent.preprocess.timing import NONE
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


def labels_read(traces: TraceSet) -> Codes:
    """Return the code of the label after each step."""
    return traces.after_step(traces.label_codes)


def states_before(table: Codes, labels: Codes, offsets: NDArray[np.int64]) -> Codes:
    """Return the state before each step, 0 at first; `table` is total."""
    read = np.empty_like(labels)
    read[1:] = labels[:-1]
    read[offsets[:-1]] = NONE
    return _core.walk_states(np.ascontiguousarray(table.ravel()), table.shape[1], read, offsets)


def canonical(table: Codes, labels: Codes, offsets: NDArray[np.int64]) -> Codes:
    """Drop unused states and edges, and number the states in a canonical order."""
    states = states_before(table, labels, offsets)
    visited = np.full_like(table, NONE)
    visited[states, labels] = table[states, labels]
    return renumbered(visited)


def renumbered(table: Codes) -> Codes:
    """Number the states of a partial table breadth-first, and make it total.

    Unreachable states are dropped; missing edges become self-loops.

    >>> renumbered(np.int32([[-1, 2], [0, 0], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    targets, order, _ = number_states(table)
    stays = np.arange(len(order), dtype=np.int32)[:, None]
    return np.ascontiguousarray(np.where(targets == NONE, stays, targets))


@dataclass(frozen=True, eq=False)
class EdgesUsed:
    """The (state, label) pairs that traces use in a table, with their targets and rewards.

    `target` is one more than the last state if each step on the edge ended its episode.
    `reward` is the mean observed reward; `differs` marks edges with several rewards.
    """

    state: NDArray[np.int64]
    label: NDArray[np.int64]
    target: NDArray[np.int64]
    reward: NDArray[np.float64]
    differs: NDArray[np.bool_]

    @classmethod
    def of(cls, table: Codes, traces: TraceSet) -> "EdgesUsed":
        """Summarize the edges of a total table that traces use."""
        count = table.shape[1]
        labels = labels_read(traces)
        states = states_before(table, labels, traces.offsets)
        rewards = np.array(list(traces.rewards))[traces.reward_codes]
        edge_codes, first, inverse = np.unique(
            states.astype(np.int64) * count + labels, return_index=True, return_inverse=True
        )
        differs = np.bincount(inverse, rewards != rewards[first][inverse]) > 0
        # A mean would be inexact where all rewards are the same.
        mean = np.where(
            differs, np.bincount(inverse, rewards) / np.bincount(inverse), rewards[first]
        )
        continues = np.ones(traces.steps, bool)
        continues[traces.offsets[1:] - 1] = ~traces.terminated
        ends = np.bincount(inverse, continues) == 0
        state, label = np.divmod(edge_codes, count)
        target = np.where(ends, len(table), table[state, label])
        return cls(state, label, target, mean, differs)

    def machine(self, labels: list[Label], states: int) -> EdgeRewardMachine:
        """Return the machine whose edges are guarded by exactly the labels that take them."""
        columns = (self.state, self.target, self.reward, self.label)
        labels_of: dict[tuple[int, int, float], list[Label]] = {}
        for *edge, label in zip(*(column.tolist() for column in columns), strict=True):
            labels_of.setdefault((edge[0], edge[1], edge[2]), []).append(labels[label])
        return EdgeRewardMachine.of_labels(labels_of, frozenset[str]().union(*labels), states)


def edge_tables(
    machine: EdgeRewardMachine, labels: Iterable[Label]
) -> tuple[Codes, NDArray[np.float64]]:
    """Return the targets and rewards of a machine by state and label.

    State 0 is the initial one; in the last one, the episode is over.
    """
    labels = list(labels)
    states = sorted(
        machine.states - machine.terminal, key=lambda state: (state != machine.initial, state)
    )
    if machine.has_ended(machine.initial):
        states = []
    ended = len(states)
    number = {state: code for code, state in enumerate(states)}
    targets = np.full((ended + 1, len(labels)), ended, np.int32)
    rewards = np.zeros(targets.shape)
    for state, code in number.items():
        for column, label in enumerate(labels):
            target, rewards[code, column] = machine.step(state, label)
            targets[code, column] = number.get(target, ended)
    return targets, rewards


def wrong_rewards(machine: EdgeRewardMachine, traces: TraceSet) -> int:
    """Count the steps whose reward a machine predicts wrongly when it reads l_1, l_2 and so on.

    Where it has ended before the trace does, it predicts 0.
    """
    targets, rewards = edge_tables(machine, traces.labels)
    labels = labels_read(traces)
    predicted = rewards[states_before(targets, labels, traces.offsets), labels]
    observed = np.array(list(traces.rewards))[traces.reward_codes]
    return int(np.count_nonzero(predicted != observed))
