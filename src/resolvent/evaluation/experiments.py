"""Experiments: labels to read in the environment, and a query to try then.

Input: two sets of machines, or the gaps of the evidence for one. Output: `Experiment`s.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from resolvent._util.records import to_builtins
from resolvent.evaluation.completeness import Completeness
from resolvent.evaluation.observed import LazySequence, Numbers, Query, nontrivial_labels, query_of
from resolvent.evaluation.separation import Separations, VaryingOutputs
from resolvent.machines import UNSEEN, Machine, Machines, TransitionMachine
from resolvent.machines.augmented_state import AugmentedState, augmented_state_text, by_name
from resolvent.machines.compare import label_sequence_text
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.replay.steps import StepQueries
from resolvent.traces import Label, Symbol, label_text
from resolvent.traces.symbols import quoted_text, symbol_text

if TYPE_CHECKING:
    from resolvent.rl.experiment_policy import ExperimentPolicy

Pair = tuple[Symbol, Symbol]  # an observation and an action
_ACTIONS_SHOWN: Final = 12  # maximum number of actions that the text of an experiment lists


@dataclass(frozen=True)
class Experiment:
    """Something to try in an environment: labels to read, and a query then.

    Evidence proposes experiments that would show whether machines are right, a plan the step
    that could improve it, and two sets of machines the query that distinguishes them. `policy`
    executes an experiment.

    Attributes:
        history: The labels to read first, without those that change nothing.
        query: The observation and the action to try then; None for any. Continue for a step or
            more: no machine reads the last label of a trace.
        why: The reason for the experiment.
        machine: The machine that it is about, such as "reward"; None if it is about all.
        exact: Whether it has to be exactly these labels; otherwise any that lead to the same
            states will do.
        start: The augmented state to begin in, if known: an observation and states.
        actions: The actions that lead from there to the query over known steps; None if they
            were not computed. With stochastic outputs, if the most likely one occurs each time.
        augmented_state: That of the query, if known.
        taken: With stochastic outputs, the number of times the step has been observed.

    >>> key = frozenset({"key"})
    >>> print(Experiment((key,), ("hall", "up"), "nothing distinguishes states 0 and 1"))
    read key; then in 'hall' do 'up' (nothing distinguishes states 0 and 1)
    """

    history: tuple[Label, ...]
    query: Pair | None
    why: str
    machine: str | None = None
    exact: bool = False
    start: AugmentedState | None = None
    actions: tuple[Symbol, ...] | None = None
    augmented_state: AugmentedState | None = None
    taken: int | None = None

    @property
    def action(self) -> Symbol | None:
        """The action to try in the end; None if any will do."""
        return None if self.query is None else self.query[1]

    def policy(self, env: Any, machines: Any, traces: Any, **options: Any) -> "ExperimentPolicy":
        """Return a policy that executes the experiment, for `collect` or a loop.

        Known steps lead to the labels and the query, if the traces show any; otherwise it
        explores untried steps at random. After the experiment it acts at random.

        Args:
            env: The environment, as passed to `collect`.
            machines: The machines, or the result of an inference.
            traces: The traces recorded so far, or a scanned folder.
            **options: `observation_fn` as in `collect`, and `seed` for random actions.

        >>> import resolvent as rs
        >>> house = rs.worlds.House()
        >>> result = rs.infer(rs.collect(house, episodes=2, seed=0))
        >>> experiment = rs.plan(result, result.all_traces()).next_experiment
        >>> trial = experiment.policy(house, result, result.all_traces())
        >>> more = rs.collect(house, episodes=5, policy=trial, max_steps=50)
        >>> trial.done
        True
        >>> result = result.update(more)
        """
        from resolvent.rl.experiment_policy import ExperimentPolicy

        return ExperimentPolicy(self, env, machines, traces, **options)

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as JSON values."""
        names = ("history", "query", "why", "machine", "exact", "start", "actions")
        more = ("augmented_state", "action", "taken")
        return to_builtins(self, (*names, *more), optional=["taken"]) | {
            name: None if state is None else by_name(state)
            for name, state in (("start", self.start), ("augmented_state", self.augmented_state))
        }

    def __str__(self) -> str:
        if self.start is not None and self.augmented_state is not None and self.action is not None:
            return (
                f"begin in {symbol_text(self.start[0])}{self._actions_text()}; then in "
                f"{augmented_state_text(self.augmented_state)} do {symbol_text(self.action)}, "
                f"and continue: {self.why}"
            )
        read = f"read {label_sequence_text(self.history)}" if self.history else "read no label"
        if self.query is None:
            return f"{read}; then continue ({self.why})"
        observation, action = self.query
        return f"{read}; then in {quoted_text(observation)} do {quoted_text(action)} ({self.why})"

    def _actions_text(self) -> str:
        if not self.actions:
            return ""
        text = ", ".join(map(symbol_text, self.actions[:_ACTIONS_SHOWN]))
        if len(self.actions) > _ACTIONS_SHOWN:
            text += f", … ({len(self.actions)} actions)"
        likely = "" if self.taken is None else " (if the most likely outcomes occur)"
        return f", do {text}{likely}"


# --- Experiments that distinguish machines -------------------------------------------------------


