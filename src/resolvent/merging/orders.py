"""Orders of merging: which blue state to settle next, and into which red one.

An order is a value that looks at the search and decides. The native engine
implements the same two; docs/decisions/merge-order.md says why these.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from resolvent.merging.folding import Fold


class Search(Protocol):
    """What an order sees: red states by promotion, blue states in shortlex order, folding."""

    red: list[int]
    merges: int

    def blue_in_order(self) -> list[int]:
        """Return the blue states in shortlex order."""

    def try_fold(self, red: int, blue: int, horizon: int | None = None) -> Fold | None:
        """Fold blue into red in place; None, and nothing changed, when they conflict."""


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


class Rpni:
    """The first blue state in shortlex order, into the first red one that it fits.

    Paper: StateMerging in "DB-RPNI Pseudocode", in its canonical order.
    """

    def decide(self, search: Search) -> Merge | Promote:
        """Settle the first blue state."""
        blue = search.blue_in_order()[0]
        for red in search.red:
            fold = search.try_fold(red, blue)
            if fold is not None:
                return Merge(red, blue, fold)
        return Promote(blue)


@dataclass(slots=True)
class Edsm:
    """The pair on which most answers agree, among all blue states and all red ones.

    They are counted among the first `horizon` answers that a fold looks at. Any
    blue state that fits no red one as far as that is promoted first. Ties go to
    the earlier blue state, then to the earlier red one. An answer counts once
    however often it was seen, so repeated traces change nothing.
    """

    horizon: ClassVar[int] = 1024

    refuted: set[tuple[int, int]] = field(default_factory=set)
    scores: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def decide(self, search: Search) -> Merge | Promote:
        """Promote the first blue state without a fit, or merge the surest pair."""
        while True:
            scores: dict[tuple[int, int], int] = {}
            for blue in search.blue_in_order():
                fits = False
                for red in search.red:
                    score = self._score(search, red, blue)
                    if score is not None:
                        fits = True
                        scores[red, blue] = score
                if not fits:
                    return Promote(blue)
            best = max(scores, key=scores.__getitem__)  # the first of equals
            fold = search.try_fold(*best)
            if fold is not None:
                return Merge(*best, fold)
            self.refuted.add(best)  # they conflict beyond the horizon

    def _score(self, search: Search, red: int, blue: int) -> int | None:
        # A refuted pair stays refuted, because states only ever gain answers;
        # a score holds until the next merge.
        if (red, blue) in self.refuted:
            return None
        if (red, blue) in self.scores:
            merges, score = self.scores[red, blue]
            if merges == search.merges:
                return score
        fold = search.try_fold(red, blue, self.horizon)
        if fold is None:
            self.refuted.add((red, blue))
            return None
        fold.undo()
        self.scores[red, blue] = (search.merges, fold.score)
        return fold.score


ORDERS: dict[str, Callable[[], Order]] = {"edsm": Edsm, "rpni": Rpni}
"""The orders by name; the first is the default."""
