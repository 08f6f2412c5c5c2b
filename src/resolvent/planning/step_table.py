"""Machines and steps of traces → a table of all steps, each with one outcome.

Input: the augmented states that traces begin in. Output: all reachable augmented states, and for
each of their steps the reward, the next state, and whether it ends the episode.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.validation import check_table
from resolvent.machines import Machine, Machines
from resolvent.planning.label_model import (
    CONTINUES,
    ENDS,
    SOMETIMES_ENDS,
    UNKNOWN,
    LabelModel,
    StepColumns,
    TerminationModel,
)
from resolvent.planning.steps import Keys, Lookup, StateSpace, Steps, are_known, positions
from resolvent.traces import Symbol
from resolvent.traces.schema import TERMINATED
from resolvent.traces.vocabulary import Codes, codes_of

Flags = NDArray[np.bool_]

NOT_KNOWN: Final = -2
"""As a next state: the traces do not show where this leads."""

_STEP_BYTES: Final = 40
"""Bytes of one step: its entries in a `StepTable`, and as much again while it is built."""


@dataclass(frozen=True, eq=False)
class KnownSteps:
    """What machines and traces show about steps; `labels` is None if labels are random."""

    machines: Machines
    steps: Steps
    space: StateSpace
    labels: LabelModel | None
    termination: TerminationModel
    trust_constants: bool

    @cached_property
    def transitions(self) -> list[Codes]:
        """Each machine's next states by state and label code."""
        return self.steps.transitions(self.machines)

    def label(self, columns: StepColumns) -> Codes:
        """Return the code of the label read after each step, −1 where it is not known."""
        if self.labels is None:
            return np.full(len(columns[0]), -1, np.int32)
        return self.labels(columns)

    def next_state(self, observation: Any, states: Sequence[Codes], label: Any) -> Keys:
        """Return the augmented state after reading a label, `NOT_KNOWN` where it is not known.

        Observation and label are −1 where they are not known.
        """
        after = [table[own, label] for table, own in zip(self.transitions, states, strict=True)]
        is_known = are_known(after) & (observation >= 0)
        return np.where(is_known, self.space.number(observation, after), NOT_KNOWN)


def reachable(starts: Keys, next_states: Callable[[Keys], Keys], actions: int) -> Keys:
    """Return all augmented states reachable from the starts, layer by layer.

    `next_states` are those of some states in any order; below 0 for none.
    """
    visited: set[int] = set()
    frontier, layers = starts, list[Keys]()
    while len(frontier):
        visited.update(frontier.tolist())
        check_table(len(visited), actions, _STEP_BYTES, "augmented states by actions")
        layers.append(frontier)
        after = np.unique(next_states(frontier)).tolist()
        frontier = np.array([state for state in after if state >= 0 and state not in visited], int)
    return np.concatenate(layers)


@dataclass(frozen=True, slots=True, eq=False)
class StepTable:
    """The outcomes of steps: a row for each augmented state, a column for each action.

    `next_state` is negative for none. `label` is the label read after the step, −1 for none or for
    several.
    """

    next_state: NDArray[Any]
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    label: Codes

    @classmethod
    def of(cls, actions: int, *columns: NDArray[Any]) -> "StepTable":
        """Return the table of columns with an entry for each step."""
        return cls(*(column.reshape(-1, actions) for column in columns))


def tabulate_steps(starts: Keys, known: KnownSteps) -> tuple[Keys, StepTable]:
    """Return all reachable augmented states, and the outcomes of their steps by the machines."""
    predict = _StepPredictor(known)
    states = reachable(
        starts, lambda numbers: predict(numbers).next_state, len(known.space.actions)
    )
    table = predict(states)
    return states, replace(table, next_state=positions(table.next_state, states))


class _StepPredictor:
    """Predicts the outcome of every action by the machines' outputs."""

    def __init__(self, known: KnownSteps) -> None:
        self._known = known
        machines, space = known.machines, known.space
        self._queries = [_Queries(machine, machines, space) for machine in machines.values()]
        # In these, index −1 is the last entry, for outputs that are not known.
        outputs = machines.transition.outputs
        self._observations = np.append(codes_of(outputs, space.observations, -1), -1)
        self._rewards = np.array([*machines.reward.outputs, np.nan])
        ends = machines[TERMINATED].outputs if TERMINATED in machines else ()
        self._endings = np.array([*(ENDS if end else CONTINUES for end in ends), UNKNOWN], np.int32)

    def __call__(self, numbers: Keys) -> StepTable:
        """Return the outcome of each action in each augmented state."""
        known = self._known
        o, s, a = known.space.all_steps(numbers)
        outputs = [
            machine.predict(own, queries(o, s[0], a), generalized=known.trust_constants)
            for machine, own, queries in zip(known.machines.values(), s, self._queries, strict=True)
        ]
        next_observation, reward = self._observations[outputs[0]], self._rewards[outputs[1]]
        if TERMINATED in known.machines:
            ending = self._endings[outputs[2]]
        else:
            ending = known.termination(o, s, a)
        label = known.label((o, s, a, next_observation))
        next_state = known.next_state(next_observation, s, label)
        ends = (ending == ENDS) & ~np.isnan(reward)
        continues = (ending == CONTINUES) & ~np.isnan(reward) & (next_state >= 0)
        return StepTable.of(
            len(known.space.actions),
            np.where(continues, next_state, -1),
            np.where(ends | continues, reward, np.nan),
            ends,
            ends | continues,
            ending == SOMETIMES_ENDS,
            np.where(continues, label, -1).astype(np.int32),
        )


class _Queries:
    """Turns observations, states of the Transition Machine and actions into a machine's queries."""

    def __init__(self, machine: Machine, machines: Machines, space: StateSpace) -> None:
        self._width = len(machine.actions)
        self._actions = codes_of(space.actions, machine.actions, -1)
        self._states = machines.transition.states if machine.supplemented else 1
        symbols, own_states = observations_of(machine)
        codes = codes_of(symbols, space.observations, -1)
        keys = self._keys(codes, own_states)
        order = np.argsort(keys)[np.count_nonzero(codes < 0) :]
        self._observations = Lookup(keys[order], order.astype(np.int32))

    def _keys(self, observation: Codes, transition_state: Any) -> Keys:
        own_state = transition_state if self._states > 1 else 0
        return observation.astype(np.int64) * self._states + own_state

    def __call__(self, observation: Codes, transition_state: Codes, action: Codes) -> Keys:
        """Return the numbers of the machine's queries, −1 where it never met them."""
        seen = self._observations(self._keys(observation, transition_state))
        done = self._actions[action]
        return np.where((seen < 0) | (done < 0), -1, np.int64(seen) * self._width + done)


def observations_of(machine: Machine) -> tuple[list[Symbol], NDArray[np.int64]]:
    """Return the symbols of a machine's observations, and their states of the Transition Machine.

    The latter are 0 unless the machine is supplemented.
    """
    if not machine.supplemented:
        return list(machine.observations), np.zeros(len(machine.observations), np.int64)
    pairs: list[Any] = list(machine.observations)
    return [symbol for symbol, _ in pairs], np.array([state for _, state in pairs], np.int64)
