"""A first guess at transition probabilities + expected transitions → a likeliest guess nearby."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.baselines.hidden_markov.expectation import Deadline, Engine, Numbers
from resolvent.errors import TimeLimitReached

Listener: TypeAlias = Callable[[int, float], object]


@dataclass(frozen=True)
class Fit:
    """Where expectation-maximisation ended.

    `counts` is how often each transition is expected to have been made, by state
    before and after, and `log_likelihood` that of all steps. Both are under the
    probabilities before the last update, where they are known without another pass.
    """

    counts: Numbers
    log_likelihood: float
    iterations: int
    converged: bool
    out_of_time: bool

    @property
    def transitions(self) -> Numbers:
        """The probabilities after the last update; zeros for a state that no trace can leave."""
        visits = self.counts.sum(axis=1, keepdims=True)
        transitions: Numbers = self.counts / np.where(visits > 0, visits, 1.0)
        return transitions


def baum_welch(
    engine: Engine,
    guess: Numbers,
    *,
    tolerance: float,
    iterations: int,
    deadline: Deadline,
    progress: Listener | None = None,
) -> Fit:
    """Improve the transitions of a hidden Markov model until they hardly change.

    It has converged when three numbers are below the tolerance: the largest change
    of a row of the transitions (its absolute changes summed) over the number of
    states, the same of the emissions, which never change here, and the relative
    change of the log-likelihood.
    """
    size = len(guess)
    probabilities = guess[engine.source, engine.target]
    elsewhere = np.clip(guess.sum(axis=1) - _by_row(engine, probabilities, size), 0.0, None)
    visited = np.zeros(size, bool)
    counts = np.zeros_like(probabilities)
    log_likelihood, done, converged, out_of_time = -np.inf, 0, False, False
    while done < iterations and not converged:
        try:
            likelier, counts = engine.expect(probabilities, deadline)
        except TimeLimitReached:
            out_of_time = True
            break
        updated, known = _maximised(engine, counts, probabilities, size)
        # What no step can have been is never expected: in rows that are, it goes at once.
        moved = _by_row(engine, np.abs(updated - probabilities), size)
        moved += np.where(known & ~visited, elsewhere, 0.0)
        gain = abs(likelier - log_likelihood) / (1 + abs(log_likelihood)) if done else np.inf
        converged = max(float(moved.max()) / size, gain) < tolerance
        visited |= known
        probabilities, log_likelihood, done = updated, likelier, done + 1
        if progress is not None:
            progress(done, log_likelihood)
    by_state = np.zeros_like(guess)
    by_state[engine.source, engine.target] = counts
    return Fit(by_state, log_likelihood, done, converged, out_of_time)


def _maximised(
    engine: Engine, counts: Numbers, probabilities: Numbers, size: int
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the share of each transition in its row, and which rows have one: the others stay."""
    visits = _by_row(engine, counts, size)
    known = visits > 0
    shares = counts / np.where(known, visits, 1.0)[engine.source]
    return np.where(known[engine.source], shares, probabilities), known


def _by_row(engine: Engine, values: Numbers, size: int) -> Numbers:
    return np.bincount(engine.source, values, size).astype(np.float64, copy=False)
