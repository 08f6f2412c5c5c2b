"""A SAT solver for machines of one size, as a coloring of a prefix tree.

Input: distinct traces of samples, and a number of states. Output: a transition table that fits all
of them, or the proof that none exists.

The solver sees a prefix tree of some traces (`Part`), which grows. Traces are ordered by a digest
of their content, so that the first ones are as good as a random sample, whatever their order.

Variables: node v has color i; label l leads from state i to state j; state i has output o for an
α-input. Heule and Verwer, "Exact DFA identification using SAT solvers" (2010), with many α-inputs
in place of acceptance.
"""

import hashlib
import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import MissingExtra
from resolvent.inference.state_merging import PrefixTree
from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE
from resolvent.traces.vocabulary import Codes

Table: TypeAlias = NDArray[np.int32]
"""Transitions by state and label; state 0 is initial. Total, unless it is canonical."""

TOP_NODES: Final = 1000
"""Maximum number of the shortest label sequences that are given with all their outputs."""

TOP_TRACES: Final = 20_000
"""Number of traces from which these are read."""

OUTPUTS: Final = 4000
"""Number of further outputs in the first part, in whole traces. A part large enough to determine
the machine is easier than a tiny one: proofs are longest near the threshold where a smaller machine
just fits (docs/decisions/inference.md)."""

ROWS: Final = 20_000
"""Number of rows of a single trace that are given before a conflict needs more."""

HEAVIEST: Final = 64
"""Number of nodes among which a clique is searched."""


@dataclass(frozen=True, eq=False)
class DistinctTraces:
    """The distinct traces of samples as plain columns, which can be sent to workers.

    `codes` are the codes of the labels that occur; in `beta` and in tables these are numbered from
    0, in this order.
    """

    alpha: Codes
    output: Codes
    beta: Codes
    offsets: NDArray[np.int64]
    codes: Codes

    @classmethod
    def of(cls, samples: SampleSet) -> "DistinctTraces":
        """Return the distinct traces of samples, in the order of a digest of their content."""
        columns = np.stack([samples.beta, samples.alpha, samples.output], axis=1)
        columns[columns[:, 1] == NONE, 2] = NONE  # without a query there is no output
        spans = {
            hashlib.blake2b(columns[start:stop].tobytes(), digest_size=16).digest(): (start, stop)
            for start, stop in pairwise(samples.offsets.tolist())
        }
        in_order = [spans[digest] for digest in sorted(spans)]
        rows = np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in in_order)])
        offsets = np.cumsum([0, *(stop - start for start, stop in in_order)], dtype=np.int64)
        codes = np.unique(samples.beta[samples.beta != NONE])
        dense = np.full(len(samples.labels), NONE, np.int32)
        dense[codes] = np.arange(len(codes), dtype=np.int32)
        beta = _core.recode(samples.beta[rows], dense)
        return cls(samples.alpha[rows], samples.output[rows], beta, offsets, codes)

    @property
    def labels(self) -> int:
        """Number of labels that occur."""
        return len(self.codes)

    @cached_property
    def evidence(self) -> _core.OutputTree:
        """The outputs after each label sequence, for the compiled core; built once."""
        tree = _core.build_history_tree(self.beta, self.offsets)
        return _core.output_tree(tree, self.alpha, self.output, self.labels)

    def clash(self, table: Table) -> tuple[int, int] | None:
        """Return two rows with different outputs in the same state, or None."""
        return _core.first_conflict(
            table.ravel(), self.labels, self.alpha, self.output, self.beta, self.offsets
        )

    def canonical(self, table: Table) -> Table:
        """Number states in the order of their first visit; drop unused transitions."""
        flat = self.evidence.canonical(table.ravel())
        # Without labels a machine has one state, and its table no entries.
        return flat.reshape(-1, self.labels) if self.labels else flat.reshape(1, 0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "evidence"}


