"""The smallest machine consistent with samples, and how small any machine can be.

A SAT solver is shown a part of the samples. That no machine of so many states
fits the part is sound for all samples; a machine that fits it is held against
all samples, and what clashes joins the part.
"""

import time
from collections.abc import Iterator

import numpy as np

from resolvent.exact.certificate import Certificate, Effort
from resolvent.exact.colouring import import_solvers
from resolvent.exact.part import Part
from resolvent.exact.portfolio import Portfolio
from resolvent.exact.problem import Problem, Table
from resolvent.exact.size import SLICES, UNTIMED_SLICES, OutOfTime, Size
from resolvent.machines.automaton import Automaton
from resolvent.inference.state_merging import Watcher
from resolvent.progress import Progress
from resolvent.samples import NONE, SampleSet
from resolvent.workers import Workers

ALONE = 2 * SLICES
"""Solver slices after which other workers, if there are any, go on: a second or two."""


def minimal_automaton(
    samples: SampleSet,
    upper: Automaton,
    *,
    time_limit: float | None,
    listener: Watcher | None = None,
    workers: Workers | None = None,
) -> tuple[Automaton, Certificate[Automaton]]:
    """Find the smallest machine that explains the samples, and prove what can be proven.

    Args:
        samples: Reduced samples, which do not contradict each other.
        upper: A machine that explains them.
        time_limit: Seconds, after which the best machine so far is given back
            with the bounds proven so far.
        listener: Told now and then how far the search is: the lower bound, the
            gap to the best machine, nodes in the part shown to the solver, all.
        workers: Who tries sizes and seeds side by side where one alone would take long.
            docs/decisions/portfolio.md says how.

    Raises:
        MissingExtra: when python-sat is not installed.
    """
    import_solvers()
    search = _Search(samples, upper, time_limit, listener, workers)
    try:
        search.close_gap()
        search.look_for_rival()
    except OutOfTime:
        pass
    finally:
        search.close()
    return search.result()


class _Search:
    """Bounds that close in on each other: `lower` proven, `best` found."""

    def __init__(
        self,
        samples: SampleSet,
        upper: Automaton,
        time_limit: float | None,
        listener: Watcher | None,
        workers: Workers | None,
    ) -> None:
        self._started = self._told = time.monotonic()
        self._limit = time_limit
        self._listener = listener
        self.problem = Problem(samples)
        self.part = Part(self.problem)
        self.best = self.problem.table_of(upper)
        self.lower = min(len(self.part.clique()), len(self.best))
        self.unique: bool | None = None
        self.rival: Table | None = None
        self._sizes: dict[int, Size] = {}
        self._portfolio: Portfolio | None = None
        if workers is not None:
            deadline = None if time_limit is None else time.time() + time_limit
            self._portfolio = Portfolio(self.problem.question, workers, deadline, self._tell)

    # ---- the two stages ----------------------------------------------------

    def close_gap(self) -> None:
        """Rule out numbers of states one by one, until one fits or only the best is left."""
        while self.lower < len(self.best):
            portfolio = self._portfolio
            if portfolio is not None and sum(one.calls for one in self._sizes.values()) >= ALONE:
                self.lower, self.best = portfolio.close_gap(self.lower, self.best)
                self.unique = portfolio.is_unique(self.best) or None
                return
            table = self._size(self.lower).solve()
            if table is False:
                self.lower += 1
            elif isinstance(table, np.ndarray):
                self.best = self.problem.settle(table)

    def look_for_rival(self) -> None:
        """Look for a second machine of the same size, until there is one or cannot be."""
        if self.unique or self.lower < len(self.best):
            return
        for near in _neighbours(self.best):
            self._tick()
            settled = self.problem.settle(near)
            if self.problem.clash(near) is None and not np.array_equal(settled, self.best):
                self.unique, self.rival = False, settled
                return
        most = None if self._limit is not None else UNTIMED_SLICES
        if self._portfolio is not None:
            most = ALONE
        other = self._size(len(self.best)).other_than(self.best, most)
        if other is None and self._portfolio is not None:
            other = self._portfolio.other_than(self.best)
        if other is False:
            self.unique = True
        elif isinstance(other, np.ndarray):
            self.unique, self.rival = False, other

    def _size(self, states: int) -> Size:
        if states not in self._sizes:
            self._sizes[states] = Size(self.problem, self.part, states, self._tick)
        return self._sizes[states]

    # ---- the clock and the result ------------------------------------------

    def _tick(self) -> None:
        if self._limit is not None and time.monotonic() - self._started > self._limit:
            raise OutOfTime
        self._tell()

    def _tell(self) -> None:
        now = time.monotonic()
        if self._listener is not None and now - self._told >= 0.05:
            self._told = now
            gap = len(self.best) - self.lower
            nodes = len(self.problem.evidence)
            self._listener(Progress(self.lower, gap, len(self.part.parent), nodes))

    def close(self) -> None:
        """Let go of the solvers."""
        for size in self._sizes.values():
            size.close()

    def result(self) -> tuple[Automaton, Certificate[Automaton]]:
        """Put together what was found and what was proven."""
        sizes, portfolio = self._sizes.values(), self._portfolio
        certificate = Certificate(
            states=len(self.best),
            lower_bound=self.lower,
            unique=self.unique,
            alternative=None if self.rival is None else self.problem.automaton(self.rival),
            effort=Effort(
                traces=self.part.traces,
                tree_nodes=len(self.part.parent),
                clauses=sum(each.clauses for each in sizes),
                solver_calls=sum(each.calls for each in sizes)
                + (0 if portfolio is None else portfolio.calls),
                seconds=time.monotonic() - self._started,
                ran=() if portfolio is None else tuple(portfolio.ran),
            ),
        )
        return self.problem.automaton(self.best), certificate


def _neighbours(settled: Table) -> Iterator[Table]:
    """Give the total tables that differ from a machine in one transition that it uses."""
    total = np.maximum(settled, 0)
    for state, label in np.argwhere(settled != NONE).tolist():
        for target in range(len(settled)):
            if target != settled[state, label]:
                table = total.copy()
                table[state, label] = target
                yield table
