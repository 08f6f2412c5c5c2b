"""What was paid in rows → the mean, and how far from it the true mean may be."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resolvent.arithmetic import log
from resolvent.by_value import ByValue
from resolvent.control.planning.chance.plausible import least_mean, worst
from resolvent.control.planning.chance.tallies import Keys, Numbers, Tally, regrets


@dataclass(frozen=True, eq=False)
class Pay(ByValue):
    """How often each reward was paid in each row; `tally` counts places in `rewards`."""

    tally: Tally
    rewards: Numbers

    @classmethod
    def of(cls, keys: Keys, paid: Numbers, counts: Keys | None = None) -> "Pay":
        """Put together what was paid in the same rows, each so often.

        >>> pay = Pay.of(np.array([4, 4, 9]), np.array([1.0, 0.0, 2.0]))
        >>> pay.tally.key.tolist(), pay.count.tolist(), pay.mean.tolist()
        ([4, 9], [2, 1], [0.5, 2.0])
        """
        # Sums do not depend on the order of traces: equal pays are counted before they are added.
        rewards, code = np.unique(paid, return_inverse=True)
        return cls(Tally.of(keys, code, max(len(rewards), 1), counts), rewards)

    @property
    def count(self) -> Keys:
        """How often anything was paid in each row."""
        return self.tally.total

    @cached_property
    def mean(self) -> Numbers:
        """What was paid in each row on average."""
        tally, paid = self.tally, self.rewards[self.tally.value]
        least, most = np.full(len(tally), np.inf), np.full(len(tally), -np.inf)
        np.minimum.at(least, tally.row, paid)
        np.maximum.at(most, tally.row, paid)
        return np.clip(
            np.bincount(tally.row, paid * tally.count, len(tally)) / self.count, least, most
        )

    def find(self, wanted: Keys) -> Keys:
        """Return the place of each row that is wanted, −1 where there is none."""
        return self.tally.find(wanted)

    def seen_more(self, other: "Pay") -> "Pay":
        """Return each row as one of the two saw it: the one that saw more of it."""
        rewards = np.union1d(self.rewards, other.rewards)
        one, more = (pay._among(rewards) for pay in (self, other))
        return Pay(one.seen_more(more), rewards)

    def _among(self, rewards: Numbers) -> Tally:
        """Return the tally with places among more rewards."""
        tally = self.tally
        place = np.searchsorted(rewards, self.rewards)
        return Tally(tally.key, tally.offset, place[tally.value], tally.count)

    def least(self, radius: Numbers, low: float) -> Numbers:
        """Return the least that rows may truly pay on average, if shares are so far off.

        What was never paid in a row may be paid: then it is `low`. So a row that always paid
        the same is hardly in doubt, however far the lowest reward may be.

        >>> pay = Pay.of(np.repeat([1, 2], 8), np.array([0.0] * 8 + [-1.0, 1.0] * 4))
        >>> pay.least(np.full(2, 1 / 16), -1.0).round(3).tolist()
        [-0.061, -0.343]
        """
        tally, paid = self.tally, self.rewards[self.tally.value]
        chance, rest = worst(tally.row, tally.share, paid, radius, np.full(len(tally), low))
        found = np.bincount(tally.row, chance * paid, len(tally)) + rest * low
        return np.minimum(found, self.mean)

    def bounds(self, doubt: float, reward_range: tuple[float, float]) -> tuple[Numbers, Numbers]:
        """Return the least and the most that rows truly pay on average, but for e^−doubt.

        That is the probability that any row is outside. Half of it is for shares of the rewards
        that were ever paid, which say much where these are few; half is for the mean alone, that
        of a coin between the least and the most reward, which holds for any number of rewards.

        >>> pay = Pay.of(np.zeros(1_000, int), np.zeros(1_000))
        >>> [one.round(3).tolist() for one in pay.bounds(3.0, (-1.0, 1.0))]
        [[-0.008], [0.008]]
        """
        low, high = reward_range
        if low == high or not len(self.tally):
            return self.mean, self.mean
        doubt += float(log(2))
        radius = (self.tally.regret(len(self.rewards) + 1) + doubt) / self.count
        lost = Pay(self.tally, -self.rewards)
        least, most = self.least(radius, low), -lost.least(radius, -high)
        above = np.clip((self.mean - low) / (high - low), 0.0, 1.0)
        radius = (self._coin_regret(above) + doubt) / self.count
        return (
            np.minimum(
                np.maximum(least, low + (high - low) * least_mean(above, radius)), self.mean
            ),
            np.maximum(
                np.minimum(most, high - (high - low) * least_mean(1 - above, radius)), self.mean
            ),
        )

    def _coin_regret(self, above: Numbers) -> Numbers:
        """Return how much likelier such a mean makes rows than a bet on any coin."""
        rows = np.tile(np.arange(len(above)), 2)
        counts = np.concatenate([above * self.count, (1 - above) * self.count])
        return regrets(rows, counts, len(above), 2)
