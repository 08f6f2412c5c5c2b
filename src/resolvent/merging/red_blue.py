"""The Python engine: red-blue state merging, close to the paper's pseudocode.

It is the executable specification. The native engine does the same, event for
event, many times faster.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.merging.automaton import Automaton, Event, TooManyStates
from resolvent.merging.folding import Conflict, Fits, Fold, try_fold
from resolvent.merging.orders import Merge, Order, Promote
from resolvent.merging.prefix_tree import PrefixTree
from resolvent.merging.watch import Watch
from resolvent.progress import Progress


class RedBlue:
    """The search: red states are settled, blue ones hang below them and come next."""

    def __init__(self, tree: PrefixTree, watch: Watch, fits: Fits | None = None) -> None:
        self.tree = tree
        self.red: list[int] = []
        self.merges = 0
        self.attempts = 0
        self.events: list[Event] = []
        self.merged_into: dict[int, int] = {}
        self._blue: dict[int, tuple[int, int]] = {}  # the red state and label each hangs from
        self._is_red: set[int] = set()
        self._watch = watch
        self._fits = fits
        self._make_red(0)

    def run(self, order: Order, most_states: int | None = None) -> None:
        """Settle blue states until there are none.

        Paper: StateMerging in "DB-RPNI Pseudocode".

        Raises:
            TooManyStates: as soon as there are more than `most_states`.
        """
        while self._blue:
            self.settle(order.decide(self))
            if most_states is not None and len(self.red) > most_states:
                raise TooManyStates

    @property
    def done(self) -> bool:
        """Whether no blue state is left."""
        return not self._blue

    def settle(self, decision: Merge | Promote) -> None:
        """Carry out a decision."""
        if isinstance(decision, Merge):
            self._keep(decision)
        else:
            self._promote(decision.blue)

    def blue_in_order(self) -> list[int]:
        """Return the blue states in shortlex order."""
        return sorted(self._blue)

    def edge_to(self, blue: int) -> tuple[int, int]:
        """Return the red state that a blue one hangs from, and the label that leads to it."""
        return self._blue[blue]

    def try_fold(self, red: int, blue: int, horizon: int | None = None) -> Fold | Conflict:
        """Fold blue into red in place; a `Conflict`, and nothing changed, when they do not fit."""
        self._watch.look(self._progress())
        self.attempts += 1
        return try_fold(self.tree, red, blue, *self._blue[blue], horizon, self._fits)

    def state_of(self, node: int) -> int:
        """Return the red state that a node of the prefix tree has become."""
        while node not in self._is_red:
            node = self.merged_into[node]
        return node

    def settled(self) -> list[int]:
        """Return the number of the state that each node became, −1 while that is open."""
        number = {node: state for state, node in enumerate(self.red)}
        states = []
        for node in range(len(self.tree)):
            while node not in number and node in self.merged_into:
                node = self.merged_into[node]
            states.append(number.get(node, -1))
        return states

    def _keep(self, merge: Merge) -> None:
        del self._blue[merge.blue]
        self.merges += 1
        self.merged_into.update(merge.fold.merged)
        for above, label, child in merge.fold.grafted:
            if above in self._is_red:
                self._blue[child] = (above, label)
        folded = len(merge.fold.merged)
        self.events.append(Event(merge.red, merge.blue, merge.fold.agreeing, folded))

    def _promote(self, blue: int) -> None:
        del self._blue[blue]
        self._make_red(blue)
        self.events.append(Event(None, blue, 0, 0))

    def _make_red(self, state: int) -> None:
        self.red.append(state)
        self._is_red.add(state)
        for label, child in self.tree.children[state].items():
            self._blue[child] = (state, label)

    def _progress(self) -> Progress:
        settled = len(self.red) + len(self.merged_into)
        return Progress(len(self.red), len(self._blue), settled, len(self.tree))


def summary(search: RedBlue) -> Automaton:
    """Sum how often traces took each edge; what states answer was summed as they merged."""
    tree = search.tree
    number = {node: state for state, node in enumerate(search.red)}
    state_of = [number[search.state_of(node)] for node in range(len(tree))]
    transitions: dict[tuple[int, int], tuple[int, int]] = {}
    for node in range(1, len(tree)):
        state = state_of[node]
        edge = (state_of[tree.parent[node]], tree.label[node])
        transitions[edge] = (state, transitions.get(edge, (state, 0))[1] + tree.visits[node])
    outputs = {
        (state, alpha): (output, tree.counts[node][alpha])
        for node, state in number.items()
        for alpha, output in tree.answers[node].items()
    }

    edges, answers = sorted(transitions.items()), sorted(outputs.items())

    def column(values: list[int], dtype: type = np.int32) -> NDArray[Any]:
        return np.array(values, dtype=dtype)

    return Automaton(
        access=column(search.red),
        transition_state=column([state for (state, _), _ in edges]),
        transition_label=column([label for (_, label), _ in edges]),
        transition_target=column([target for _, (target, _) in edges]),
        transition_count=column([count for _, (_, count) in edges], np.int64),
        output_state=column([state for (state, _), _ in answers]),
        output_alpha=column([alpha for (_, alpha), _ in answers]),
        output_value=column([output for _, (output, _) in answers]),
        output_count=column([count for _, (_, count) in answers], np.int64),
        events=tuple(search.events),
        attempts=search.attempts,
        tree_nodes=len(tree),
    )
