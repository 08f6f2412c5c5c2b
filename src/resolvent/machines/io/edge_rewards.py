"""Reward machines with rewards on their edges, as those of Toro Icarte et al.

A label determines the next state and the reward. A `RewardMachine` predicts the reward from the
state, the observation and the action, and so is more expressive; `from_pair` converts it where
the reward follows from state and label alone. There is no conversion back.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Final

from resolvent._util.text import short
from resolvent.errors import ModelError, OptionError
from resolvent.machines.io.guards import Guard
from resolvent.machines.machine_set import Machines
from resolvent.traces.symbols import Label, as_label, label_text
from resolvent.traces.trace_set import TraceSet

ENDED: Final = -1
"""State after a label without an edge: the episode is over."""

MOST_TERMS: Final = 10_000
"""Maximum number of terms in all guards together."""

MOST_LITERALS: Final = 500_000
"""Maximum number of literals in all terms together."""

_MAX_PROPOSITIONS: Final = 12
"""Maximum number of propositions over which all labels are enumerated."""


@dataclass(frozen=True)
class Edge:
    """The target and reward for all labels for which a guard holds."""

    source: int
    target: int
    guard: Guard
    reward: float
    origin: str = field(default="", compare=False, repr=False)
    """Name in error messages, such as "line 3"."""


@dataclass(frozen=True)
class EdgeRewardMachine:
    """A reward machine with rewards on its edges, guarded by formulas over propositions.

    A pair of states may have several edges. Two edges that leave a state and hold for the same
    label must have the same target and reward.

    >>> edges = (Edge(0, 0, Guard.parse("!coffee"), 0), Edge(0, 1, Guard.parse("coffee"), 1))
    >>> machine = EdgeRewardMachine(0, frozenset({1}), edges)
    >>> machine.step(0, set()), machine.step(0, {"coffee", "mail"})
    ((0, 0.0), (1, 1.0))
    """

    initial: int
    terminal: frozenset[int]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        if sum(len(edge.guard.terms) for edge in self.edges) > MOST_TERMS:
            raise ModelError(f"the machine has more than {MOST_TERMS:,} terms in its guards")
        terms = [term for edge in self.edges for term in edge.guard.terms]
        if sum(len(term.required) + len(term.forbidden) for term in terms) > MOST_LITERALS:
            raise ModelError(
                f"the machine's guards name propositions more than {MOST_LITERALS:,} times"
            )
        for number, edge in enumerate(self.edges):
            if edge.source in self.terminal:
                raise ModelError(
                    f"{_name(edge, number)} leaves state {edge.source}, which is terminal: "
                    f"leave out one of the two"
                )
            if not math.isfinite(edge.reward):
                raise ModelError(f"{_name(edge, number)} pays {edge.reward}: pay a finite number")
            if ENDED in (self.initial, edge.source):
                raise ModelError(f"{ENDED} stands for an ended episode: number states from 0")
        for leaving in self._leaving.values():
            _check_agreement([(number, self.edges[number]) for number in leaving])

    @cached_property
    def states(self) -> frozenset[int]:
        """All states of edges, the initial and terminal ones included."""
        ends = (state for edge in self.edges for state in (edge.source, edge.target))
        return frozenset((self.initial, *self.terminal, *ends))

    @property
    def propositions(self) -> frozenset[str]:
        """All propositions of the guards."""
        return frozenset().union(*(edge.guard.propositions for edge in self.edges))

    def has_ended(self, state: int) -> bool:
        """Return whether the episode is over in a state."""
        return state == ENDED or state in self.terminal

    def step(self, state: int, label: Iterable[str]) -> tuple[int, float]:
        """Return the next state and the reward after a label.

        Where no guard holds, the episode ends in `ENDED` with reward 0, as for the plants of the
        office world, which have no edge.
        """
        if self.has_ended(state):
            raise ModelError(f"state {state} is terminal: nothing is read in it")
        if state not in self.states:
            raise ModelError(f"state {state} does not exist: the states are {sorted(self.states)}")
        symbols = as_label(label)
        for number in self._leaving.get(state, ()):
            edge = self.edges[number]
            if edge.guard.holds(symbols):
                return edge.target, float(edge.reward)
        return ENDED, 0.0

    def first_difference(
        self, other: "EdgeRewardMachine", labels: Iterable[Iterable[str]] | None = None
    ) -> tuple[Label, ...] | None:
        """Return a shortest label sequence on which two machines differ, or None.

        They differ in a reward, or if only one episode has ended. By default all labels over the
        propositions of both are tried.

        >>> coffee = Edge(0, 1, Guard.parse("coffee"), 1)
        >>> wait = Edge(0, 0, Guard.parse("!coffee"), 0)
        >>> patient = EdgeRewardMachine(0, frozenset({1}), (coffee, wait))
        >>> EdgeRewardMachine(0, frozenset({1}), (coffee,)).first_difference(patient)
        (frozenset(),)
        """
        alphabet = _all_labels(self, other) if labels is None else list(map(as_label, labels))
        start = (self.initial, other.initial)
        histories: dict[tuple[int, int], tuple[Label, ...]] = {start: ()}
        if self.has_ended(start[0]) != other.has_ended(start[1]):
            return ()
        queue = [start]
        for pair in queue:
            if self.has_ended(pair[0]):
                continue
            for label in alphabet:
                target, reward = self.step(pair[0], label)
                second_target, second_reward = other.step(pair[1], label)
                history = (*histories[pair], label)
                if reward != second_reward or (
                    self.has_ended(target) != other.has_ended(second_target)
                ):
                    return history
                if (target, second_target) not in histories:
                    histories[target, second_target] = history
                    queue.append((target, second_target))
        return None

    def save(self, path: str | Path) -> None:
        """Write a reward-machine file, whole or not at all; `read_reward_machine` reads it."""
        from resolvent.machines.io.reward_machine_text import write_reward_machine

        write_reward_machine(self, path)

    @classmethod
    def from_pair(cls, pair: Machines, traces: TraceSet) -> "EdgeRewardMachine":
        """Return the Reward Machine of a set of machines with its rewards on the edges.

        `traces` are those of its inference; they give the reward of each state and label. A
        label whose step always ended the episode, or was never followed by one, leads to an added
        terminal state. Labels that were not observed in a state have no edge.

        >>> import resolvent as rs
        >>> from resolvent.worlds import House
        >>> traces = rs.collect(House(pays="cyanroom"), episodes=200, seed=0)
        >>> machine = EdgeRewardMachine.from_pair(rs.infer(traces).machines, traces)
        >>> machine.step(0, {"key"}), machine.step(0, {"toilet"})
        ((0, 0.0), (1, 1.0))

        Raises:
            ModelError: when the reward depends on more than state and label.
        """
        from resolvent.replay.edge_rewards import edge_rewards

        return edge_rewards(pair, traces)

    @cached_property
    def _leaving(self) -> dict[int, list[int]]:
        leaving: dict[int, list[int]] = {}
        for number, edge in enumerate(self.edges):
            leaving.setdefault(edge.source, []).append(number)
        return leaving


def _name(edge: Edge, number: int) -> str:
    return edge.origin or f"edge {number}"


def _check_agreement(leaving: list[tuple[int, Edge]]) -> None:
    """Raise `ModelError` for two edges that hold for the same label and disagree."""
    overlap = _first_overlap([edge for _, edge in leaving])
    if overlap is None:
        return
    (number, edge), (second_number, second) = leaving[overlap[0]], leaving[overlap[1]]
    label = edge.guard.overlap(second.guard) or frozenset()
    raise ModelError(
        f"{_name(edge, number)} and {_name(second, second_number)} both hold in state "
        f"{edge.source} for the label {short(repr(label_text(label)))} and disagree: "
        f"'{short(str(edge.guard))}' leads to {edge.target} and pays {edge.reward:g}, "
        f"'{short(str(second.guard))}' to {second.target} and {second.reward:g}; make one formula "
        f"exclude the other"
    )


def _first_overlap(edges: Sequence[Edge]) -> tuple[int, int] | None:
    """Return the first two edges, by number, that hold for one label and disagree; None if none.

    Terms exclude each other by a proposition that one requires and the other forbids. Sets of
    terms are bit sets, so that a term is compared with all others at once.
    """
    terms = [(number, term) for number, edge in enumerate(edges) for term in edge.guard.terms]
    requiring: dict[str, int] = {}
    forbidding: dict[str, int] = {}
    agreeing: dict[tuple[int, float], int] = {}
    up_to: list[int] = [0] * len(edges)  # the terms of an edge and of those before it
    for place, (number, term) in enumerate(terms):
        bit = 1 << place
        for names, held in ((term.required, requiring), (term.forbidden, forbidding)):
            for name in names:
                held[name] = held.get(name, 0) | bit
        result = edges[number].target, edges[number].reward
        agreeing[result] = agreeing.get(result, 0) | bit
        up_to[number] = 2 * bit - 1
    every = (1 << len(terms)) - 1
    first: dict[int, int] = {}
    for number, term in terms:
        excluded = agreeing[edges[number].target, edges[number].reward] | up_to[number]
        for name in term.required:
            excluded |= forbidding.get(name, 0)
        for name in term.forbidden:
            excluded |= requiring.get(name, 0)
        if overlapping := every & ~excluded:
            second = terms[(overlapping & -overlapping).bit_length() - 1][0]
            first[number] = min(second, first.get(number, second))
    return min(first.items(), default=None)


def _all_labels(first: EdgeRewardMachine, second: EdgeRewardMachine) -> list[Label]:
    names = sorted(first.propositions | second.propositions)
    if len(names) > _MAX_PROPOSITIONS:
        raise OptionError(
            f"there are {2 ** len(names):,} labels over {len(names)} propositions: "
            f"name those to compare on, as labels="
        )
    subsets = (combinations(names, size) for size in range(len(names) + 1))
    return [frozenset(subset) for of_size in subsets for subset in of_size]
