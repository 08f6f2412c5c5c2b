"""The smallest machine consistent with samples, and how small any machine can be.

Two methods work against each other on a part of the samples. A SAT solver rules
out numbers of states, which is sound for all samples; annealing finds machines,
which are then held against all samples, and what clashes joins the part.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np

from resolvent.exact.certificate import Certificate, Effort
from resolvent.exact.colouring import Colouring, import_solvers
from resolvent.exact.part import Part
from resolvent.exact.problem import Problem, Table
from resolvent.merging import Automaton, Progress
from resolvent.samples import NONE, SampleSet

Listener = Callable[[Progress], None]

SLICES = 16
"""Solver slices in a first attempt at a number of states."""

EVALUATIONS = 30_000
"""Tables looked at in a first annealing."""

SPAN = 3
"""How many numbers of states are annealed in a first attempt."""

RIVALS = 2
"""Annealings that look for a second machine when the solver does not settle it at once."""

UNTIMED_SLICES = 1200
"""Solver slices spent on uniqueness when there is no time limit."""


class _OutOfTime(Exception):  # noqa: N818
    """The time limit has passed."""


def minimal_automaton(
    samples: SampleSet,
    upper: Automaton,
    *,
    time_limit: float | None,
    listener: Listener | None = None,
) -> tuple[Automaton, Certificate]:
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
        listener: Listener | None,
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
        self._annealings = 0

    # ---- the two stages ----------------------------------------------------

    def close_gap(self) -> None:
        """Rule out numbers of states from below, and find machines not far above, ever longer."""
        effort = 1
        while self.lower < len(self.best):
            table = self._solve(self.lower, SLICES * effort)
            if table is False:
                self.lower += 1
                continue
            states = self.lower
            while table is None and states < min(len(self.best), self.lower + SPAN * effort):
                table = self._anneal(states, EVALUATIONS * min(effort, 8))
                states += 1
            if isinstance(table, np.ndarray):
                self.best = self.problem.settle(table)
                self._prefer()
            effort *= 2

    def _prefer(self) -> None:
        """Change single transitions as long as answers then agree more.

        Where samples are scarce a transition may have more than one target that
        fits; most likely right is the one under which answers confirm each other.
        """
        length = self.problem.code_length(self.best) or 0.0
        tables = _neighbours(self.best)
        while (table := next(tables, None)) is not None:
            self._tick()
            new = self.problem.code_length(table)
            if new is not None and new < length:
                settled = self.problem.settle(table)
                if len(settled) == len(self.best):
                    self.best, length = settled, new
                    tables = _neighbours(self.best)

    def look_for_rival(self) -> None:
        """Look for a second machine of the same size, until there is one or cannot be."""
        self._prefer()
        states = len(self.best)
        for table in _neighbours(self.best):
            self._tick()
            if self.problem.clash(table) is None and self._is_rival(table):
                return
        spent = 0
        while self._limit is not None or spent < UNTIMED_SLICES:
            answer = self._solve(states, SLICES)
            if answer is False:
                self.unique = True
                return
            if answer is None and spent < RIVALS * SLICES:
                answer = self._anneal(states, EVALUATIONS)
            elif isinstance(answer, np.ndarray):
                self._colourings[states].block(answer, self.problem.settle(answer))
            if isinstance(answer, np.ndarray) and self._is_rival(answer):
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

    def _anneal(self, states: int, evaluations: int) -> Table | None:
        """Return a table that fits all samples, or None when none was found."""
        while True:
            self._tick()
            self._annealings += 1
            flat = self.part.evidence.anneal(
                states,
                seed=self._annealings,
                evaluations=evaluations,
                time_limit=self._time_left() or 0.0,
            )
            if flat is None:
                return None
            table = flat.reshape(states, -1)
            if self._fits(table):
                return table

    def _fits(self, table: Table) -> bool:
        clash = self.problem.clash(table)
        if clash is not None:
            self.part.grow(clash)
        return clash is None

    # ---- the clock and the result ------------------------------------------

    def _time_left(self) -> float | None:
        if self._limit is None:
            return None
        return max(self._limit - (time.monotonic() - self._started), 1e-9)

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

    def result(self) -> tuple[Automaton, Certificate]:
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
                annealings=self._annealings,
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
