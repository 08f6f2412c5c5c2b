"""Confidence in counts: plausible probabilities of outcomes, and bounds on mean rewards.

Input: counts or relative frequencies. Output: the size of the set of probabilities within a
Kullback-Leibler divergence, and its members that minimize a mean value, unseen outcomes included
(Filippi, Cappé and Garivier 2010).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp, log
from resolvent._util.records import ByValue
from resolvent.replay.counts import GroupedCounts

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

_HALVINGS = 60
_TOUCHING = 1e-290  # smallest difference of values that counts: frequencies over less overflow


def worst_probabilities(
    row: Rows, frequency: Numbers, value: Numbers, radius: Numbers, unseen: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the plausible probabilities that minimize the mean value of each row.

    `row` is the row of each value; there are as many rows as radii. `unseen` is the value of an
    unseen outcome of each row. The second array is its probability, 0 in rows that have a value
    as low as that.
    """
    rows = len(radius)
    above = value - unseen[row]
    # Where taking from all is within the radius, the unseen outcome gets the rest.
    safe = np.where(above > _TOUCHING, above, 1.0)
    touching = np.bincount(row, above <= _TOUCHING, rows) > 0
    inverse = np.bincount(row, frequency / safe, rows)
    distance = np.bincount(row, frequency * log(safe), rows)
    distance += log(np.where(inverse > 0, inverse, 1.0))
    outside = ~touching & (distance < radius)
    weight = np.where(outside, exp(np.where(outside, distance - radius, 0.0)), 1.0)
    probability = frequency / safe / np.where(inverse > 0, inverse, 1.0)[row] * weight[row]
    within = np.flatnonzero(~outside & (radius > 0) & (np.bincount(row, minlength=rows) > 0))
    probability[~outside[row]] = frequency[~outside[row]]
    if len(within):
        _shift(row, frequency, value, radius, within, probability)
    return probability, np.where(outside, 1 - weight, 0.0)


def _shift(
    row: Rows, frequency: Numbers, value: Numbers, radius: Numbers, rows: Rows, probability: Numbers
) -> None:
    """Shift the frequencies of some rows towards lower values, as far as the radius allows."""
    number = np.full(len(radius), -1)
    number[rows] = np.arange(len(rows))
    at = np.flatnonzero(number[row] >= 0)
    row, frequency, value, radius = number[row[at]], frequency[at], value[at], radius[rows]
    least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    np.minimum.at(least, row, value)
    np.maximum.at(most, row, value)
    span = most - least
    flat = span <= 0
    span[flat] = 1.0
    above = (value - least[row]) / span[row]
    # The probabilities are frequency / (above + gap): a small gap shifts far, a large one hardly.
    near, far = np.full(len(rows), -40.0), log(4 + 4 / np.sqrt(radius))
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        reach = above + exp(middle)[row]
        inverse = np.bincount(row, frequency / reach, len(rows))
        distance = np.bincount(row, frequency * log(reach), len(rows)) + log(inverse)
        too_far = distance > radius
        near, far = np.where(too_far, middle, near), np.where(too_far, far, middle)
    reach = above + exp(near)[row]  # rather a little too far than not far enough
    inverse = np.bincount(row, frequency / reach, len(rows))
    probability[at] = np.where(flat[row], frequency, frequency / reach / inverse[row])


@dataclass(frozen=True, eq=False)
class RewardCounts(ByValue):
    """Counts of the rewards of each row; the values of `counts` are positions in `rewards`."""

    counts: GroupedCounts
    rewards: Numbers

    @classmethod
    def of(cls, keys: Rows, rewards: Numbers, count: Rows | None = None) -> "RewardCounts":
        """Count the rewards of each row, or sum the counts that they have already."""
        # Equal rewards are counted before they are added, so that sums are the same in any order.
        distinct, code = np.unique(rewards, return_inverse=True)
        return cls(GroupedCounts.of(keys, code, count), distinct)

    @cached_property
    def mean(self) -> Numbers:
        """The mean reward of each row."""
        row, reward = self.counts.row, self.rewards[self.counts.value]
        total = np.bincount(row, reward * self.counts.count, len(self.counts))
        return np.clip(total / self.counts.total, *self.extremes)

    @cached_property
    def extremes(self) -> tuple[Numbers, Numbers]:
        """The least and the greatest reward of each row."""
        row, reward = self.counts.row, self.rewards[self.counts.value]
        least, most = np.full(len(self.counts), np.inf), np.full(len(self.counts), -np.inf)
        np.minimum.at(least, row, reward)
        np.maximum.at(most, row, reward)
        return least, most

    def better_known(self, other: "RewardCounts") -> "RewardCounts":
        """Return each row from whichever of the two has more counts of it."""
        rewards = np.union1d(self.rewards, other.rewards)
        first, second = (
            replace(each.counts, value=np.searchsorted(rewards, each.rewards)[each.counts.value])
            for each in (self, other)
        )
        return RewardCounts(first.better_known(second), rewards)

    def least(self, radius: Numbers, low: float) -> Numbers:
        """Return the lowest true mean of each row if its frequencies are off by a radius.

        A reward that never occurred in a row is assumed to be `low`.
        """
        counts, reward = self.counts, self.rewards[self.counts.value]
        probability, rest = worst_probabilities(
            counts.row, counts.share, reward, radius, np.full(len(counts), low)
        )
        mean = np.bincount(counts.row, probability * reward, len(counts)) + rest * low
        return np.minimum(mean, self.mean)

    def bounds(self, log_risk: float, reward_range: tuple[float, float]) -> tuple[Numbers, Numbers]:
        """Return bounds on the true mean of each row; each fails with probability e^−log_risk."""
        low, high = reward_range
        radius = log_risk / self.counts.total
        negated = RewardCounts(self.counts, -self.rewards)
        return self.least(radius, low), -negated.least(radius, -high)
