"""The exact search: the smallest machine that explains samples, with lower bounds.

Input: samples and a machine that explains them. Output: the smallest machine and its certificate.

A SAT solver is given a part of the samples. If no machine of some size fits the part, none fits all
samples; a machine that fits it is checked against all samples, and conflicts join the part. Sizes
and seeds may be tried in parallel; the result does not depend on which attempt ends first
(docs/decisions/inference.md).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from resolvent._util.parallel import Workers
from resolvent._util.progress import Progress
from resolvent._util.text import amount
from resolvent.inference.attempts import FOUND, IMPOSSIBLE, STOPPED, UNDECIDED, UNIQUE, WorkerRun
from resolvent.inference.exact.certificate import Effort, MinimalityProof
from resolvent.inference.exact.problem import Part, Problem, Question, Table
from resolvent.inference.exact.solver import (
    SLICES,
    UNTIMED_SLICES,
    OutOfTime,
    SizeSolver,
    require_sat_solver,
)
from resolvent.inference.state_merging import Watcher
from resolvent.machines.automaton import RawAutomaton
from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE

ALONE: Final = 2 * SLICES
"""Number of solver slices after which the workers, if any, take over: a second or two."""

SEEDS: Final = 4
"""Number of seeds with which the same is tried. A constant: if it were the number of workers,
undecided results would depend on it."""

SIZES: Final = 4
"""Number of sizes tried in parallel. Machines with many more states than needed are harder to find
than small ones, so they wait until smaller sizes are excluded."""


def minimal_automaton(
    samples: SampleSet,
    upper: RawAutomaton,
    *,
    time_limit: float | None,
    listener: Watcher | None = None,
    workers: Workers | None = None,
) -> tuple[RawAutomaton, MinimalityProof[RawAutomaton]]:
    """Find the smallest machine that explains the samples, and prove it as far as possible.

    Args:
        samples: Reduced samples, which do not contradict each other.
        upper: A machine that explains them.
        time_limit: Seconds after which the best machine so far is returned with the bounds proven
            so far.
        listener: Called now and then with the progress: the lower bound, the gap to the best
            machine, the nodes in the part given to the solver, all nodes.
        workers: Try sizes and seeds in parallel if one solver alone would take long.

    Raises:
        MissingExtra: when python-sat is not installed.
    """
    require_sat_solver()
    search = _Search(samples, upper, time_limit, listener, workers)
    try:
        search.close_gap()
        search.find_alternative()
    except OutOfTime:
        pass
    finally:
        search.close()
    return search.result()


class _Search:
    """Two bounds that approach each other: `lower` is proven, `best` was found."""

    def __init__(
        self,
        samples: SampleSet,
        upper: RawAutomaton,
        time_limit: float | None,
        listener: Watcher | None,
        workers: Workers | None,
    ) -> None:
        self._started = self._reported = time.monotonic()
        self._limit = time_limit
        self._listener = listener
        self.problem = Problem(samples)
        self.part = Part(self.problem)
        self.best = self.problem.table_of(upper)
        self.lower = min(len(self.part.clique()), len(self.best))
        self.unique: bool | None = None
        self.alternative: Table | None = None
        self._solvers: dict[int, SizeSolver] = {}
        self._portfolio: Portfolio | None = None
        if workers is not None:
            deadline = None if time_limit is None else time.time() + time_limit
            self._portfolio = Portfolio(self.problem.question, workers, deadline, self._report)

    def close_gap(self) -> None:
        """Exclude sizes one by one until a machine is found or only the best is left."""
        while self.lower < len(self.best):
            portfolio = self._portfolio
            if portfolio is not None and self._calls() >= ALONE:
                self.lower, self.best = portfolio.close_gap(self.lower, self.best)
                self.unique = portfolio.is_unique(self.best) or None
                return
            table = self._solver(self.lower).solve()
            if table is False:
                self.lower += 1
            elif isinstance(table, np.ndarray):
                self.best = self.problem.canonical(table)

    def find_alternative(self) -> None:
        """Look for another machine of the same size until one is found or excluded."""
        if self.unique or self.lower < len(self.best):
            return
        for neighbor in _neighbors(self.best):
            self._tick()
            canonical = self.problem.canonical(neighbor)
            if self.problem.clash(neighbor) is None and not np.array_equal(canonical, self.best):
                self.unique, self.alternative = False, canonical
                return
        slices = None if self._limit is not None else UNTIMED_SLICES
        if self._portfolio is not None:
            slices = ALONE
        table = self._solver(len(self.best)).other_than(self.best, slices)
        if table is None and self._portfolio is not None:
            table = self._portfolio.other_than(self.best)
        if table is False:
            self.unique = True
        elif isinstance(table, np.ndarray):
            self.unique, self.alternative = False, table

    def _solver(self, states: int) -> SizeSolver:
        if states not in self._solvers:
            self._solvers[states] = SizeSolver(self.problem, self.part, states, self._tick)
        return self._solvers[states]

    def _calls(self) -> int:
        return sum(solver.calls for solver in self._solvers.values())

    def _tick(self) -> None:
        if self._limit is not None and time.monotonic() - self._started > self._limit:
            raise OutOfTime
        self._report()

    def _report(self) -> None:
        now = time.monotonic()
        if self._listener is not None and now - self._reported >= 0.05:
            self._reported = now
            gap = len(self.best) - self.lower
            nodes = len(self.problem.evidence)
            self._listener(Progress(self.lower, gap, len(self.part.parent), nodes))

    def close(self) -> None:
        """Free the solvers."""
        for solver in self._solvers.values():
            solver.close()

    def result(self) -> tuple[RawAutomaton, MinimalityProof[RawAutomaton]]:
        """Return the best machine and its certificate."""
        portfolio, alternative = self._portfolio, self.alternative
        certificate = MinimalityProof(
            states=len(self.best),
            lower_bound=self.lower,
            unique=self.unique,
            alternative=None if alternative is None else self.problem.automaton(alternative),
            effort=Effort(
                traces=self.part.traces,
                tree_nodes=len(self.part.parent),
                clauses=sum(solver.clauses for solver in self._solvers.values()),
                solver_calls=self._calls() + (0 if portfolio is None else portfolio.calls),
                seconds=time.monotonic() - self._started,
                ran=() if portfolio is None else tuple(portfolio.ran),
            ),
        )
        return self.problem.automaton(self.best), certificate


def _neighbors(canonical: Table) -> Iterator[Table]:
    """Yield the total tables that differ from a machine in one transition that it uses."""
    total = np.maximum(canonical, 0)
    for state, label in np.argwhere(canonical != NONE).tolist():
        for target in range(len(canonical)):
            if target != canonical[state, label]:
                table = total.copy()
                table[state, label] = target
                yield table


# ---- attempts in parallel ----------------------------------------------------


@dataclass(frozen=True, eq=False)
class SizeAttempt:
    """A number of states and a seed; with a table, to find another machine than that."""

    states: int
    seed: int
    other_than: Table | None = None

    def __str__(self) -> str:
        another = "another of " if self.other_than is not None else ""
        return f"{another}{amount(self.states, 'state')}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class AttemptResult:
    """The outcome of an attempt, and the canonical table if a machine was found."""

    attempt: SizeAttempt
    outcome: str
    table: Table | None
    calls: int
    seconds: float


@dataclass(frozen=True, eq=False)
class _AttemptTask:
    """Makes one attempt with a separate part and solver; sent to workers."""

    question: Question
    deadline: float | None

    def __call__(self, attempt: SizeAttempt) -> AttemptResult:
        started, solver = time.perf_counter(), None
        table: Table | bool | None = None
        try:
            solver = SizeSolver(
                self.question, Part(self.question), attempt.states, self._tick, attempt.seed
            )
            if attempt.other_than is not None:
                slices = UNTIMED_SLICES if self.deadline is None else None
                table = solver.other_than(attempt.other_than, slices)
            else:
                while table is None:
                    table = solver.solve()
                if isinstance(table, np.ndarray):
                    table = self.question.canonical(table)
        except OutOfTime:
            pass
        finally:
            calls = 0 if solver is None else solver.calls
            if solver is not None:
                solver.close()
        outcome = FOUND if isinstance(table, np.ndarray) else UNDECIDED
        if table is False:
            outcome = IMPOSSIBLE if attempt.other_than is None else UNIQUE
        machine = table if isinstance(table, np.ndarray) else None
        return AttemptResult(attempt, outcome, machine, calls, time.perf_counter() - started)

    def _tick(self) -> None:
        if self.deadline is not None and time.time() > self.deadline:
            raise OutOfTime


@dataclass
class Portfolio:
    """Attempts at one question, on workers; `ran` records the outcome of each.

    `deadline` is in wall-clock time, which remote workers share. `report` is called whenever a
    result arrives.
    """

    question: Question
    workers: Workers
    deadline: float | None
    report: Callable[[], None]
    ran: list[WorkerRun] = field(default_factory=list)
    calls: int = 0
    _unique: Table | None = None

    def close_gap(self, lower: int, best: Table) -> tuple[int, Table]:
        """Return a lower bound on the number of states, and a smallest machine.

        That is `best` if no smaller one exists. Otherwise it is the machine of the first seed,
        whichever attempt ends first; if it is proven unique, all seeds find the same.
        """
        smallest = best
        by_first_seed: dict[int, Table] = {}
        while lower < len(smallest):
            attempts = _next_sizes(lower, len(smallest))
            for result in self._first(attempts, _decides(attempts[-1].states), "closing the gap"):
                if result.outcome == IMPOSSIBLE:
                    lower = max(lower, result.attempt.states + 1)
                elif result.table is not None:
                    states = len(result.table)
                    if result.attempt.seed == 0 and result.attempt.states == states:
                        by_first_seed[states] = result.table
                    smallest = min(smallest, result.table, key=len)
            if self.deadline is not None and time.time() > self.deadline:
                return min(lower, len(smallest)), smallest
        if len(smallest) < len(best) and len(smallest) not in by_first_seed:
            return lower, self._agreed(smallest)
        return lower, by_first_seed.get(len(smallest), best)

    def _agreed(self, table: Table) -> Table:
        """Return the machine that the first seed finds, or this one if it is unique."""
        results = self._first(
            [SizeAttempt(len(table), 0), *_alternatives(table)],
            lambda result: result.outcome == UNIQUE or result.attempt.other_than is None,
            "agreeing on a machine",
        )
        if any(result.outcome == UNIQUE for result in results):
            self._unique = table
            return table
        tables = (result.table for result in results if result.attempt.other_than is None)
        return next((first for first in tables if first is not None), table)

    def is_unique(self, best: Table) -> bool:
        """Return whether a machine was already proven the only one of its size."""
        return self._unique is not None and np.array_equal(self._unique, best)

    def other_than(self, best: Table) -> Table | bool | None:
        """Return another machine of the same size, False if there is none, None if undecided.

        If several are found it is the one of the lowest seed.
        """
        results = self._first(
            _alternatives(best),
            lambda result: (
                result.outcome == UNIQUE or (result.attempt.seed == 0 and result.table is not None)
            ),
            "looking for another machine",
        )
        if any(result.outcome == UNIQUE for result in results):
            return False
        return next((result.table for result in results if result.table is not None), None)

    def _first(
        self, attempts: Sequence[SizeAttempt], decides: Callable[[AttemptResult], bool], called: str
    ) -> list[AttemptResult]:
        """Make attempts in parallel until one decides; return the results of those that ended."""

        def is_over(result: AttemptResult) -> bool:
            self.report()
            return decides(result)

        task = _AttemptTask(self.question, self.deadline)
        results = self.workers.first(task, attempts, is_over, called=called)
        for attempt, result in zip(attempts, results, strict=True):
            outcome, seconds = STOPPED, 0.0
            if result is not None:
                outcome, seconds = result.outcome, result.seconds
                self.calls += result.calls
            self.ran.append(WorkerRun(str(attempt), self.workers.name, outcome, seconds))
        return [result for result in results if result is not None]


def _next_sizes(lower: int, best: int) -> list[SizeAttempt]:
    """Return attempts at the next sizes, ascending: small ones are easy, and give bounds.

    If the largest is just below the best known size, it is likely the last to exclude, and is tried
    with all seeds.
    """
    sizes = [SizeAttempt(states, 0) for states in range(lower, min(lower + SIZES, best))]
    last = sizes[-1].states
    return [*sizes, *(SizeAttempt(last, seed) for seed in range(1, SEEDS) if last == best - 1)]


def _alternatives(table: Table) -> list[SizeAttempt]:
    return [SizeAttempt(len(table), seed, table) for seed in range(SEEDS)]


def _decides(largest: int) -> Callable[[AttemptResult], bool]:
    """Return a test for results after which the other sizes need not be awaited."""
    return lambda result: (
        result.outcome == FOUND
        or (result.outcome == IMPOSSIBLE and result.attempt.states == largest)
    )
