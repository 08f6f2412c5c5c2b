"""Reward machines with rewards on their edges, guarded by formulas, as those of Toro Icarte et al.

A label determines the next state and the reward. A `RewardMachine` predicts the reward from the
state, the observation and the action, and so is more expressive; `from_pair` converts it where
the reward follows from state and label alone. There is no conversion back.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import short
from resolvent.errors import ModelError, OptionError
from resolvent.machines.machine_set import Machines
from resolvent.machines.memory import UNSEEN
from resolvent.preprocess.samples import Histories, rounded
from resolvent.traces.symbols import Label, as_label, label_order, label_text
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, codes_of

ENDED: Final = -1
"""State after a label without an edge: the episode is over."""

MAX_TERMS: Final = 4096
"""Maximum number of terms in all guards together."""

MAX_TERM_TABLE: Final = 20_000_000
"""Maximum number of terms times propositions."""

_MAX_PROPOSITIONS: Final = 12
"""Maximum number of propositions over which all labels are enumerated."""

_CONSTANTS = ("True", "False")
_SYNTAX = "&|()\\"
_LITERAL = re.compile(r"((?:!\s*)*)(.*)", re.DOTALL)


class Term(NamedTuple):
    """One conjunction: the propositions that must be in a label, and those that must not."""

    required: frozenset[str]
    forbidden: frozenset[str]

    def holds(self, label: Label) -> bool:
        """Return whether a label has all required propositions and no forbidden one."""
        return self.required <= label and self.forbidden.isdisjoint(label)

    def __str__(self) -> str:
        names = sorted(self.required | self.forbidden)
        signed = [name if name in self.required else f"!{name}" for name in names]
        return "&".join(signed) or "True"


@dataclass(frozen=True, repr=False)
class Guard:
    """A formula in disjunctive normal form; one without terms holds for no label.

    It is written as in reward-machine files: `a&!b|c` holds for a label with a and without b, and
    for any label with c; `True` holds always and `False` never.

    >>> guard = Guard.parse("e&!n | !g")
    >>> str(guard), guard.holds(frozenset({"e", "g"})), guard.holds(frozenset({"g"}))
    ('e&!n|!g', True, False)
    """

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> "Guard":
        """Read a formula; terms that contradict themselves are dropped, as are repeated ones."""
        terms = (_term(part, text) for part in text.split("|"))
        return cls(tuple(dict.fromkeys(term for term in terms if term is not None)))

    @classmethod
    def exactly(cls, labels: Iterable[Label], propositions: Iterable[str]) -> "Guard":
        """Return the guard that holds for exactly these labels over these propositions.

        >>> str(Guard.exactly([frozenset(), frozenset({"key"})], ["key", "sofa"]))
        '!key&!sofa|key&!sofa'
        """
        names = frozenset(propositions)
        return cls(tuple(Term(label, names - label) for label in labels))

    @property
    def propositions(self) -> frozenset[str]:
        """All propositions of the formula."""
        return frozenset().union(*(term.required | term.forbidden for term in self.terms))

    def holds(self, label: Label) -> bool:
        """Return whether some term holds for a label."""
        return any(term.holds(label) for term in self.terms)

    def overlap(self, other: "Guard") -> Label | None:
        """Return a smallest label of two terms for which both guards hold, or None.

        >>> sorted(Guard.parse("a&!b").overlap(Guard.parse("b|c")))
        ['a', 'c']
        """
        for first, second in product(self.terms, other.terms):
            required, forbidden = map(frozenset.union, first, second)
            if required.isdisjoint(forbidden):
                return required
        return None

    def __str__(self) -> str:
        return "|".join(map(str, self.terms)) or "False"

    def __repr__(self) -> str:
        return f"Guard({str(self)!r})"


def check_proposition(name: str) -> None:
    """Raise `ModelError` for a name that cannot be written in a formula."""
    if name in _CONSTANTS:
        raise ModelError(f"a formula takes the proposition {name!r} for a constant: rename it")
    if (
        not name
        or name != name.strip()
        or name.startswith("!")
        or not name.isprintable()
        or any(sign in name for sign in _SYNTAX)
    ):
        raise ModelError(
            f"a formula cannot hold the proposition {short(repr(name))}: rename it without "
            f"{' '.join(_SYNTAX)}, a leading !, spaces at its ends and control characters"
        )


def _term(text: str, formula: str) -> Term | None:
    """Read a conjunction; None if it holds for no label."""
    required: set[str] = set()
    forbidden: set[str] = set()
    possible = True
    for literal in text.split("&"):
        signs, name = _LITERAL.fullmatch(literal.strip()).groups()  # type: ignore[union-attr]
        holds = signs.count("!") % 2 == 0
        if not name:
            raise ModelError(
                f"the formula {short(repr(formula))} lacks a proposition beside one of its signs"
            )
        if name in _CONSTANTS:
            possible &= holds is (name == "True")
            continue
        if "(" in name or ")" in name:
            raise ModelError(
                f"the formula {short(repr(formula))} has parentheses: write terms of & and !, "
                f"joined by |"
            )
        check_proposition(name)
        (required if holds else forbidden).add(name)
    if not possible or not required.isdisjoint(forbidden):
        return None
    return Term(frozenset(required), frozenset(forbidden))


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
        terms = sum(len(edge.guard.terms) for edge in self.edges)
        if terms > MAX_TERMS or terms * len(self.propositions) > MAX_TERM_TABLE:
            raise ModelError(
                f"the guards have {terms:,} terms over {len(self.propositions):,} propositions, "
                f"more than can be compared: use fewer"
            )
        for number, edge in enumerate(self.edges):
            if edge.source in self.terminal:
                raise ModelError(
                    f"{_name(edge, number)} leaves state {edge.source}, which is terminal: "
                    f"remove one of the two"
                )
            if not math.isfinite(edge.reward):
                raise ModelError(
                    f"{_name(edge, number)} has the reward {edge.reward}: make it finite"
                )
            if ENDED in (self.initial, edge.source):
                raise ModelError(f"{ENDED} stands for an ended episode: number states from 0")
        for leaving in self._leaving.values():
            _check_agreement(leaving)

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
        for _, edge in self._leaving.get(state, ()):
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
        >>> traces = rs.collect(House(goal="cyanroom"), episodes=200, seed=0)
        >>> machine = EdgeRewardMachine.from_pair(rs.infer(traces).machines, traces)
        >>> machine.step(0, {"key"}), machine.step(0, {"toilet"})
        ((0, 0.0), (1, 1.0))

        Raises:
            ModelError: when the reward depends on more than state and label.
        """
        reward, states = pair.reward, _states_before_steps(pair, traces)
        # Without a lag, the label read after a step is that of the observation it led to.
        read = traces.after_step(traces.label_codes)
        keys, first, case = np.unique(
            states.astype(np.int64) * len(traces.labels) + read,
            return_index=True,
            return_inverse=True,
        )
        rewards = np.array(rounded(traces.rewards, reward.digits))[traces.reward_codes]
        differs = rewards != rewards[first][case]
        if np.any(differs):
            row = int(np.argmax(differs))
            raise _not_a_function(traces, rewards, int(states[row]), (int(first[case[row]]), row))
        goes_on = np.ones(traces.steps, bool)
        goes_on[traces.offsets[1:] - 1] = ~traces.terminated
        always_ends = np.bincount(case, goes_on) == 0
        labels_of: dict[tuple[int, int, float], list[Label]] = {}
        for key, ends, amount in zip(keys.tolist(), always_ends, rewards[first], strict=True):
            source, code = divmod(key, len(traces.labels))
            label = traces.labels[code]
            target = UNSEEN if ends else reward.step(source, label)
            state = reward.states if target is UNSEEN else target  # the added terminal state
            labels_of.setdefault((source, state, float(amount)), []).append(label)
        names = frozenset[str]().union(
            *(label for labels in labels_of.values() for label in labels)
        )
        edges = tuple(
            Edge(source, target, Guard.exactly(sorted(labels, key=label_order), names), amount)
            for (source, target, amount), labels in sorted(labels_of.items())
        )
        terminal = {edge.target for edge in edges if edge.target == reward.states}
        return cls(int(states[0]), frozenset(terminal), edges)

    @cached_property
    def _leaving(self) -> dict[int, list[tuple[int, Edge]]]:
        """The edges that leave each state, with their numbers."""
        leaving: dict[int, list[tuple[int, Edge]]] = {}
        for number, edge in enumerate(self.edges):
            leaving.setdefault(edge.source, []).append((number, edge))
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
        f"'{short(str(edge.guard))}' leads to {edge.target} with reward {edge.reward:g}, "
        f"'{short(str(second.guard))}' to {second.target} with {second.reward:g}; make one formula "
        f"exclude the other"
    )


