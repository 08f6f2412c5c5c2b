"""What may come of each step of a model, how likely, and how well that is known."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import log
from resolvent.by_value import ByValue
from resolvent.control.planning.chance.paying import Pay
from resolvent.traces.vocabulary import Codes

Numbers = NDArray[np.float64]

ENDED = -1
"""In `Chances.following`: the episode is over."""

NOT_KNOWN = -2
"""In `Chances.following`: the traces do not tell where this leads."""


@dataclass(frozen=True, eq=False)
class Chances(ByValue):
    """What may come of the steps of a model.

    Steps are numbered situation by situation, action by action. What may come of step i lies
    from `offset[i]` up to `offset[i + 1]`: the next situation, or `ENDED`, or `NOT_KNOWN`, with
    its share of all that came; nothing where the step is not known.

    `pay` says what each of them paid, where pay follows from what came; NaN where that is not
    known, and everywhere if it does not follow (`pay_follows`): then the mean of the step is all
    there is.

    `seen` says how often the answers of the Transition Machine were seen that the shares rest
    on, `paid` in which row of `pays` those of the Reward Machine are, −1 for none. The true
    chances of a step are as close to the shares as the Kullback-Leibler divergence
    `doubt + weight · log(1 / delta)`, with probability 1 − delta for all steps together.
    `possible` is how many steps there could be.
    """

    offset: NDArray[np.int64]
    following: Codes
    share: Numbers
    pay: Numbers
    seen: NDArray[np.int64]
    paid: NDArray[np.int64]
    doubt: Numbers
    weight: Numbers
    pays: Pay
    possible: int
    pay_follows: bool

    @cached_property
    def step(self) -> NDArray[np.int64]:
        """For each that may come, the number of its step."""
        return np.repeat(np.arange(len(self.seen)), np.diff(self.offset))

    def text(self) -> str:
        """Say for how many steps it is chance what comes, and how often they were seen."""
        several = int((np.diff(self.offset) > 1).sum())
        seen = self.seen[self.seen > 0]
        times = f", seen {int(np.median(seen)):,} times in the median" if len(seen) else ""
        return f"{several:,} of {len(seen):,} known steps may lead to more than one thing{times}"

    def leads_to(self, step: int) -> Codes:
        """Return the situations that a step was seen to lead to."""
        found = self.following[self.offset[step] : self.offset[step + 1]]
        return found[found >= 0]

    def radius(self, delta: float) -> Numbers:
        """Return how far from its shares each step may be, at most, with probability 1 − delta."""
        return self.doubt + self.weight * float(log(1 / delta))
