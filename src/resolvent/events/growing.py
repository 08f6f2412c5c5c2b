"""Grow a table of moves: split the state whose answers vary by what was read in it before.

A climb adds the move that shortens the description most, until none does; then parts of
the table are torn out and grown again in another way, as long as that helps now and then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.events.description import Description
from resolvent.events.steps import EventSteps, Table, TimeLeft, is_over
from resolvent.samples import NONE
from resolvent.traces.vocabulary import Codes

MOST_STATES: Final = 24
"""Tables grow no larger: then many events move many states, which `mixing` is for."""

_CANDIDATES: Final = 6
"""So many moves that promise most are tried out before the best is taken."""

_OVERHEAD: Final = 100_000
"""To weigh a table takes as long as to walk through so many steps, besides those there are."""

_LEAST_GAIN: Final = 3.0
"""A move that promises less is not tried: it would not pay for its own description."""

_CYCLES: Final = (2, 3, 4, 5)
"""The lengths of the cycles in which a source may be found to count."""

_COUNTERS: Final = 4
"""Tables grow from so many of the best counters, too."""

_PATIENCE: Final = 150
"""The search ends after so many tries in vain, one after the other."""

_PATIENCE_EXPLAINED: Final = 15
"""As much, once all answers are explained."""

_NEAR: Final = 0.1
"""A table is trimmed if it is longer than the best by no more than this share of it."""

_LEAST_RISE: Final = 1e-6
"""What is shorter by less may be rounding."""

_AFRESH: Final = 0.3
"""How often a table grows from the beginning, and not from the best one."""

_WHIM: Final = 0.6
"""By how much of itself what a move promises is lowered at random when a table grows again."""


class Grown(NamedTuple):
    """A table, the length of the description with it, and the work that finding it took."""

    length: float
    table: Table
    work: int


class _Weighed(NamedTuple):
    """A table with what is needed to improve it."""

    length: float
    table: Table
    told: NDArray[np.int64]


class _Move(NamedTuple):
    """Reading `source` in `state` leads to `target`, which may be a new state."""

    promise: float
    state: int
    source: int
    target: int


def grown_table(
    steps: EventSteps,
    *,
    seed: int,
    work: int,
    start: Table | None = None,
    time_left: TimeLeft = lambda: None,
) -> Grown:
    """Search for the table with the shortest description, from the one given or from none.

    `work` limits how many steps are walked through, over all tables that are tried.
    """
    search = _Growing(steps, np.random.default_rng(seed), work, time_left)
    starts = [search.weigh(np.zeros((steps.sources, 1), np.int64) if start is None else start)]
    best = search.trimmed(search.climb(starts[0]))
    if start is None and steps.surprises(best.table):
        starts += search.counters()
        for counter in starts[1:]:
            best = search.better(best, search.climb(counter))
    in_vain, patience = 0, _PATIENCE
    while in_vain < patience and not search.is_spent:
        if in_vain == 0:
            best = search.grown_anew(best)
            patience = _PATIENCE if steps.surprises(best.table) else _PATIENCE_EXPLAINED
        other = search.better(best, search.climb(search.other_start(best, starts), _WHIM))
        in_vain += 1
        if other is not best:
            best, in_vain = other, 0
    return Grown(best.length, best.table, search.walked)


@dataclass
class _Growing:
    steps: EventSteps
    random: np.random.Generator
    work: int
    time_left: TimeLeft
    walked: int = 0
    description: Description = field(init=False)

    def __post_init__(self) -> None:
        self.description = Description(self.steps)

    @property
    def is_spent(self) -> bool:
        return self.walked >= self.work or is_over(self.time_left)

    def weigh(self, table: Table) -> _Weighed:
        told = self.steps.told(table)
        self.walked += len(self.steps.source) + _OVERHEAD
        return _Weighed(self.description.of(table, told), table, told)

    def better(self, best: _Weighed, other: _Weighed) -> _Weighed:
        """Return the shorter one; another that comes near the best is trimmed before."""
        if other.length < best.length + _NEAR * (1.0 + best.length):
            other = self.trimmed(other)
        return other if other.length < best.length - _LEAST_RISE else best

    def climb(self, best: _Weighed, whim: float = 0.0) -> _Weighed:
        """Add moves as long as they help: the best of a few, or with a whim the first that does."""
        while not self.is_spent:
            better = best
            for move in self._promising(best, whim)[:_CANDIDATES]:
                tried = self.weigh(_with(best.table, move))
                if tried.length < better.length - _LEAST_RISE:
                    better = tried
                    if whim:
                        break
            if better is best:
                break
            best = better
        return best

    def counters(self) -> list[_Weighed]:
        """Return the best tables with a state for each number, in a cycle, that a source counts.

        To count is not found move by move where a source is read again and again: each
        single number is rare.
        """
        found: list[_Weighed] = []
        sources = np.unique(self.steps.source)
        limit = self.walked + (self.work - self.walked) // 2
        for source in self.random.permutation(sources[sources != NONE]).tolist():
            for numbers in _CYCLES:
                if self.walked >= limit:
                    break
                table = np.tile(np.arange(numbers), (self.steps.sources, 1))
                table[source] = np.roll(table[source], -1)
                found.append(self.weigh(table))
        found.sort(key=lambda one: (one.length, np.argwhere(one.table[:, 0]).tolist()))
        return found[:_COUNTERS]

    def grown_anew(self, best: _Weighed) -> _Weighed:
        """Take out each move by itself and let another grow there, as long as that helps."""
        improved = True
        while improved:
            improved = False
            for source, state in np.argwhere(best.table != np.arange(best.table.shape[1])).tolist():
                if self.is_spent:
                    return best
                table = best.table.copy()
                table[source, state] = state
                other = self.better(best, self.climb(self.weigh(table)))
                if other is not best:
                    best, improved = other, True
                    break
        return best

    def other_start(self, best: _Weighed, starts: Sequence[_Weighed]) -> _Weighed:
        """Return a table to grow from: mostly the best with parts torn out, or one of the first."""
        if self.random.random() < _AFRESH:
            return starts[int(self.random.integers(len(starts)))]
        return self.weigh(self.torn(best.table))

    def torn(self, table: Table) -> Table:
        """Take out a state, or some of the moves, and put in others, at random."""
        states = table.shape[1]
        moves = np.argwhere(table != np.arange(states))
        table = table.copy()
        if states > 1 and self.random.random() < 0.3:
            return without_state(table, int(self.random.integers(1, states)))
        if len(moves):
            some = int(self.random.integers(1, len(moves) // 2 + 2))
            for source, state in self.random.permutation(moves)[:some]:
                table[source, state] = state
        if self.random.random() < 0.5:
            some = int(self.random.integers(1, 4))
            sources = self.random.integers(0, len(table), some)
            table[sources, self.random.integers(0, states, some)] = self.random.integers(
                0, states, some
            )
        return table

    def _promising(self, now: _Weighed, whim: float) -> list[_Move]:
        """List moves by how much shorter answers would be if nothing else changed with them."""
        count = now.table.shape[1]
        length = self.description.of_answers(now.told)
        states = self.steps.states(now.table)
        found: list[_Move] = []
        for state in np.flatnonzero(length > _LEAST_GAIN).tolist():
            after = self._answers_after(states, state)
            sources = np.flatnonzero(after.any(1))
            after = after[sources]
            self.walked += after.size * (count + 1)
            left = length[state] - self.description.of_answers(now.told[state] - after)
            for target in range(count + (count < MOST_STATES)):
                if target == state:
                    continue
                if target == count:
                    gain = left - self.description.of_answers(after) - 1.0
                else:
                    joined = self.description.of_answers(now.told[target] + after)
                    gain = left + length[target] - joined
                found.extend(
                    _Move(float(gain[place]), state, int(sources[place]), target)
                    for place in np.flatnonzero(gain > _LEAST_GAIN).tolist()
                )
        if whim and found:
            shares = 1.0 - whim * self.random.random(len(found))
            found = [
                move._replace(promise=move.promise * float(share))
                for move, share in zip(found, shares, strict=True)
            ]
        return sorted(found, key=lambda move: (-move.promise, *move[1:]))

    def _answers_after(self, states: Codes, state: int) -> NDArray[np.int64]:
        steps = self.steps
        self.walked += len(steps.source)
        counts = _core.answers_after(
            steps.source,
            steps.answer,
            steps.offsets,
            states,
            state=state,
            sources=steps.sources,
            answers=steps.answers,
        )
        return counts.reshape(steps.sources, steps.answers)

    def trimmed(self, best: _Weighed) -> _Weighed:
        """Redirect or drop moves, and join or drop states, as long as that helps."""
        improved = True
        while improved and not self.is_spent:
            improved = False
            for table in self._like(best.table):
                tried = self.weigh(table)
                if tried.length < best.length - _LEAST_RISE:
                    best, improved = tried, True
                    break
                if self.is_spent:
                    break
        return best

    def _like(self, table: Table) -> Iterator[Table]:
        """Yield tables that differ in one thing."""
        count = table.shape[1]
        rooted = self.steps.rooted(table)
        if rooted is not None:
            yield rooted
        for state in np.flatnonzero(~self.steps.entered(table)).tolist():
            yield without_state(table, state)
        for one, other in permutations(range(count), 2):
            if one > 0:
                yield without_state(np.where(table == one, other, table), one)
        for source, state in np.argwhere(table != np.arange(count)).tolist():
            for target in range(count):
                if target != table[source, state]:
                    changed = table.copy()
                    changed[source, state] = target
                    yield changed


def _with(table: Table, move: _Move) -> Table:
    """Return the table with another move; a new state is left as the old one is."""
    count = table.shape[1]
    _, state, source, target = move
    table = table.copy()
    if target == count:
        old = table[:, state]
        table = np.column_stack([table, np.where(old == state, count, old)])
        table[source, count] = count
    table[source, state] = target
    return table


def without_state(table: Table, state: int) -> Table:
    """Return the table without a state: what led there leads nowhere."""
    table = np.where(table == state, np.arange(table.shape[1]), table)
    table = np.delete(table, state, axis=1)
    return table - (table > state)
