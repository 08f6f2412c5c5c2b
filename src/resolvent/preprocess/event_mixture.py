"""Expectation maximization for classes of sources that move hidden states.

It suits worlds with many events that each reveal little. A source is a mixture of classes;
class 0 changes no state, each other class is a distribution of targets for each state. In the
end each source has its likeliest class, and each class one row of the table.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import exp, log, product
from resolvent.preprocess.event_steps import EventSteps, Table, TimeLeft, is_over

Probabilities = NDArray[np.float64]

_PRIOR_NO_EVENT: Final = 0.75  # initial probability of each source to be no event
_EXTRA_NO_EVENT: Final = 1.0  # count added to each source's readings without effect
_EXTRA_EVENT: Final = 0.5  # count added to each source's readings as an event, over all classes
_PRIOR_COUNT: Final = 0.02  # count added to each move and to each output
_NOISE: Final = 0.01
"""Initial difference of states; if it is large, regions may number states differently."""

_FIRST_POWER: Final = 0.7  # power of the outputs' probabilities in the first round; it rises to 1
_WARM_UP: Final = 50  # number of rounds in which the power rises
_CHECK_INTERVAL: Final = 20  # number of rounds between two tests of convergence
_CONVERGED: Final = 1e-4  # maximum relative rise of the log likelihood at convergence


@dataclass(frozen=True, eq=False)
class Mixture:
    """The probability of each source's classes, of the classes' moves, and of the states' outputs.

    `classes` is [source, class], `moves` is [class, before, after], and `outputs` is
    [output, state].
    """

    classes: Probabilities
    moves: Probabilities
    outputs: Probabilities

    @property
    def table(self) -> Table:
        """The most likely move of each source's most likely class."""
        return np.asarray(self.moves.argmax(2)[self.classes.argmax(1)], np.int64)

    def expect(self, steps: EventSteps, power: float = 1.0) -> tuple[float, "Mixture"]:
        """Return the log likelihood, and the expected counts of classes, moves and outputs."""
        states = self.moves.shape[1]
        by_class = self.moves.reshape(len(self.moves), -1)
        by_source = product(self.classes, by_class)
        log_likelihood, moved, output_counts = _core.expected_moves(
            steps.source,
            steps.output,
            steps.offsets,
            states=states,
            moves=by_source.astype(np.float32).ravel(),
            answers=exp(power * log(self.outputs)).astype(np.float32).ravel(),
        )
        share = moved.reshape(by_source.shape) / np.maximum(by_source, 1e-30)
        classes = product(share, by_class.T) * self.classes
        moves = product(self.classes.T, share).reshape(self.moves.shape) * self.moves
        return log_likelihood, Mixture(classes, moves, output_counts.reshape(-1, states))

    def normalized(self, query_of: NDArray[np.int64]) -> "Mixture":
        """Return the probabilities that maximize the likelihood of these counts."""
        classes = self.classes + _EXTRA_EVENT / max(self.classes.shape[1] - 1, 1)
        classes[:, 0] += _EXTRA_NO_EVENT
        moves = self.moves + _PRIOR_COUNT
        moves /= moves.sum(2, keepdims=True)
        moves[0] = np.eye(moves.shape[1])
        outputs = _by_query(self.outputs + _PRIOR_COUNT, query_of)
        return Mixture(classes / classes.sum(1, keepdims=True), moves, outputs)


def first_mixture(
    steps: EventSteps, *, states: int, classes: int, random: np.random.Generator
) -> Mixture:
    """Return a random mixture with different classes and nearly equal states and sources."""
    stay = np.eye(states)
    moves = 0.2 * stay + 0.8 / states + random.random((classes, states, states))
    moves /= moves.sum(2, keepdims=True)
    events = 1.0 + _NOISE * random.random((steps.n_sources, classes))
    events *= (1.0 - _PRIOR_NO_EVENT) / events.sum(1, keepdims=True)
    counts = np.bincount(steps.output[steps.informative], minlength=steps.n_outputs)[:, None]
    noise = random.standard_normal((steps.n_outputs, states)).clip(-3.0, 3.0)
    return Mixture(
        np.column_stack([np.full(steps.n_sources, _PRIOR_NO_EVENT), events]),
        np.concatenate([stay[None], moves]),
        _by_query((counts + _PRIOR_COUNT) * (1.0 + _NOISE * noise), steps.query_of),
    )


def fit_mixture(
    steps: EventSteps,
    mixture: Mixture,
    rounds: int,
    *,
    warm_up: int = _WARM_UP,
    time_left: TimeLeft = lambda: None,
) -> Mixture:
    """Maximize the likelihood of all outputs in at most this number of rounds."""
    last = -np.inf
    for number in range(rounds):
        power = 1.0
        if warm_up:
            power = min(1.0, _FIRST_POWER + (1.0 - _FIRST_POWER) * number / warm_up)
        log_likelihood, counts = mixture.expect(steps, power)
        mixture = counts.normalized(steps.query_of)
        if is_over(time_left):
            break
        if number > warm_up and number % _CHECK_INTERVAL == 0:
            rise = log_likelihood - last
            if rise < _CONVERGED * abs(log_likelihood):
                break
            if not steps.count_unexplained(mixture.table):
                break
            last = log_likelihood
    return mixture


def _by_query(counts: Probabilities, query_of: NDArray[np.int64]) -> Probabilities:
    """Divide the counts of outputs by those of their queries."""
    query_counts = np.zeros((int(query_of.max(initial=-1)) + 1, counts.shape[1]))
    np.add.at(query_counts, query_of, counts)
    return counts / query_counts[query_of]
