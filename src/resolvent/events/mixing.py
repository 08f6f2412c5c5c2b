"""Sources in classes: expectation maximisation over hidden states that classes of events move.

For worlds with many events, of which each alone says little. A source is a mixture of
classes, of which the first moves nothing; a class moves every state somewhere. Both become
sharper with each round, and in the end each source has one class and each class one table.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import exp, log, product
from resolvent.events.steps import EventSteps, Table, TimeLeft, is_over

Likely = NDArray[np.float64]

_STAYS_AT_FIRST: Final = 0.75
"""How likely a source is taken to be no event before anything is known of it."""

_STAYS: Final = 1.0
"""How many more readings without effect each source is taken to have than were counted."""

_EVENT: Final = 0.5
"""How many more readings as an event, over all classes."""

_DOUBT: Final = 0.02
"""How many more times than counted each move is taken to have been made, each answer given."""

_NOISE: Final = 0.01
"""How far states differ at first. Where they differ much, regions that few walks connect
number their states in different orders, which no later round repairs."""

_COOLEST: Final = 0.7
"""The power to which answers count in the first round; it rises to 1."""

_WARMING: Final = 50
"""So many rounds it takes to rise."""

_PACE: Final = 20
"""Rounds between two looks at whether anything still changes."""

_STANDSTILL: Final = 1e-4
"""The rise of the log likelihood in so many rounds, as a share of it, that counts as none."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """How likely each source is in each class, and what classes and states do.

    `classes` is [source, class], `moves` is [class, before, after], of which class 0 moves
    nothing, and `answers` is [answer, state].
    """

    classes: Likely
    moves: Likely
    answers: Likely

    @property
    def table(self) -> Table:
        """The likeliest class of each source, and where it most likely leads from each state."""
        return np.asarray(self.moves.argmax(2)[self.classes.argmax(1)], np.int64)

    def expect(self, steps: EventSteps, power: float = 1.0) -> tuple[float, "Mixture"]:
        """Count what is expected of sources, classes and answers; with the log likelihood."""
        states = self.moves.shape[1]
        by_class = self.moves.reshape(len(self.moves), -1)
        read = product(self.classes, by_class)
        length, moved, given = _core.expected_moves(
            steps.source,
            steps.answer,
            steps.offsets,
            states=states,
            moves=read.astype(np.float32).ravel(),
            answers=exp(power * log(self.answers)).astype(np.float32).ravel(),
        )
        share = moved.reshape(read.shape) / np.maximum(read, 1e-30)
        classes = product(share, by_class.T) * self.classes
        moves = product(self.classes.T, share).reshape(self.moves.shape) * self.moves
        return length, Mixture(classes, moves, given.reshape(-1, states))

    def maximised(self, question_of: NDArray[np.int64]) -> "Mixture":
        """Make likelihoods of counts."""
        classes = self.classes + _EVENT / max(self.classes.shape[1] - 1, 1)
        classes[:, 0] += _STAYS
        moves = self.moves + _DOUBT
        moves /= moves.sum(2, keepdims=True)
        moves[0] = np.eye(moves.shape[1])
        answers = _by_question(self.answers + _DOUBT, question_of)
        return Mixture(classes / classes.sum(1, keepdims=True), moves, answers)


def first_mixture(
    steps: EventSteps, *, states: int, classes: int, random: np.random.Generator
) -> Mixture:
    """Return a mixture whose classes differ, and whose states and sources hardly do."""
    stay = np.eye(states)
    moves = 0.2 * stay + 0.8 / states + random.random((classes, states, states))
    moves /= moves.sum(2, keepdims=True)
    events = 1.0 + _NOISE * random.random((steps.sources, classes))
    events *= (1.0 - _STAYS_AT_FIRST) / events.sum(1, keepdims=True)
    told = np.bincount(steps.answer[steps.telling], minlength=steps.answers)[:, None] + _DOUBT
    noise = random.standard_normal((steps.answers, states)).clip(-3.0, 3.0)
    return Mixture(
        np.column_stack([np.full(steps.sources, _STAYS_AT_FIRST), events]),
        np.concatenate([stay[None], moves]),
        _by_question(told * (1.0 + _NOISE * noise), steps.question_of),
    )


def mixed(
    steps: EventSteps,
    mixture: Mixture,
    rounds: int,
    *,
    warming: int = _WARMING,
    time_left: TimeLeft = lambda: None,
) -> Mixture:
    """Maximise the likelihood of all answers, at most so many rounds long."""
    before = -np.inf
    for number in range(rounds):
        power = min(1.0, _COOLEST + (1.0 - _COOLEST) * number / warming) if warming else 1.0
        length, counts = mixture.expect(steps, power)
        mixture = counts.maximised(steps.question_of)
        if is_over(time_left):
            break
        if number > warming and number % _PACE == 0:
            if length - before < _STANDSTILL * abs(length) or not steps.surprises(mixture.table):
                break
            before = length
    return mixture


def _by_question(counts: Likely, question_of: NDArray[np.int64]) -> Likely:
    """Divide what answers were given by how often their question was asked."""
    asked = np.zeros((int(question_of.max(initial=-1)) + 1, counts.shape[1]))
    np.add.at(asked, question_of, counts)
    return counts / asked[question_of]
