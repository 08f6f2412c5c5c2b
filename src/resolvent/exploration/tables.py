"""Transitions of machines in the codes of a buffer, checked against all its steps.

Input: transition tables and the steps of a buffer. Output: states, conflicts and outputs of every
step, and machines. A machine can so be changed in one transition and checked within milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.exploration.buffer import Buffer, Columns
from resolvent.inference.counterexamples import observed_termination, with_evidence
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machine, Machines, Provenance, machines_of
from resolvent.machines.build import Vocabularies, machine_of_tables
from resolvent.machines.machine import machine_class
from resolvent.machines.tables import no_codes, no_numbers
from resolvent.planning.steps import acting_machines
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay.counts import pack_rows
from resolvent.replay.replaying import replay_traces
from resolvent.traces import Label, Vocabulary
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

Flags = NDArray[np.bool_]
States = tuple[int, ...]  # a state of each machine
Query = tuple[int, int]  # observation and action
Condition = tuple[Codes, int]  # the states of the Transition Machine at each step, and their number
ITSELF: Condition = (np.empty(0, np.int32), 1)


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
        transitions = (machine.transitions_for(buffer.labels.values) for machine in acting.values())
        return cls(tuple(acting), tuple(transitions), machines.timing)

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
        wider = (
            np.pad(table, ((0, 0), (0, n_labels - table.shape[1])), constant_values=-1)
            for table in self.transitions
        )
        return TransitionTables(self.names, tuple(wider), self.timing)


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
    """The steps of a buffer as queries to machines with these names, with their outputs."""

    def __init__(self, columns: Columns, tables: TransitionTables) -> None:
        self.columns, timing = columns, tables.timing
        self.terminated = columns.terminal_steps
        label = columns.labels[columns.positions]
        if timing.lag:
            label[1:] = label[:-1].copy()
        if timing.first or timing.lag:
            label[columns.offsets[:-1]] = -1
        self.label: Codes = label  # the label read before each step; -1 for none
        queries, self.query = columns.queries
        self.n_queries = len(queries)
        outputs = {"transition": columns.observations_after, "reward": columns.reward_levels[1]}
        ends = self.terminated.astype(np.int32)
        self.outputs = [outputs.get(name, ends) for name in tables.names]
        self.trials = 0
        self._core = _core.QueriedSteps(label, columns.offsets, self.query, self.n_queries)
        self.first = np.zeros(columns.steps, bool)
        self.first[columns.offsets[:-1]] = True

    def walk(self, transitions: Codes) -> Codes:
        """Return the state at every step; -1 from where a label has no transition."""
        table = np.ascontiguousarray(transitions).ravel()
        return _core.walk_states(table, transitions.shape[1], self.label, self.columns.offsets)

    def walk_all(self, tables: TransitionTables) -> tuple[list[Codes], NDArray[np.int64]]:
        """Return the states of all machines at every step, and their order after the queries."""
        states = [self.walk(transitions) for transitions in tables.transitions]
        columns = {str(number): column for number, column in enumerate((self.query, *states))}
        return states, pack_rows(columns, len(self.query))

    def states_before(self, states: Codes) -> Codes:
        """Return the state in which each step's label was read, by the states at all steps."""
        before = np.roll(states, 1)
        before[self.first] = 0
        return before

    def conflicts(
        self,
        machine: int,
        transitions: Codes,
        condition: Condition = ITSELF,
        enough: int | None = None,
    ) -> Conflicts:
        """Check the transitions of one machine against all steps, or until enough conflict."""
        self.trials += 1
        table, n_labels = np.ascontiguousarray(transitions).ravel(), transitions.shape[1]
        limit = self.columns.steps if enough is None else enough
        return Conflicts(
            *self._core.conflicts(table, n_labels, self.outputs[machine], *condition, limit)
        )

    def condition(self, transitions: Codes) -> Condition:
        """Return the condition of the other machines by the table of the Transition Machine."""
        return self.walk(transitions), len(transitions)


