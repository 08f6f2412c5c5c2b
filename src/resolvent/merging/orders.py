"""Orders of merging: which blue state to settle next, and into which red one.

An order looks at the search and decides. The native engine implements the same, the
second with edsm's score; docs/decisions/merge-order.md and telling.md say why these.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from resolvent.merging.evidence import SURE_ENOUGH, Habits, Move, Worth
from resolvent.merging.folding import Conflict, Fold
from resolvent.merging.prefix_tree import PrefixTree
from resolvent.samples import NONE


class Search(Protocol):
    """What an order sees: red states by promotion, blue states in shortlex order, folding."""

    tree: PrefixTree
    red: list[int]
    merges: int

    def blue_in_order(self) -> list[int]:
        """Return the blue states in shortlex order."""

    def edge_to(self, blue: int) -> tuple[int, int]:
        """Return the red state that a blue one hangs from, and the label that leads to it."""

    def try_fold(self, red: int, blue: int, horizon: int | None = None) -> Fold | Conflict:
        """Fold blue into red in place; a `Conflict`, and nothing changed, when they do not fit."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The decision to merge; `fold` has been made already."""

    red: int
    blue: int
    fold: Fold


@dataclass(frozen=True, slots=True)
class Promote:
    """The decision that a blue state is a state of its own."""

    blue: int


class Order(Protocol):
    """Decides what happens next to some blue state."""

    def decide(self, search: Search) -> Merge | Promote:
        """Settle one blue state."""


class FirstFit:
    """The first blue state in shortlex order, into the first red one that it fits.

    Paper: StateMerging in "DB-RPNI Pseudocode", in its canonical order.
    """

    def decide(self, search: Search) -> Merge | Promote:
        """Settle the first blue state."""
        blue = search.blue_in_order()[0]
        for red in search.red:
            fold = search.try_fold(red, blue)
            if not isinstance(fold, Conflict):
                return Merge(red, blue, fold)
        return Promote(blue)


@dataclass
class BestFirst:
    """The pair with the highest score, among all blue states and all red ones.

    A fold is scored by the first `horizon` answers that it looks at, and -inf
    refuses it. Any blue state that fits no red one as far as that is promoted first.
    Ties go to the earlier blue state, then to the earlier red one.
    """

    score: Callable[[Fold], float]
    horizon: int | None

    refuted: set[tuple[int, int]] = field(default_factory=set)
    scores: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)

    def decide(self, search: Search) -> Merge | Promote:
        """Promote the first blue state without a fit, or merge the best pair."""
        while True:
            scores: dict[tuple[int, int], float] = {}
            for blue in search.blue_in_order():
                fits = False
                for red in search.red:
                    score = self._score(search, red, blue)
                    if score > -inf:
                        fits = True
                        scores[red, blue] = score
                if not fits:
                    return Promote(blue)
            best = self._best(search, scores)
            fold = search.try_fold(*best)
            if not isinstance(fold, Conflict):
                return Merge(*best, fold)
            self._refuse(best, fold, search.merges)  # they conflict beyond the horizon

    def _best(self, search: Search, scores: dict[tuple[int, int], float]) -> tuple[int, int]:
        return max(scores, key=scores.__getitem__)  # the first of equals

    def _score(self, search: Search, red: int, blue: int) -> float:
        # A score holds until the next merge.
        if (red, blue) in self.refuted:
            return -inf
        merges, score = self.scores.get((red, blue), (-1, -inf))
        if merges == search.merges:
            return score
        fold = search.try_fold(red, blue, self.horizon)
        if isinstance(fold, Conflict):
            self._refuse((red, blue), fold, search.merges)
            return -inf
        score = self.score(fold)
        fold.undo()
        self.scores[red, blue] = (search.merges, score)
        return score

    def _refuse(self, pair: tuple[int, int], conflict: Conflict, merges: int) -> None:
        if conflict.is_final:
            self.refuted.add(pair)
        else:
            self.scores[pair] = (merges, -inf)


class MostTelling(BestFirst):
    """The pair whose agreement tells most, and whose move is most usual.

    What agreeing answers tell is the score; what is usual is learned from each decision, so
    that it is added only when a pair is chosen. A blue state waits while two red ones fit
    it about equally well. Pairs in `apart` are never merged.
    """

    def __init__(
        self, worth: Worth, horizon: int | None, apart: frozenset[tuple[int, int]] = frozenset()
    ) -> None:
        super().__init__(worth.evidence, horizon, refuted=set(apart))
        self.cost = 0
        self._habits = Habits()

    def decide(self, search: Search) -> Merge | Promote:
        """Decide as for any score, and learn from it what is usual."""
        decision = super().decide(search)
        self.learn(search, decision)
        return decision

    def learn(self, search: Search, decision: Merge | Promote) -> None:
        """Add what it takes to tell a decision to `cost`, and learn from it."""
        merge = isinstance(decision, Merge)
        move = self._move(
            search, decision.red if isinstance(decision, Merge) else NONE, decision.blue
        )
        self.cost += self._habits.cost(move, len(search.red))
        self._habits.see(move if merge else move._replace(target=decision.blue))

    def _best(self, search: Search, scores: dict[tuple[int, int], float]) -> tuple[int, int]:
        fits: dict[int, list[tuple[float, int]]] = {}
        for (red, blue), score in scores.items():
            usual = self._habits.favour(self._move(search, red, blue), len(search.red))
            fits.setdefault(blue, []).append((score + usual, red))

        def rank(blue: int) -> tuple[float, float]:
            best, *others = sorted((score for score, _ in fits[blue]), reverse=True)
            return min([SURE_ENOUGH, *(best - other for other in others)]), best

        blue = max(fits, key=rank)  # the first of equals
        _, red = max(fits[blue], key=lambda fit: fit[0])
        return red, blue

    def _move(self, search: Search, target: int, blue: int) -> Move:
        above, label = search.edge_to(blue)
        return Move(label, search.tree.lead[blue], above, target)
