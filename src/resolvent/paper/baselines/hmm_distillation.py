"""Transition probabilities over layers and places → a deterministic automaton over labels.

Hidden states are numbered as in `expectation.py`. Each transition that is likely
enough becomes an edge that carries the label of the place it leads to; then states
are merged until every label leads from a state to one other.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from resolvent.machines.io.edge_rewards import Edge, EdgeRewardMachine
from resolvent.machines.io.guards import Guard
from resolvent.paper.baselines.hmm_em import Numbers
from resolvent.paper.baselines.reach_task import ReachTask
from resolvent.traces.symbols import Label, label_order, label_text

Arrow: TypeAlias = tuple[int, Label, int]
Table: TypeAlias = dict[int, dict[Label, int]]


@dataclass(frozen=True)
class Distillation:
    """The automaton, or the reason for its absence, with counts of merges.

    `merged_by_label` counts merges of states that one label led to, and
    `merged_as_irrelevant` merges of the two ends of an edge with an irrelevant label.
    `folded` is the number of states folded into others afterwards.
    """

    machine: EdgeRewardMachine | None
    contradiction: str | None
    edges: int
    merged_by_label: int = 0
    merged_as_irrelevant: int = 0
    folded: int = 0


class _Contradiction(Exception):  # noqa: N818
    """A label would both end the task and not end it."""


class _Classes:
    """Classes of merged states. The end has the largest number and is never merged."""

    def __init__(self, end: int) -> None:
        self._parent = list(range(end + 1))
        self.end = end

    def copy(self) -> "_Classes":
        twin = _Classes(self.end)
        twin._parent = list(self._parent)
        return twin

    def find(self, state: int) -> int:
        while self._parent[state] != state:
            self._parent[state] = self._parent[self._parent[state]]
            state = self._parent[state]
        return state

    def merge(self, first: int, second: int, label: Label) -> bool:
        """Merge two states that a label leads to; return whether they were separate."""
        root, absorbed = sorted((self.find(first), self.find(second)))
        if root == absorbed:
            return False
        if absorbed == self.end:
            raise _Contradiction(
                f"after one history, {label_text(label)!r} both ends the task and does not"
            )
        self._parent[absorbed] = root
        return True


def distil(
    weights: Numbers, task: ReachTask, *, threshold: float, irrelevant: Collection[Label]
) -> Distillation:
    """Read the automaton of a task off fitted transitions, whose probabilities are the weights.

    1. Transitions above the threshold that are reachable from the starts are edges; all
       states of the last layer are one, the end.
    2. Cone lumping: while a label leads from one state to two, these are merged.
       The initial states are merged first, as nothing has been read yet.
    3. Bias removal: the ends of an edge with an irrelevant label are merged, until
       nothing changes.
    4. A state is folded into an earlier one that no label distinguishes from it. This is
       not in the published method. It changes no answer to label sequences that are possible
       in these places, and prevents a place that only some labels can follow from counting
       as a separate state.
    """
    arrows = _likely_arrows(weights, task, threshold)
    classes = _Classes(len(weights) - len(task.labels))
    start = int(task.starts.min())
    try:
        for place in np.unique(task.starts).tolist():
            classes.merge(start, place, frozenset())
        by_label, as_irrelevant = _merge_to_fixpoint(arrows, classes, irrelevant)
    except _Contradiction as contradiction:
        return Distillation(None, str(contradiction), len(arrows))
    table, end = _numbered(arrows, classes, start)
    folded, end_after = _fold(table, end)
    machine = _machine(folded, end_after, task.reward)
    return Distillation(machine, None, len(arrows), by_label, as_irrelevant, end - end_after)


def _likely_arrows(weights: Numbers, task: ReachTask, threshold: float) -> list[Arrow]:
    """Return the edges that can be reached, in the order of a breadth-first search."""
    end = len(weights) - len(task.labels)
    queue = np.unique(task.starts).tolist()
    reached = {*queue, end}
    arrows = []
    for source in queue:
        for state in np.flatnonzero(weights[source] > threshold).tolist():
            target = min(state, end)
            arrows.append((source, task.labels[state % len(task.labels)], target))
            if target not in reached:
                reached.add(target)
                queue.append(target)
    return arrows


def _merge_to_fixpoint(
    arrows: list[Arrow], classes: _Classes, irrelevant: Collection[Label]
) -> tuple[int, int]:
    by_label = as_irrelevant = -1
    total = [0, 0]
    while by_label or as_irrelevant:
        by_label = as_irrelevant = 0
        leads_to: dict[tuple[int, Label], int] = {}
        for source, label, target in arrows:
            if label in irrelevant:
                as_irrelevant += classes.merge(source, target, label)
            first = leads_to.setdefault((classes.find(source), label), target)
            by_label += classes.merge(first, target, label)
        total = [total[0] + by_label, total[1] + as_irrelevant]
    return total[0], total[1]


def _numbered(arrows: list[Arrow], classes: _Classes, start: int) -> tuple[Table, int]:
    """Number classes breadth-first from 0 in label order; the end comes last and has no row."""
    rows: Table = {}
    for source, label, target in arrows:
        rows.setdefault(classes.find(source), {})[label] = classes.find(target)
    number = {classes.find(start): 0}
    queue = list(number)
    for state in queue:
        row = rows.get(state, {})
        for label in sorted(row, key=label_order):
            if row[label] != classes.end and row[label] not in number:
                number[row[label]] = len(number)
                queue.append(row[label])
    end = number[classes.end] = len(number)
    table = {
        number[state]: {label: number[target] for label, target in rows.get(state, {}).items()}
        for state in queue
    }
    return table, end


def _fold(table: Table, end: int) -> tuple[Table, int]:
    """Fold each state into the first earlier one that no label distinguishes from it."""
    classes, rows = _Classes(end), dict(table)
    for later in range(1, end):
        for earlier in range(later):
            if classes.find(later) != later or classes.find(earlier) != earlier:
                continue
            trial = classes.copy()
            try:
                changed = _folded(rows, trial, earlier, later)
            except _Contradiction:
                continue
            classes = trial
            rows |= changed
    arrows = [(source, label, to) for source, row in table.items() for label, to in row.items()]
    return _numbered(arrows, classes, 0)


def _folded(rows: Table, classes: _Classes, left: int, right: int) -> Table:
    """Merge two states and all that this forces; return the changed rows."""
    changed: Table = {}
    pairs: list[tuple[int, int, Label]] = [(left, right, frozenset())]
    for first, second, read in pairs:
        root, absorbed = sorted((classes.find(first), classes.find(second)))
        if classes.merge(root, absorbed, read):
            row = changed[root] = dict(changed.get(root, rows[root]))
            for label, target in changed.get(absorbed, rows[absorbed]).items():
                pairs.append((row.setdefault(label, target), target, label))
    return changed


def _machine(table: Table, end: int, reward: float) -> EdgeRewardMachine:
    names = frozenset[str]().union(*(label for row in table.values() for label in row))
    labels_of: dict[tuple[int, int], list[Label]] = {}
    for source, row in table.items():
        for label, target in row.items():
            labels_of.setdefault((source, target), []).append(label)
    edges = tuple(
        Edge(
            source,
            target,
            Guard.exactly(sorted(labels, key=label_order), names),
            reward if target == end else 0.0,
        )
        for (source, target), labels in sorted(labels_of.items())
    )
    return EdgeRewardMachine(0, frozenset({end}), edges)
