"""Traces + machines → their steps in the codes of a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import Machine, Machines, machines_of
from resolvent.machines.columns import look_up
from resolvent.machines.situations import KINDS, Situation, by_name, situation_text, states_text
from resolvent.replay import Alphabets, CodedShard, Kinds, Replay, Tables, replay_shard
from resolvent.replay.replaying import WITHOUT_ALPHABETS
from resolvent.replay.steps import paid_at_steps, starts_taken, state_of, steps_taken
from resolvent.traces import Label, Symbol, Vocabulary, label_text
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import Codes, codes_of, distinct_numbers
from resolvent.wording import listed

Keys = NDArray[np.int64]


@dataclass(frozen=True)
class Space:
    """All situations and steps there could be, each with a number of its own.

    `sizes` are the numbers of states of the machines that matter, in their order.
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, machines: Machines, traces: Alphabets) -> "Space":
        """Take in all that the machines or the traces name."""
        transition = machines.transition
        return cls(
            _joined(traces.observations, transition.observations, transition.outputs),
            _joined(traces.actions, *(machine.actions for machine in machines.values())),
            tuple(machine.states for machine in machines.values()),
        )

    @property
    def situations(self) -> int:
        """How many situations there could be."""
        return len(self.observations) * prod(self.sizes)

    def situation(self, observation: Any, states: Sequence[Any]) -> Any:
        """Return the number of a situation, or of many."""
        number = np.int64(observation)
        for size, state in zip(self.sizes, states, strict=True):
            number = number * size + state
        return number

    def parts(self, situation: Keys) -> tuple[Codes, tuple[Codes, ...]]:
        """Return the observation and the states of situations."""
        states: list[Codes] = []
        for size in reversed(self.sizes):
            situation, state = np.divmod(situation, size)
            states.append(state.astype(np.int32))
        return situation.astype(np.int32), tuple(reversed(states))


@dataclass(frozen=True, eq=False)
class Taken:
    """What traces show of machines, the different steps they take, and how they begin."""

    shown: Replay
    steps: Kinds
    starts: Kinds

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(self.shown + other.shown, self.steps + other.steps, self.starts + other.starts)


@dataclass(frozen=True, eq=False)
class Taking:
    """Replays a shard for the steps that are taken in it: to be run anywhere.

    With `pays` steps that pay otherwise are others. `paid`, if it is given, says in codes of the
    caller's what each step of the one shard there is paid.
    """

    tables: Tables
    pays: bool = False
    paid: Codes | None = None

    def __call__(self, shard: CodedShard) -> Taken:
        """Return what is taken in a shard, without the alphabets, which whoever asks has."""
        shown = replay_shard(self.tables, shard, shortest=False, unknown_states=True, states=True)
        paid = self.paid
        if self.pays and paid is None:
            paid = paid_at_steps(shard)
        return Taken(
            replace(shown, states={}, alphabets=WITHOUT_ALPHABETS),
            steps_taken(shard, shown.states, paid=paid, lag=bool(self.tables.timing.lag)),
            starts_taken(shard, shown.states),
        )


@dataclass(frozen=True, eq=False)
class Steps:
    """The different steps that traces take, in the codes of a space, by where they first occur.

    States are −1 where the machines do not know them. `label` is that of the next observation,
    in the codes of the traces; `read` the one that is read for it, which with a lag is that
    before. `paid` are codes of the caller's, all 0 unless pay matters. `count` says how often
    each step is taken, `trace` and `step` where first. `starts` are how traces begin, `labels`
    all labels.
    """

    observation: Codes
    states: tuple[Codes, ...]
    action: Codes
    following: Codes
    label: Codes
    read: Codes
    ended: NDArray[np.bool_]
    paid: Codes
    count: Keys
    trace: Keys
    step: Keys
    starts: "Starts"
    labels: Vocabulary[Label]

    @classmethod
    def of(cls, taken: Taken, alphabets: Alphabets, space: Space) -> "Steps":
        """Return the steps that traces take, with the states that a replay of them found."""
        kinds = taken.steps
        seen = codes_of(alphabets.observations, space.observations, -1)
        return cls(
            seen[kinds["observation"]],
            _states(taken, kinds),
            codes_of(alphabets.actions, space.actions, -1)[kinds["action"]],
            seen[kinds["following"]],
            kinds["label"],
            kinds.columns.get("read", kinds["label"]),
            kinds["ended"].astype(bool),
            kinds.columns.get("paid", np.zeros(len(kinds), np.int32)),
            kinds.count,
            kinds.trace,
            kinds.step,
            Starts(
                seen[taken.starts["observation"]],
                _states(taken, taken.starts),
                taken.starts["label"],
                taken.starts.count,
                taken.starts.trace,
            ),
            alphabets.labels,
        )


