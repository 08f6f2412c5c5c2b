"""The smallest machine consistent with samples, and how small any machine can be.

A SAT solver is shown a part of the samples. That no machine of so many states
fits the part is sound for all samples; a machine that fits it is held against
all samples, and what clashes joins the part.
"""

import time
from collections.abc import Iterator

import numpy as np

from resolvent.exact.certificate import Certificate, Effort
from resolvent.exact.colouring import Colouring, import_solvers
from resolvent.exact.part import Part
from resolvent.exact.problem import Problem, Table
from resolvent.merging import Automaton
from resolvent.merging.watch import Watcher
from resolvent.progress import Progress
from resolvent.samples import NONE, SampleSet

SLICES = 16
"""Solver slices in a first attempt at a number of states."""

UNTIMED_SLICES = 1200
"""Solver slices spent on uniqueness when there is no time limit."""


class _OutOfTime(Exception):  # noqa: N818
    """The time limit has passed."""


def minimal_automaton(
    samples: SampleSet,
    upper: Automaton,
    *,
    time_limit: float | None,
    listener: Watcher | None = None,
) -> tuple[Automaton, Certificate[Automaton]]:
    """Find the smallest machine that explains the samples, and prove what can be proven.

    Args:
        samples: Reduced samples, which do not contradict each other.
        upper: A machine that explains them.
        time_limit: Seconds, after which the best machine so far is given back
            with the bounds proven so far.
        listener: Told now and then how far the search is: the lower bound, the
            gap to the best machine, nodes in the part shown to the solver, all.

    Raises:
        MissingExtra: when python-sat is not installed.
    """
    import_solvers()
    search = _Search(samples, upper, time_limit, listener)
    try:
        search.close_gap()
        search.look_for_rival()
    except _OutOfTime:
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
        self._colourings: dict[int, Colouring] = {}

    # ---- the two stages ----------------------------------------------------

    def close_gap(self) -> None:
        """Rule out numbers of states one by one, until one fits or only the best is left."""
        while self.lower < len(self.best):
            table = self._solve(self.lower, SLICES)
            if table is False:
                self.lower += 1
            elif isinstance(table, np.ndarray):
                self.best = self.problem.settle(table)

    def look_for_rival(self) -> None:
        """Look for a second machine of the same size, until there is one or cannot be."""
        for near in _neighbours(self.best):
            self._tick()
            if self.problem.clash(near) is None and self._is_rival(near):
                return
        states = len(self.best)
        spent = 0
        while self._limit is not None or spent < UNTIMED_SLICES:
            table = self._solve(states, SLICES)
            if table is False:
                self.unique = True
                return
            if isinstance(table, np.ndarray):
                self._colourings[states].block(table, self.problem.settle(table))
                if self._is_rival(table):
                    return
            spent += SLICES

    def _is_rival(self, table: Table) -> bool:
        settled = self.problem.settle(table)
        if np.array_equal(settled, self.best):
            return False
        self.unique, self.rival = False, settled
        return True

    # ---- one number of states ----------------------------------------------

    def _solve(self, states: int, slices: int) -> Table | bool | None:
        """Return a table that fits all samples, False if there is none, None if undecided."""
        if states not in self._colourings:
            self._colourings[states] = Colouring(self.part, states, self._tick)
        while True:
            table = self._colourings[states].solve(slices)
            if not isinstance(table, np.ndarray) or self._fits(table):
                return table

    def _fits(self, table: Table) -> bool:
        clash = self.problem.clash(table)
        if clash is not None:
            self.part.grow(clash)
        return clash is None

    # ---- the clock and the result ------------------------------------------

    def _tick(self) -> None:
        now = time.monotonic()
        if self._limit is not None and now - self._started > self._limit:
            raise _OutOfTime
        if self._listener is not None and now - self._told >= 0.05:
            self._told = now
            gap = len(self.best) - self.lower
            nodes = len(self.problem.evidence)
            self._listener(Progress(self.lower, gap, len(self.part.parent), nodes))

    def close(self) -> None:
        """Let go of the solvers."""
        for colouring in self._colourings.values():
            colouring.close()

    def result(self) -> tuple[Automaton, Certificate[Automaton]]:
        """Put together what was found and what was proven."""
        colourings = self._colourings.values()
        certificate = Certificate(
            states=len(self.best),
            lower_bound=self.lower,
            unique=self.unique,
            alternative=None if self.rival is None else self.problem.automaton(self.rival),
            effort=Effort(
                traces=self.part.traces,
                tree_nodes=len(self.part.parent),
                clauses=sum(each.clauses for each in colourings),
                solver_calls=sum(each.calls for each in colourings),
                seconds=time.monotonic() - self._started,
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
