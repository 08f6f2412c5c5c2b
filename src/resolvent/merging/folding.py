"""Folding: merge a blue state into a red one, with everything that follows from it.

A fold works on the tree in place and keeps a list of what it did, so that a
failed attempt costs what it touched and never a copy of the tree.

Invariant: red states form the automaton found so far, and whatever hangs below
a state that is not red is still a tree, because merges only ever target red
states. So a fold meets each state below blue once, and no visited set is needed.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from resolvent.merging.prefix_tree import PrefixTree

Fits: TypeAlias = Callable[[int, int], bool]
"""Says whether a state may become part of another, asked as fits(into, state)."""


@dataclass(slots=True)
class Fold:
    """A merge that was made: how many answers agreed, and all it takes to undo it.

    `merged` has the pairs that became one, and `distance` how many labels each of them is away
    from the merge itself.
    """

    tree: PrefixTree
    redirected: tuple[int, int, int]
    agreeing: int = 0
    merged: list[tuple[int, int]] = field(default_factory=list)
    distance: list[int] = field(default_factory=list)
    answered: list[tuple[int, int]] = field(default_factory=list)
    grafted: list[tuple[int, int, int]] = field(default_factory=list)

    def undo(self) -> None:
        """Leave the tree as it was before this fold. Only the latest fold can be undone."""
        for state, into in self.merged:
            for alpha, count in self.tree.counts[state].items():
                self.tree.counts[into][alpha] -= count
        for state, alpha in self.answered:
            del self.tree.answers[state][alpha]
            del self.tree.counts[state][alpha]
        for state, label, _ in self.grafted:
            del self.tree.children[state][label]
        above, label, blue = self.redirected
        self.tree.children[above][label] = blue

    def agreements(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield each answer that agreed: alpha, output, how often known before and seen anew."""
        counts = self.tree.counts
        to_come: Counter[tuple[int, int]] = Counter()
        for state, into in self.merged:
            for alpha, count in counts[state].items():
                to_come[into, alpha] += count
        # All has been added up already; what was known before a pair is the rest.
        for state, into in self.merged:
            for alpha, count in counts[state].items():
                known = counts[into][alpha] - to_come[into, alpha]
                if known:
                    yield alpha, self.tree.answers[into][alpha], known, count
                to_come[into, alpha] -= count


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two states that would have to be one, but answer `alpha` differently.

    `alpha` is None where they do not, and the strategy keeps them apart all the same.
    """

    into: int
    state: int
    alpha: int | None

    @property
    def is_final(self) -> bool:
        """Whether they can never become one: states only ever gain answers."""
        return self.alpha is not None


def compatible(tree: PrefixTree, into: int, state: int) -> int | Conflict:
    """Count the answers on which two states agree, or name the first on which they do not.

    Paper: "Local Compatibility".
    """
    known, new = tree.answers[into], tree.answers[state]
    agreeing = 0
    for alpha, output in new.items():
        if alpha in known:
            if known[alpha] != output:
                return Conflict(into, state, alpha)
            agreeing += 1
    return agreeing


def try_fold(
    tree: PrefixTree,
    red: int,
    blue: int,
    above: int,
    label: int,
    horizon: int | None = None,
    fits: Fits | None = None,
) -> Fold | Conflict:
    """Merge `blue`, which hangs below the red state `above` at `label`, into `red`.

    Paper: Mergeable and Merge in "DB-RPNI Pseudocode".

    Returns the `Fold` when every forced pair agrees on each alpha both have
    seen, and `fits` in the eyes of a strategy that has its own; otherwise the
    first `Conflict` met, and then the tree is as it was.
    With a horizon the fold stops once so many answers have been looked at; such
    a fold is for scoring and must be undone.
    """
    fold = Fold(tree, redirected=(above, label, blue))
    tree.children[above][label] = red
    pairs = deque([(red, blue, 0)])
    looked_at = 0
    while pairs and (horizon is None or looked_at < horizon):
        into, state, distance = pairs.popleft()
        agreeing = compatible(tree, into, state)
        if isinstance(agreeing, Conflict):
            fold.undo()
            return agreeing
        if fits is not None and not fits(into, state):
            fold.undo()
            return Conflict(into, state, None)
        looked_at += len(tree.answers[state])
        fold.agreeing += agreeing
        fold.merged.append((state, into))
        fold.distance.append(distance)
        known, counts = tree.answers[into], tree.counts[into]
        for alpha, output in tree.answers[state].items():
            if alpha not in known:
                known[alpha] = output
                counts[alpha] = 0
                fold.answered.append((into, alpha))
            counts[alpha] += tree.counts[state][alpha]
        for child_label, child in sorted(tree.children[state].items()):
            target = tree.children[into].get(child_label)
            if target is None:
                tree.children[into][child_label] = child
                fold.grafted.append((into, child_label, child))
            else:
                pairs.append((target, child, distance + 1))
    return fold
