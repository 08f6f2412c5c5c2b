"""Propose experiments: labels to read in the environment, and a query to try then.

Input: the gaps of the evidence, or two sets of machines. Output: `Experiment`s.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from resolvent._util.text import amount
from resolvent.evaluation.completeness import Completeness
from resolvent.evaluation.observed import LazySequence, Numbers, Query, query_of
from resolvent.evaluation.separation import Separations, VaryingOutputs
from resolvent.machines import UNSEEN, Machine, Machines, TransitionMachine
from resolvent.machines.compare import history_text
from resolvent.machines.situations import AugmentedState, augmented_state_text, by_name
from resolvent.replay import StepQueries
from resolvent.traces import Label, Symbol, label_text
from resolvent.traces.symbols import quoted_text, symbol_text
from resolvent.traces.vocabulary import codes_of

if TYPE_CHECKING:
    from resolvent.rl.experiment_policy import ExperimentPolicy

History = tuple[Label, ...]
Pair = tuple[Symbol, Symbol]
"""An observation and an action."""

States = tuple[int, ...]

UNKNOWN_STEP_REASON: Final = "what follows is not known"
"""Reason to try a step that no trace has taken."""

_ACTIONS_SHOWN: Final = 12
"""Maximum number of actions that the text of an experiment lists."""


@dataclass(frozen=True)
class Experiment:
    """Something to try in an environment: labels to read, and a query then.

    Evidence proposes experiments that would show whether machines are right, a plan the step
    that could improve it, and two sets of machines the query that distinguishes them. `policy`
    executes an experiment.

    Attributes:
        history: The labels to read first, without those that change nothing.
        question: The observation and the action to try then; None to just go on. Go on for a
            step or more: no machine reads the last label of a trace.
        why: The reason for the experiment.
        machine: The machine that it is about, such as "reward"; None if it is about all.
        exact: Whether it has to be exactly these labels; otherwise any that lead to the same
            states will do.
        start: The augmented state to begin in, if known: an observation and states.
        actions: The actions that lead from there to the query over known steps; None if they
            were not computed. With stochastic outputs, if the most likely one occurs each time.
        situation: The augmented state of the query, if known.
        taken: With stochastic outputs, the number of times the step has been observed.

    >>> key = frozenset({"key"})
    >>> print(Experiment((key,), ("hall", "up"), "nothing tells states 0 and 1 apart"))
    read key; then in 'hall' do 'up' (nothing tells states 0 and 1 apart)
    """

    history: History
    question: Pair | None
    why: str
    machine: str | None = None
    exact: bool = False
    start: AugmentedState | None = None
    actions: tuple[Symbol, ...] | None = None
    situation: AugmentedState | None = None
    taken: int | None = None

    @property
    def action(self) -> Symbol | None:
        """The action to try in the end; None if any will do."""
        return None if self.question is None else self.question[1]

    def policy(self, env: Any, machines: Any, traces: Any, **options: Any) -> "ExperimentPolicy":
        """Return a policy that executes the experiment, for `collect` or a loop.

        Known steps lead to the labels and the query, if the traces show any; otherwise it
        explores untried steps at random. After the experiment it acts at random.

        Args:
            env: The environment, as passed to `collect`.
            machines: The machines, or the result of an inference.
            traces: The traces recorded so far, or a scanned folder.
            **options: `name_of` as in `collect`, and `seed` for random actions.

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
        from resolvent.rl.experiment_policy import experiment_policy

        return experiment_policy(self, env, machines, traces, **options)

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as JSON values."""
        return {
            "history": [sorted(label) for label in self.history],
            "question": None if self.question is None else list(self.question),
            "why": self.why,
            "machine": self.machine,
            "exact": self.exact,
            "start": None if self.start is None else by_name(self.start),
            "actions": None if self.actions is None else list(self.actions),
            "situation": None if self.situation is None else by_name(self.situation),
            "action": self.action,
            **({} if self.taken is None else {"taken": self.taken}),
        }

    def __str__(self) -> str:
        if self.start is not None and self.situation is not None and self.action is not None:
            return (
                f"begin in {symbol_text(self.start[0])}{self._actions_text()}; then in "
                f"{augmented_state_text(self.situation)} do {symbol_text(self.action)}, "
                f"and go on: {self.why}"
            )
        read = f"read {history_text(self.history)}" if self.history else "read nothing"
        if self.question is None:
            return f"{read}; then go on ({self.why})"
        observation, action = self.question
        return f"{read}; then in {quoted_text(observation)} do {quoted_text(action)} ({self.why})"

    def _actions_text(self) -> str:
        if not self.actions:
            return ""
        text = ", ".join(map(symbol_text, self.actions[:_ACTIONS_SHOWN]))
        if len(self.actions) > _ACTIONS_SHOWN:
            text += f", … ({len(self.actions)} actions)"
        likely = "" if self.taken is None else " (if the likeliest comes each time)"
        return f", do {text}{likely}"


def rarely_taken_reason(count: int) -> str:
    """Return the reason to try a step of a plan that was observed `count` times.

    >>> rarely_taken_reason(0), rarely_taken_reason(3)
    ('what follows is not known', 'it was seen 3 times, the fewest on this way')
    """
    return (
        f"it was seen {amount(count, 'time')}, the fewest on this way"
        if count
        else UNKNOWN_STEP_REASON
    )


class NextExperiments(LazySequence[Experiment]):
    """The experiments that would supply missing evidence, each built on access.

    First come pairs of states that nothing distinguishes, then labels never read in a state,
    then the first label history that might reach another state. Queries to a supplemented
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
        self._designer = designer = _ExperimentDesigner(varying, separations, transition, follows)
        self._inseparable = np.flatnonzero(separations.depth < 0)
        self._unread = [
            (state, label)
            for state, label in completeness.unseen_transitions
            if state in designer.paths.of_state
        ]
        self._last = designer.for_history(completeness)
        super().__init__(len(self._inseparable) + len(self._unread) + len(self._last))

    def _element(self, index: int) -> Experiment:
        if index < len(self._inseparable):
            states = self._designer.separations.states(int(self._inseparable[index]))
            return self._designer.for_states(*states)
        index -= len(self._inseparable)
        if index < len(self._unread):
            return self._designer.for_transition(*self._unread[index])
        return self._last[0]


