"""Red-blue state merging in Python, close to the paper's pseudocode.

Input: samples and an order of merging. Output: an automaton. It is the executable specification;
the native engine makes the same decisions, many times faster.

A fold works on the tree in place and records its changes, so that a failed attempt costs the nodes
it touched and never a copy of the tree.

Invariant: red states form the automaton so far, and below a state that is not red there is still a
tree, because merges only ever target red states. So a fold meets each node below blue once.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.parallel import Progress
from resolvent.errors import TimeLimitReached
from resolvent.machines.build import (
    RawAutomaton,
    RawMergeEvent,
    StateLimitExceeded,
    automaton_from_columns,
)
from resolvent.preprocess.samples import ContradictoryRows, SampleSet
from resolvent.preprocess.timing import NONE
from resolvent.traces.vocabulary import Codes

MergeCheck: TypeAlias = Callable[[int, int], bool]
"""Returns whether a strategy allows merging a state: `may_merge(into, state)`."""

Watcher: TypeAlias = Callable[[Progress], object]
"""Called now and then with the progress of one search."""


# ---- the prefix tree ---------------------------------------------------------


@dataclass(slots=True)
class PrefixTree:
    """A tree that merging folds, in place, into an automaton.

    It has one node for each distinct label sequence; the paper calls it the prefix tree transducer.
    Nodes are numbered in shortlex order: by length, then label by label. The root is 0.

    `children[v]` maps labels to nodes, `outputs[v]` α-inputs to outputs, and `counts[v]` α-inputs
    to how often they were observed; these change as states are merged. The other fields describe
    the tree as it was built: `visits[v]` is the number of times that traces reach the node.
    """

    parent: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    children: list[dict[int, int]] = field(default_factory=list)
    outputs: list[dict[int, int]] = field(default_factory=list)
    counts: list[dict[int, int]] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.parent)

    def child(self, node: int, label: int) -> int:
        """Return the node after a label, and add it if there is none."""
        child = self.children[node].get(label)
        return self.add(node, label) if child is None else child

    def add(self, parent: int, label: int) -> int:
        """Add a node below `parent` and return its number."""
        node = len(self)
        self.parent.append(parent)
        self.label.append(label)
        self.visits.append(0)
        for symbols in (self.children, self.outputs, self.counts):
            symbols.append({})
        if parent != NONE:
            self.children[parent][label] = node
        return node


def build_prefix_tree(samples: SampleSet) -> PrefixTree:
    """Build the tree that represents the samples exactly, without generalizing.

    Paper: BuildPTT in "DB-RPNI Pseudocode".

    Raises:
        ContradictoryRows: when one label sequence has two outputs for one α-input.
    """
    unsorted = PrefixTree()
    unsorted.add(NONE, NONE)
    node_of_row: list[int] = []
    beta = samples.beta.tolist()
    for start, stop in pairwise(samples.offsets.tolist()):
        node = 0
        unsorted.visits[0] += 1
        for label in beta[start:stop]:
            if label != NONE:
                node = unsorted.child(node, label)
                unsorted.visits[node] += 1
            node_of_row.append(node)
    tree, number = _in_shortlex_order(unsorted)
    node_of_row = [number[node] for node in node_of_row]
    _set_outputs(tree, samples, node_of_row)
    return tree


def _in_shortlex_order(tree: PrefixTree) -> tuple[PrefixTree, dict[int, int]]:
    """Return a tree without outputs in shortlex order, and the new number of each node."""
    ordered, number, queue = PrefixTree(), {NONE: NONE}, [0]
    for node in queue:  # breadth first, children in label order
        number[node] = ordered.add(number[tree.parent[node]], tree.label[node])
        ordered.visits[number[node]] = tree.visits[node]
        queue += [child for _, child in sorted(tree.children[node].items())]
    return ordered, number


def _set_outputs(tree: PrefixTree, samples: SampleSet, node_of_row: list[int]) -> None:
    contradictions = []
    rows = zip(node_of_row, samples.alpha.tolist(), samples.output.tolist(), strict=True)
    first_row: dict[tuple[int, int], int] = {}
    for row, (node, alpha, output) in enumerate(rows):
        if alpha == NONE:
            continue
        first = first_row.setdefault((node, alpha), row)
        if tree.outputs[node].setdefault(alpha, output) != output:
            contradictions.append((node, alpha, first, row))
        tree.counts[node][alpha] = tree.counts[node].get(alpha, 0) + 1
    if contradictions:
        _, _, first, second = min(contradictions)
        raise ContradictoryRows(first, second)


# ---- folding -----------------------------------------------------------------


@dataclass(slots=True)
class Fold:
    """A merge that was made, with all that is needed to undo it.

    `agreeing` is the number of outputs that agreed, `merged` holds the pairs (state, into) that
    became one, those nearest to the merge first. `new_outputs` holds the (state, α-input) that
    gained an output, `moved` the subtrees (parent, label, child) that have another parent now.
    """

    tree: PrefixTree
    redirected: tuple[int, int, int]
    agreeing: int = 0
    merged: list[tuple[int, int]] = field(default_factory=list)
    new_outputs: list[tuple[int, int]] = field(default_factory=list)
    moved: list[tuple[int, int, int]] = field(default_factory=list)

    def undo(self) -> None:
        """Leave the tree as it was before this fold. Only the latest fold can be undone."""
        for state, into in self.merged:
            for alpha, count in self.tree.counts[state].items():
                self.tree.counts[into][alpha] -= count
        for state, alpha in self.new_outputs:
            del self.tree.outputs[state][alpha]
            del self.tree.counts[state][alpha]
        for state, label, _ in self.moved:
            del self.tree.children[state][label]
        parent, label, blue = self.redirected
        self.tree.children[parent][label] = blue

    def agreements(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield each output that agreed: α-input, output, its counts before and in the merge."""
        counts = self.tree.counts
        remaining: Counter[tuple[int, int]] = Counter()
        for state, into in self.merged:
            for alpha, count in counts[state].items():
                remaining[into, alpha] += count
        # Counts are added up already: the count before a pair is the total minus the rest.
        for state, into in self.merged:
            for alpha, count in counts[state].items():
                before = counts[into][alpha] - remaining[into, alpha]
                if before:
                    yield alpha, self.tree.outputs[into][alpha], before, count
                remaining[into, alpha] -= count


