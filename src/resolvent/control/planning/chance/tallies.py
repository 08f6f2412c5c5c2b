"""Rows and what came in them → how often each came, and how far that may be from the truth."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import log, log_gamma
from resolvent.by_value import ByValue
from resolvent.machines.columns import places

Keys = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally(ByValue):
    """How often each value came in each row.

    `key` are the numbers of the rows, sorted; the values of row i, sorted, and their counts
    lie from `offset[i]` up to `offset[i + 1]`.

    >>> coins = Tally.of(np.array([7, 3, 7, 7]), np.array([1, 0, 0, 1]), 2)
    >>> coins.key.tolist(), coins.value.tolist(), coins.count.tolist(), coins.total.tolist()
    ([3, 7], [0, 0, 1], [1, 1, 2], [1, 3])
    """

    key: Keys
    offset: Keys
    value: Keys
    count: Keys

    @classmethod
    def of(cls, keys: Keys, values: Keys, size: int, counts: Keys | None = None) -> "Tally":
        """Count values, which are below `size`, by the rows in which they came."""
        names = None
        if (int(keys.max(initial=0)) + 1) * size > np.iinfo(np.int64).max:
            names, keys = np.unique(keys, return_inverse=True)
        both, place = np.unique(keys.astype(np.int64) * size + values, return_inverse=True)
        count = np.bincount(place, counts, len(both)).astype(np.int64)
        row, value = np.divmod(both, size)
        start = np.flatnonzero(np.diff(row, prepend=-1))
        key = row[start] if names is None else names[row[start]]
        return cls(key, np.append(start, len(row)), value, count)

    def __len__(self) -> int:
        return len(self.key)

    @cached_property
    def size(self) -> Keys:
        """How many different values came in each row."""
        return np.diff(self.offset)

    @cached_property
    def total(self) -> Keys:
        """How often anything came in each row."""
        return np.add.reduceat(self.count, self.offset[:-1]) if len(self) else self.size

    @cached_property
    def row(self) -> Keys:
        """For each value the place of its row."""
        return np.repeat(np.arange(len(self)), self.size)

    @cached_property
    def share(self) -> Numbers:
        """How often each value came, as a share of all that came in its row."""
        return self.count / self.total[self.row]

    def find(self, wanted: Keys) -> Keys:
        """Return the place of each row that is wanted, −1 where there is none."""
        return places(self.key, wanted).astype(np.int64)

    def spread_out(self, rows: Keys) -> tuple[Keys, Keys]:
        """Return, for rows by their places, which of them each of their values belongs to.

        The second column says where that value lies. A place of −1 has no values.
        """
        size = np.where(rows < 0, 0, self.size[rows]) if len(self) else np.zeros(len(rows), int)
        owner = np.repeat(np.arange(len(rows)), size)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        return owner, self.offset[rows[owner]] + within

    def seen_more(self, other: "Tally") -> "Tally":
        """Return each row as one of the two counted it: the one that saw more of it.

        The same steps may be in both, so they are never added up.

        >>> one, other = (Tally.of(np.array([1, 1, k]), np.array([0, 0, 0]), 2) for k in (1, 2))
        >>> both = other.seen_more(one)
        >>> both.key.tolist(), both.total.tolist()
        ([1, 2], [3, 1])
        """
        if not len(other) or not len(self):
            return self if len(self) else other
        mine, yours = self.find(other.key), other.find(self.key)
        keep = (yours < 0) | (self.total >= other.total[yours])
        take = (mine < 0) | (other.total > self.total[mine])
        one, more = keep[self.row], take[other.row]
        keys = np.concatenate([self.key[self.row[one]], other.key[other.row[more]]])
        values = np.concatenate([self.value[one], other.value[more]])
        counts = np.concatenate([self.count[one], other.count[more]])
        return Tally.of(keys, values, int(values.max(initial=0)) + 1, counts)

    def regret(self, values: int) -> Numbers:
        """Return how much likelier the shares of a row make it than a bet made in advance.

        The bet is on any shares of so many `values`, drawn evenly by Dirichlet's
        distribution with 1 / values for each. By Ville's inequality the true chances p of a
        row seen n times fulfil n · KL(shares ‖ p) ≤ regret + log(1 / delta) with probability
        1 − delta, however it was decided how often to look.

        >>> Tally.of(np.zeros(8, int), np.array([0] * 6 + [1] * 2), 2).regret(2).round(3).tolist()
        [1.303]
        """
        return regrets(self.row, self.count.astype(float), len(self), values)


def regrets(row: Keys, count: Numbers, rows: int, values: int) -> Numbers:
    """Return how much likelier the shares of rows make them than a bet on any of so many values.

    Counts need not be whole: a pay between the least and the most counts as a part of both.
    """
    prior = 1 / values
    total = np.bincount(row, count, rows).astype(float, copy=False)
    fitted = np.bincount(row, count * log(np.where(count > 0, count, 1)), rows)
    fitted -= total * log(np.where(total > 0, total, 1))
    bet = np.bincount(row, log_gamma(count + prior) - log_gamma(prior), rows)
    regret: Numbers = np.maximum(fitted - bet + log_gamma(total + 1), 0.0)
    return regret
