"""Finite memories: states that labels change, the part of a machine that remembers.

Input: a table of next states by state and label. Output: states after label sequences, access
sequences, and the same table for other alphabets.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import inf
from numbers import Integral
from typing import Final, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.records import ByValue
from resolvent._util.validation import is_zero_dim, quoted
from resolvent.errors import ModelError
from resolvent.traces.symbols import Label, as_label
from resolvent.traces.vocabulary import Codes, Vocabulary, codes_of


class Unseen(Enum):
    """Type of `UNSEEN`, its only value."""

    UNSEEN = "unseen"

    def __repr__(self) -> str:
        return "UNSEEN"

    __str__ = __repr__

    def __bool__(self) -> bool:
        raise TypeError("UNSEEN is neither true nor false: compare with `is UNSEEN`")


UNSEEN: Final = Unseen.UNSEEN
"""Output or next state where the traces show none."""

State: TypeAlias = int | Literal[Unseen.UNSEEN]


@dataclass(frozen=True, eq=False, kw_only=True)
class FiniteMemory(ByValue):
    """States 0 … n−1 that labels change; 0 is the initial state.

    `transitions[state, label]` is the next state, or −1 where it was never observed; the labels
    with codes in `trivial` loop on every state.

    >>> from resolvent.worlds import House
    >>> memory = House().machines().transition
    >>> memory.step(0, {"key"}), memory.run([{"key"}, {"bell"}]), memory.access_sequence(1)
    (1, UNSEEN, (frozenset({'key'}),))
    """

    labels: Vocabulary[Label]
    transitions: Codes
    trivial: tuple[int, ...]

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.transitions)

    @property
    def trivial_labels(self) -> tuple[Label, ...]:
        """Labels that were assumed to change no state.

        Paper: I'_β.
        """
        return tuple(self.labels[code] for code in self.trivial)

    def step(self, state: State, label: Iterable[str]) -> State:
        """Return the state after reading a label, or `UNSEEN`.

        Paper: 𝒯.
        """
        if state is UNSEEN:
            return UNSEEN
        self._check_state(state)
        code = self.labels.get(as_label(label))
        if code is None:
            return UNSEEN
        target: int = self.transitions.item(state, code)
        return UNSEEN if target < 0 else target

    def run(self, labels: Iterable[Iterable[str]], state: State = 0) -> State:
        """Return the state after reading a sequence of labels, or `UNSEEN`.

        Paper: 𝒯*.
        """
        if not isinstance(labels, Iterable) or is_zero_dim(labels):
            raise ModelError(f"labels={quoted(labels)}: give a list of labels")
        for label in labels:
            state = self.step(state, label)
        return state

    def replay(
        self,
        labels_read: Codes,
        offsets: NDArray[np.int64],
        alphabet: Collection[Label] | None = None,
        *,
        unseen: str = "unknown",
    ) -> Codes:
        """Return the state at every step of many traces; −1 from an unseen label on.

        `labels_read` holds codes of the alphabet, by default this memory's labels: −1 for no label,
        the size of the alphabet or more for an unknown one. `unseen` is as for `transitions_for`.
        """
        table = self.transitions
        if alphabet is not None:
            table = self.transitions_for(alphabet, unseen=unseen)
        return _core.walk_states(table.ravel(), table.shape[1], labels_read, offsets)

    def access_sequence(self, state: int) -> tuple[Label, ...]:
        """Return the shortest label sequence that reaches a state, first in label order."""
        self._check_state(state)
        if state not in self.shortest_paths:
            raise ModelError(f"no labels lead to state {state}: it has no access sequence")
        labels = []
        while state:
            state, code = self.shortest_paths[state]
            labels.append(self.labels[code])
        return tuple(reversed(labels))

    def access_transition(self, state: int) -> tuple[int, Label] | None:
        """Return source and label of the last transition of the shortest path to a state.

        None for the initial state, and for one that cannot be reached.

        >>> from resolvent.worlds import House
        >>> House().machines().transition.access_transition(1)
        (0, frozenset({'key'}))
        """
        self._check_state(state)
        source, code = self.shortest_paths.get(state, (0, -1))
        return None if code < 0 else (source, self.labels[code])

    def reachable(self) -> list[int]:
        """Return the states that can be reached from the initial one, in breadth-first order."""
        return list(self.shortest_paths)

    @cached_property
    def shortest_paths(self) -> dict[int, tuple[int, int]]:
        """The last transition of the shortest path to each reachable state; see the function."""
        return shortest_paths(self.transitions)

    def transitions_for(
        self, alphabet: Collection[Label], *, unseen: str = "unknown", others: bool = False
    ) -> Codes:
        """Return the next states as [state, label code in another alphabet], a contiguous array.

        Unseen transitions are −1, or with `unseen="stay"` lead back to their state. With `others`
        a last column stands for all labels outside the alphabet.
        """
        codes = codes_of(alphabet, self.labels, -1)
        if others:
            codes = np.append(codes, np.int32(-1))
        unknown = np.full((self.states, 1), -1, np.int32)
        table = np.hstack([self.transitions, unknown])[:, codes]
        if unseen == "stay":
            table = np.where(table < 0, np.arange(self.states, dtype=np.int32)[:, None], table)
        return np.ascontiguousarray(table)

    def _check_state(self, state: int) -> None:
        is_integer = type(state) is int or (  # a check for `Integral` is slow
            isinstance(state, Integral) and not isinstance(state, bool)
        )
        if not is_integer or not 0 <= state < self.states:
            raise ModelError(
                f"state {quoted(state)} does not exist: the states are 0 to {self.states - 1}"
            )


Node = TypeVar("Node", bound=Hashable)
Edge = TypeVar("Edge")


class BreadthFirstSearch(Generic[Node, Edge]):
    """Visits the nodes of a graph, the nearest first; ties are broken by the order of edges.

    Iterate over it, and `add` the successors of each node. The search ends when it holds
    `max_nodes` nodes.
    """

    def __init__(self, starts: Iterable[Node], max_nodes: float = inf) -> None:
        self.parents: dict[Node, tuple[Node, Edge] | None] = dict.fromkeys(starts)
        self.distance = 0
        """Number of edges from the starts to the present node."""
        self._max_nodes = max_nodes
        self._next: list[Node] = list(self.parents)

    def __iter__(self) -> Iterator[Node]:
        while self._next:
            level, self._next = self._next, []
            for node in level:
                if len(self.parents) >= self._max_nodes:
                    return
                yield node
            self.distance += 1

    def add(self, node: Node, parent: Node, edge: Edge) -> None:
        """Note that an edge leads from the parent to a node, unless the node was reached before."""
        if node not in self.parents:
            self.parents[node] = parent, edge
            self._next.append(node)

    def path_to(self, node: Node) -> list[tuple[Node, Edge]]:
        """Return the nodes on the shortest path from a start to a node, each with its edge."""
        path = []
        while (parent := self.parents[node]) is not None:
            path.append(parent)
            node = parent[0]
        return path[::-1]


def shortest_paths(transitions: Codes) -> dict[int, tuple[int, int]]:
    """Return for each reachable state the last transition of its shortest path: source and label.

    States come in breadth-first order, labels in theirs. The initial state has the label −1.
    """
    paths: dict[int, tuple[int, int]] = {0: (0, -1)}
    queue = [0]
    for state in queue:
        row = transitions[state]
        for code in np.flatnonzero(row >= 0).tolist():
            if (target := int(row[code])) not in paths:
                paths[target] = state, code
                queue.append(target)
    return paths


def number_states(transitions: Codes) -> tuple[Codes, NDArray[np.int64], Codes]:
    """Number the reachable states in breadth-first order.

    Returns the table under the new numbers, the states in that order, and the new number of each
    state: −1 for unreachable ones, and for a last entry, which stands for unseen targets.
    """
    order = np.array(list(shortest_paths(transitions)), np.int64)
    number = np.full(len(transitions) + 1, -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return number[transitions[order]], order, number