def _first_overlap(edges: Sequence[Edge]) -> tuple[int, int] | None:
    """Return the first two edges, by number, that hold for one label and disagree; None if none.

    Terms exclude each other by a proposition that one requires and the other forbids.
    """
    terms = [(number, term) for number, edge in enumerate(edges) for term in edge.guard.terms]
    names = sorted(frozenset().union(*(edge.guard.propositions for edge in edges)))
    column = {name: at for at, name in enumerate(names)}
    required, forbidden = np.zeros((2, len(terms), len(names)), np.float32)
    for row, (_, term) in enumerate(terms):
        required[row, [column[name] for name in term.required]] = 1
        forbidden[row, [column[name] for name in term.forbidden]] = 1
    excludes = required @ forbidden.T > 0
    results: dict[tuple[int, float], int] = {}
    result = [
        results.setdefault((edges[number].target, edges[number].reward), len(results))
        for number, _ in terms
    ]
    differs = np.not_equal.outer(result, result)
    first, second = np.nonzero(np.triu(differs & ~excludes & ~excludes.T))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return min(((terms[row][0], terms[column][0]) for row, column in pairs), default=None)


def _all_labels(first: EdgeRewardMachine, second: EdgeRewardMachine) -> list[Label]:
    names = sorted(first.propositions | second.propositions)
    if len(names) > _MAX_PROPOSITIONS:
        raise OptionError(
            f"there are {2 ** len(names):,} labels over {len(names)} propositions: "
            f"name those to compare on, as labels="
        )
    subsets = (combinations(names, size) for size in range(len(names) + 1))
    return [frozenset(subset) for of_size in subsets for subset in of_size]