class Part:
    """Some of the distinct traces, as a prefix tree that only grows.

    `rows` lists the outputs of nodes as (node, α-input, output), in order of addition.
    """

    def __init__(self, traces: DistinctTraces, outputs: int = OUTPUTS) -> None:
        self._traces = traces
        self.tree = PrefixTree()
        self.tree.add(NONE, NONE)
        self.rows: list[tuple[int, int, int]] = []
        self._stop: dict[int, int] = {}  # by trace: the row before which it was added
        self._next = 0
        self._add_top()
        top = len(self.rows)
        while len(self.rows) < top + outputs and self._add_next():
            pass

    def grow(self, clash: tuple[int, int]) -> None:
        """Add both traces of a clash up to the clash, and some more traces."""
        offsets = self._traces.offsets
        for row in clash:
            trace = int(np.searchsorted(offsets, row, side="right")) - 1
            self._add(trace, max(row + 1, int(offsets[trace]) + ROWS))
        for _ in range(len(self._stop) // 8):
            self._add_next()

    def heaviest(self) -> list[int]:
        """Return the nodes with the most outputs at and below them."""
        weight = [len(outputs) for outputs in self.tree.outputs]
        for node in range(len(weight) - 1, 0, -1):
            weight[self.tree.parent[node]] += weight[node]
        return sorted(range(len(weight)), key=lambda node: -weight[node])[:HEAVIEST]

    def incompatible(self, u: int, v: int) -> bool:
        """Return whether no machine can be in the same state at two nodes."""
        outputs, children, pairs = self.tree.outputs, self.tree.children, [(u, v)]
        while pairs:
            u, v = pairs.pop()
            smaller, larger = sorted((outputs[u], outputs[v]), key=len)
            if any(larger.get(alpha, output) != output for alpha, output in smaller.items()):
                return True
            below = children[v]
            pairs += [(child, below[x]) for x, child in children[u].items() if x in below]
        return False

    def clique(self) -> list[int]:
        """Return a large set of nodes that are pairwise incompatible, found greedily."""
        nodes = self.heaviest()
        pairs = {pair for pair in combinations(nodes, 2) if self.incompatible(*pair)}
        neighbors = {u: {v for v in nodes if (u, v) in pairs or (v, u) in pairs} for u in nodes}
        best = nodes[:1]
        for start in nodes:
            clique, candidates = [start], neighbors[start]
            while candidates:
                node = max(sorted(candidates), key=lambda v: len(neighbors[v] & candidates))
                clique.append(node)
                candidates = candidates & neighbors[node]
            best = max(best, clique, key=len)
        return best

    def _add_top(self) -> None:
        """Add the beginning of all traces, to a depth with few label sequences."""
        traces = self._traces
        offsets = traces.offsets
        depth, size, level = 0, 1, 1  # of a full tree over the labels
        while traces.labels and size + level * traces.labels <= TOP_NODES:
            depth, level = depth + 1, level * traces.labels
            size += level
        read = np.concatenate([[0], np.cumsum(traces.beta != NONE)])
        stops = np.searchsorted(read, read[offsets[:-1]] + depth, side="right") - 1
        for trace, stop in enumerate(np.minimum(stops, offsets[1:]).tolist()[:TOP_TRACES]):
            self._add(trace, stop)

    def _add_next(self) -> bool:
        if self._next >= len(self._traces.offsets) - 1:
            return False
        self._add(self._next, int(self._traces.offsets[self._next]) + ROWS)
        self._next += 1
        return True

    def _add(self, trace: int, stop: int) -> None:
        """Add the rows of a trace before `stop`."""
        traces = self._traces
        start, end = traces.offsets[trace : trace + 2].tolist()
        stop = min(end, stop)
        if stop <= self._stop.get(trace, start):
            return
        self._stop[trace] = stop
        queries = np.flatnonzero(traces.alpha[start:stop] != NONE)
        rows = slice(start, start + int(queries[-1]) + 1 if len(queries) else start)
        columns = (traces.beta[rows], traces.alpha[rows], traces.output[rows])
        tree, node = self.tree, 0
        for beta, alpha, output in zip(*(column.tolist() for column in columns), strict=True):
            if beta != NONE:
                node = tree.child(node, beta)
            if alpha != NONE and alpha not in tree.outputs[node]:
                tree.outputs[node][alpha] = output
                self.rows.append((node, alpha, output))


# ---- the solver --------------------------------------------------------------

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


def require_sat_solver() -> Any:
    """Import python-sat, or raise `MissingExtra`."""
    try:
        return importlib.import_module("pysat.solvers")
    except ImportError as error:
        raise MissingExtra(
            'proving machines minimal needs a SAT solver: pip install "resolvent[exact]"'
        ) from error


class SizeSolver:
    """Machines with one number of states that explain all samples, or the proof of none.

    The solver sees a `part` of the samples, which grows by conflicts with the others. `tick` is
    called often and may raise, to stop. With a `seed` above 0 the solver first tries random values,
    which may lead to another solution.
    """

    def __init__(
        self,
        traces: DistinctTraces,
        part: Part,
        states: int,
        tick: Callable[[], None],
        seed: int = 0,
    ) -> None:
        self.calls = 0
        self._traces, self._part, self._states, self._tick = traces, part, states, tick
        self._solver = require_sat_solver().Solver(name=SOLVER)
        self._variables = 0
        self._color: list[range] = []  # by node: variables by state
        self._step = [  # by label and state: variables by next state
            [self._new() for _ in range(states)] for _ in range(traces.labels)
        ]
        self._output: dict[int, dict[int, range]] = {}  # by α-input, output: variables by state
        self._rows_added = 0
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

    def solve(self) -> Table | bool | None:
        """Return a total table that fits all samples, False if there is none, None if undecided."""
        while isinstance(table := self._solve_part(), np.ndarray):
            if (clash := self._traces.clash(table)) is None:
                break
            self._part.grow(clash)
        return table

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
                canonical = self._traces.canonical(table)
                self._block(table, canonical)
                if not np.array_equal(canonical, best):
                    return canonical
            spent += SLICES
        return None

    def close(self) -> None:
        """Free the solver."""
        self._solver.delete()

    def _solve_part(self) -> Table | bool | None:
        """Return a total table that fits the part, False if there is none, None if undecided."""
        self._follow_part()
        for _ in range(SLICES):
            self._tick()
            self.calls += 1
            self._solver.conf_budget(SLICE)
            # With `expect_interrupt` the solver leaves signals to Python.
            satisfiable = self._solver.solve_limited(expect_interrupt=True)
            if satisfiable is not None:
                return self._table() if satisfiable else False
        return None

    def _block(self, table: Table, canonical: Table) -> None:
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

    def _new(self) -> range:
        """Return a new variable for each state."""
        first = self._variables + 1
        self._variables += self._states
        return range(first, first + self._states)

    def _add(self, clauses: Iterable[Clause]) -> None:
        for clause in clauses:
            self._solver.add_clause(clause)

    def _follow_part(self) -> None:
        """Add clauses for the nodes and outputs that the part has gained."""
        part, tree = self._part, self._part.tree
        for node in range(len(self._color), len(tree)):
            self._tick()
            self._color.append(self._new())
            self._add(_exactly_one(self._color[node]))
            if node > 0:
                above = self._color[tree.parent[node]]
                self._add(_follow(above, self._step[tree.label[node]], self._color[node]))
        for node, alpha, output in part.rows[self._rows_added :]:
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
        self._rows_added = len(part.rows)

    def _break_symmetry(self) -> None:
        """Fix the colors of incompatible nodes; other nodes take new colors in order."""
        clique = self._part.clique()
        if len(clique) > self._states:
            self._add([[]])
            return
        self._add([self._color[node][color]] for color, node in enumerate(clique))
        free = range(len(clique), self._states)
        used: range | None = None  # the colors that the nodes so far have
        for node in [node for node in self._part.heaviest() if node not in clique][:ORDERED]:
            colors, before, used = self._color[node], used, self._new()
            for i in free:
                if i > free.start:
                    self._add([[-colors[i], *([before[i - 1]] if before else [])]])
                self._add([[-used[i], colors[i], *([before[i]] if before else [])]])

    def _table(self) -> Table:
        """Return the table of the solver's model, its initial state swapped with 0."""
        true = {variable for variable in self._solver.get_model() if variable > 0}
        self._root = next(i for i, var in enumerate(self._color[0]) if var in true)
        table = np.empty((self._states, len(self._step)), np.int32)
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
