"""What is missing → the next traces to collect: labels to read, and a question to ask then."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from resolvent.machines import Machine, TransitionMachine
from resolvent.machines.ways import history_text
from resolvent.traces import Label, Symbol, label_text
from resolvent.traces.vocabulary import codes_of
from resolvent.trust.completeness import Completeness
from resolvent.trust.experiment import Experiment, History
from resolvent.trust.on_demand import OnDemand
from resolvent.trust.seen_after import SeenAfter
from resolvent.trust.separation import Question, Separations, VaryingAnswers, question_of


class NextExperiments(OnDemand[Experiment]):
    """The traces to collect next for what is missing, the gravest first.

    Questions to a supplemented machine are about a state of the Transition
    Machine as well; then labels are chosen that lead both machines where they
    have to be. Each experiment is made when it is asked for.
    """

    def __init__(
        self,
        completeness: Completeness,
        table: VaryingAnswers,
        separations: Separations,
        transition: TransitionMachine | None,
        seen_after: SeenAfter,
    ) -> None:
        self._planner = planner = _Planner(table, separations, transition, seen_after)
        self._inseparable = np.flatnonzero(separations.depth < 0)
        self._unread = [
            (state, label)
            for state, label in completeness.unseen_transitions
            if state in planner.reached.of_state
        ]
        self._last = planner.for_history(completeness)
        super().__init__(len(self._inseparable) + len(self._unread) + len(self._last))

    def _made(self, number: int) -> Experiment:
        if number < len(self._inseparable):
            pair = self._planner.separations.states(int(self._inseparable[number]))
            return self._planner.for_pair(*pair)
        number -= len(self._inseparable)
        if number < len(self._unread):
            return self._planner.for_transition(*self._unread[number])
        return self._last[0]


class _Planner:
    """Plans experiments for one machine; where there is no Transition Machine, it stands alone."""

    def __init__(
        self,
        table: VaryingAnswers,
        separations: Separations,
        transition: TransitionMachine | None,
        seen_after: SeenAfter,
    ) -> None:
        self.machine, self.table, self.separations = table.machine, table, separations
        self.seen_after = seen_after
        self.transition: Machine = transition or table.machine

    def for_pair(self, one: int, other: int) -> Experiment:
        """States that nothing tells apart: ask one what the other was asked."""
        why = f"nothing tells states {one} and {other} apart"
        return (
            self._ask(one, other, why)
            or self._ask(other, one, why)
            or self._experiment(self.machine.history(other), None, why)
        )

    def _ask(self, asked: int, known: int, why: str) -> Experiment | None:
        column, entries = self.table.column, self.table.entries
        columns = np.setdiff1d(column[entries(known)], column[entries(asked)], assume_unique=True)
        for question in self._questions(columns):
            history = self.reached.history(asked, question.transition_state)
            if history is not None:
                return self._experiment(history, question[:2], why)
        return None

    def for_transition(self, state: int, label: Label) -> Experiment:
        """A label never read in a state: read it, and ask what tells most states apart."""
        history = (*(self.reached.history(state, None) or ()), label)
        why = f"{label_text(label)} was never read in state {state}"
        return self._experiment(history, self._fitting(history, self._most_telling), why)

    @cached_property
    def _most_telling(self) -> list[Question]:
        """The questions, those that most different answers are known to first."""
        table, outputs = self.table, max(len(self.machine.outputs), 1)
        known = np.unique(table.column.astype(np.int64) * outputs + table.output)
        kinds = np.bincount(known // outputs, minlength=len(table.questions))
        return list(self._questions(np.argsort(-kinds, kind="stable")))

    def for_history(self, completeness: Completeness) -> list[Experiment]:
        """A history that might reach another state: ask what tells the two apart."""
        one = completeness.first_open
        if one is None:
            return []
        found = self.separations.suffix(one.state, one.other)
        if found is None:
            return []  # nothing tells them apart at all, which was said before
        labels, state, other = found
        history = (*one.history, *labels)
        telling = self._questions(self.table.telling(state, other))
        where = f"{one.state} or {one.other}"
        why = f"it is open whether {history_text(one.history)} leads to state {where}"
        question = self._fitting(history, telling)
        return [Experiment(history, question, why, self.machine.kind, exact=True)]

    def _experiment(
        self, history: History, question: tuple[Symbol, Symbol] | None, why: str
    ) -> Experiment:
        return Experiment(history, question, why, self.machine.kind)

    def _questions(self, columns: Iterable[int]) -> Iterable[Question]:
        numbers = self.table.questions
        return (question_of(self.machine, int(numbers[column])) for column in columns)

    def _fitting(
        self, history: History, questions: Iterable[Question]
    ) -> tuple[Symbol, Symbol] | None:
        """Return the first question that can come up after a history.

        Those about something that was ever seen after the last label come before others.
        """
        there, last = self.transition.run(history), history[-1] if history else None
        second = None
        for question in questions:
            if question.transition_state is None or question.transition_state == there:
                if self.seen_after(last, question.observation):
                    return question[:2]
                second = second or question[:2]
        return second

    @cached_property
    def reached(self) -> "_Reached":
        """The states that both machines can be in together."""
        return _Reached(self.machine, self.transition)


class _Reached:
    """The states that two machines can be in together, and the shortest history to each."""

    def __init__(self, machine: Machine, transition: Machine) -> None:
        self._labels = machine.labels
        codes = codes_of(machine.labels, transition.labels, -1).tolist()
        mine, theirs = machine.transitions.tolist(), transition.transitions.tolist()
        self._from: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {(0, 0): None}
        self.of_state = {0: (0, 0)}
        queue = [(0, 0)]
        for before in queue:
            row, other_row = mine[before[0]], theirs[before[1]]
            for code, target in enumerate(row):
                if target < 0 or codes[code] < 0:
                    continue
                after = target, other_row[codes[code]]
                if after[1] < 0 or after in self._from:
                    continue
                self._from[after] = before, code
                self.of_state.setdefault(target, after)
                queue.append(after)

    def history(self, state: int, transition_state: int | None) -> History | None:
        """Return the shortest history to a state, and to one of the TM if that is given."""
        both = self.of_state.get(state) if transition_state is None else (state, transition_state)
        if both is None or both not in self._from:
            return None
        codes = []
        while (step := self._from[both]) is not None:
            both, code = step
            codes.append(code)
        return tuple(self._labels[code] for code in reversed(codes))