@dataclass(frozen=True, slots=True)
class FoldConflict:
    """Two states that the fold would merge, but whose outputs for `alpha` differ.

    `alpha` is None if no output differs, but the strategy forbids the merge. Otherwise the states
    can never be merged, since outputs are only ever added.
    """

    into: int
    state: int
    alpha: int | None


def compatible(tree: PrefixTree, into: int, state: int) -> int | FoldConflict:
    """Return the number of outputs on which two states agree, or the first conflict.

    Paper: "Local Compatibility".
    """
    outputs = tree.outputs[into]
    agreeing = 0
    for alpha, output in tree.outputs[state].items():
        if alpha in outputs:
            if outputs[alpha] != output:
                return FoldConflict(into, state, alpha)
            agreeing += 1
    return agreeing


def try_fold(
    tree: PrefixTree,
    red: int,
    blue: int,
    parent: int,
    label: int,
    horizon: int | None = None,
    may_merge: MergeCheck | None = None,
) -> Fold | FoldConflict:
    """Merge `blue`, the child of the red state `parent` at `label`, into `red`.

    Paper: Mergeable and Merge in "DB-RPNI Pseudocode".

    Returns the `Fold` if each forced pair agrees on all α-inputs that both have seen, and
    `may_merge` allows it; otherwise the first `FoldConflict`, and the tree is unchanged. With a
    `horizon` the fold stops after this number of outputs; such a fold is for scoring and must be
    undone.
    """
    fold = Fold(tree, redirected=(parent, label, blue))
    tree.children[parent][label] = red
    pairs = deque([(red, blue)])
    compared = 0
    while pairs and (horizon is None or compared < horizon):
        into, state = pairs.popleft()
        agreeing = compatible(tree, into, state)
        if isinstance(agreeing, FoldConflict):
            fold.undo()
            return agreeing
        if may_merge is not None and not may_merge(into, state):
            fold.undo()
            return FoldConflict(into, state, None)
        compared += len(tree.outputs[state])
        fold.agreeing += agreeing
        fold.merged.append((state, into))
        outputs, counts = tree.outputs[into], tree.counts[into]
        for alpha, output in tree.outputs[state].items():
            if alpha not in outputs:
                outputs[alpha] = output
                counts[alpha] = 0
                fold.new_outputs.append((into, alpha))
            counts[alpha] += tree.counts[state][alpha]
        for child_label, child in sorted(tree.children[state].items()):
            target = tree.children[into].get(child_label)
            if target is None:
                tree.children[into][child_label] = child
                fold.moved.append((into, child_label, child))
            else:
                pairs.append((target, child))
    return fold


# ---- the merge loop ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Merge:
    """The decision to merge; `fold` has been made already."""

    red: int
    blue: int
    fold: Fold


@dataclass(frozen=True, slots=True)
class Promote:
    """The decision to make a blue state red."""

    blue: int


class Order(Protocol):
    """The order of merging: it decides about one blue state after the other."""

    def decide(self, search: "RedBlue") -> Merge | Promote:
        """Decide about one blue state."""


