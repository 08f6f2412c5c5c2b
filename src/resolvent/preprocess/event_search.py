"""Search for the table of moves with the shortest description: `EventSteps` → `Table`.

Two methods compete. Growing starts from one state and adds the move that shortens the
description most, until none does; then it removes parts of the table at random and grows them
again, as long as that helps. The mixture of `event_mixture` suits worlds with many events.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final, NamedTuple

import numpy as np

from resolvent.preprocess.event_mixture import first_mixture, fit_mixture
from resolvent.preprocess.event_steps import (
    Counts,
    DescriptionLength,
    EventSteps,
    Table,
    TimeLeft,
    is_over,
)
from resolvent.preprocess.timing import NONE

MOST_STATES: Final = 24  # maximum number of states of a grown table; the mixture suits larger ones
FEW_SOURCES: Final = 24  # maximum number of sources for which a single attempt is enough
_MAX_MOVES_TRIED: Final = 6  # number of most promising moves tried before the best is taken
_TABLE_WORK: Final = 100_000  # work of evaluating a table besides its steps, in steps
_MIN_GAIN: Final = 3.0  # minimum promise of a move in nats, about its own description
_CYCLES: Final = (2, 3, 4, 5)  # lengths of the cycles in which a source may count
_MAX_COUNTERS: Final = 4  # number of the best counters from which tables grow
_PATIENCE: Final = 150  # number of successive failures that ends the search
_PATIENCE_EXPLAINED: Final = 15  # the same once all outputs are explained
_NEAR: Final = 0.1  # maximum relative excess of a table that is trimmed
_MIN_IMPROVEMENT: Final = 1e-6  # smallest difference of two lengths that is not rounding
_RESTART: Final = 0.3  # probability of growing from one of the first tables, not the best
_RANDOMNESS: Final = 0.6  # maximum random relative reduction of a move's promise
_WORK: Final = 10_000_000_000  # maximum number of steps evaluated in growing
_ATTEMPTS: Final = 4  # maximum number of tables grown, with different seeds
_MAX_GROWN_SIZE: Final = 20_000_000  # maximum number of pairs of a source and an output
_DENSE: Final = 0.05  # share of informative steps from which on mixtures are tried
_MANY_STEPS: Final = 20_000  # number of informative steps from which on mixtures are tried first
_ROUNDS: Final = 1_000  # maximum number of rounds of fitting a mixture
_MIXTURE_SIZES: Final = ((8, 8), (12, 10))  # numbers of states and classes; some become equal
_GROWN_STEPS: Final = 300_000  # maximum number of steps that a table is grown on at first
_MIXTURE_STEPS: Final = 500_000  # maximum number of steps that a mixture is fitted on at first


class SearchLimits(NamedTuple):
    """The seed of a search and the limits of its work and time."""

    seed: int
    effort: float
    time_left: TimeLeft


class Candidate(NamedTuple):
    """A table, the length of the description with it, and the counts of outputs by state."""

    length: float
    table: Table
    counts: Counts


class _Move(NamedTuple):
    """Reading `source` in `state` leads to `target`, which may be a new state."""

    promise: float
    state: int
    source: int
    target: int


def best_table(steps: EventSteps, limits: SearchLimits) -> Table:
    """Return the table with the shortest description found."""
    best = np.zeros((steps.n_sources, 1), np.int64)
    if not steps.n_outputs:
        return best
    methods = [_grown_tables] if steps.n_sources * steps.n_outputs <= _MAX_GROWN_SIZE else []
    if len(steps.informative) >= _DENSE * len(steps.source):
        is_first = len(steps.informative) >= _MANY_STEPS
        methods.insert(0 if is_first else len(methods), _mixture_tables)
    description = DescriptionLength(steps)
    best_length = np.inf
    for method in methods:
        for table in method(steps, limits):
            length = description.of(table, steps.output_counts(table))
            if length < best_length:
                best, best_length = table, length
            if not steps.count_unexplained(table):
                return best
    return best


def _grown_tables(steps: EventSteps, limits: SearchLimits) -> Iterator[Table]:
    """Grow tables on some traces; grow the best on all if it does not explain all of them."""
    is_small = steps.n_sources <= FEW_SOURCES
    attempts = 1 if is_small else _ATTEMPTS
    work = int(limits.effort * _WORK) // (_ATTEMPTS if is_small else 1)
    sample = steps.first(_GROWN_STEPS)
    tables = []
    for attempt in range(attempts):
        seed = _ATTEMPTS * limits.seed + attempt
        tables.append(grown_table(sample, seed=seed, work=work, time_left=limits.time_left))
        if not sample.count_unexplained(tables[-1].table):
            break
        yield tables[-1].table
    best = min(tables, key=lambda table: table.length).table
    yield best
    if len(sample.offsets) < len(steps.offsets):
        yield grown_table(
            steps, seed=limits.seed, work=work, start=best, time_left=limits.time_left
        ).table


def _mixture_tables(steps: EventSteps, limits: SearchLimits) -> Iterator[Table]:
    """Fit mixtures on some traces, and then on all."""
    rounds = max(1, int(limits.effort * _ROUNDS))
    sample = steps.first(_MIXTURE_STEPS)
    for states, classes in _MIXTURE_SIZES:
        random = np.random.default_rng(limits.seed)
        mixture = first_mixture(sample, states=states, classes=classes, random=random)
        mixture = fit_mixture(sample, mixture, rounds, time_left=limits.time_left)
        yield mixture.table
        if len(sample.offsets) < len(steps.offsets):
            mixture = fit_mixture(steps, mixture, rounds, warm_up=0, time_left=limits.time_left)
            yield mixture.table


def grown_table(
    steps: EventSteps,
    *,
    seed: int,
    work: int,
    start: Table | None = None,
    time_left: TimeLeft = lambda: None,
) -> Candidate:
    """Grow a table with a short description, from `start` or from one state.

    `work` limits the number of steps evaluated, summed over all tables tried.
    """
    search = _Growth(steps, np.random.default_rng(seed), work, time_left)
    first = np.zeros((steps.n_sources, 1), np.int64) if start is None else start
    starts = [search.evaluate(first)]
    best = search.trimmed(search.climb(starts[0]))
    if start is None and steps.count_unexplained(best.table):
        starts += search.counters()
        for counter in starts[1:]:
            best = search.shorter(best, search.climb(counter))
    failures, patience = 0, _PATIENCE
    while failures < patience and not search.is_spent:
        if failures == 0:
            best = search.regrown(best)
            is_explained = not steps.count_unexplained(best.table)
            patience = _PATIENCE_EXPLAINED if is_explained else _PATIENCE
        candidate = search.climb(search.random_start(best, starts), _RANDOMNESS)
        previous, best = best, search.shorter(best, candidate)
        failures = failures + 1 if best is previous else 0
    return best


@dataclass
class _Growth:
    steps: EventSteps
    random: np.random.Generator
    max_work: int
    time_left: TimeLeft
    work_done: int = 0
    description: DescriptionLength = field(init=False)

    def __post_init__(self) -> None:
        self.description = DescriptionLength(self.steps)

    @property
    def is_spent(self) -> bool:
        return self.work_done >= self.max_work or is_over(self.time_left)

    def evaluate(self, table: Table) -> Candidate:
        counts = self.steps.output_counts(table)
        self.work_done += len(self.steps.source) + _TABLE_WORK
        return Candidate(self.description.of(table, counts), table, counts)

    def shorter(self, best: Candidate, candidate: Candidate) -> Candidate:
        """Return the shorter candidate, after trimming one that is near the best."""
        if candidate.length < best.length + _NEAR * (1.0 + best.length):
            candidate = self.trimmed(candidate)
        return candidate if candidate.length < best.length - _MIN_IMPROVEMENT else best

    def climb(self, best: Candidate, randomness: float = 0.0) -> Candidate:
        """Add moves as long as they help: the best of a few; if random, the first that helps."""
        while not self.is_spent:
            better = best
            for move in self._promising(best, randomness)[:_MAX_MOVES_TRIED]:
                candidate = self.evaluate(_with(best.table, move))
                if candidate.length < better.length - _MIN_IMPROVEMENT:
                    better = candidate
                    if randomness:
                        break
            if better is best:
                break
            best = better
        return best

    def counters(self) -> list[Candidate]:
        """Return the best tables in which one source counts modulo some number.

        Adding single moves does not find counters if a source is read often: each count is rare.
        """
        candidates: list[Candidate] = []
        sources = np.unique(self.steps.source)
        limit = self.work_done + (self.max_work - self.work_done) // 2
        for source in self.random.permutation(sources[sources != NONE]).tolist():
            for length in _CYCLES:
                if self.work_done >= limit:
                    break
                table = np.tile(np.arange(length), (self.steps.n_sources, 1))
                table[source] = np.roll(table[source], -1)
                candidates.append(self.evaluate(table))
        candidates.sort(key=lambda x: (x.length, np.argwhere(x.table[:, 0]).tolist()))
        return candidates[:_MAX_COUNTERS]

    def regrown(self, best: Candidate) -> Candidate:
        """Remove single moves and grow the table again, as long as that helps."""
        is_improved = True
        while is_improved:
            is_improved = False
            for source, state in _moves(best.table):
                if self.is_spent:
                    return best
                table = best.table.copy()
                table[source, state] = state
                candidate = self.shorter(best, self.climb(self.evaluate(table)))
                if candidate is not best:
                    best, is_improved = candidate, True
                    break
        return best

    def random_start(self, best: Candidate, starts: Sequence[Candidate]) -> Candidate:
        """Return a table to grow from: mostly the best after mutation, or one of the first."""
        if self.random.random() < _RESTART:
            return starts[int(self.random.integers(len(starts)))]
        return self.evaluate(self._mutated(best.table))

    def _mutated(self, table: Table) -> Table:
        """Remove a state, or some of the moves, and add moves at random."""
        states = table.shape[1]
        moves = np.argwhere(table != np.arange(states))
        table = table.copy()
        if states > 1 and self.random.random() < 0.3:
            return without_state(table, int(self.random.integers(1, states)))
        if len(moves):
            n_removed = int(self.random.integers(1, len(moves) // 2 + 2))
            for source, state in self.random.permutation(moves)[:n_removed]:
                table[source, state] = state
        if self.random.random() < 0.5:
            n_added = int(self.random.integers(1, 4))
            sources = self.random.integers(0, len(table), n_added)
            table[sources, self.random.integers(0, states, n_added)] = self.random.integers(
                0, states, n_added
            )
        return table

    def _promising(self, candidate: Candidate, randomness: float) -> list[_Move]:
        """Return moves, sorted by their single gains in the outputs' part of the description."""
        counts = candidate.counts
        n_states = candidate.table.shape[1]
        length = self.description.of_outputs(counts)
        states = self.steps.states(candidate.table)
        moves: list[_Move] = []
        for state in np.flatnonzero(length > _MIN_GAIN).tolist():
            self.work_done += len(self.steps.source)
            after = self.steps.counts_after(states, state)
            sources = np.flatnonzero(after.any(1))
            after = after[sources]
            self.work_done += after.size * (n_states + 1)
            saved = length[state] - self.description.of_outputs(counts[state] - after)
            for target in range(n_states + (n_states < MOST_STATES)):
                if target == state:
                    continue
                if target == n_states:
                    gain = saved - self.description.of_outputs(after) - 1.0
                else:
                    joined = self.description.of_outputs(counts[target] + after)
                    gain = saved + length[target] - joined
                moves.extend(
                    _Move(float(gain[index]), state, int(sources[index]), target)
                    for index in np.flatnonzero(gain > _MIN_GAIN).tolist()
                )
        if randomness and moves:
            factors = 1.0 - randomness * self.random.random(len(moves))
            moves = [
                move._replace(promise=move.promise * float(factor))
                for move, factor in zip(moves, factors, strict=True)
            ]
        return sorted(moves, key=lambda move: (-move.promise, *move[1:]))

    def trimmed(self, best: Candidate) -> Candidate:
        """Redirect or remove moves, and join or remove states, as long as that helps."""
        is_improved = True
        while is_improved and not self.is_spent:
            is_improved = False
            for table in self._neighbors(best.table):
                candidate = self.evaluate(table)
                if candidate.length < best.length - _MIN_IMPROVEMENT:
                    best, is_improved = candidate, True
                    break
                if self.is_spent:
                    break
        return best

    def _neighbors(self, table: Table) -> Iterator[Table]:
        """Yield tables with one change."""
        n_states = table.shape[1]
        rooted = self.steps.rooted(table)
        if rooted is not None:
            yield rooted
        for state in np.flatnonzero(~self.steps.is_entered(table)).tolist():
            yield without_state(table, state)
        for joined, target in permutations(range(n_states), 2):
            if joined > 0:
                yield without_state(np.where(table == joined, target, table), joined)
        for source, state in _moves(table):
            for target in range(n_states):
                if target != table[source, state]:
                    changed = table.copy()
                    changed[source, state] = target
                    yield changed


def _moves(table: Table) -> list[list[int]]:
    """Return the pairs of a source and a state that it changes."""
    moves: list[list[int]] = np.argwhere(table != np.arange(table.shape[1])).tolist()
    return moves


def _with(table: Table, move: _Move) -> Table:
    """Return the table with one more move; a new state behaves like the one before the move."""
    n_states = table.shape[1]
    _, state, source, target = move
    table = table.copy()
    if target == n_states:
        old = table[:, state]
        table = np.column_stack([table, np.where(old == state, n_states, old)])
        table[source, n_states] = n_states
    table[source, state] = target
    return table


def without_state(table: Table, state: int) -> Table:
    """Return the table without a state; moves to it become none."""
    table = np.where(table == state, np.arange(table.shape[1]), table)
    table = np.delete(table, state, axis=1)
    return table - (table > state)
