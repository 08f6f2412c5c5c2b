"""Traces + machines → their steps in the codes of a model, and lookups that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import Machine, Machines
from resolvent.machines.columns import look_up
from resolvent.replay import Replay
from resolvent.traces import Label, Symbol, TraceSet, Vocabulary, label_text
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import Codes, codes_of, distinct_numbers

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
    def of(cls, machines: Machines, traces: TraceSet) -> "Space":
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


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Steps in the codes of a space; states are −1 where the machines do not know them.

    `label` is that of the next observation, in the codes of the traces.
    """

    observation: Codes
    states: tuple[Codes, ...]
    action: Codes
    following: Codes
    label: Codes
    ended: NDArray[np.bool_]

    @classmethod
    def of(cls, shown: Replay, traces: TraceSet, space: Space) -> "Steps":
        """Return the steps of traces, with the states that a replay of them found."""
        seen = codes_of(traces.observations, space.observations, -1)[traces.observation_codes]
        ended = np.zeros(traces.steps, bool)
        ended[traces.offsets[1:] - 1] = traces.terminated
        return cls(
            traces.at_step(seen),
            tuple(shown.states.values()),
            codes_of(traces.actions, space.actions, -1)[traces.action_codes],
            traces.after_step(seen),
            traces.after_step(traces.label_codes),
            ended,
        )


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


def starts_of(steps: Steps, traces: TraceSet, space: Space) -> tuple[Keys, NDArray[np.int64]]:
    """Return the situations in which traces begin, and how many begin in each."""
    rows = traces.offsets[:-1]
    states = [column[rows] for column in steps.states]
    lost = np.flatnonzero(~are_known(states))
    if len(lost):
        trace = int(lost[0])
        first = label_text(traces.labels[int(traces.label_codes[rows[trace] + trace])])
        raise ModelError(
            f"trace {trace} begins with label {first}, which the machines were never shown there: "
            f"infer them from traces that begin so"
        )
    return np.unique(space.situation(steps.observation[rows], states), return_counts=True)


def places_of(wanted: Keys, situations: Keys, order: NDArray[np.int64]) -> Codes:
    """Return where each wanted situation stands; −1 stays."""
    found = order[np.searchsorted(situations, wanted, sorter=order) % len(situations)]
    return np.where(wanted < 0, -1, found).astype(np.int32)


def _joined(*vocabularies: Vocabulary[Symbol]) -> Vocabulary[Symbol]:
    values = dict.fromkeys(value for one in vocabularies for value in one)
    return Vocabulary(sorted(values, key=symbol_order))
