"""Odd answers by question → in how many of the questions there are any, and how often there.

Where the world is random, any question is now and then answered otherwise. Where memory is
missing, some questions have several answers and all others just one, however often asked.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import geometric, log, log1p, log_of_sum

_SHARES: Final = np.linspace(0.05, 1.0, 20)
_CHANCES: Final = np.concatenate([geometric(0.002, 0.1, 20), np.linspace(0.12, 0.6, 25)])

_FEW: Final = 0.3
"""In worlds without noise, memory matters to no more than about this share of the questions."""

_FEWEST: Final = 40
"""Fewer questions that were asked twice say nothing of everywhere: memory may matter to all."""

_LEAST_SHARE: Final = 0.45
_LEAST_NATS: Final = 6.0
_MOST_CHANCE: Final = 0.35
"""Questions that vary more often than this have no main answer: that is memory, or a lottery."""


@dataclass(frozen=True)
class NoisyQuestions:
    """A share of the questions has odd answers, with one chance in all of them.

    `nats` says how much likelier all answers are so than if no more than three in ten questions
    had any, `against_all` how much likelier than if all had. `questions` were asked twice.
    """

    share: float
    chance: float
    nats: float
    against_all: float = 0.0
    questions: int = 0

    @property
    def everywhere(self) -> bool:
        """Whether most questions have odd answers beyond doubt, and few in each."""
        return (
            self.questions >= _FEWEST
            and self.share >= _LEAST_SHARE
            and self.nats >= _LEAST_NATS
            and self.chance <= _MOST_CHANCE
        )

    def in_most(self, often: float) -> bool:
        """Whether most questions may have odd answers, and more of them than a share of `often`."""
        return self.questions < _FEWEST or (self.share >= _LEAST_SHARE and self.chance > often)

    @property
    def in_few(self) -> bool:
        """Whether only few questions have odd answers beyond doubt, and many in each."""
        return self.share <= _FEW and self.against_all >= _LEAST_NATS


def noisy_questions(asked: NDArray[np.int64], odd: NDArray[np.int64]) -> NoisyQuestions:
    """Find out which share of the questions has odd answers, and how often they come there.

    For each question, how many answers there were that could have been odd, and how many
    were. The share and the chance are those of a grid that make the odd answers the most likely.

    >>> noisy_questions(np.full(40, 19), np.full(40, 1)).everywhere  # now and then anywhere
    True
    >>> memory = noisy_questions(np.full(40, 19), np.repeat([9, 0], [8, 32]))
    >>> memory.everywhere, memory.in_few
    (False, True)
    """
    if not len(asked):
        return NoisyQuestions(0.0, 0.0, 0.0)
    questions = int(np.count_nonzero(asked))
    pairs, times = np.unique(np.stack([asked, odd]), axis=1, return_counts=True)
    asked, odd = pairs
    varying = (odd[:, None] * log(_CHANCES) + (asked - odd)[:, None] * log1p(-_CHANCES))[
        :, :, None
    ] + log(_SHARES)
    constant = np.where((odd == 0)[:, None], log(np.maximum(1 - _SHARES, 1e-300)), -np.inf)
    each = log_of_sum(varying, constant[:, None, :])  # row, chance, share
    likelihood = (times[:, None, None] * each).sum(0).T
    best = likelihood.max(1)
    at = int(np.argmax(best))
    few = float(best[_SHARES <= _FEW].max())
    chance = float(_CHANCES[int(np.argmax(likelihood[at]))])
    top = float(best[at])
    against_all = top - float(best[-1])
    return NoisyQuestions(float(_SHARES[at]), chance, top - few, against_all, questions)
