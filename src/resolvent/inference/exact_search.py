"""The exact search: the smallest machine that explains samples, with lower bounds.

Input: samples and an automaton that explains them. Output: the smallest one, and what is proven.

If no machine of some size fits a part of the samples, none fits all of them; a machine that fits it
is checked against all, and conflicts join the part. Sizes and seeds may be tried in parallel; the
result does not depend on which attempt ends first (docs/decisions/inference.md).
"""

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from resolvent._util.parallel import Progress, Workers
from resolvent._util.text import amount
from resolvent.errors import TimeLimitReached
from resolvent.inference.engine import NO_LIMITS, SEEDS, Limits, automaton_of_table
from resolvent.inference.exact_solver import (
    SLICES,
    UNTIMED_SLICES,
    DistinctTraces,
    Part,
    SizeSolver,
    Table,
    require_sat_solver,
)
from resolvent.inference.fit import FOUND, IMPOSSIBLE, STOPPED, UNDECIDED, Attempt
from resolvent.inference.state_merging import Watch
from resolvent.machines.build import RawAutomaton
from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE

ALONE: Final = 2 * SLICES
"""Number of solver slices after which the workers, if any, take over: a second or two."""

SIZES: Final = 4
"""Number of sizes tried in parallel. Machines with many more states than needed are harder to find
than small ones, so they wait until smaller sizes are excluded."""


@dataclass(frozen=True)
class MinimalAutomaton:
    """The smallest automaton found, and what is proven of it.

    No automaton with fewer than `lower_bound` states explains the samples. `unique` says whether it
    is the only one of its size, None if that is unknown; `alternative` is another one. `attempts`
    are those that ran in parallel.
    """

    automaton: RawAutomaton
    lower_bound: int
    unique: bool | None = None
    alternative: RawAutomaton | None = None
    attempts: tuple[Attempt, ...] = ()


def minimal_automaton(
    samples: SampleSet,
    upper: RawAutomaton,
    *,
    limits: Limits = NO_LIMITS,
    workers: Workers | None = None,
) -> MinimalAutomaton:
    """Find the smallest automaton that explains the samples, and prove it as far as possible.

    The automaton `upper` explains them. Progress is the lower bound, the gap to the best automaton,
    the nodes in the part given to the solver, and all nodes. `workers` try sizes and seeds in
    parallel if one solver alone would take long.
    """
    require_sat_solver()
    with closing(_Search(samples, upper, limits, workers)) as search:
        with suppress(TimeLimitReached):
            search.close_gap()
            search.find_alternative()
        return search.result()


