"""A table of states and keys + the traces it explains → a machine that pays on its edges."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.machines import Edge, EdgeRewardMachine, Guard
from resolvent.machines.tables import breadth_first
from resolvent.preprocess.timing import NONE
from resolvent.traces.symbols import Label, label_order
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, distinct_pairs

KEYS = ("label", "state", "triple")
"""What a machine may read at a step: the label it leads to, the observation it leads to, or
observation, action and next observation."""


@dataclass(frozen=True)
class KeyedRewardMachine:
    """A Reward Machine whose edges are keyed by observations instead of propositions.

    `edges` lead from a state and a key to a state and a reward. A key is the next
    observation ("state"), or observation, action and next observation ("triple").

    >>> machine = KeyedRewardMachine("state", 2, {(0, "door"): (1, 0.0), (1, "bed"): (1, 1.0)})
    >>> machine.step(0, "door"), machine.step(0, "bed")
    ((1, 0.0), None)
    """

    key: str
    states: int
    edges: dict[tuple[int, object], tuple[int, float]]

    def step(self, state: int, key: object) -> tuple[int, float] | None:
        """Return where a key leads and what that pays; None if no trace showed it."""
        return self.edges.get((state, key))

    def wrong_rewards(self, traces: TraceSet) -> int:
        """Count the steps whose reward is predicted wrongly or not at all."""
        wrong = 0
        values, codes = read_at_steps(traces, self.key)
        read = [values[code] for code in codes.tolist()]
        rewards = [traces.rewards[code] for code in traces.reward_codes.tolist()]
        for start, stop in pairwise(traces.offsets.tolist()):
            state: int | None = 0
            for key, reward in zip(read[start:stop], rewards[start:stop], strict=True):
                edge = None if state is None else self.step(state, key)
                state, paid = edge or (None, None)
                wrong += paid != reward
        return wrong


def read_at_steps(traces: TraceSet, key: str) -> tuple[list[object], Codes]:
    """Return the values that a key takes, and for each step the number of its value.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace(["hall", "attic"], [None, "key"], ["up"], [1])])
    >>> for key in KEYS:
    ...     values, codes = read_at_steps(traces, key)
    ...     print(values[codes[0]])
    frozenset({'key'})
    attic
    ('hall', 'up', 'attic')
    """
    if key == "label":
        return list(traces.labels), traces.after_step(traces.label_codes)
    led_to = traces.after_step(traces.observation_codes)
    if key == "state":
        return list(traces.observations), led_to
    if key != "triple":
        raise OptionError(f"unknown key '{key}': choose one of {', '.join(KEYS)}")
    seen, actions = len(traces.observations), len(traces.actions)
    at = traces.at_step(traces.observation_codes)
    questions, question = distinct_pairs(at, traces.action_codes, seen, actions)
    triples, codes = distinct_pairs(question, led_to, len(questions), seen)
    values = (divmod(triple, seen) for triple in triples.tolist())
    return [
        (
            traces.observations[int(questions[place]) // actions],
            traces.actions[int(questions[place]) % actions],
            traces.observations[after],
        )
        for place, after in values
    ], codes


def states_before(table: Codes, keys: Codes, offsets: NDArray[np.int64]) -> Codes:
    """Return the state that each step starts from, 0 at first; `table` is total."""
    read = np.empty_like(keys)
    read[1:] = keys[:-1]
    read[offsets[:-1]] = NONE
    return _core.walk_states(np.ascontiguousarray(table.ravel()), table.shape[1], read, offsets)


def canonical(table: Codes, keys: Codes, offsets: NDArray[np.int64]) -> Codes:
    """Drop unused states and edges, and number the states in a canonical order."""
    states = states_before(table, keys, offsets)
    visited = np.full_like(table, NONE)
    visited[states, keys] = table[states, keys]
    return renumbered(visited)


def renumbered(table: Codes) -> Codes:
    """Number the states of a partial table breadth-first, and make it total.

    Unreachable states are dropped; missing edges become self-loops.

    >>> renumbered(np.int32([[-1, 2], [0, 0], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    order = breadth_first(table)
    number = np.full(len(table) + 1, NONE, np.int32)  # the last is for NONE
    number[order] = np.arange(len(order), dtype=np.int32)
    moved = number[table[order]]
    stays = np.arange(len(order), dtype=np.int32)[:, None]
    return np.ascontiguousarray(np.where(moved == NONE, stays, moved))


@dataclass(frozen=True, eq=False)
class EdgesUsed:
    """The (state, key) pairs that traces use in a table, with their targets and rewards.

    `target` is one more than the last state if each step on the edge ended its episode.
    `reward` is the mean observed reward; `differs` marks edges with several rewards.
    """

    state: NDArray[np.int64]
    key: NDArray[np.int64]
    target: NDArray[np.int64]
    reward: NDArray[np.float64]
    differs: NDArray[np.bool_]


def edges_used(table: Codes, keys: Codes, traces: TraceSet) -> EdgesUsed:
    """Summarize the edges of a total table that traces use, given the key read at each step."""
    count = table.shape[1]
    states = states_before(table, keys, traces.offsets)
    paid = np.array(list(traces.rewards))[traces.reward_codes]
    edge_codes, first, place = np.unique(
        states.astype(np.int64) * count + keys, return_index=True, return_inverse=True
    )
    differs = np.bincount(place, paid != paid[first][place]) > 0
    # A mean would be inexact where all rewards are the same.
    mean = np.where(differs, np.bincount(place, paid) / np.bincount(place), paid[first])
    goes_on = np.ones(traces.steps, bool)
    goes_on[traces.offsets[1:] - 1] = ~traces.terminated
    ends = np.bincount(place, goes_on) == 0
    state, key = np.divmod(edge_codes, count)
    target = np.where(ends, len(table), table[state, key])
    return EdgesUsed(state, key, target, mean, differs)


def label_machine(used: EdgesUsed, labels: list[Label], states: int) -> EdgeRewardMachine:
    """Guard the edges by exactly the labels that take them, as `from_pair` does."""
    labels_of: dict[tuple[int, int, float], list[Label]] = {}
    columns = (used.state, used.target, used.reward, used.key)
    for *edge, key in zip(*(column.tolist() for column in columns), strict=True):
        labels_of.setdefault((edge[0], edge[1], edge[2]), []).append(labels[key])
    names = frozenset[str]().union(*labels)
    edges = tuple(
        Edge(source, target, Guard.exactly(sorted(taking, key=label_order), names), reward)
        for (source, target, reward), taking in sorted(labels_of.items())
    )
    terminal = frozenset({states} & {edge.target for edge in edges})
    return EdgeRewardMachine(0, terminal, edges)


def keyed_machine(
    used: EdgesUsed, key: str, values: list[object], table: Codes
) -> KeyedRewardMachine:
    """Build a machine from a table whose keys no guard can express."""
    columns = (used.state, used.key, used.reward)
    return KeyedRewardMachine(
        key,
        len(table),
        {
            (state, values[code]): (int(table[state, code]), reward)
            for state, code, reward in zip(*(column.tolist() for column in columns), strict=True)
        },
    )