@dataclass(frozen=True, eq=False)
class Starts:
    """How traces begin, each way once: how many do so, and which is the first."""

    observation: Codes
    states: tuple[Codes, ...]
    label: Codes
    count: Keys
    trace: Keys


def _states(taken: Taken, kinds: Kinds) -> tuple[Codes, ...]:
    return tuple(kinds[state_of(kind)] for kind in taken.shown.sizes)


def are_known(states: Sequence[Codes]) -> NDArray[np.bool_]:
    """Return where the states of all machines are known."""
    known: NDArray[np.bool_] = np.min(states, axis=0) >= 0
    return known


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A function from numbers to codes, known at some of them."""

    keys: Keys
    values: Codes

    @classmethod
    def of(cls, keys: Keys, values: Codes) -> "Lookup":
        """Make a lookup of distinct keys, in any order."""
        order = np.argsort(keys)
        return cls(keys[order], values[order])

    def __call__(self, wanted: Keys) -> Codes:
        """Return the value at each number, −1 where none is known."""
        return look_up(self.keys, self.values, wanted)


def as_function(keys: Keys, values: Codes, size: int) -> Lookup | tuple[int, int]:
    """Return the lookup that rows of keys and values make, or the first two that disagree.

    Keys are below `size`.

    >>> as_function(np.array([7, 3, 7]), np.int32([1, 0, 1]), 8).values.tolist()
    [0, 1]
    >>> as_function(np.array([7, 3, 7]), np.int32([1, 0, 2]), 8)
    (0, 2)
    """
    distinct, place = distinct_numbers(keys, size)
    first = np.empty(len(distinct), np.int64)
    first[place[::-1]] = np.arange(len(keys))[::-1]  # of equal places, the last one written stays
    others = np.flatnonzero(values[first][place] != values)
    if len(others):
        return int(first[place[others[0]]]), int(others[0])
    return Lookup(distinct, values[first])


def moves_of(machine: Machine, labels: Vocabulary[Label]) -> Codes:
    """Return the state that each label of the traces leads to; −1, and for label −1, unknown."""
    codes = np.append(codes_of(labels, machine.labels, -1), -1)
    lost = np.full((machine.states, 1), -1, np.int32)
    return np.hstack([machine.transitions, lost])[:, codes]


def starts_of(steps: Steps, space: Space) -> tuple[Keys, NDArray[np.int64], Codes]:
    """Return the situations in which traces begin, how many do so, and the first label of one."""
    starts = steps.starts
    lost = np.flatnonzero(~are_known(starts.states))
    if len(lost):
        row = int(lost[0])
        first = label_text(steps.labels[int(starts.label[row])])
        raise ModelError(
            f"trace {starts.trace[row]} begins with label {first}, which the machines were never "
            f"shown there: infer them from traces that begin so"
        )
    situations = space.situation(starts.observation, starts.states)
    distinct, begins, place = np.unique(situations, return_index=True, return_inverse=True)
    count = np.zeros(len(distinct), np.int64)
    np.add.at(count, place, starts.count)
    return distinct, count, starts.label[begins]


def places_of(wanted: Keys, situations: Keys, order: NDArray[np.int64]) -> Codes:
    """Return where each wanted situation stands; −1 stays."""
    found = order[np.searchsorted(situations, wanted, sorter=order) % len(situations)]
    return np.where(wanted < 0, -1, found).astype(np.int32)


def _joined(*vocabularies: Vocabulary[Symbol]) -> Vocabulary[Symbol]:
    values = dict.fromkeys(value for one in vocabularies for value in one)
    return Vocabulary(sorted(values, key=symbol_order))


__all__ = ["KINDS", "Situation", "by_name", "situation_text", "states_text", "that_matter"]


def that_matter(machines: Machines) -> Machines:
    """Return those of the machines that matter for acting, without anything about endings.

    >>> from resolvent.environments import House
    >>> list(that_matter(House().machines()))
    ['transition', 'reward']
    """
    for kind, output in (("transition", "observation"), ("reward", "reward")):
        if kind not in machines:
            raise ModelError(
                f"planning needs a {kind.capitalize()} Machine, and here is "
                f'{listed(machines)}: infer with "{output}" among outputs='
            )
    both = machines_of((machines[one] for one in KINDS if one in machines), machines.timing)
    return both.replacing(doubt=machines.doubt)
