"""Traces + machines → their steps in the codes of a model, and tables that follow from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.machines import MachinePair
from resolvent.machines.machine import look_up
from resolvent.replay import StepsAsked
from resolvent.traces import Symbol, TraceSet, Vocabulary
from resolvent.traces.symbols import symbol_order
from resolvent.traces.vocabulary import DENSE, Codes, codes_of

Keys = NDArray[np.int64]


@dataclass(frozen=True)
class Space:
    """All situations and steps there could be, each with a number of its own."""

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    transition_states: int
    reward_states: int

    @classmethod
    def of(cls, pair: MachinePair, traces: TraceSet) -> "Space":
        """Take in all that the machines or the traces name."""
        transition, reward = pair.transition, pair.reward
        return cls(
            _joined(traces.observations, transition.observations, transition.outputs),
            _joined(traces.actions, transition.actions, reward.actions),
            transition.states,
            reward.states,
        )

    @property
    def situations(self) -> int:
        """How many situations there could be."""
        return len(self.observations) * self.transition_states * self.reward_states

    def situation(self, observation: Any, transition_state: Any, reward_state: Any) -> Any:
        """Return the number of a situation, or of many."""
        pair = np.int64(observation) * self.transition_states + transition_state
        return pair * self.reward_states + reward_state

    def parts(self, situation: Keys) -> tuple[Codes, Codes, Codes]:
        """Return observation, transition state and reward state of situations."""
        pair, reward_state = np.divmod(situation, self.reward_states)
        observation, transition_state = np.divmod(pair, self.transition_states)
        parts = (observation, transition_state, reward_state)
        return parts[0].astype(np.int32), parts[1].astype(np.int32), parts[2].astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Steps in the codes of a space; states are −1 where the machines do not know them.

    `label` is that of the next observation, in the codes of the traces.
    """

    observation: Codes
    transition_state: Codes
    reward_state: Codes
    action: Codes
    following: Codes
    label: Codes
    ended: NDArray[np.bool_]

    @classmethod
    def of(cls, asked: tuple[StepsAsked, StepsAsked], traces: TraceSet, space: Space) -> "Steps":
        """Return the steps of traces, with the states in which the machines are asked there."""
        seen = codes_of(traces.observations, space.observations, -1)[traces.observation_codes]
        ended = np.zeros(traces.steps, bool)
        ended[traces.offsets[1:] - 1] = traces.terminated
        return cls(
            traces.at_step(seen),
            asked[0].states,
            asked[1].states,
            codes_of(traces.actions, space.actions, -1)[traces.action_codes],
            traces.after_step(seen),
            traces.after_step(traces.label_codes),
            ended,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A function from numbers to codes, known at some of them."""

    keys: Keys
    values: Codes

    @classmethod
    def of(cls, keys: Keys, values: Codes) -> "Lookup":
        """Make a table of distinct keys, in any order."""
        order = np.argsort(keys)
        return cls(keys[order], values[order])

    def __call__(self, wanted: Keys) -> Codes:
        """Return the value at each number, −1 where none is known."""
        return look_up(self.keys, self.values, wanted)


def as_function(keys: Keys, values: Codes, size: int) -> Lookup | tuple[int, int]:
    """Return the table that rows of keys and values make, or the first two that disagree.

    Keys are below `size`.

    >>> as_function(np.array([7, 3, 7]), np.int32([1, 0, 1]), 8).values.tolist()
    [0, 1]
    >>> as_function(np.array([7, 3, 7]), np.int32([1, 0, 2]), 8)
    (0, 2)
    """
    distinct, place = distinct_keys(keys, size)
    first = np.empty(len(distinct), np.int64)
    first[place[::-1]] = np.arange(len(keys))[::-1]  # of equal places, the last one written stays
    others = np.flatnonzero(values[first][place] != values)
    if len(others):
        return int(first[place[others[0]]]), int(others[0])
    return Lookup(distinct, values[first])


def distinct_keys(keys: Keys, size: int) -> tuple[Keys, NDArray[np.int64]]:
    """Return the distinct keys, rising, and the place of each row's among them."""
    if size > DENSE:
        return np.unique(keys, return_inverse=True)
    occurs = np.zeros(size, bool)
    occurs[keys] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[keys]


def _joined(*vocabularies: Vocabulary[Symbol]) -> Vocabulary[Symbol]:
    values = dict.fromkeys(value for one in vocabularies for value in one)
    return Vocabulary(sorted(values, key=symbol_order))
