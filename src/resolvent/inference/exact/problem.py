"""The problem of an exact search: distinct traces, and the part of them for solvers.

Input: samples. Output: `Problem`, and `Part`, a prefix tree of some traces that only grows.

Traces are ordered by a digest of their content, so their order and repetition make no difference,
and the first ones are as good as a random sample.
"""

import hashlib
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines.automaton import RawAutomaton, automaton_from_columns
from resolvent.preprocess.samples import SampleSet
from resolvent.preprocess.timing import NONE
from resolvent.traces.vocabulary import Codes

Table: TypeAlias = NDArray[np.int32]
"""Transitions by state and label; state 0 is initial. Total, unless it is canonical."""

TOP_NODES: Final = 1000
"""Maximum number of the shortest histories that are given with all their outputs."""

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


class Question:
    """Distinct traces as plain columns, which can be sent to workers.

    `labels` is the number of labels that occur; others are left out.
    """

    def __init__(
        self, alpha: Codes, output: Codes, beta: Codes, offsets: NDArray[np.int64], labels: int
    ) -> None:
        self.alpha, self.output, self.beta = alpha, output, beta
        self.offsets = offsets
        self.labels = labels

    @cached_property
    def evidence(self) -> _core.AnswerTree:
        """The outputs after each history, for the compiled core; built once."""
        tree = _core.build_history_tree(self.beta, self.offsets)
        return _core.answer_tree(tree, self.alpha, self.output, self.labels)

    def clash(self, table: Table) -> tuple[int, int] | None:
        """Return two rows with different outputs in the same state, or None."""
        return _core.first_clash(
            table.ravel(), self.labels, self.alpha, self.output, self.beta, self.offsets
        )

    def canonical(self, table: Table) -> Table:
        """Number states in the order of their first visit; drop unused transitions."""
        flat = self.evidence.settle(table.ravel())
        # Without labels a machine has one state, and its table no entries.
        return flat.reshape(-1, self.labels) if self.labels else flat.reshape(1, 0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "evidence"}


class Problem(Question):
    """The question of some samples, and the automata of the tables that answer it."""

    def __init__(self, samples: SampleSet) -> None:
        self._samples = samples
        self._codes = np.unique(samples.beta[samples.beta != NONE])
        dense = np.full(len(samples.labels), NONE, np.int32)
        dense[self._codes] = np.arange(len(self._codes), dtype=np.int32)
        rows, offsets = _distinct_traces(samples)
        super().__init__(
            samples.alpha[rows],
            samples.output[rows],
            _core.recode(samples.beta[rows], dense),
            offsets,
            len(self._codes),
        )

    @property
    def question(self) -> Question:
        """The question alone."""
        return Question(self.alpha, self.output, self.beta, self.offsets, self.labels)

    def table_of(self, automaton: RawAutomaton) -> Table:
        """Return the canonical table of an automaton that explains the samples."""
        full = np.zeros((automaton.states, len(self._samples.labels)), np.int32)
        full[automaton.transition_state, automaton.transition_label] = automaton.transition_target
        return self.canonical(np.ascontiguousarray(full[:, self._codes]))

    def automaton(self, canonical: Table) -> RawAutomaton:
        """Return the automaton with this canonical table and the outputs of all samples."""
        samples = self._samples
        full = np.full((len(canonical), len(samples.labels)), NONE, np.int32)
        full[:, self._codes] = canonical
        tree = samples.histories.tree
        columns = _core.merge_as(
            tree, samples.alpha, samples.output, full.ravel(), len(samples.labels)
        )
        return automaton_from_columns(columns, len(tree))


