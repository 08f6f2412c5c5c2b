"""The last doubts before exploring stops: might other machines explain all of it as well?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from resolvent.exploration.alternatives import AlternativeHypotheses
from resolvent.exploration.buffer import Episode
from resolvent.exploration.empirical_model import EmpiricalModel
from resolvent.exploration.hypothesis import Hypothesis
from resolvent.exploration.values import Path
from resolvent.exploration.w_method import WMethodTests


@dataclass
class EquivalenceTests:
    """What might still be otherwise, and how to find out; anew whenever the machines change.

    `states` is how many there may be of, where somebody says so.
    """

    beliefs: Hypothesis
    states: int | None
    _rivals: AlternativeHypotheses | None = field(default=None, init=False)
    _words: WMethodTests | None = field(default=None, init=False)

    def forget(self) -> None:
        """Begin anew, since what is believed has changed."""
        self._rivals = self._words = None

    def way(
        self, model: EmpiricalModel, row: int, episode: Episode, under_way: Sequence[Episode]
    ) -> Path | None:
        """Return the way that settles the next doubt; empty to begin another episode for it."""
        if self._rivals is None:
            self._rivals = AlternativeHypotheses(self.beliefs, model, under_way)
        way = self._rivals.way(row, episode, under_way)
        if way is not None or self.states is None:
            return way
        if self._words is None:
            self._words = WMethodTests(model, self.states)
        return self._words.way(row, episode)

    @property
    def untold(self) -> int:
        """How many other machines are left that no known step tells from those believed in."""
        return 0 if self._rivals is None else self._rivals.untold

    @property
    def tests(self) -> int | None:
        """How many tests of words rule out more states; None where these were only sampled."""
        words = self._words
        return words.tests if words is not None and words.whole and not words.untold else None
