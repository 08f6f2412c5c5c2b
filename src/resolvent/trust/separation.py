"""What tells two states of a machine apart in the traces, and where to look it up."""

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import ModelError, TooLarge
from resolvent.limits import check_table
from resolvent.machines import Machine
from resolvent.traces import Codes, Label, Symbol, label_text, symbol_text
from resolvent.trust.counting import AnswersSeen
from resolvent.trust.on_demand import OnDemand
from resolvent.trust.telling import CoreListener
from resolvent.wording import odds_text

Place = tuple[int, int]
"""Trace and step."""


class Question(NamedTuple):
    """What a machine is asked; a supplemented one also in which state of the TM.

    >>> print(Question("hall", "up")), print(Question("hall", "up", 1))
    (hall, up)
    (hall, up) in TM state 1
    (None, None)
    """

    observation: Symbol
    action: Symbol
    transition_state: int | None = None

    def __str__(self) -> str:
        text = f"({symbol_text(self.observation)}, {symbol_text(self.action)})"
        where = self.transition_state
        return text if where is None else f"{text} in TM state {where}"


def question_of(machine: Machine, number: int) -> Question:
    """Return what a question's number stands for."""
    observation, action = machine.question(number)
    if machine.supplemented:
        if not isinstance(observation, tuple) or len(observation) != 2:
            raise ModelError(
                f"the supplemented {machine.kind} machine has an observation without a TM state"
            )
        return Question(observation[0], action, int(observation[1]))
    return Question(observation, action)


@dataclass(frozen=True)
class Answer:
    """An answer that the traces show in some state, how often, and where first.

    `asked` is how often the question was asked there, where it has other answers as well.
    """

    output: Any
    count: int
    place: Place
    asked: int | None = None

    def __str__(self) -> str:
        of = "" if self.asked is None else f" {self.count:,} of {self.asked:,} times"
        return f"{symbol_text(self.output)}{of} (trace {self.place[0]}, step {self.place[1]})"


@dataclass(frozen=True)
class Separation:
    """What tells two states apart: after `suffix`, they answer `question` differently.

    `questions` counts the questions that do so after that suffix, `support` the
    steps at which they were asked. All is None or 0 where nothing tells the
    states apart. In a noisy machine no single answer does: `log_odds` is the logarithm of
    how many times as likely all answers of both states are, of two states rather than one.
    """

    first: int
    second: int
    suffix: tuple[Label, ...] | None = None
    questions: int = 0
    support: int = 0
    question: Question | None = None
    answers: tuple[Answer, Answer] | None = None
    log_odds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        told = None if self.question is None else self.question._asdict()
        shown = [
            {
                "output": one.output,
                "count": one.count,
                **({} if one.asked is None else {"asked": one.asked}),
                "trace": one.place[0],
                "step": one.place[1],
            }
            for one in self.answers or ()
        ]
        return {
            "states": [self.first, self.second],
            "suffix": None if self.suffix is None else [sorted(label) for label in self.suffix],
            "questions": self.questions,
            "support": self.support,
            "question": told,
            "answers": shown or None,
            **({} if self.log_odds is None else {"log_odds": self.log_odds}),
        }

    def __str__(self) -> str:
        states = f"states {self.first} and {self.second}"
        if self.suffix is None or self.question is None or self.answers is None:
            odds = "" if self.log_odds is None else f"; one state: {odds_text(-self.log_odds)}"
            return f"{states}: nothing tells them apart{odds}"
        one, other = self.answers
        after = f"after {', '.join(map(label_text, self.suffix))} " if self.suffix else ""
        plural = "" if self.questions == 1 else "s"
        if self.log_odds is not None:
            states += f", as one {odds_text(-self.log_odds)}"
        return (
            f"{states}: {after}{self.questions:,} question{plural} asked {self.support:,} times, "
            f"such as {self.question}: {one} against {other}"
        )


class VaryingAnswers:
    """The answers that the traces show to questions that vary: entries, by state and question.

    An entry is a row of the answers; `column` is its question, as a place among
    those that vary. Where the traces show several answers of a state to one
    question, which only noise allows, the most frequent stands, of equals the first.
    """

    def __init__(self, machine: Machine, answers: AnswersSeen) -> None:
        self.machine, self.answers = machine, answers
        shown, inverse = np.unique(answers.question, return_inverse=True)
        place: Codes = inverse.astype(np.int32)
        varies = _core.tally_outputs(place, answers.output, len(shown))[2].astype(bool)
        self.questions: NDArray[np.int64] = shown[varies]
        rows = np.flatnonzero(varies[place])
        rows = rows[np.lexsort((-answers.count[rows], place[rows], answers.state[rows]))]
        first = np.ones(len(rows), bool)
        first[1:] = np.diff(answers.state[rows]) | np.diff(place[rows])
        self.row = rows[first]
        self.state: Codes = answers.state[self.row]
        self.column: Codes = (np.cumsum(varies, dtype=np.int32) - 1)[place[self.row]]
        self.output: Codes = answers.output[self.row]

    def entries(self, state: int) -> slice:
        """Return where the entries of a state stand."""
        first, last = np.searchsorted(self.state, [state, state + 1])
        return slice(first, last)

    def telling(self, first: int, second: int) -> Codes:
        """Return the columns of the questions that two states answer differently."""
        one, other = self.entries(first), self.entries(second)
        common, mine, theirs = np.intersect1d(
            self.column[one], self.column[other], assume_unique=True, return_indices=True
        )
        told: Codes = common[self.output[one][mine] != self.output[other][theirs]]
        return told

    @cached_property
    def by_question(self) -> NDArray[np.int64]:
        """The entries by question, then by state."""
        return np.argsort(self.column, kind="stable")


