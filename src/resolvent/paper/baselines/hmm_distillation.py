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
    """The automaton, or why there is none, and what it took.

    `merged_by_label` counts merges because a label led to two states, and
    `merged_as_irrelevant` those of the two ends of an edge whose label does nothing.
    `folded` says how many states were left out afterwards, since they only knew
    fewer labels than another.
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
    """Which states are one. The end is the largest number, and never merged with another."""

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

    def merge(self, one: int, other: int, label: Label) -> bool:
        """Make two states one that a label cannot tell apart; say whether they were two."""
        kept, gone = sorted((self.find(one), self.find(other)))
        if kept == gone:
            return False
        if gone == self.end:
            raise _Contradiction(
                f"after one history, {label_text(label)!r} both ends the task and does not"
            )
        self._parent[gone] = kept
        return True


def distil(
    weights: Numbers, task: ReachTask, *, threshold: float, irrelevant: Collection[Label]
) -> Distillation:
    """Read the automaton of a task off fitted transitions, whose probabilities are the weights.

    1. Transitions above the threshold that can be reached from where traces begin
       are edges; all states of the last layer are one, the end.
    2. Cone lumping: while a label leads from one state to two, these are merged.
       The states that traces begin in are one from the start, as nothing has been
       read yet.
    3. Bias removal: the ends of an edge with an irrelevant label are merged, and so
       on until nothing changes.
    4. A state is folded into an earlier one where no label tells them apart. This is
       not in the published method. It changes no answer to labels that can follow
       each other in these places, and keeps a place that only some labels can
       follow from counting as a state of its own.
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
    found = {*queue, end}
    arrows = []
    for source in queue:
        for state in np.flatnonzero(weights[source] > threshold).tolist():
            target = min(state, end)
            arrows.append((source, task.labels[state % len(task.labels)], target))
            if target not in found:
                found.add(target)
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
    """Fold each state into the first before it that no label tells it apart from."""
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


def _folded(rows: Table, classes: _Classes, one: int, other: int) -> Table:
    """Merge two states and all that this forces; return the rows of those that are kept."""
    changed: Table = {}
    pairs: list[tuple[int, int, Label]] = [(one, other, frozenset())]
    for first, second, read in pairs:
        kept, gone = sorted((classes.find(first), classes.find(second)))
        if classes.merge(kept, gone, read):
            row = changed[kept] = dict(changed.get(kept, rows[kept]))
            for label, target in changed.get(gone, rows[gone]).items():
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
