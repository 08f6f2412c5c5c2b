"""Expectation-maximisation: a task and transition probabilities → expected transition counts.

Hidden states are a layer (a state of the task's automaton) and a place; the state
of layer q at place s has the number q · places + s. Traces begin in layer 0, and
are in the last layer exactly when they were paid. The emission is the place and
whether it was paid, so each hidden state shows one symbol with certainty: emissions
are known, and maximising the likelihood could not change them.

Both engines below run the scaled forward and backward passes over all traces.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log
from resolvent.errors import TimeLimitReached
from resolvent.paper.baselines import clock
from resolvent.paper.baselines.reach_task import ReachTask

Numbers = NDArray[np.float64]
States = NDArray[np.intp]

_STEPS_AT_ONCE: Final = 200_000
_NUMBERS_AT_ONCE: Final = 16_000_000


class Deadline:
    """The time at which a computation has to stop."""

    def __init__(self, time_limit: float | None) -> None:
        self._at = None if time_limit is None else clock.now() + time_limit

    def check(self) -> None:
        """Raise `TimeLimitReached` after the deadline."""
        if self._at is not None and clock.now() > self._at:
            raise TimeLimitReached("time ran out: raise the time limit")


class Engine(Protocol):
    """Expected transitions. Entry `e` of its arrays is that from `source[e]` to `target[e]`."""

    source: States
    target: States

    def expect(self, probabilities: Numbers, deadline: Deadline) -> tuple[float, Numbers]:
        """Return the log-likelihood of all steps, and the expected count of each entry."""
        ...


class SparseEngine:
    """Considers only hidden states consistent with the symbols: steps · layers² a round."""

    def __init__(self, task: ReachTask, states: int) -> None:
        places, layers = len(task.labels), states - 1
        steps = task.moves_from.astype(np.int64) * places + task.moves_to
        ends = np.zeros(len(steps), bool)
        ends[task.offsets[1:] - 1] = task.paid
        self._move = np.empty(len(steps), np.int32)
        onward, self._move[~ends] = np.unique(steps[~ends], return_inverse=True)
        ending, self._move[ends] = np.unique(steps[ends], return_inverse=True)
        self._layers = layers
        self._onward = len(onward) * layers * layers
        self._parts = list(_parts(task, self._move))

        before, after = np.divmod(np.arange(layers * layers), layers)
        last = np.full(layers, layers)
        pieces = ((onward, before, after), (ending, np.arange(layers), last))
        self.source = np.concatenate(
            [np.add.outer(moves // places, q * places).ravel() for moves, q, _ in pieces]
        )
        self.target = np.concatenate(
            [np.add.outer(moves % places, q * places).ravel() for moves, _, q in pieces]
        )

    def expect(self, probabilities: Numbers, deadline: Deadline) -> tuple[float, Numbers]:
        """Return what `Engine.expect` does."""
        onward, ending = probabilities[: self._onward], probabilities[self._onward :]
        log_likelihood, counts = 0.0, np.zeros_like(probabilities)
        for move, offsets, paid in self._parts:
            deadline.check()
            more, *counted = _core.expected_layers(
                move, offsets, paid, layers=self._layers, onward=onward, ending=ending
            )
            log_likelihood += more
            counts += np.concatenate(counted)
        return log_likelihood, counts


class DenseEngine:
    """Considers every hidden state at every step, as published: steps · states² a round."""

    def __init__(self, task: ReachTask, states: int) -> None:
        places = len(task.labels)
        self._size = places * states
        self.source, self.target = np.divmod(np.arange(self._size**2), self._size)
        self._shows = np.zeros((2 * places, self._size))
        for layer in range(states):
            seen = np.arange(places) + (places if layer == states - 1 else 0)
            self._shows[seen, layer * places + np.arange(places)] = 1.0
        symbols = task.places.astype(np.intp)
        symbols[task.offsets[1:] + np.arange(len(task.paid))] += places * task.paid
        self._batches = list(_batches(symbols, np.diff(task.offsets), self._size))

    def expect(self, probabilities: Numbers, deadline: Deadline) -> tuple[float, Numbers]:
        """Return what `Engine.expect` does."""
        matrix = probabilities.reshape(self._size, self._size)
        log_likelihood, counts = 0.0, np.zeros_like(matrix)
        for batch in self._batches:
            log_likelihood += self._expect_batch(batch, matrix, counts, deadline)
        return log_likelihood, (counts * matrix).ravel()

    def _expect_batch(
        self, batch: list[States], matrix: Numbers, counts: Numbers, deadline: Deadline
    ) -> float:
        """Run the forward and backward passes on traces in lock-step, the longest first.

        Adds to `counts` the factor that the transition matrix is multiplied with.
        """
        first = np.zeros((len(batch[0]), self._size))
        first[np.arange(len(batch[0])), batch[0]] = 1.0  # layer 0, where state and place coincide
        forward, scales, log_likelihood = [first], [], 0.0
        for symbols in batch[1:]:
            deadline.check()
            now = (forward[-1][: len(symbols)] @ matrix) * self._shows[symbols]
            scale = now.sum(axis=1, keepdims=True)
            forward.append(now / scale)
            scales.append(scale)
            log_likelihood += float(log(scale).sum())
        later = np.empty((0, self._size))
        for before, symbols, scale in zip(
            reversed(forward[:-1]), reversed(batch[1:]), reversed(scales), strict=True
        ):
            deadline.check()
            ended = np.ones((len(symbols) - len(later), self._size))
            later = np.concatenate([later, ended]) * self._shows[symbols] / scale
            counts += before[: len(symbols)].T @ later
            later = later @ matrix.T
        return log_likelihood


def _parts(
    task: ReachTask, move: NDArray[np.int32]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]]:
    """Split traces into parts of limited size, so that the deadline is checked between them."""
    first = 0
    while first < len(task.paid):
        limit = task.offsets[first] + _STEPS_AT_ONCE
        last = max(first + 1, int(np.searchsorted(task.offsets, limit, side="right")) - 1)
        offsets = task.offsets[first : last + 1]
        steps = move[offsets[0] : offsets[-1]]
        yield steps, offsets - offsets[0], task.paid[first:last].astype(np.int32)
        first = last


def _batches(symbols: States, lengths: NDArray[np.int64], size: int) -> Iterator[list[States]]:
    """Yield, for each time, the symbols of the traces that last so long."""
    starts = np.cumsum(lengths + 1) - (lengths + 1)
    order = np.argsort(-lengths, kind="stable")
    batch = np.cumsum(lengths[order] + 1) * size // _NUMBERS_AT_ONCE
    for group in np.split(order, np.flatnonzero(np.diff(batch)) + 1):
        alive = (group[lengths[group] >= at] for at in range(int(lengths[group[0]]) + 1))
        yield [symbols[starts[traces] + at] for at, traces in enumerate(alive)]


Listener: TypeAlias = Callable[[int, float], object]


@dataclass(frozen=True)
class Fit:
    """The result of expectation-maximisation.

    `counts` is the expected number of times each transition was made, by state before and
    after, and `log_likelihood` that of all steps. Both use the probabilities before the last
    update, for which no further pass is needed.
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
        updated, in_use = _maximised(engine, counts, probabilities, size)
        # What no step can have been is never expected: in rows that are, it goes at once.
        moved = _by_row(engine, np.abs(updated - probabilities), size)
        moved += np.where(in_use & ~visited, elsewhere, 0.0)
        gain = abs(likelier - log_likelihood) / (1 + abs(log_likelihood)) if done else np.inf
        converged = max(float(moved.max()) / size, gain) < tolerance
        visited |= in_use
        probabilities, log_likelihood, done = updated, likelier, done + 1
        if progress is not None:
            progress(done, log_likelihood)
    by_state = np.zeros_like(guess)
    by_state[engine.source, engine.target] = counts
    return Fit(by_state, log_likelihood, done, converged, out_of_time)


def _maximised(
    engine: Engine, counts: Numbers, probabilities: Numbers, size: int
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return each transition's share of its row, and the visited rows; other rows stay."""
    visits = _by_row(engine, counts, size)
    visited = visits > 0
    shares = counts / np.where(visited, visits, 1.0)[engine.source]
    return np.where(visited[engine.source], shares, probabilities), visited


def _by_row(engine: Engine, values: Numbers, size: int) -> Numbers:
    return np.bincount(engine.source, values, size).astype(np.float64, copy=False)
