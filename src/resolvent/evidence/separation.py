"""What tells two states of a machine apart in the traces, and where to look it up."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.evidence.counting import Answers
from resolvent.machines import Machine, RewardMachine
from resolvent.traces import Codes, Label, Symbol, label_text, symbol_text

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
    if isinstance(machine, RewardMachine) and machine.supplemented:
        if not isinstance(observation, tuple) or len(observation) != 2:
            raise ModelError("a supplemented reward machine has an observation without a TM state")
        return Question(observation[0], action, int(observation[1]))
    return Question(observation, action)


@dataclass(frozen=True)
class Answer:
    """An answer that the traces show in some state, how often, and where first."""

    output: Any
    count: int
    place: Place


@dataclass(frozen=True)
class Separation:
    """What tells two states apart: after `suffix`, they answer `question` differently.

    `questions` counts the questions that do so after that suffix, `support` the
    steps at which they were asked. All is None or 0 where nothing tells the
    states apart.
    """

    first: int
    second: int
    suffix: tuple[Label, ...] | None = None
    questions: int = 0
    support: int = 0
    question: Question | None = None
    answers: tuple[Answer, Answer] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        told = None if self.question is None else self.question._asdict()
        shown = [
            {"output": one.output, "count": one.count, "trace": one.place[0], "step": one.place[1]}
            for one in self.answers or ()
        ]
        return {
            "states": [self.first, self.second],
            "suffix": None if self.suffix is None else [sorted(label) for label in self.suffix],
            "questions": self.questions,
            "support": self.support,
            "question": told,
            "answers": shown or None,
        }

    def __str__(self) -> str:
        states = f"states {self.first} and {self.second}"
        if self.suffix is None or self.question is None or self.answers is None:
            return f"{states}: nothing tells them apart"
        one, other = (
            f"{symbol_text(answer.output)} (trace {answer.place[0]}, step {answer.place[1]})"
            for answer in self.answers
        )
        after = f"after {', '.join(map(label_text, self.suffix))} " if self.suffix else ""
        plural = "" if self.questions == 1 else "s"
        return (
            f"{states}: {after}{self.questions:,} question{plural} asked {self.support:,} times, "
            f"such as {self.question}: {one} against {other}"
        )


class Table:
    """The answers of the traces as a table, states by questions that vary.

    `entry[state, column]` is a row of the answers, or −1 where the traces do not
    show one; `value` the output there. Where they show several, which no machine
    inferred from them allows, the first stands.
    """

    def __init__(self, machine: Machine, answers: Answers) -> None:
        self.machine, self.answers = machine, answers
        shown, place = np.unique(answers.question, return_inverse=True)
        least = np.full(len(shown), len(machine.outputs), np.int32)
        most = np.full(len(shown), -1, np.int32)
        np.minimum.at(least, place, answers.output)
        np.maximum.at(most, place, answers.output)
        column = np.cumsum(least < most) - 1
        self.questions: NDArray[np.int64] = shown[least < most]
        rows = np.flatnonzero((least < most)[place])[::-1]  # so that the first one stays
        shape = (machine.states, len(self.questions))
        self.entry = np.full(shape, -1, np.int64)
        self.entry[answers.state[rows], column[place[rows]]] = rows
        self.value: Codes = np.full(shape, -1, np.int32)
        self.value[self.entry >= 0] = answers.output[self.entry[self.entry >= 0]]

    def telling(self, first: int, second: int) -> NDArray[np.int64]:
        """Return the columns of the questions that two states answer differently."""
        one, other = self.value[first], self.value[second]
        return np.flatnonzero((one >= 0) & (other >= 0) & (one != other))


def direct(table: Table) -> NDArray[np.bool_]:
    """Return which states some question tells apart at once."""
    value = table.value
    apart = np.zeros((len(value), len(value)), bool)
    for state, answers in enumerate(value):
        apart[state] = ((answers >= 0) & (value >= 0) & (value != answers)).any(axis=1)
    return apart


def suffixes(machine: Machine, apart: NDArray[np.bool_]) -> dict[tuple[int, int], int]:
    """Return the label to read first, for each pair that only reading labels tells apart.

    It is the first label of the shortest suffix, and of those the first in label
    order: read it, and the pair that it leads to is told apart one label sooner.
    """
    first: dict[tuple[int, int], int] = {}
    apart = apart.copy()
    moving = [code for code in range(len(machine.labels)) if code not in machine.trivial]
    while True:
        found = np.full(apart.shape, -1)
        for code in reversed(moving):
            known = np.flatnonzero(machine.transitions[:, code] >= 0)
            led = machine.transitions[known, code]
            block = np.ix_(known, known)
            found[block] = np.where(apart[np.ix_(led, led)], code, found[block])
        new = (found >= 0) & ~apart
        if not new.any():
            return first
        for one, other in np.argwhere(new).tolist():
            first[one, other] = int(found[one, other])
        apart |= new


def separate(table: Table) -> tuple[Separation, ...]:
    """Say of every pair of states what tells them apart, the shortest suffix first."""
    machine = table.machine
    apart = direct(table)
    label_for = suffixes(machine, apart)
    return tuple(
        _separation(table, apart, label_for, one, other)
        for one, other in combinations(range(machine.states), 2)
    )


def _separation(
    table: Table,
    apart: NDArray[np.bool_],
    label_for: dict[tuple[int, int], int],
    first: int,
    second: int,
) -> Separation:
    machine, answers = table.machine, table.answers
    one, other, suffix = first, second, []
    while not apart[one, other]:
        code = label_for.get((one, other))
        if code is None:
            return Separation(first, second)
        suffix.append(machine.labels[code])
        one, other = (int(machine.transitions[state, code]) for state in (one, other))
    columns = table.telling(one, other)
    rows = np.stack([table.entry[one, columns], table.entry[other, columns]])
    shortest = int(np.argmin(answers.step[rows].sum(axis=0)))
    return Separation(
        first,
        second,
        tuple(suffix),
        len(columns),
        int(answers.count[rows].sum()),
        question_of(machine, int(table.questions[columns[shortest]])),
        (_answer(table, int(rows[0, shortest])), _answer(table, int(rows[1, shortest]))),
    )


def _answer(table: Table, row: int) -> Answer:
    answers = table.answers
    return Answer(
        table.machine.outputs[int(answers.output[row])],
        int(answers.count[row]),
        (int(answers.trace[row]), int(answers.step[row])),
    )
