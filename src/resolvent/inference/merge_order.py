"""Merge orders of the Python engine, and calls to the strategies of users.

Input: the state of the search. Output: a `Merge` or a `Promote`. The native engine implements the
same orders and more; docs/decisions/inference.md gives the reasons for them.
"""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from resolvent._util.text import visible
from resolvent.errors import OptionError
from resolvent.inference.state_merging import (
    Fold,
    FoldConflict,
    Merge,
    PrefixTree,
    Promote,
    RedBlue,
)
from resolvent.inference.strategy import NodeOutputs, ProposedMerge, Strategy
from resolvent.preprocess.samples import SampleSet

# ---- orders ------------------------------------------------------------------


class FirstFit:
    """The first blue state in shortlex order, into the first red state that it fits.

    Paper: StateMerging in "DB-RPNI Pseudocode", in its canonical order.
    """

    def decide(self, search: RedBlue) -> Merge | Promote:
        """Decide about the first blue state."""
        blue = search.blue_in_order()[0]
        for red in search.red:
            fold = search.try_fold(red, blue)
            if not isinstance(fold, FoldConflict):
                return Merge(red, blue, fold)
        return Promote(blue)


@dataclass
class BestFirst:
    """The pair with the highest score among all blue and all red states.

    A fold is scored by the first `horizon` outputs, and -inf refuses it. A blue state that fits no
    red state within the horizon is promoted first. Ties go to the earlier blue state, then to the
    earlier red state.
    """

    score: Callable[[Fold], float]
    horizon: int | None

    refuted: set[tuple[int, int]] = field(default_factory=set)
    scores: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)

    def decide(self, search: RedBlue) -> Merge | Promote:
        """Promote the first blue state that fits no red state, or merge the best pair."""
        while True:
            scores: dict[tuple[int, int], float] = {}
            for blue in search.blue_in_order():
                of_blue = {(red, blue): self._score(search, red, blue) for red in search.red}
                fitting = {pair: score for pair, score in of_blue.items() if score > -inf}
                if not fitting:
                    return Promote(blue)
                scores |= fitting
            best = max(scores, key=scores.__getitem__)  # the first of equals
            fold = search.try_fold(*best)
            if not isinstance(fold, FoldConflict):
                return Merge(*best, fold)
            self._refuse(best, fold, search.merges)  # they conflict beyond the horizon

    def _score(self, search: RedBlue, red: int, blue: int) -> float:
        # A score holds until the next merge.
        if (red, blue) in self.refuted:
            return -inf
        merges, score = self.scores.get((red, blue), (-1, -inf))
        if merges == search.merges:
            return score
        fold = search.try_fold(red, blue, self.horizon)
        if isinstance(fold, FoldConflict):
            self._refuse((red, blue), fold, search.merges)
            return -inf
        score = self.score(fold)
        fold.undo()
        self.scores[red, blue] = (search.merges, score)
        return score

    def _refuse(self, pair: tuple[int, int], conflict: FoldConflict, merges: int) -> None:
        if conflict.alpha is None:
            self.scores[pair] = (merges, -inf)
        else:
            self.refuted.add(pair)


# ---- strategies --------------------------------------------------------------


class StrategyCalls:
    """Calls to a strategy's methods for one tree; errors name the strategy and the method."""

    def __init__(self, strategy: Strategy, samples: SampleSet, tree: PrefixTree) -> None:
        self._strategy, self._samples, self._tree = strategy, samples, tree
        self.has_own_fits = getattr(strategy.fits, "__func__", None) is not Strategy.fits

    def order(self) -> FirstFit | BestFirst:
        """Return the merge order of the strategy."""
        strategy = self._strategy
        return FirstFit() if strategy.first_fit else BestFirst(self.score, strategy.horizon)

    def fits(self, into: int, state: int) -> bool:
        """Return whether `state` may become part of `into`."""
        red, blue = (NodeOutputs(self._samples, self._tree, node) for node in (into, state))
        may_merge = self._call("fits", red, blue)
        if not isinstance(may_merge, bool | np.bool_):
            gave = visible(reprlib.repr(may_merge))
            raise self._error("fits", f"gave {gave}: return True or False")
        return bool(may_merge)

    def score(self, fold: Fold) -> float:
        """Return the score of a fold."""
        score = self._call("score", ProposedMerge(self._samples, fold))
        is_number = isinstance(score, Real) and not isinstance(score, bool)
        if not is_number or score != score:  # only NaN is not itself
            gave = visible(reprlib.repr(score))
            raise self._error("score", f"gave {gave}: return a number, or -inf to refuse the merge")
        return score  # type: ignore[no-any-return]

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return getattr(self._strategy, method)(*arguments)
        except Exception as error:
            cause = ": ".join(filter(None, (type(error).__name__, visible(str(error)))))
            raise self._error(method, f"raised {cause}; correct it and infer again") from error

    def _error(self, method: str, failure: str) -> OptionError:
        return OptionError(f"strategy '{self._strategy.name}': {method}() {failure}")