def _distinct_traces(samples: SampleSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of each distinct trace, trace after trace, and where traces begin."""
    columns = np.stack([samples.beta, samples.alpha, samples.output], axis=1)
    columns[columns[:, 1] == NONE, 2] = NONE  # without a query there is no output
    spans = {
        hashlib.blake2b(columns[start:stop].tobytes(), digest_size=16).digest(): (start, stop)
        for start, stop in pairwise(samples.offsets.tolist())
    }
    in_order = [spans[digest] for digest in sorted(spans)]
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in in_order)])
    return rows, np.cumsum([0, *(stop - start for start, stop in in_order)], dtype=np.int64)


class Part:
    """Some traces of a problem, as a tree that only grows.

    `parent`, `label` and `children` are by node, in the order of addition; `answers[v]` maps
    α-inputs to outputs, and `outputs` lists them as (node, α-input, output) in order of addition.
    """

    def __init__(self, problem: Question, outputs: int = OUTPUTS) -> None:
        self.problem = problem
        self.parent = [NONE]
        self.label = [NONE]
        self.children: list[dict[int, int]] = [{}]
        self.answers: list[dict[int, int]] = [{}]
        self.outputs: list[tuple[int, int, int]] = []
        self._stop: dict[int, int] = {}  # by trace: the row before which it was added
        self._next = 0
        self._add_top()
        top = len(self.outputs)
        while len(self.outputs) < top + outputs and self._add_next():
            pass

    @property
    def traces(self) -> int:
        """Number of traces in it."""
        return len(self._stop)

    def grow(self, clash: tuple[int, int]) -> None:
        """Add both traces of a clash up to the clash, and some more traces."""
        for row in clash:
            trace = int(np.searchsorted(self.problem.offsets, row, side="right")) - 1
            self._add(trace, max(row + 1, int(self.problem.offsets[trace]) + ROWS))
        for _ in range(self.traces // 8):
            self._add_next()

    def heaviest(self) -> list[int]:
        """Return the nodes with the most outputs at and below them."""
        weight = [len(answers) for answers in self.answers]
        for node in range(len(weight) - 1, 0, -1):
            weight[self.parent[node]] += weight[node]
        return sorted(range(len(weight)), key=lambda node: -weight[node])[:HEAVIEST]

    def incompatible(self, u: int, v: int) -> bool:
        """Return whether no machine can be in the same state at two nodes."""
        pairs = [(u, v)]
        while pairs:
            u, v = pairs.pop()
            smaller, larger = sorted((self.answers[u], self.answers[v]), key=len)
            if any(larger.get(alpha, output) != output for alpha, output in smaller.items()):
                return True
            below = self.children[v]
            pairs += [(child, below[x]) for x, child in self.children[u].items() if x in below]
        return False

    def clique(self) -> list[int]:
        """Return a large set of nodes that are pairwise incompatible, found greedily."""
        nodes = self.heaviest()
        neighbors: dict[int, set[int]] = {node: set() for node in nodes}
        for u, v in combinations(nodes, 2):
            if self.incompatible(u, v):
                neighbors[u].add(v)
                neighbors[v].add(u)
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
        """Add the beginning of all traces, to a depth with few histories."""
        offsets = self.problem.offsets
        depth = _depth_of(TOP_NODES, self.problem.labels)
        read = np.concatenate([[0], np.cumsum(self.problem.beta != NONE)])
        stops = np.searchsorted(read, read[offsets[:-1]] + depth, side="right") - 1
        for trace, stop in enumerate(np.minimum(stops, offsets[1:]).tolist()[:TOP_TRACES]):
            self._add(trace, stop)

    def _add_next(self) -> bool:
        if self._next >= len(self.problem.offsets) - 1:
            return False
        start = int(self.problem.offsets[self._next])
        self._add(self._next, start + ROWS)
        self._next += 1
        return True

    def _add(self, trace: int, stop: int) -> None:
        """Add the rows of a trace before `stop`."""
        start, end = self.problem.offsets[trace : trace + 2].tolist()
        stop = min(end, stop)
        if stop <= self._stop.get(trace, start):
            return
        self._stop[trace] = stop
        queries = np.flatnonzero(self.problem.alpha[start:stop] != NONE)
        rows = slice(start, start + int(queries[-1]) + 1 if len(queries) else start)
        node = 0
        for beta, alpha, output in zip(
            self.problem.beta[rows].tolist(),
            self.problem.alpha[rows].tolist(),
            self.problem.output[rows].tolist(),
            strict=True,
        ):
            if beta != NONE:
                node = self._child(node, beta)
            if alpha != NONE and alpha not in self.answers[node]:
                self.answers[node][alpha] = output
                self.outputs.append((node, alpha, output))

    def _child(self, node: int, label: int) -> int:
        child = self.children[node].get(label)
        if child is None:
            child = self.children[node][label] = len(self.parent)
            self.parent.append(node)
            self.label.append(label)
            self.children.append({})
            self.answers.append({})
        return child


def _depth_of(nodes: int, labels: int) -> int:
    """Return the largest depth at which a full tree over some labels has at most `nodes` nodes."""
    depth, size, level = 0, 1, 1
    while labels and size + level * labels <= nodes:
        depth, level = depth + 1, level * labels
        size += level
    return depth