class _ExperimentDesigner:
    """Designs experiments for one machine, which stands in for a missing Transition Machine."""

    def __init__(
        self,
        varying: VaryingOutputs,
        separations: Separations,
        transition: TransitionMachine | None,
        follows: "ObservationsAfterLabel",
    ) -> None:
        self.machine, self.varying, self.separations = varying.machine, varying, separations
        self.follows = follows
        self.transition: Machine = transition or varying.machine

    def for_states(self, first: int, second: int) -> Experiment:
        """Return a query to one of two undistinguished states that was observed in the other."""
        why = f"nothing tells states {first} and {second} apart"
        return (
            self._query(first, second, why)
            or self._query(second, first, why)
            or self._experiment(self.machine.history(second), None, why)
        )

    def _query(self, state: int, answered: int, why: str) -> Experiment | None:
        """Return an experiment for a query observed in state `answered` and not in `state`."""
        column, entries = self.varying.column, self.varying.entries
        columns = np.setdiff1d(
            column[entries(answered)], column[entries(state)], assume_unique=True
        )
        for query in self._queries(columns):
            history = self.paths.history(state, query.transition_state)
            if history is not None:
                return self._experiment(history, query[:2], why)
        return None

    def for_transition(self, state: int, label: Label) -> Experiment:
        """Return an experiment that reads a label never read in a state."""
        history = (*(self.paths.history(state, None) or ()), label)
        why = f"{label_text(label)} was never read in state {state}"
        return self._experiment(history, self._possible(history, self._most_varying), why)

    @cached_property
    def _most_varying(self) -> list[Query]:
        """The queries, those with the most distinct outputs first."""
        varying, width = self.varying, max(len(self.machine.outputs), 1)
        distinct = np.unique(varying.column.astype(np.int64) * width + varying.output)
        outputs = np.bincount(distinct // width, minlength=len(varying.queries))
        return list(self._queries(np.argsort(-outputs, kind="stable")))

    def for_history(self, completeness: Completeness) -> list[Experiment]:
        """Return an experiment that decides which state the first open history reaches, if any."""
        first_open = completeness.first_open
        if first_open is None:
            return []
        path = self.separations.suffix(first_open.state, first_open.other)
        if path is None:
            return []  # nothing distinguishes the states, which is reported for the pair
        labels, state, alternative = path
        history = (*first_open.history, *labels)
        queries = self._queries(self.varying.distinguishing(state, alternative))
        states = f"{first_open.state} or {first_open.other}"
        why = f"it is open whether {history_text(first_open.history)} leads to state {states}"
        query = self._possible(history, queries)
        return [Experiment(history, query, why, self.machine.kind, exact=True)]

    def _experiment(self, history: History, query: Pair | None, why: str) -> Experiment:
        return Experiment(history, query, why, self.machine.kind)

    def _queries(self, columns: Iterable[int]) -> Iterable[Query]:
        numbers = self.varying.queries
        return (query_of(self.machine, int(numbers[column])) for column in columns)

    def _possible(self, history: History, queries: Iterable[Query]) -> Pair | None:
        """Return the first query that can occur after a history.

        Queries with an observation that the traces show after the last label come first.
        """
        state, label = self.transition.run(history), history[-1] if history else None
        fallback = None
        for query in queries:
            if query.transition_state is None or query.transition_state == state:
                if self.follows(label, query.observation):
                    return query[:2]
                fallback = fallback or query[:2]
        return fallback

    @cached_property
    def paths(self) -> "_JointPaths":
        """The shortest histories to states of both machines."""
        return _JointPaths(self.machine, self.transition)


class _JointPaths:
    """The joint states that two machines can reach, and the shortest history to each."""

    def __init__(self, machine: Machine, transition: Machine) -> None:
        self._labels = machine.labels
        codes = codes_of(machine.labels, transition.labels, -1).tolist()
        rows, transition_rows = machine.transitions.tolist(), transition.transitions.tolist()
        self._parent: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {(0, 0): None}
        self.of_state = {0: (0, 0)}
        queue = [(0, 0)]
        for before in queue:
            for code, target in enumerate(rows[before[0]]):
                if target < 0 or codes[code] < 0:
                    continue
                after = target, transition_rows[before[1]][codes[code]]
                if after[1] < 0 or after in self._parent:
                    continue
                self._parent[after] = before, code
                self.of_state.setdefault(target, after)
                queue.append(after)

    def history(self, state: int, transition_state: int | None) -> History | None:
        """Return the shortest history to a state, and to one of the Transition Machine if given."""
        joint = self.of_state.get(state) if transition_state is None else (state, transition_state)
        if joint is None or joint not in self._parent:
            return None
        codes = []
        while (step := self._parent[joint]) is not None:
            joint, code = step
            codes.append(code)
        return tuple(self._labels[code] for code in reversed(codes))


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
        is_known = (steps.questions >= 0) & (label < labels)
        actions = max(len(machine.actions), 1)
        pairs = np.stack([label[is_known], steps.questions[is_known] // actions])
        self._observations: dict[Label | None, set[Symbol]] = {}
        for code, number in np.unique(pairs, axis=1).T.tolist():
            symbol = query_of(machine, number * actions).observation
            self._observations.setdefault(machine.labels[code] if code >= 0 else None, set()).add(
                symbol
            )

    def __call__(self, label: Label | None, observation: Symbol) -> bool:
        """Return whether an observation occurred while this label was the last one read."""
        return observation in self._observations.get(label, ())


def distinguishing_sequence(first: Machines, second: Machines) -> Experiment | None:
    """Return the shortest labels, and a query then, with different outputs of two sets of machines.

    Only outputs observed in the state reached count. None means that no traces which both
    explain distinguish them.

    >>> import resolvent as rs
    >>> def one_trace(label):
    ...     return rs.Trace(["hall"] * 3, [None, label, None], ["look", "go"], [0, label == "key"])
    >>> first = rs.infer(rs.TraceSet([one_trace("key"), one_trace("bell")])).machines
    >>> moves = first.reward.transitions[:, ::-1].copy()
    >>> import dataclasses
    >>> swapped = first.replacing(dataclasses.replace(first.reward, transitions=moves))
    >>> print(distinguishing_sequence(first, first))
    None
    >>> distinguishing_sequence(first, swapped).question
    ('hall', 'go')
    """
    names = [name for name in first if name in second]
    labels = list(dict.fromkeys(label for name in names for label in first[name].labels))
    queries = {name: list(_queries_of(first[name], second[name])) for name in names}
    start = (0,) * len(names), (0,) * len(names)
    parent: dict[tuple[States, States], tuple[tuple[States, States], Label] | None] = {start: None}
    queue = deque([start])
    while queue:
        joint = queue.popleft()
        for name in names:
            for observation, action in queries[name]:
                ours = _output(first, names, joint[0], name, observation, action)
                theirs = _output(second, names, joint[1], name, observation, action)
                if ours is not UNSEEN and theirs is not UNSEEN and ours != theirs:
                    why = (
                        f"the {name} of one machine is {symbol_text(ours)} then, that of another "
                        f"{symbol_text(theirs)}"
                    )
                    history: list[Label] = []
                    while (step := parent[joint]) is not None:
                        joint, label = step
                        history.append(label)
                    query = observation, action
                    return Experiment(tuple(reversed(history)), query, why, name, exact=True)
        for label in labels:
            ours_after = _next_states(first, names, joint[0], label)
            theirs_after = _next_states(second, names, joint[1], label)
            if ours_after is None or theirs_after is None:
                continue
            if (ours_after, theirs_after) not in parent:
                parent[ours_after, theirs_after] = joint, label
                queue.append((ours_after, theirs_after))
    return None


def _queries_of(*machines: Machine) -> Iterator[Pair]:
    """Yield the queries of some machines, each once, without states of the Transition Machine."""
    seen = set()
    for machine in machines:
        for answer in machine.answers():
            observation: Any = answer.observation
            query = (observation[0] if machine.supplemented else observation), answer.action
            if query not in seen:
                seen.add(query)
                yield query


def _output(
    machines: Machines,
    names: list[str],
    states: States,
    name: str,
    observation: Symbol,
    action: Symbol,
) -> Any:
    machine, supplemented = machines[name], observation
    if machine.supplemented:
        if "transition" not in names:
            return UNSEEN
        supplemented = observation, states[names.index("transition")]
    return machine.output(states[names.index(name)], supplemented, action, assumed=False)


def _next_states(
    machines: Machines, names: list[str], states: States, label: Label
) -> States | None:
    targets = [machines[name].step(state, label) for name, state in zip(names, states, strict=True)]
    return None if UNSEEN in targets else tuple(targets)  # type: ignore[arg-type]
