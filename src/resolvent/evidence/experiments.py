"""What is missing → the next traces to collect: labels to read, and a question to ask then."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from resolvent.evidence.completeness import Completeness
from resolvent.evidence.separation import Question, Table, direct, question_of, suffixes
from resolvent.machines import UNSEEN, TransitionMachine
from resolvent.machines.drawing import history_text
from resolvent.traces import Label, Symbol, label_text

History = tuple[Label, ...]


@dataclass(frozen=True)
class Experiment:
    """A trace to collect: labels to drive the world through, and a question to ask then.

    >>> key = frozenset({"key"})
    >>> print(Experiment((key,), ("hall", "up"), "nothing tells states 0 and 1 apart"))
    read key; then in 'hall' do 'up' (nothing tells states 0 and 1 apart)
    """

    history: History
    question: tuple[Symbol, Symbol] | None
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "history": [sorted(label) for label in self.history],
            "question": None if self.question is None else list(self.question),
            "why": self.why,
        }

    def __str__(self) -> str:
        read = f"read {history_text(self.history)}" if self.history else "read nothing"
        if self.question is None:
            return f"{read}; then go on ({self.why})"
        observation, action = self.question
        return f"{read}; then in {observation!r} do {action!r} ({self.why})"


def next_experiments(
    completeness: Completeness, table: Table, transition: TransitionMachine
) -> tuple[Experiment, ...]:
    """Say which traces to collect next for what is missing, the gravest first.

    Questions to a supplemented machine are about a state of the Transition
    Machine as well; then labels are chosen that lead both machines where they
    have to be.
    """
    planner = _Planner(table, transition)
    return (
        *planner.for_pairs(),
        *planner.for_transitions(completeness),
        *planner.for_histories(completeness),
    )


class _Planner:
    def __init__(self, table: Table, transition: TransitionMachine) -> None:
        self.machine, self.table, self.transition = table.machine, table, transition
        self.apart = direct(table)
        self.label_for = suffixes(self.machine, self.apart)

    def for_pairs(self) -> list[Experiment]:
        """States that nothing tells apart: ask one what the other was asked."""
        found = []
        for one, other in np.argwhere(np.triu(~self.apart, k=1)).tolist():
            if (one, other) in self.label_for:
                continue
            why = f"nothing tells states {one} and {other} apart"
            found.append(
                self._ask(one, other, why)
                or self._ask(other, one, why)
                or Experiment(self.machine.history(other), None, why)
            )
        return found

    def _ask(self, asked: int, known: int, why: str) -> Experiment | None:
        value = self.table.value
        for question in self._questions(np.flatnonzero((value[asked] < 0) & (value[known] >= 0))):
            history = self._history(asked, question.transition_state)
            if history is not None:
                return Experiment(history, question[:2], why)
        return None

    def for_transitions(self, completeness: Completeness) -> list[Experiment]:
        """Labels never read in a state: read them, and ask what tells most states apart."""
        kinds = np.array([len(set(one[one >= 0].tolist())) for one in self.table.value.T], int)
        telling = list(self._questions(np.argsort(-kinds, kind="stable")))
        found = []
        for state, label in completeness.unseen_transitions:
            history = self._history(state, None)
            if history is not None:
                history = (*history, label)
                why = f"{label_text(label)} was never read in state {state}"
                found.append(Experiment(history, self._fitting(history, telling), why))
        return found

    def for_histories(self, completeness: Completeness) -> list[Experiment]:
        """A history that might reach another state: ask what tells the two apart."""
        one = completeness.first_open
        if one is None:
            return []
        history, state, other = list(one.history), one.state, one.other
        while not self.apart[state, other]:
            code = self.label_for.get((state, other))
            if code is None:
                return []  # nothing tells them apart at all, which was said before
            history.append(self.machine.labels[code])
            state, other = (int(self.machine.transitions[each, code]) for each in (state, other))
        telling = self._questions(self.table.telling(state, other))
        where = f"{one.state} or {one.other}"
        why = f"it is open whether {history_text(one.history)} leads to state {where}"
        return [Experiment(tuple(history), self._fitting(tuple(history), telling), why)]

    def _questions(self, columns: Iterable[int]) -> Iterable[Question]:
        numbers = self.table.questions
        return (question_of(self.machine, int(numbers[column])) for column in columns)

    def _fitting(
        self, history: History, questions: Iterable[Question]
    ) -> tuple[Symbol, Symbol] | None:
        """Return the first question that can come up after a history."""
        there = self.transition.run(history)
        for question in questions:
            if question.transition_state is None or question.transition_state == there:
                return question[:2]
        return None

    @cached_property
    def _reached(self) -> dict[tuple[int, int], History]:
        """The states that both machines can be in together, by the shortest history there."""
        reached: dict[tuple[int, int], History] = {(0, 0): ()}
        queue = [(0, 0)]
        for mine, theirs in queue:
            for label in self.machine.labels:
                after = self.machine.step(mine, label), self.transition.step(theirs, label)
                if after[0] is UNSEEN or after[1] is UNSEEN or after in reached:
                    continue
                reached[after[0], after[1]] = (*reached[mine, theirs], label)
                queue.append((after[0], after[1]))
        return reached

    def _history(self, state: int, transition_state: int | None) -> History | None:
        """Return the shortest history to a state, and to one of the TM if that is given."""
        for (mine, theirs), history in self._reached.items():
            if mine == state and transition_state in (None, theirs):
                return history
        return None