class _Search:
    """Two bounds that approach each other: `lower` is proven, `best` was found."""

    def __init__(
        self, samples: SampleSet, upper: RawAutomaton, limits: Limits, workers: Workers | None
    ) -> None:
        self._samples, self._limits, self._workers = samples, limits, workers
        self._watch = Watch(limits.time_limit, limits.listener)
        self.traces = DistinctTraces.of(samples)
        self.part = Part(self.traces)
        full = np.zeros((upper.states, len(samples.labels)), np.int32)
        full[upper.transition_state, upper.transition_label] = upper.transition_target
        self.best = self.traces.canonical(np.ascontiguousarray(full[:, self.traces.codes]))
        self.lower = min(len(self.part.clique()), len(self.best))
        self.unique: bool | None = None
        self.alternative: Table | None = None
        self.attempts: list[Attempt] = []
        self._solvers: dict[int, SizeSolver] = {}

    def close_gap(self) -> None:
        """Exclude sizes one by one until a machine is found or only the best is left."""
        while self.lower < len(self.best):
            calls = sum(solver.calls for solver in self._solvers.values())
            if self._workers is not None and calls >= ALONE:
                self._close_gap_in_parallel(self._workers)
                return
            table = self._solver(self.lower).solve()
            if table is False:
                self.lower += 1
            elif isinstance(table, np.ndarray):
                self.best = self.traces.canonical(table)

    def find_alternative(self) -> None:
        """Look for another machine of the same size until one is found or excluded."""
        if self.lower < len(self.best):
            return
        table: Table | bool | None = self._fitting_neighbor()
        if table is None:
            slices = UNTIMED_SLICES if self._limits.time_limit is None else None
            table = self._solver(len(self.best)).other_than(self.best, slices)
        if isinstance(table, np.ndarray):
            self.unique, self.alternative = False, table
        elif table is False:
            self.unique = True

    def result(self) -> MinimalAutomaton:
        """Return the best automaton and what is proven."""
        other = None if self.alternative is None else self._automaton(self.alternative)
        best, attempts = self._automaton(self.best), tuple(self.attempts)
        return MinimalAutomaton(best, self.lower, self.unique, other, attempts)

    def close(self) -> None:
        """Free the solvers."""
        for solver in self._solvers.values():
            solver.close()

    def _automaton(self, canonical: Table) -> RawAutomaton:
        """Return the automaton with this canonical table and the outputs of all samples."""
        samples = self._samples
        full = np.full((len(canonical), len(samples.labels)), NONE, np.int32)
        full[:, self.traces.codes] = canonical
        return automaton_of_table(samples, full)

    def _close_gap_in_parallel(self, workers: Workers) -> None:
        """Try sizes and seeds on workers until a smallest machine is found.

        It is the best so far if no smaller one exists, and otherwise the one that the first seed
        finds at the smallest size, whichever attempt ends first.
        """
        smallest, deadline = self.best, None
        if self._limits.time_limit is not None:
            seconds = self._watch.report(self._progress())
            deadline = time.time() + self._limits.time_limit - seconds
        run = partial(_try_size, self.traces, deadline)

        def is_over(result: SizeResult) -> bool:
            self._watch.report(self._progress())
            is_last = result.states == sizes[-1].states
            return result.outcome == FOUND or (result.outcome == IMPOSSIBLE and is_last)

        while self.lower < len(smallest):
            # Small sizes are easy, and give bounds. The largest, if just below the best, is likely
            # the last to exclude, and is tried with all seeds.
            best = len(smallest)
            sizes = [SizeAttempt(n, 0) for n in range(self.lower, min(self.lower + SIZES, best))]
            if sizes[-1].states == best - 1:
                sizes += [SizeAttempt(best - 1, seed) for seed in range(1, SEEDS)]
            results = workers.map_until(run, sizes, is_over, called="closing the gap")
            for size, result in zip(sizes, results, strict=True):
                outcome, seconds = STOPPED, 0.0
                if result is not None:
                    outcome, seconds = result.outcome, result.seconds
                    if outcome == IMPOSSIBLE:
                        self.lower = max(self.lower, size.states + 1)
                    elif result.table is not None:
                        smallest = min(smallest, result.table, key=len)
                attempt = Attempt(str(size), outcome, seconds=seconds, workers=workers.name)
                self.attempts.append(attempt)
            if deadline is not None and time.time() > deadline:
                break
        if len(smallest) < len(self.best):
            table = run(SizeAttempt(len(smallest), 0)).table
            self.best = smallest if table is None else table

    def _fitting_neighbor(self) -> Table | None:
        """Return another machine that differs in one transition from the best, if there is one."""
        for neighbor in _neighbors(self.best):
            self._tick()
            canonical = self.traces.canonical(neighbor)
            if self.traces.clash(neighbor) is None and not np.array_equal(canonical, self.best):
                return canonical
        return None

    def _solver(self, states: int) -> SizeSolver:
        if states not in self._solvers:
            self._solvers[states] = SizeSolver(self.traces, self.part, states, self._tick)
        return self._solvers[states]

    def _tick(self) -> None:
        self._watch.check(self._progress())

    def _progress(self) -> Progress:
        gap = len(self.best) - self.lower
        return Progress(self.lower, gap, len(self.part.tree), len(self.traces.evidence))


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


class SizeAttempt(NamedTuple):
    """A number of states, and the seed of a solver."""

    states: int
    seed: int

    def __str__(self) -> str:
        return f"{amount(self.states, 'state')}, seed {self.seed}"


class SizeResult(NamedTuple):
    """The outcome of an attempt, and the canonical table if a machine was found."""

    states: int
    outcome: str
    table: Table | None
    seconds: float


def _try_size(traces: DistinctTraces, deadline: float | None, attempt: SizeAttempt) -> SizeResult:
    """Make one attempt with a separate part and solver; it runs on a worker.

    The deadline is in wall-clock time, which remote workers share.
    """

    def tick() -> None:
        if deadline is not None and time.time() > deadline:
            raise TimeLimitReached("time ran out")

    started = time.perf_counter()
    table: Table | bool | None = None
    with (
        suppress(TimeLimitReached),
        closing(SizeSolver(traces, Part(traces), attempt.states, tick, attempt.seed)) as solver,
    ):
        while table is None:
            table = solver.solve()
    outcome, canonical = UNDECIDED if table is None else IMPOSSIBLE, None
    if isinstance(table, np.ndarray):
        outcome, canonical = FOUND, traces.canonical(table)
    return SizeResult(attempt.states, outcome, canonical, time.perf_counter() - started)
