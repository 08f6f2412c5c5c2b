"""Design experiments that supply missing evidence about a machine.

Input: the gaps of the evidence, and the steps of the traces. Output: a sequence of `Experiment`s.
"""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from resolvent.evaluation.completeness import Completeness
from resolvent.evaluation.experiments import Experiment, Pair, labels_to
from resolvent.evaluation.observed import LazySequence, Numbers, Query, query_of
from resolvent.evaluation.separation import Separations, VaryingOutputs
from resolvent.machines import Machine, TransitionMachine
from resolvent.machines.compare import label_sequence_text
from resolvent.replay import StepQueries
from resolvent.traces import Label, Symbol, label_text
from resolvent.traces.vocabulary import codes_of


class ExperimentDesigner:
    """Designs experiments for one machine.

    First come pairs of states that nothing distinguishes, then labels never read in a state,
    then the first label sequence that might reach another state. Queries to a supplemented
    machine also name a state of the Transition Machine; then the labels lead both machines to
    the states required.
    """

    def __init__(
        self,
        completeness: Completeness,
        varying: VaryingOutputs,
        separations: Separations,
        transition: TransitionMachine | None,
        follows: "ObservationsAfterLabel",
    ) -> None:
        self._machine, self._varying, self._separations = varying.machine, varying, separations
        self._follows = follows
        self._transition: Machine = transition or varying.machine
        self._paths = _JointPaths(self._machine, self._transition)
        self._inseparable = np.flatnonzero(separations.depth < 0)
        self._unread = [
            (state, label)
            for state, label in completeness.unseen_transitions
            if state in self._paths.of_state
        ]
        self._last = self._for_sequence(completeness)

    def experiments(self) -> LazySequence[Experiment]:
        """Return all experiments, each built on access."""
        number = len(self._inseparable) + len(self._unread) + (self._last is not None)
        return LazySequence(number, self._experiment)

    def _experiment(self, index: int) -> Experiment:
        if index < len(self._inseparable):
            return self._for_states(*self._separations.states(int(self._inseparable[index])))
        index -= len(self._inseparable)
        if index < len(self._unread) or self._last is None:
            return self._for_transition(*self._unread[index])
        return self._last

    def _for_states(self, first: int, second: int) -> Experiment:
        """Return a query to one of two undistinguished states that was observed in the other."""
        labels, query = (
            self._missing_query(first, second)
            or self._missing_query(second, first)
            or (self._machine.access_sequence(second), None)
        )
        why = f"nothing distinguishes states {first} and {second}"
        return Experiment(labels, query, why, self._machine.name)

    def _missing_query(self, state: int, other: int) -> tuple[tuple[Label, ...], Pair] | None:
        """Return labels that lead to a state, and a query observed only in the other state."""
        column, entries = self._varying.column, self._varying.entries
        columns = np.setdiff1d(column[entries(other)], column[entries(state)], assume_unique=True)
        for query in self._queries(columns):
            labels = self._paths.labels(state, query.transition_state)
            if labels is not None:
                return labels, query[:2]
        return None

    def _for_transition(self, state: int, label: Label) -> Experiment:
        """Return an experiment that reads a label never read in a state."""
        labels = (*(self._paths.labels(state, None) or ()), label)
        why = f"{label_text(label)} was never read in state {state}"
        query = self._possible(labels, self._most_varying)
        return Experiment(labels, query, why, self._machine.name)

    @cached_property
    def _most_varying(self) -> list[Query]:
        """The queries, those with the most distinct outputs first."""
        varying, width = self._varying, max(len(self._machine.outputs), 1)
        distinct = np.unique(varying.column.astype(np.int64) * width + varying.output)
        outputs = np.bincount(distinct // width, minlength=len(varying.queries))
        return list(self._queries(np.argsort(-outputs, kind="stable")))

    def _for_sequence(self, completeness: Completeness) -> Experiment | None:
        """Return an experiment that decides which state the first ambiguous sequence reaches."""
        ambiguous = completeness.first_ambiguous
        if ambiguous is None:
            return None
        path = self._separations.suffix(ambiguous.state, ambiguous.other)
        if path is None:
            return None  # nothing distinguishes the states, which is reported for the pair
        suffix, state, other = path
        labels = (*ambiguous.labels, *suffix)
        query = self._possible(labels, self._queries(self._varying.distinguishing(state, other)))
        why = (
            f"it is open whether {label_sequence_text(ambiguous.labels)} leads to state "
            f"{ambiguous.state} or {ambiguous.other}"
        )
        return Experiment(labels, query, why, self._machine.name, exact=True)

    def _queries(self, columns: Iterable[int]) -> Iterable[Query]:
        numbers = self._varying.queries
        return (query_of(self._machine, int(numbers[column])) for column in columns)

    def _possible(self, labels: tuple[Label, ...], queries: Iterable[Query]) -> Pair | None:
        """Return the first query that can occur after some labels.

        Queries with an observation that the traces show after the last label come first.
        """
        state, label = self._transition.run(labels), labels[-1] if labels else None
        fallback = None
        for query in queries:
            if query.transition_state is None or query.transition_state == state:
                if self._follows(label, query.observation):
                    return query[:2]
                fallback = fallback or query[:2]
        return fallback


class _JointPaths:
    """The joint states that two machines can reach, and the shortest labels to each."""

    def __init__(self, machine: Machine, transition: Machine) -> None:
        codes = codes_of(machine.labels, transition.labels, -1).tolist()
        rows, transition_rows = machine.transitions.tolist(), transition.transitions.tolist()
        self._parents: dict[tuple[int, int], tuple[tuple[int, int], Label] | None] = {(0, 0): None}
        self.of_state = {0: (0, 0)}
        frontier = [(0, 0)]
        for before in frontier:  # grows during the loop: breadth-first
            for code, target in enumerate(rows[before[0]]):
                if target < 0 or codes[code] < 0:
                    continue
                after = target, transition_rows[before[1]][codes[code]]
                if after[1] < 0 or after in self._parents:
                    continue
                self._parents[after] = before, machine.labels[code]
                self.of_state.setdefault(target, after)
                frontier.append(after)

    def labels(self, state: int, transition_state: int | None) -> tuple[Label, ...] | None:
        """Return the shortest labels to a state, and to one of the Transition Machine if given."""
        joint = self.of_state.get(state) if transition_state is None else (state, transition_state)
        if joint is None or joint not in self._parents:
            return None
        return labels_to(joint, self._parents)


class ObservationsAfterLabel:
    """The observations that occur in traces while a label is the last nontrivial one read.

    Experiments use it to propose only queries that can occur.
    """

    def __init__(self, steps: StepQueries, offsets: Numbers) -> None:
        machine, labels = steps.machine, len(steps.machine.labels)
        is_nontrivial = np.ones(labels + 1, bool)  # the last entry is for all unknown labels
        is_nontrivial[list(machine.trivial)] = False
        read = np.minimum(steps.labels, labels)
        rows = np.where((read >= 0) & is_nontrivial[read], np.arange(len(read)), -1)
        last = np.maximum.accumulate(rows)
        start = np.repeat(offsets[:-1], np.diff(offsets))
        label = np.where(last >= start, read[last], -1).astype(np.int64)
        is_known = (steps.queries >= 0) & (label < labels)
        actions = max(len(machine.actions), 1)
        pairs = np.stack([label[is_known], steps.queries[is_known] // actions])
        self._observations: dict[Label | None, set[Symbol]] = {}
        for code, number in np.unique(pairs, axis=1).T.tolist():
            last_label = machine.labels[code] if code >= 0 else None
            symbol = query_of(machine, number * actions).observation
            self._observations.setdefault(last_label, set()).add(symbol)

    def __call__(self, label: Label | None, observation: Symbol) -> bool:
        """Return whether an observation occurred while this label was the last one read."""
        return observation in self._observations.get(label, ())