def _states_before_steps(pair: Machines, traces: TraceSet) -> Codes:
    """Return the state of the Reward Machine before each step; all have to be known."""
    if not len(traces):
        raise ModelError("there are no traces: give those the machines were inferred from")
    if pair.timing.lag:
        raise ModelError(
            "the machines read labels one step late, but the reward of an edge belongs to the "
            "label that the step leads to: infer them with timing 'current'"
        )
    histories, labels = Histories.of(traces, pair.timing), pair.reward.labels
    codes = np.append(codes_of(histories.labels, labels, len(labels)), np.int32(-1))
    states = pair.reward.replay(codes[histories.beta], histories.offsets)
    if np.any(states < 0):
        trace, step = traces.locate(int(np.argmax(states < 0)))
        raise ModelError(
            f"trace {trace}, step {step}: the reward machine has not seen the labels before it: "
            f"give the traces it was inferred from"
        )
    starts = states[traces.offsets[:-1]]
    differing = int(np.argmax(starts != starts[0]))
    if differing:
        raise ModelError(
            f"trace 0 starts in state {starts[0]} of the reward machine and trace {differing} in "
            f"state {starts[differing]}, because their first labels differ: a machine with rewards "
            f"on its edges starts in one state"
        )
    return states


def _not_a_function(
    traces: TraceSet, rewards: NDArray[np.float64], state: int, rows: tuple[int, int]
) -> ModelError:
    label = traces.labels[int(traces.after_step(traces.label_codes)[rows[0]])]
    steps = ((*traces.locate(row), rewards[row]) for row in rows)
    first, second = (f"{amount:g} in trace {trace}, step {step}" for trace, step, amount in steps)
    return ModelError(
        f"in state {state} of the reward machine the label {label_text(label)!r} has the reward "
        f"{first}, and {second}: the reward depends on observation and action too, which a machine "
        f"with rewards on its edges cannot express; give each rewarded event its own label"
    )