class ObservedMachines:
    """Machines for single look-ups: their transitions, and the first output of each query.

    All machines but the first also depend on the state of the first.
    """

    def __init__(self, tables: TransitionTables, n_actions: int) -> None:
        self.names, self.sizes = tables.names, tables.sizes
        self._transitions: list[list[list[int]]] = [table.tolist() for table in tables.transitions]
        self._spans = [self.sizes[0], *(size * self.sizes[0] for size in self.sizes[1:])]
        self._n_actions = n_actions
        self._outputs: list[dict[int, float]] = [{} for _ in self.sizes]

    @classmethod
    def of_steps(cls, tables: TransitionTables, steps: QueriedSteps) -> "ObservedMachines":
        """Return the machines with the outputs of all steps."""
        columns, (states, situation) = steps.columns, steps.walk_all(tables)
        first, _ = _core.numbered(situation)
        machines = cls(tables, columns.n_actions)
        states_first = [column[first].astype(np.int64) for column in states]
        observations = columns.observations_before[first].astype(np.int64)
        values = {"transition": columns.observations_after, "reward": columns.rewards}
        for machine, name in enumerate(tables.names):
            outputs = values.get(name, steps.terminated)[first].tolist()
            keys = machines._key(machine, states_first, observations, columns.actions[first])
            machines._outputs[machine].update(zip(keys.tolist(), outputs, strict=True))
        return machines

    def next_states(self, states: Sequence[int], label: int) -> States | None:
        """Return the states reached by reading a label; None if it was never read there."""
        if label < 0:
            return tuple(states)
        targets = []
        for transitions, state in zip(self._transitions, states, strict=True):
            row = transitions[state]
            if label >= len(row) or row[label] < 0:
                return None
            targets.append(row[label])
        return tuple(targets)

    def note(self, states: Sequence[int], query: Query, outputs: Sequence[float]) -> bool:
        """Note the outputs of a step; return whether each is the first one for the same query."""
        for machine, (known, output) in enumerate(zip(self._outputs, outputs, strict=False)):
            if known.setdefault(self._key(machine, states, *query), output) != output:
                return False
        return True

    def output(self, machine: int, states: Sequence[int], query: Query) -> float | None:
        """Return an output; None if the query was never observed in these states."""
        return self._outputs[machine].get(self._key(machine, states, *query))

    def disagree(
        self,
        other: "ObservedMachines",
        states: Sequence[int],
        other_states: Sequence[int],
        query: Query,
    ) -> bool:
        """Return whether these and other machines both have an output for a query, and differ."""
        for machine in range(len(states)):
            output = self.output(machine, states, query)
            other_output = other.output(machine, other_states, query)
            if output is not None and other_output is not None and output != other_output:
                return True
        return False

    def transition_outputs(self) -> tuple[NDArray[np.int64], ...]:
        """Return state, observation, action and next observation, in the order of occurrence."""
        outputs = self._outputs[0]
        keys = np.fromiter(outputs, np.int64, len(outputs))
        rest, actions = np.divmod(keys, self._n_actions)
        observations, states = np.divmod(rest, self.sizes[0])
        return states, observations, actions, np.fromiter(outputs.values(), np.int64, len(outputs))

    def _key(self, machine: int, states: Any, observation: Any, action: Any) -> Any:
        own = states[0] if machine == 0 else states[machine] * self.sizes[0] + states[0]
        return (observation * self._spans[machine] + own) * self._n_actions + action


def build_machines(
    tables: TransitionTables, buffer: Buffer, options: InferenceOptions, labeling: LabelingFunction
) -> Machines:
    """Return the machines with these transitions and the outputs of all steps, as observed."""
    traces = buffer.traces()
    order = [buffer.labels.codes[label] for label in traces.labels]
    named = zip(tables.names, tables.transitions, strict=True)
    machines = machines_of(
        (_without_outputs(name, table[:, order], traces.labels) for name, table in named),
        tables.timing,
        preprocessor=Preprocessor(labeling),
    )
    counts = replay_traces(machines, traces)
    rebuilt = with_evidence(machines, counts, constants=True)
    acting = (replace(machine, support=None) for machine in rebuilt)
    return machines.replacing(
        *acting,
        termination=observed_termination(counts),
        provenance=Provenance(
            version("resolvent"), len(traces), traces.steps, traces.digest, options.as_dict()
        ),
    )


def _without_outputs(name: str, transitions: Codes, labels: Vocabulary[Label]) -> Machine:
    """Return a machine with these transitions; "no event" is trivial if it changes no state."""
    column, nothing = OBSERVATION if name == "transition" else name, Vocabulary[Any](())
    trivial = tuple(
        code
        for code, label in enumerate(labels)
        if label == NO_EVENT
        and all(target in (-1, state) for state, target in enumerate(transitions[:, code].tolist()))
    )
    machine, _ = machine_of_tables(
        machine_class(column),
        Vocabularies(labels, nothing, nothing, nothing),
        transitions,
        (no_numbers(), no_numbers(), no_codes()),
        trivial=trivial,
        predicts=column,
        supplemented=name != "transition",
    )
    return machine