def distinguishing_sequence(first: Machines, second: Machines) -> Experiment | None:
    """Return the shortest labels, and a query then, with different outputs of two sets of machines.

    Only outputs observed in the state reached count. None means that no traces which both
    explain distinguish them.
    """
    both = first, second
    names = [name for name in first if name in second]
    labels = list(dict.fromkeys(label for name in names for label in first[name].labels))
    queries = dict.fromkeys(
        (name, *query) for name in names for machines in both for query in _pairs(machines[name])
    )
    search: BreadthFirstSearch[Any, Label] = BreadthFirstSearch([((0,) * len(names),) * 2])
    for states in search:
        by_name = [dict(zip(names, own, strict=True)) for own in states]
        for name, observation, action in queries:
            outputs = [
                _output(machines, own, name, observation, action)
                for machines, own in zip(both, by_name, strict=True)
            ]
            if UNSEEN not in outputs and outputs[0] != outputs[1]:
                ours, theirs = map(symbol_text, outputs)
                why = f"one {name} machine predicts {ours}, the other {theirs}"
                history = tuple(label for _, label in search.path_to(states))
                return Experiment(history, (observation, action), why, name, exact=True)
        for label in labels:
            after = tuple(
                tuple(machines[name].step(state, label) for name, state in own.items())
                for machines, own in zip(both, by_name, strict=True)
            )
            if UNSEEN not in (*after[0], *after[1]):
                search.add(after, states, label)
    return None


def _pairs(machine: Machine) -> Iterator[Pair]:
    """Yield the queries of a machine, without states of the Transition Machine."""
    for entry in machine.entries():
        observation: Any = entry.observation
        yield observation[0] if machine.supplemented else observation, entry.action


def _output(
    machines: Machines, states: dict[str, int], name: str, observation: Any, action: Symbol
) -> Any:
    machine = machines[name]
    if machine.supplemented:
        if "transition" not in states:
            return UNSEEN
        observation = observation, states["transition"]
    return machine.output(states[name], observation, action, generalized=False)


# --- Experiments that fill gaps of the evidence --------------------------------------------------


class Experiments(LazySequence[Experiment]):
    """The experiments for one machine, each built on access.

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
        steps: StepQueries,
        offsets: Numbers,
    ) -> None:
        machine = self._machine = varying.machine
        self._varying, self._separations = varying, separations
        self._transition: Machine = transition or machine
        self._observations = _observations_after_label(steps, offsets)
        table = self._transition.transitions_for(machine.labels).tolist()
        rows = machine.transitions.tolist()
        self._search: BreadthFirstSearch[tuple[int, int], Label] = BreadthFirstSearch([(0, 0)])
        self._joint: dict[int, tuple[int, int]] = {}  # the nearest joint state with each state
        for joint in self._search:
            self._joint.setdefault(joint[0], joint)
            for label, *after in zip(machine.labels, rows[joint[0]], table[joint[1]], strict=True):
                if min(after) >= 0:
                    self._search.add((after[0], after[1]), joint, label)
        self._inseparable = np.flatnonzero(separations.depth < 0)
        self._unread = [
            (state, label)
            for state, label in completeness.unseen_transitions
            if state in self._joint
        ]
        self._last = self._for_sequence(completeness)
        number = len(self._inseparable) + len(self._unread) + (self._last is not None)
        super().__init__(number, self._experiment)

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
            own_state = query.transition_state
            joint = self._joint.get(state) if own_state is None else (state, own_state)
            if joint is not None and joint in self._search.parents:
                return self._labels_to(joint), query[:2]
        return None

    def _labels_to(self, joint: tuple[int, int]) -> tuple[Label, ...]:
        return tuple(label for _, label in self._search.path_to(joint))

    def _for_transition(self, state: int, label: Label) -> Experiment:
        """Return an experiment that reads a label never read in a state."""
        labels = (*self._labels_to(self._joint[state]), label)
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
        read = label_sequence_text(ambiguous.labels)
        why = f"{read} may lead to state {ambiguous.state} or {ambiguous.other}"
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
                if query.observation in self._observations.get(label, ()):
                    return query[:2]
                fallback = fallback or query[:2]
        return fallback


def _observations_after_label(
    steps: StepQueries, offsets: Numbers
) -> dict[Label | None, set[Symbol]]:
    """Return the observations that occur while a label is the last nontrivial one read."""
    machine, read = steps.machine, nontrivial_labels(steps)
    last = np.maximum.accumulate(np.where(read >= 0, np.arange(len(read)), -1))
    start = np.repeat(offsets[:-1], np.diff(offsets))
    label = np.where(last >= start, read[last], -1).astype(np.int64)
    is_known = (steps.queries >= 0) & (label < len(machine.labels))
    actions = max(len(machine.actions), 1)
    pairs = np.stack([label[is_known], steps.queries[is_known] // actions])
    observations: dict[Label | None, set[Symbol]] = {}
    for code, number in np.unique(pairs, axis=1).T.tolist():
        last_label = machine.labels[code] if code >= 0 else None
        observations.setdefault(last_label, set()).add(
            query_of(machine, number * actions).observation
        )
    return observations
