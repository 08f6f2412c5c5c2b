"""States and questions → the rows of a machine's tables, and how often each was asked there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines.columns import places
from resolvent.machines.unseen import UNSEEN, State
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.machines.machine import Machine


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """Which rows of a machine's tables are about a state and a question.

    Of `questions` there are so many for each state, so that one number, the key, stands for
    both. `by_state` holds the keys of the answers that depend on the state, `asked` those of
    constant answers that a state was really asked for; both are sorted.
    """

    questions: int
    by_state: NDArray[np.int64]
    asked: NDArray[np.int64]

    def keys(self, states: Codes, questions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the key of each state and question, −1 where either is −1."""
        keys = states.astype(np.int64) * self.questions + questions
        keys[(states < 0) | (questions < 0)] = -1
        return keys

    def answers(self, states: Codes, questions: NDArray[np.int64]) -> Codes:
        """Return which answer by state is that of each state and question, −1 for none."""
        return places(self.by_state, self.keys(states, questions))


def times_asked(machine: "Machine") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often questions by state, and constant ones, were asked: once if not known."""
    if machine.support is not None:
        return machine.support.outputs, machine.support.constants
    spread = machine.spread
    by_state = np.ones(len(machine.output_value), np.int64)
    by_state[spread_rows(machine)[spread.starts]] = spread.totals
    return by_state, np.ones(len(machine.constant_value), np.int64)


def times_in_state(machine: "Machine", state: State, question: int) -> int:
    """Return how often a question was asked in a state that always answers it the same."""
    if state is UNSEEN:
        return 0
    rows, support = machine._rows, machine.support
    key = np.array([state * rows.questions + question])
    row, asked = (int(places(keys, key)[0]) for keys in (rows.by_state, rows.asked))
    if row < 0 and asked < 0:
        return 0
    if support is None or (row < 0 and not len(support.asked)):
        raise ModelError(
            "this machine does not hold how often a state was asked: infer it from traces"
        )
    return int(support.outputs[row] if row >= 0 else support.asked[asked])


def spread_rows(machine: "Machine") -> Codes:
    """Return for each entry of a machine's spread which of its answers by state it is one of."""
    return machine._rows.answers(machine.spread.state, machine.spread.question)
