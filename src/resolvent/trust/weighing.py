"""A noisy machine + the steps it was asked at → how sure its states and its moves are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines import Machine
from resolvent.noise import Rivals
from resolvent.noise.alternatives import LEAST_LOG_ODDS
from resolvent.noise.likely import PART
from resolvent.replay import StepsAsked
from resolvent.traces import NO_EVENT, Codes, Label, label_text
from resolvent.trust.counting import AnswersSeen
from resolvent.trust.separation import Answer, Separation, Separations, question_of
from resolvent.wording import odds_text


@dataclass(frozen=True)
class OpenMove:
    """A move that might lead elsewhere: `other` instead of `target`.

    `log_odds` is the logarithm of how many times as likely `other` is, all other moves given.
    """

    state: int
    label: Label
    target: int
    other: int
    log_odds: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "state": self.state,
            "label": sorted(self.label),
            "target": self.target,
            "other": self.other,
            "log_odds": self.log_odds,
        }

    def __str__(self) -> str:
        read = f"state {self.state} reads {label_text(self.label)} → {self.target}"
        return f"{read}, or {self.other} ({odds_text(self.log_odds)})"


@dataclass(frozen=True, eq=False)
class Weighed:
    """The answers that steps show, as columns that the core weighs; unknown ones left out.

    `question` numbers those that were asked at all: `questions` has their numbers in the machine.
    """

    machine: Machine
    questions: NDArray[np.int64]
    question: Codes
    output: Codes
    label: Codes
    state: Codes
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, asked: StepsAsked, offsets: NDArray[np.int64]) -> "Weighed":
        """Take the columns from what a machine is asked in traces that begin at `offsets`."""
        machine = asked.machine
        known = (asked.states >= 0) & (asked.questions >= 0)
        known &= asked.outputs < len(machine.outputs)
        questions, place = np.unique(asked.questions, return_inverse=True)
        return cls(
            machine,
            questions,
            np.where(known, place, -1).astype(np.int32),
            np.where(known, asked.outputs, -1).astype(np.int32),
            # What is read where the state is not known, and leads there, moves nothing.
            np.where(asked.states >= 0, asked.labels, -1).astype(np.int32),
            np.ascontiguousarray(asked.states, np.int32),
            offsets,
        )

    def rivals(self) -> Rivals:
        """Weigh each move against other targets; `resolvent.noise.rivals` says how."""
        shape = self.machine.transitions.shape
        if shape[1] == 0:
            return Rivals(np.full(shape, -1, np.int32), np.zeros(shape))
        target, log_odds = _core.rival_moves(
            self.question,
            self.output,
            self.label,
            self.offsets,
            transitions=np.ascontiguousarray(self.machine.transitions).ravel(),
            labels=shape[1],
            part=PART,
        )
        target = target.reshape(shape)
        if (silence := self.machine.labels.get(NO_EVENT)) is not None:
            target[:, silence] = -1
        return Rivals(target, log_odds.reshape(shape))

    def pairs(self) -> dict[str, NDArray[Any]]:
        """Weigh each pair of states against one that gives the answers of both."""
        return _core.weigh_state_pairs(
            self.question, self.output, self.state, states=self.machine.states
        )


def open_moves(machine: Machine, rivals: Rivals) -> Iterator[OpenMove]:
    """Go through the moves that are not 100 times as likely as their rivals, least sure first."""
    open_ones = np.argwhere((rivals.target >= 0) & (rivals.log_odds < LEAST_LOG_ODDS))
    for state, code in sorted(open_ones.tolist(), key=lambda at: rivals.log_odds[*at]):
        yield OpenMove(
            state,
            machine.labels[code],
            int(machine.transitions[state, code]),
            int(rivals.target[state, code]),
            -float(rivals.log_odds[state, code]),
        )


class WeighedSeparations(Separations):
    """How sure each pair of states of a noisy machine is two states, and by which questions.

    Two states are told apart if the answers of both are at least 100 times as likely apart as
    they would be of one state; or if the same labels lead from them to two such states.
    `log_odds` are the logarithms of how many times as likely, of the states that they lead to.
    """

    def __init__(self, weighed: Weighed, answers: AnswersSeen) -> None:
        self.machine, self.answers = weighed.machine, answers
        self._states = weighed.machine.states
        found = weighed.pairs()
        self._question = np.where(
            found["question"] >= 0, weighed.questions[found["question"]], np.int64(-1)
        )
        self.log_odds: NDArray[np.float64] = found["log_odds"]
        self.depth = np.where(self.log_odds >= LEAST_LOG_ODDS, 0, -1).astype(np.int32)
        self._label = np.full(len(self.depth), -1, np.int32)
        self.questions, self.support = found["questions"].astype(np.int64), found["asked"]
        self._look_ahead()
        self._numbers = range(len(self.depth))

    def _look_ahead(self) -> None:
        """Give pairs that labels lead to states told apart the figures of those states."""
        moves = self.machine.transitions
        moving = np.setdiff1d(np.arange(moves.shape[1]), self.machine.trivial).tolist()
        settled = True
        while settled:
            before, settled = self.depth.copy(), False
            for pair in np.flatnonzero(before < 0).tolist():
                one, other = self.states(pair)
                for code in moving:
                    first, second = int(moves[one, code]), int(moves[other, code])
                    if min(first, second) < 0 or first == second:
                        continue
                    after = self.number(first, second)
                    if before[after] < 0:
                        continue
                    self.depth[pair], self._label[pair] = before[after] + 1, code
                    for column in (self.log_odds, self.questions, self.support, self._question):
                        column[pair] = column[after]
                    settled = True
                    break

    def weakest(self, most: int) -> list[Separation]:
        """Return the pairs that are least surely two states, at most so many, the weakest first."""
        order = np.argsort(self.log_odds, kind="stable")
        return [self._made(number) for number in order[:most].tolist()]

    def _made(self, number: int) -> Separation:
        first, second = self.states(number)
        log_odds, question = float(self.log_odds[number]), int(self._question[number])
        found = self.suffix(first, second)
        if found is None or question < 0:
            return Separation(first, second, log_odds=log_odds)
        labels, one, other = found
        return Separation(
            first,
            second,
            labels,
            int(self.questions[number]),
            int(self.support[number]),
            question_of(self.machine, question),
            (self._usual(one, question), self._usual(other, question)),
            log_odds,
        )

    def _usual(self, state: int, question: int) -> Answer:
        """Return what a state answers most often, and how often of how many."""
        answers = self.answers
        first, last = np.searchsorted(answers.state, [state, state + 1])
        rows = first + np.flatnonzero(answers.question[first:last] == question)
        most = int(rows[np.argmax(answers.count[rows])])
        return Answer(
            self.machine.outputs[int(answers.output[most])],
            int(answers.count[most]),
            (int(answers.trace[most]), int(answers.step[most])),
            int(answers.count[rows].sum()),
        )