class RedBlue:
    """The search: red states are final, blue states are their children that are undecided."""

    def __init__(
        self, tree: PrefixTree, watch: "Watch", may_merge: MergeCheck | None = None
    ) -> None:
        self.tree = tree
        self.red: list[int] = []
        self.merges = 0
        self.attempts = 0
        self.events: list[RawMergeEvent] = []
        self.merged_into: dict[int, int] = {}
        self.blue: dict[int, tuple[int, int]] = {}  # its red parent and the label to it
        self._is_red: set[int] = set()
        self._watch = watch
        self._may_merge = may_merge
        self._make_red(0)

    def run(self, order: Order, most_states: int | None = None) -> None:
        """Decide about blue states until there are none.

        Paper: StateMerging in "DB-RPNI Pseudocode".

        Raises:
            StateLimitExceeded: as soon as there are more than `most_states`.
        """
        while self.blue:
            self.apply(order.decide(self))
            if most_states is not None and len(self.red) > most_states:
                raise StateLimitExceeded

    def apply(self, decision: Merge | Promote) -> None:
        """Make a decision final: the merged state disappears, or the promoted one turns red."""
        blue = decision.blue
        del self.blue[blue]
        if isinstance(decision, Promote):
            self._make_red(blue)
            self.events.append(RawMergeEvent(None, blue, 0, 0))
            return
        fold = decision.fold
        self.merges += 1
        self.merged_into.update(fold.merged)
        for parent, label, child in fold.moved:
            if parent in self._is_red:
                self.blue[child] = (parent, label)
        self.events.append(RawMergeEvent(decision.red, blue, fold.agreeing, len(fold.merged)))

    def _make_red(self, state: int) -> None:
        self.red.append(state)
        self._is_red.add(state)
        for label, child in self.tree.children[state].items():
            self.blue[child] = (state, label)

    def blue_in_order(self) -> list[int]:
        """Return the blue states in shortlex order."""
        return sorted(self.blue)

    def try_fold(self, red: int, blue: int, horizon: int | None = None) -> Fold | FoldConflict:
        """Fold blue into red in place; on a conflict nothing is changed."""
        settled = len(self.red) + len(self.merged_into)
        self._watch.check(Progress(len(self.red), len(self.blue), settled, len(self.tree)))
        self.attempts += 1
        return try_fold(self.tree, red, blue, *self.blue[blue], horizon, self._may_merge)

    def states_of_nodes(self) -> list[int]:
        """Return the state that each tree node became, −1 while that is undecided."""
        number = {node: state for state, node in enumerate(self.red)}
        states = []
        for node in range(len(self.tree)):
            while node not in number and node in self.merged_into:
                node = self.merged_into[node]
            states.append(number.get(node, -1))
        return states


# ---- the automaton -----------------------------------------------------------


def automaton_of_search(search: RedBlue) -> RawAutomaton:
    """Return the automaton of a finished search, with how often each transition was taken."""
    tree = search.tree
    state_of = search.states_of_nodes()
    transitions: dict[tuple[int, int], tuple[int, int]] = {}
    for node in range(1, len(tree)):
        edge = (state_of[tree.parent[node]], tree.label[node])
        _, count = transitions.get(edge, (0, 0))
        transitions[edge] = (state_of[node], count + tree.visits[node])
    outputs = {
        (state, alpha): (output, tree.counts[node][alpha])
        for state, node in enumerate(search.red)
        for alpha, output in tree.outputs[node].items()
    }
    return RawAutomaton(
        np.array(search.red, np.int32),
        *_columns(transitions),
        *_columns(outputs),
        events=tuple(search.events),
        attempts=search.attempts,
        tree_nodes=len(tree),
    )


def _columns(
    rows: dict[tuple[int, int], tuple[int, int]],
) -> tuple[Codes, Codes, Codes, NDArray[np.int64]]:
    """Return rows as sorted columns: two keys, a value and its count."""
    table = np.array([(*key, *value) for key, value in sorted(rows.items())], np.int64)
    first, second, value, count = table.reshape(-1, 4).T
    return first.astype(np.int32), second.astype(np.int32), value.astype(np.int32), count.copy()


def complete_search(samples: SampleSet, search: RedBlue) -> RawAutomaton:
    """Return the automaton of a search that ran out of time.

    Undecided nodes are merged into the states with which they agree most, in one cheap pass. A
    state predicts its most frequent output, and the automaton has the number of rows with another
    one.
    """
    tree, states = samples.histories.tree, np.array(search.states_of_nodes(), np.int32)
    red = np.array(search.red, np.int32)
    columns = _core.complete(tree, samples.alpha, samples.output, red, states)
    automaton = automaton_from_columns(columns, len(tree))
    events = (*search.events, *automaton.events)
    return replace(automaton, events=events, attempts=search.attempts)


# ---- time --------------------------------------------------------------------


class Watch:
    """The clock of a search: reports progress to a listener, and raises when time is up."""

    def __init__(self, time_limit: float | None, listener: Watcher | None) -> None:
        self._limit = inf if time_limit is None else time_limit
        self._listener = listener
        self._started = self._reported = time.monotonic()

    def check(self, progress: Progress) -> None:
        """Report progress, and raise when time is up; call this often."""
        if self.report(progress) > self._limit:
            raise TimeLimitReached("time ran out")

    def report(self, progress: Progress) -> float:
        """Call the listener, unless it was just called; return the seconds since the start."""
        now = time.monotonic()
        if self._listener is not None and now - self._reported >= 0.05:
            self._reported = now
            self._listener(progress)
        return now - self._started
