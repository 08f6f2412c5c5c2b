"""A SAT solver for machines of one size, as a coloring of a prefix tree.

Input: a `Part` of a problem and a number of states. Output: a transition table that fits all
samples, or the proof that none exists.

Variables: node v has color i; label l leads from state i to state j; state i has output o for an
α-input. Heule and Verwer, "Exact DFA identification using SAT solvers" (2010), with many α-inputs
in place of acceptance.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any, Final

import numpy as np

from resolvent.errors import MissingExtra
from resolvent.inference.exact.problem import Part, Question, Table
from resolvent.preprocess.timing import NONE

SOLVER: Final = "glucose4"
"""The fastest of those measured (docs/decisions/inference.md)."""

SLICE: Final = 250
"""Number of solver conflicts between two checks of the time; it stops at its next restart."""

SLICES: Final = 16
"""Number of solver slices in one attempt at a number of states."""

UNTIMED_SLICES: Final = 1200
"""Number of solver slices spent on uniqueness if there is no time limit."""

ORDERED: Final = 30
"""Number of nodes that take new colors in order, so that renamings are searched once."""

Clause = list[int]


class OutOfTime(Exception):  # noqa: N818
    """The time limit has passed."""


def require_sat_solver() -> Any:
    """Import python-sat.

    Raises:
        MissingExtra: when it is not installed.
    """
    try:
        return importlib.import_module("pysat.solvers")
    except ImportError as error:
        raise MissingExtra(
            'proving machines minimal needs a SAT solver: pip install "resolvent[exact]"'
        ) from error


class SizeSolver:
    """Machines with one number of states that explain all samples, or the proof of none.

    The part grows with the conflicts that tables have with the other samples. `tick` is called
    often and may raise, to stop. Another `seed` searches along another path.
    """

    def __init__(
        self, problem: Question, part: Part, states: int, tick: Callable[[], None], seed: int = 0
    ) -> None:
        self._problem, self._part = problem, part
        self._coloring = Coloring(part, states, tick, seed)

    @property
    def clauses(self) -> int:
        """Number of clauses given to the solver."""
        return self._coloring.clauses

    @property
    def calls(self) -> int:
        """Number of solver calls."""
        return self._coloring.calls

    def solve(self, slices: int = SLICES) -> Table | bool | None:
        """Return a table that fits all samples, False if there is none, None if undecided."""
        while True:
            table = self._coloring.solve(slices)
            if not isinstance(table, np.ndarray):
                return table
            if (clash := self._problem.clash(table)) is None:
                return table
            self._part.grow(clash)

    def other_than(self, best: Table, slices: int | None) -> Table | bool | None:
        """Return the canonical table of another machine of this size, False if there is none.

        Returns None if this number of slices does not decide it; without a number it goes on.
        """
        spent = 0
        while slices is None or spent < slices:
            table = self.solve()
            if table is False:
                return False
            if isinstance(table, np.ndarray):
                canonical = self._problem.canonical(table)
                self._coloring.block(table, canonical)
                if not np.array_equal(canonical, best):
                    return canonical
            spent += SLICES
        return None

    def close(self) -> None:
        """Free the solver."""
        self._coloring.close()


class Coloring:
    """The clauses for one number of states in one solver; they follow the part as it grows.

    With a `seed` above 0 the solver first tries random values, which may lead to another solution.
    """

    def __init__(self, part: Part, states: int, tick: Callable[[], None], seed: int = 0) -> None:
        self.states = states
        self.clauses = 0
        self.calls = 0
        self._part = part
        self._tick = tick
        self._solver = require_sat_solver().Solver(name=SOLVER)
        self._variables = 0
        self._color: list[range] = []  # by node: variables by state
        self._step = [  # by label and state: variables by next state
            [self._new() for _ in range(states)] for _ in range(part.problem.labels)
        ]
        self._output: dict[int, dict[int, range]] = {}  # by α-input, output: variables by state
        self._outputs_added = 0
        self._root = 0
        for by_state in self._step:
            self._tick()
            for targets in by_state:
                self._add(_exactly_one(targets))
        self._follow_part()
        self._break_symmetry()
        if seed:
            drawn = np.random.default_rng(seed).random(self._variables) < 0.5
            signs = np.where(drawn, 1, -1) * np.arange(1, self._variables + 1)
            self._solver.set_phases(signs.tolist())

    def solve(self, slices: int) -> Table | bool | None:
        """Return a total table that fits the part, False if there is none, None if undecided."""
        self._follow_part()
        for _ in range(slices):
            self._tick()
            self.calls += 1
            self._solver.conf_budget(SLICE)
            # With `expect_interrupt` the solver leaves signals to Python.
            satisfiable = self._solver.solve_limited(expect_interrupt=True)
            if satisfiable is not None:
                return self._table() if satisfiable else False
        return None

    def block(self, table: Table, canonical: Table) -> None:
        """Exclude the last table, in all transitions of its canonical form."""
        state = {0: 0}
        clause = [-self._color[0][self._root]]  # it may start elsewhere
        for i, row in enumerate(canonical.tolist()):  # states are numbered as they are reached
            for label, j in enumerate(row):
                if j != NONE:
                    source, target = state[i], int(table[state[i], label])
                    state[j] = target
                    clause.append(-self._step[label][self._swap(source)][self._swap(target)])
        self._add([clause])

    def close(self) -> None:
        """Free the solver."""
        self._solver.delete()

    def _new(self) -> range:
        """Return a new variable for each state."""
        first = self._variables + 1
        self._variables += self.states
        return range(first, first + self.states)

    def _add(self, clauses: Iterable[Clause]) -> None:
        for clause in clauses:
            self._solver.add_clause(clause)
            self.clauses += 1

    def _follow_part(self) -> None:
        """Add clauses for the nodes and outputs that the part has gained."""
        part = self._part
        for node in range(len(self._color), len(part.parent)):
            self._tick()
            self._color.append(self._new())
            self._add(_exactly_one(self._color[node]))
            if node > 0:
                above = self._color[part.parent[node]]
                self._add(_follow(above, self._step[part.label[node]], self._color[node]))
        for node, alpha, output in part.outputs[self._outputs_added :]:
            variables = self._output.setdefault(alpha, {})
            if output not in variables:
                variables[output] = self._new()
                self._add(
                    [-new, -old]
                    for existing in variables.values()
                    if existing is not variables[output]
                    for new, old in zip(variables[output], existing, strict=True)
                )
            pairs = zip(self._color[node], variables[output], strict=True)
            self._add([-color, variable] for color, variable in pairs)
        self._outputs_added = len(part.outputs)

    def _break_symmetry(self) -> None:
        """Fix the colors of incompatible nodes; other nodes take new colors in order."""
        clique = self._part.clique()
        if len(clique) > self.states:
            self._add([[]])
            return
        self._add([self._color[node][color]] for color, node in enumerate(clique))
        free = range(len(clique), self.states)
        used: range | None = None  # the colors that the nodes so far have
        for node in [node for node in self._part.heaviest() if node not in clique][:ORDERED]:
            colors, before, used = self._color[node], used, self._new()
            for i in free:
                if i > free.start:
                    self._add([[-colors[i], *([before[i - 1]] if before else [])]])
                self._add([[-used[i], colors[i], *([before[i]] if before else [])]])

    def _table(self) -> Table:
        """Return the table of the solver's model, its initial state swapped with 0."""
        model = self._solver.get_model()
        true = {variable for variable in model if variable > 0}
        self._root = next(i for i, var in enumerate(self._color[0]) if var in true)
        table = np.empty((self.states, len(self._step)), np.int32)
        for label, by_state in enumerate(self._step):
            for i, targets in enumerate(by_state):
                target = next(j for j, variable in enumerate(targets) if variable in true)
                table[self._swap(i), label] = self._swap(target)
        return table

    def _swap(self, state: int) -> int:
        return {0: self._root, self._root: 0}.get(state, state)


def _exactly_one(variables: range) -> Iterator[Clause]:
    yield [*variables]
    yield from ([-first, -second] for first, second in combinations(variables, 2))


def _follow(above: range, step: list[range], below: range) -> Iterator[Clause]:
    """Yield clauses: a node has the color to which its label leads from its parent's color."""
    for source, targets in zip(above, step, strict=True):
        for target, color in zip(targets, below, strict=True):
            yield [-source, -target, color]
            yield [-source, -color, target]
