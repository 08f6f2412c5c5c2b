"""Sizes and seeds side by side, over workers: the first proof stops the others.

What comes out does not depend on which attempt ends first (docs/decisions/portfolio.md).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from resolvent.exact.part import Part
from resolvent.exact.problem import Question, Table
from resolvent.exact.size import UNTIMED_SLICES, OutOfTime, Size
from resolvent.inference.attempts import FOUND, IMPOSSIBLE, STOPPED, UNDECIDED, UNIQUE, Ran
from resolvent.workers import Workers

SEEDS: Final = 4
"""Paths along which the same is tried. A number of its own: with that of the workers, what is
left undecided would depend on it."""


SIZES: Final = 4
"""Sizes that are tried side by side. Machines with many more states than need be are harder to
find than small ones, so those wait until these are ruled out."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One number of states and a seed; with a table, to find another machine than that."""

    states: int
    seed: int
    other_than: Table | None = None

    def __str__(self) -> str:
        other = "another of " if self.other_than is not None else ""
        states = "1 state" if self.states == 1 else f"{self.states} states"
        return f"{other}{states}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of an attempt: the settled table that was found, or that there is none."""

    attempt: Attempt
    outcome: str
    table: Table | None
    calls: int
    seconds: float


@dataclass(frozen=True, eq=False)
class _Trying:
    """Makes one attempt, by a part and a solver of its own."""

    question: Question
    deadline: float | None

    def __call__(self, attempt: Attempt) -> Answer:
        started, size = time.perf_counter(), None
        found: Table | bool | None = None
        try:
            size = Size(
                self.question, Part(self.question), attempt.states, self._tick, attempt.seed
            )
            if attempt.other_than is not None:
                most = UNTIMED_SLICES if self.deadline is None else None
                found = size.other_than(attempt.other_than, most)
            else:
                while found is None:
                    found = size.solve()
                if isinstance(found, np.ndarray):
                    found = self.question.settle(found)
        except OutOfTime:
            pass
        finally:
            calls = 0 if size is None else size.calls
            if size is not None:
                size.close()
        table = found if isinstance(found, np.ndarray) else None
        outcome = FOUND if table is not None else UNDECIDED
        if found is False:
            outcome = IMPOSSIBLE if attempt.other_than is None else UNIQUE
        return Answer(attempt, outcome, table, calls, time.perf_counter() - started)

    def _tick(self) -> None:
        if self.deadline is not None and time.time() > self.deadline:
            raise OutOfTime


@dataclass
class Portfolio:
    """Attempts at one question; `ran` says what came of each.

    `deadline` is by the clock on the wall, which workers elsewhere have, too. `tell` is called
    whenever an answer comes in.
    """

    question: Question
    workers: Workers
    deadline: float | None
    tell: Callable[[], None]
    ran: list[Ran] = field(default_factory=list)
    calls: int = 0
    _unique: Table | None = None

    def close_gap(self, lower: int, best: Table) -> tuple[int, Table]:
        """Return how many states any machine must have, and a smallest machine.

        That is the best one known, if no smaller one exists. Otherwise it is the one that the
        first seed finds, whoever knows first that there is one; unless it is known to be the only
        one, for then it is the same.
        """
        known, others = len(best), best
        first_seed: dict[int, Table] = {}
        while lower < len(others):
            attempts = _sizes(lower, len(others))
            answers = self._first(attempts, _decides(attempts[-1].states), "closing the gap")
            for one in answers:
                if one.outcome == IMPOSSIBLE:
                    lower = max(lower, one.attempt.states + 1)
                elif one.table is not None:
                    if one.attempt.seed == 0 and one.attempt.states == len(one.table):
                        first_seed[len(one.table)] = one.table
                    others = min(others, one.table, key=len)
            if self._out_of_time():
                return min(lower, len(others)), others
        if len(others) < known and len(others) not in first_seed:
            return lower, self._agreed(others)
        return lower, first_seed.get(len(others), best)

    def _agreed(self, table: Table) -> Table:
        """Return the machine that the first seed finds, or one that is the only one."""
        states = len(table)
        attempts = [Attempt(states, 0), *_seeds(table)]
        answers = self._first(
            attempts,
            lambda one: one.outcome == UNIQUE or one.attempt.other_than is None,
            "agreeing on a machine",
        )
        if any(one.outcome == UNIQUE for one in answers):
            self._unique = table
            return table
        found = (one.table for one in answers if one.attempt.other_than is None)
        return next((one for one in found if one is not None), table)

    def is_unique(self, best: Table) -> bool:
        """Whether it was proven on the way that a machine is the only one of its size."""
        return self._unique is not None and np.array_equal(self._unique, best)

    def other_than(self, best: Table) -> Table | bool | None:
        """Return another machine of the same size, False if there is none, None if undecided.

        Of several that are found it is the one of the lowest seed.
        """
        answers = self._first(
            _seeds(best),
            lambda one: one.outcome == UNIQUE or (one.attempt.seed == 0 and one.table is not None),
            "looking for another machine",
        )
        if any(one.outcome == UNIQUE for one in answers):
            return False
        return next((one.table for one in answers if one.table is not None), None)

    def _first(
        self, attempts: Sequence[Attempt], enough: Callable[[Answer], bool], called: str
    ) -> list[Answer]:
        """Make attempts side by side until one is enough; return those that came to an end."""

        def came(answer: Answer) -> bool:
            self.tell()
            return enough(answer)

        trying = _Trying(self.question, self.deadline)
        answers = self.workers.first(trying, attempts, came, called=called)
        for attempt, one in zip(attempts, answers, strict=True):
            outcome, seconds = (STOPPED, 0.0) if one is None else (one.outcome, one.seconds)
            self.calls += 0 if one is None else one.calls
            self.ran.append(Ran(str(attempt), self.workers.name, outcome, seconds))
        return [one for one in answers if one is not None]

    def _out_of_time(self) -> bool:
        return self.deadline is not None and time.time() > self.deadline


def _sizes(lower: int, best: int) -> list[Attempt]:
    """Return the next sizes, rising: what is small is easy, and is a bound.

    If the largest of them is just below the best one known, it is likely all there is to rule out,
    and is tried with all seeds.
    """
    sizes = [Attempt(states, 0) for states in range(lower, min(lower + SIZES, best))]
    last = sizes[-1].states
    return [*sizes, *(Attempt(last, seed) for seed in range(1, SEEDS) if last == best - 1)]


def _seeds(table: Table) -> list[Attempt]:
    return [Attempt(len(table), seed, table) for seed in range(SEEDS)]


def _decides(largest: int) -> Callable[[Answer], bool]:
    """Return what an answer has to be so that the other sizes need not be waited for."""
    return lambda one: (
        one.outcome == FOUND or (one.outcome == IMPOSSIBLE and one.attempt.states == largest)
    )