_PAIR_BYTES = 36
"""What each pair of states takes while it is looked for what tells them apart."""


class Separations(OnDemand[Separation]):
    """What tells each pair of states apart; pairs stand as (0, 1), (0, 2), … (1, 2) and so on.

    Each `Separation` is made when it is asked for; of all pairs there are columns:
    `depth`, how many labels have to be read first (−1 where nothing tells the two
    apart), `questions` and `support`. Where states are so many that their pairs take more memory
    than the limit allows, there are none, and `left_out` says so.
    """

    left_out: str | None = None

    def __init__(self, table: VaryingAnswers, progress: CoreListener | None = None) -> None:
        machine, answers = table.machine, table.answers
        self.machine, self.answers = machine, answers
        self._rows = table.row[table.by_question]
        self._states = machine.states
        halves = max(machine.states - 1, 0), -(-machine.states // 2)
        try:
            check_table(*halves, _PAIR_BYTES, "pairs of states that are told apart")
        except TooLarge as error:
            self.left_out = str(error)
            self.depth = np.empty(0, np.int32)
            self.questions = self.support = np.empty(0, np.int64)
            super().__init__(0)
            return
        found = _core.separate(
            table.column[table.by_question],
            table.state[table.by_question],
            table.output[table.by_question],
            count=answers.count[self._rows],
            step=answers.step[self._rows],
            transitions=moving(machine),
            states=machine.states,
            labels=len(machine.labels),
            progress=progress,
        )
        self.depth, self.questions, self.support = (
            found[name] for name in ("depth", "questions", "support")
        )
        self._label, self._witness = found["label"], (found["lower"], found["higher"])
        super().__init__(len(self.depth))

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces tells apart."""
        return tuple(map(self._made, np.flatnonzero(self.depth < 0).tolist()))

    def weakest(self, most: int) -> list[Separation]:
        """Return the pairs with the least support, at most so many, the weakest first."""
        order = np.argsort(self.support, kind="stable")
        return [self._made(number) for number in order[:most].tolist()]

    def number(self, one: int, other: int) -> int:
        """Return where two states stand, whichever comes first."""
        lower, higher = (one, other) if one < other else (other, one)
        return lower * (2 * self._states - lower - 1) // 2 + higher - lower - 1

    def suffix(self, one: int, other: int) -> tuple[tuple[Label, ...], int, int] | None:
        """Return the labels to read, and the states they lead to; None if nothing helps.

        Nor is anything known where pairs are left out. They are the shortest that lead to states
        which a question tells apart, and of those the first in label order.
        """
        if self.left_out:
            return None
        labels = []
        while (depth := int(self.depth[(at := self.number(one, other))])) > 0:
            code = int(self._label[at])
            labels.append(self.machine.labels[code])
            one, other = (int(self.machine.transitions[state, code]) for state in (one, other))
        return None if depth < 0 else (tuple(labels), one, other)

    def states(self, number: int) -> tuple[int, int]:
        """Return the two states of a pair by its place."""
        from_last = len(self.depth) - 1 - number
        above = (isqrt(8 * from_last + 1) - 1) // 2
        first = self._states - 2 - above
        return first, self._states - 1 - (from_last - above * (above + 1) // 2)

    def _made(self, number: int) -> Separation:
        first, second = self.states(number)
        found = self.suffix(first, second)
        if found is None:
            return Separation(first, second)
        labels, one, other = found
        rows = [int(self._rows[column[number]]) for column in self._witness]
        if one > other:
            rows.reverse()
        return Separation(
            first,
            second,
            labels,
            int(self.questions[number]),
            int(self.support[number]),
            question_of(self.machine, int(self.answers.question[rows[0]])),
            (self._answer(rows[0]), self._answer(rows[1])),
        )

    def _answer(self, row: int) -> Answer:
        answers = self.answers
        return Answer(
            self.machine.outputs[int(answers.output[row])],
            int(answers.count[row]),
            (int(answers.trace[row]), int(answers.step[row])),
        )


def moving(machine: Machine) -> Codes:
    """Return the transitions as one column, with trivial labels leading nowhere."""
    leads = machine.transitions.copy()
    leads[:, list(machine.trivial)] = -1
    return leads.ravel()
