"""Transitions and outputs of machines in the codes of a buffer, checked against all its steps.

Outputs are read from the buffer. So a machine can be repaired by redirecting one label, and checked
against all steps, within milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.exploration.buffer import Buffer, Columns
from resolvent.machines import Machine, Machines
from resolvent.planning.steps import acting_machines
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.vocabulary import Codes

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TransitionTables:
    """For each machine, the next state by state and label; -1 where the label was never read."""

    names: tuple[str, ...]
    transitions: tuple[Codes, ...]
    timing: LabelTiming

    @classmethod
    def of(cls, machines: Machines, buffer: Buffer) -> "TransitionTables":
        """Return the transitions of machines, by the labels of a buffer."""
        acting = acting_machines(machines)
        transitions = tuple(_transitions(machine, buffer) for machine in acting.values())
        return cls(tuple(acting), transitions, machines.timing)

    @property
    def sizes(self) -> list[int]:
        """Number of states of each machine."""
        return [len(table) for table in self.transitions]

    def equals(self, tables: "TransitionTables") -> bool:
        """Return whether all transitions are the same."""
        return (
            self.names == tables.names
            and self.timing is tables.timing
            and all(map(np.array_equal, self.transitions, tables.transitions))
        )

    def for_labels(self, n_labels: int) -> "TransitionTables":
        """Return the tables with a column for each label."""
        if all(table.shape[1] == n_labels for table in self.transitions):
            return self
        wider = []
        for table in self.transitions:
            unread = np.full((len(table), n_labels - table.shape[1]), -1, np.int32)
            wider.append(np.hstack([table, unread]))
        return TransitionTables(self.names, tuple(wider), self.timing)


def _transitions(machine: Machine, buffer: Buffer) -> Codes:
    codes = [machine.labels.get(label) for label in buffer.labels.values]
    unread = np.full(machine.states, -1, np.int32)
    columns = [unread if code is None else machine.transitions[:, code] for code in codes]
    return np.ascontiguousarray(np.stack(columns, axis=1)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Steps with another output than the first one in the same state.

    `count` is their number, `step` the first of them and `witness` the step that it contradicts.
    `lost` is the number of steps without a state.
    """

    count: int
    lost: int
    step: int
    witness: int


class QueriedSteps:
    """The steps of a buffer as queries to machines, with their outputs."""

    def __init__(self, columns: Columns, timing: LabelTiming, names: tuple[str, ...]) -> None:
        self.columns = columns
        self.terminated = columns.terminal_steps
        label = columns.labels[columns.positions]
        if timing.lag:
            label[1:] = label[:-1].copy()
        if timing.first or timing.lag:
            label[columns.offsets[:-1]] = -1
        self.label: Codes = label
        """The label read before each step; -1 for none."""
        queries, self.query = columns.queries
        self.n_queries = len(queries)
        outputs = {"transition": columns.observations_after, "reward": columns.reward_levels[1]}
        self.outputs = [outputs.get(name, self.terminated.astype(np.int32)) for name in names]
        self.trials = 0
        self._core = _core.AskedSteps(label, columns.offsets, self.query, self.n_queries)
        self.first = np.zeros(columns.steps, bool)
        self.first[columns.offsets[:-1]] = True

    @classmethod
    def of_columns(cls, tables: TransitionTables, columns: Columns) -> "QueriedSteps":
        """Return the steps as queries to the machines of these tables."""
        return cls(columns, tables.timing, tables.names)

    def walk(self, transitions: Codes) -> Codes:
        """Return the state at every step; -1 from where a label has no transition."""
        table = np.ascontiguousarray(transitions).ravel()
        return _core.walk_states(table, transitions.shape[1], self.label, self.columns.offsets)

    def keys(self, states: Codes, beside: Codes | None, size: int) -> NDArray[np.int64]:
        """Return a number for the query and state of each step, with the transition state."""
        key = states.astype(np.int64)
        if beside is not None:
            key = key * size + beside
        return key * self.n_queries + self.query

    def conflicts(
        self,
        machine: int,
        transitions: Codes,
        beside: Codes | None,
        size: int,
        enough: int | None = None,
    ) -> Conflicts:
        """Check the transitions of one machine against all steps, or until enough conflict.

        `beside` is the state of the Transition Machine at each step, one of `size`, if that is
        another machine.
        """
        self.trials += 1
        return Conflicts(
            *self._core.clashes(
                np.ascontiguousarray(transitions).ravel(),
                transitions.shape[1],
                self.outputs[machine],
                np.empty(0, np.int32) if beside is None else beside,
                size,
                self.columns.steps if enough is None else enough,
            )
        )


class OutputTable:
    """The first output of each machine by states, observation and action.

    All machines but the first also depend on the state of the first. A query is one number.
    """

    def __init__(self, sizes: Sequence[int], n_actions: int) -> None:
        self._first_size, self._n_actions = sizes[0], n_actions
        self._spans = [sizes[0], *(size * sizes[0] for size in sizes[1:])]
        self._outputs: list[dict[int, float]] = [{} for _ in sizes]

    def note(
        self, machine: int, states: Sequence[int], observation: int, action: int, output: float
    ) -> float:
        """Note an output, and return the first one for the same query."""
        key = self._key(machine, states, observation, action)
        return self._outputs[machine].setdefault(key, output)

    def get(
        self, machine: int, states: Sequence[int], observation: int, action: int
    ) -> float | None:
        """Return an output; None if the query was never asked."""
        return self._outputs[machine].get(self._key(machine, states, observation, action))

    def note_all(
        self,
        machine: int,
        states: Sequence[Codes],
        observations: Codes,
        actions: Codes,
        outputs: NDArray[Any],
    ) -> None:
        """Note the outputs at many steps."""
        wide = [column.astype(np.int64) for column in states]
        keys = self._key(machine, wide, observations.astype(np.int64), actions)
        self._outputs[machine].update(zip(keys.tolist(), outputs.tolist(), strict=True))

    def _key(self, machine: int, states: Any, observation: Any, action: Any) -> Any:
        own = states[0] if machine == 0 else states[machine] * self._first_size + states[0]
        return (observation * self._spans[machine] + own) * self._n_actions + action
