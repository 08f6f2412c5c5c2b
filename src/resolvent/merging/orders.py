"""Orders of merging: which blue state to settle next, and into which red one.

An order looks at the search and decides. The native engine implements the same
two, the second with edsm's score; docs/decisions/merge-order.md says why these.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from resolvent.merging.folding import Conflict, Fold


class Search(Protocol):
    """What an order sees: red states by promotion, blue states in shortlex order, folding."""

    red: list[int]
    merges: int

    def blue_in_order(self) -> list[int]:
        """Return the blue states in shortlex order."""

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


@dataclass(slots=True)
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
            best = max(scores, key=scores.__getitem__)  # the first of equals
            fold = search.try_fold(*best)
            if not isinstance(fold, Conflict):
                return Merge(*best, fold)
            self._refuse(best, fold, search.merges)  # they conflict beyond the horizon

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
