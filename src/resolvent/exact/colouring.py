"""A machine of so many states as a colouring of a prefix tree, put to a SAT solver.

Variables: node v has colour i; label l leads from state i to state j; state i
answers alpha with output o. Heule and Verwer, "Exact DFA identification using
SAT solvers" (2010), with answers to many questions in place of one.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from resolvent.errors import MissingExtra
from resolvent.exact.part import Part
from resolvent.exact.problem import Table
from resolvent.samples import NONE

SOLVER = "glucose4"
"""The fastest of those measured (docs/decisions/exact-search.md)."""

SLICE = 250
"""Conflicts between two looks at the clock; the solver stops at its next restart."""

ORDERED = 30
"""How many nodes take new colours in order, so that renamings are searched once."""

Clause = list[int]


def import_solvers() -> Any:
    """Import python-sat, or say which extra is missing."""
    try:
        return importlib.import_module("pysat.solvers")
    except ImportError as error:
        raise MissingExtra(
            'proving machines minimal needs a SAT solver: pip install "resolvent[exact]"'
        ) from error


class Colouring:
    """One number of states, one solver; clauses follow as the part grows.

    `tick` is called often and may raise, to stop. With a `seed` above 0 the solver first tries
    values that are drawn by it, and so takes another path to the same verdict.
    """

    def __init__(self, part: Part, states: int, tick: Callable[[], None], seed: int = 0) -> None:
        self.states = states
        self.clauses = 0
        self.calls = 0
        self._part = part
        self._tick = tick
        self._solver = import_solvers().Solver(name=SOLVER)
        self._variables = 0
        self._colour: list[range] = []  # by node: variables by state
        self._step = [  # by label and state: variables by next state
            [self._new() for _ in range(states)] for _ in range(part.problem.labels)
        ]
        self._answer: dict[int, dict[int, range]] = {}  # by alpha and output: variables by state
        self._told = 0
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
            found = self._solver.solve_limited(expect_interrupt=True)
            if found is not None:
                return self._table() if found else False
        return None

    def block(self, table: Table, settled: Table) -> None:
        """Rule out the last table found, in all that its settled form says of it."""
        state = {0: 0}
        clause = [-self._colour[0][self._root]]  # it may start elsewhere
        for i, row in enumerate(settled.tolist()):  # states are numbered as they are met
            for label, j in enumerate(row):
                if j != NONE:
                    source, target = state[i], int(table[state[i], label])
                    state[j] = target
                    clause.append(-self._step[label][self._swap(source)][self._swap(target)])
        self._add([clause])

    def close(self) -> None:
        """Let go of the solver."""
        self._solver.delete()

    def _new(self) -> range:
        """Make a variable for each state."""
        first = self._variables + 1
        self._variables += self.states
        return range(first, first + self.states)

    def _add(self, clauses: Iterable[Clause]) -> None:
        for clause in clauses:
            self._solver.add_clause(clause)
            self.clauses += 1

    def _follow_part(self) -> None:
        """Say what the part has gained since."""
        part = self._part
        for node in range(len(self._colour), len(part.parent)):
            self._tick()
            self._colour.append(self._new())
            self._add(_exactly_one(self._colour[node]))
            if node > 0:
                above = self._colour[part.parent[node]]
                self._add(_follow(above, self._step[part.label[node]], self._colour[node]))
        for node, alpha, output in part.told[self._told :]:
            answers = self._answer.setdefault(alpha, {})
            if output not in answers:
                answers[output] = self._new()
                self._add(
                    [-new, -old]
                    for other in answers.values()
                    if other is not answers[output]
                    for new, old in zip(answers[output], other, strict=True)
                )
            pairs = zip(self._colour[node], answers[output], strict=True)
            self._add([-colour, answer] for colour, answer in pairs)
        self._told = len(part.told)

    def _break_symmetry(self) -> None:
        """Fix the colours of nodes that must differ; others take new colours in order."""
        clique = self._part.clique()
        if len(clique) > self.states:
            self._add([[]])
            return
        self._add([self._colour[node][colour]] for colour, node in enumerate(clique))
        free = range(len(clique), self.states)
        taken: range | None = None  # which colours the nodes so far have taken
        for node in [node for node in self._part.heaviest() if node not in clique][:ORDERED]:
            colours, before, taken = self._colour[node], taken, self._new()
            for i in free:
                if i > free.start:
                    self._add([[-colours[i], *([before[i - 1]] if before else [])]])
                self._add([[-taken[i], colours[i], *([before[i]] if before else [])]])

    def _table(self) -> Table:
        """Read the last answer, its initial state swapped with 0."""
        model = self._solver.get_model()
        true = {variable for variable in model if variable > 0}
        self._root = next(i for i, var in enumerate(self._colour[0]) if var in true)
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
    """Say that a node's colour is where its label leads from the colour above it."""
    for source, targets in zip(above, step, strict=True):
        for target, colour in zip(targets, below, strict=True):
            yield [-source, -target, colour]
            yield [-source, -colour, target]
