"""A first guess at transition probabilities + expected transitions → a likeliest guess nearby."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from resolvent.baselines.expectation import Deadline, Engine, Numbers
from resolvent.errors import TimeLimitReached

Listener: TypeAlias = Callable[[int, float], object]


@dataclass(frozen=True)
class Fit:
    """Where expectation-maximisation ended.

    A state that no trace can have left has zeros in its row of `transitions`.
    `log_likelihood` is that of the steps under the probabilities before the last
    update, as it is known without another pass; no update ever lowers it.
    """

    transitions: Numbers
    log_likelihood: float
    iterations: int
    converged: bool
    out_of_time: bool


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
    log_likelihood, done, converged, out_of_time = -np.inf, 0, False, False
    while done < iterations and not converged:
        try:
            likelier, counts = engine.expect(probabilities, deadline)
        except TimeLimitReached:
            out_of_time = True
            break
        visits = _by_row(engine, counts, size)
        known = visits > 0
        updated = np.where(
            known[engine.source],
            counts / np.where(known, visits, 1.0)[engine.source],
            probabilities,
        )
        # What no step can have been is never expected: in rows that are, it goes at once.
        moved = _by_row(engine, np.abs(updated - probabilities), size)
        moved += np.where(known & ~visited, elsewhere, 0.0)
        gain = abs(likelier - log_likelihood) / (1 + abs(log_likelihood)) if done else np.inf
        converged = max(float(moved.max()) / size, gain) < tolerance
        visited |= known
        probabilities, log_likelihood, done = updated, likelier, done + 1
        if progress is not None:
            progress(done, log_likelihood)
    transitions = np.zeros_like(guess)
    transitions[engine.source, engine.target] = np.where(visited[engine.source], probabilities, 0.0)
    return Fit(transitions, log_likelihood, done, converged, out_of_time)


def _by_row(engine: Engine, values: Numbers, size: int) -> Numbers:
    return np.bincount(engine.source, values, size).astype(np.float64, copy=False)
