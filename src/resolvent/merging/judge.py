"""Asks a strategy about merges, and holds it to answers that merging can use."""

import reprlib
from numbers import Real
from typing import Any

import numpy as np

from resolvent.errors import OptionError
from resolvent.merging.answers import Answers, ProposedMerge
from resolvent.merging.evidence import Worth
from resolvent.merging.folding import Fold
from resolvent.merging.orders import BestFirst, FirstFit, MostTelling, Order
from resolvent.merging.prefix_tree import PrefixTree
from resolvent.merging.strategy import Strategy
from resolvent.samples import SampleSet
from resolvent.wording import visible


class Judge:
    """A strategy at work on one tree.

    What it is asked may run anybody's code, so whatever that does wrong ends in an
    `OptionError` which names the strategy and the method.
    """

    def __init__(self, strategy: Strategy, samples: SampleSet, tree: PrefixTree) -> None:
        self._strategy = strategy
        self._samples = samples
        self._tree = tree

    @property
    def is_picky(self) -> bool:
        """Whether the strategy has an own idea of what fits; most have none, and need no asking."""
        return getattr(self._strategy.fits, "__func__", None) is not Strategy.fits

    def order(self) -> Order:
        """Return the order in which the strategy merges."""
        if self._strategy.first_fit:
            return FirstFit()
        if self._strategy.weighs:
            return MostTelling(Worth(self._tree), self._strategy.horizon)
        return BestFirst(self.score, self._strategy.horizon)

    def fits(self, into: int, state: int) -> bool:
        """Ask whether `state` may become part of `into`."""
        known, new = (Answers(self._samples, self._tree, node) for node in (into, state))
        verdict = self._ask("fits", known, new)
        if not isinstance(verdict, bool | np.bool_):
            raise self._nonsense("fits", verdict, "return True or False")
        return bool(verdict)

    def score(self, fold: Fold) -> float:
        """Ask how good a fold is."""
        score = self._ask("score", ProposedMerge(self._samples, fold))
        number = isinstance(score, Real) and not isinstance(score, bool)
        if not number or score != score:  # only NaN is not itself
            raise self._nonsense("score", score, "return a number, or -inf to refuse the merge")
        return score  # type: ignore[no-any-return]

    def _ask(self, method: str, *shown: object) -> Any:
        try:
            return getattr(self._strategy, method)(*shown)
        except Exception as error:
            said = ": ".join(filter(None, (type(error).__name__, visible(str(error)))))
            raise OptionError(
                f"{self._where(method)} raised {said}; correct it and infer again"
            ) from error

    def _nonsense(self, method: str, given: object, remedy: str) -> OptionError:
        shown = visible(reprlib.repr(given))
        return OptionError(f"{self._where(method)} gave {shown}: {remedy}")

    def _where(self, method: str) -> str:
        return f"strategy '{self._strategy.name}': {method}()"
