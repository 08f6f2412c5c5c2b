"""Steps and which answers are odd → whether odd answers come one soon after another."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis.steps import Steps

NEAREST, FARTHEST = 3, 12
"""How many steps before may have been odd. What is misread once makes two odd in a row."""

DEVIATIONS = 6.0
"""By so many standard deviations more must be odd than expected."""

RATIO = 1.3
"""And so many times as many: noise is never quite the same everywhere."""


@dataclass(frozen=True)
class Bursts:
    """How many answers are odd soon after another odd one, and how many would be by chance.

    Chance is as it is for the same state and question wherever they come. `deviations` says
    by how many standard deviations that is exceeded.
    """

    share_after: float
    expected: float
    deviations: float

    @property
    def are_there(self) -> bool:
        """Whether odd answers come in bursts beyond doubt."""
        return self.deviations > DEVIATIONS and self.share_after > RATIO * self.expected

    @classmethod
    def of(
        cls,
        steps: Steps,
        state: NDArray[np.int32],
        question: NDArray[np.int32],
        odd: NDArray[np.bool_],
    ) -> "Bursts":
        """Compare within each state and question, as Mantel and Haenszel do."""
        after = _soon_after(steps, odd)
        _, row = np.unique(state.astype(np.int64) * steps.questions + question, return_inverse=True)
        asked = np.bincount(row)
        wrong, late = (np.bincount(row, column, len(asked)) for column in (odd, after))
        expected = wrong * late / asked
        several = np.maximum(asked - 1, 1)
        spread = wrong * (asked - wrong) * late * (asked - late) / (asked**2.0 * several)
        met, total = int(np.count_nonzero(odd & after)), int(np.count_nonzero(after))
        if not total or not spread.sum() > 0:
            return cls(0.0, 0.0, 0.0)
        deviations = (met - float(expected.sum())) / sqrt(float(spread.sum()))
        return cls(met / total, float(expected.sum()) / total, deviations)


def _soon_after(steps: Steps, odd: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say of each step whether one of those shortly before it in the trace was odd."""
    counted = np.concatenate([[0], np.cumsum(odd)])
    start = np.arange(len(odd)) - steps.number
    step = np.arange(len(odd))
    first = np.maximum(step - FARTHEST, start)
    last = np.maximum(step - NEAREST + 1, first)
    found: NDArray[np.bool_] = counted[last] > counted[first]
    return found
