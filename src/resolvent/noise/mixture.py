"""Repeated values → the centres that they vary around, and how many there are.

Values of one group were read in the same situation, so they vary around the same centre, and
their mean varies less than each of them: by σ / √n. Centres that overlap in single values are
told apart by means. The density of a mean is a mixture of normal ones around all centres, and
of two for what lies off: an even one over the whole range, and a wide one around the centres.
σ is known from the groups.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import exp, log, product

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_CENTRES = 30
"""With more centres than this values are spread out, not clustered."""

MOST_OFF = 0.1
"""Up to this share of the groups may belong to no centre."""

MOST_SIDE_BY_SIDE = 8
"""More centres than this, most of them near to the next, are one wide range of values."""

NEAR = 4.0
"""Centres nearer than so many σ may be one, if noise is not normally distributed."""

FULL = 12
"""A group of so many values, which vary no more than noise has it, belongs to some centre."""

_STEPS, _GAIN = 500, 1e-4
"""Fitting ends after so many steps, or when one gains so little."""

_WIDE = 15.0
_CELLS = 10
_TRIED = 3
_MOST_PLACES = 1_000
_TINY = 1e-300


@dataclass(frozen=True)
class Groups:
    """Values put together: how many, their mean, their squared deviations; parallel columns."""

    size: Floats
    mean: Floats
    squares: Floats

    @classmethod
    def by(cls, key: Ints, values: Floats) -> "Groups":
        """Put values with the same key together.

        >>> Groups.by(np.array([7, 7, 3]), np.array([1.0, 2.0, 5.0])).mean.tolist()
        [5.0, 1.5]
        """
        _, of_value, count = np.unique(key, return_inverse=True, return_counts=True)
        mean = np.bincount(of_value, values) / count
        squares = np.bincount(of_value, (values - mean[of_value]) ** 2)
        return cls(count.astype(np.float64), mean, squares.astype(np.float64))

    @property
    def repeats(self) -> int:
        """How many values come after the first of their group."""
        return int((self.size - 1).sum())

    def where(self, kept: NDArray[np.bool_]) -> "Groups":
        """Return some of the groups."""
        return Groups(self.size[kept], self.mean[kept], self.squares[kept])


@dataclass(frozen=True)
class Mixture:
    """Centres, each with its share of groups and how many values it has.

    `off` are the shares of groups that belong to none: anywhere, and near the centres.
    """

    centres: Floats
    shares: Floats
    values: Floats
    off: Floats
    log_likelihood: float

    def without(self, one: int) -> "Mixture":
        """Return all but one of the centres."""
        shares = np.delete(self.shares, one)
        return replace(
            self,
            centres=np.delete(self.centres, one),
            shares=shares / max(float(shares.sum()), _TINY) * float(self.shares.sum()),
        )

    def beside(self, centre: float) -> "Mixture":
        """Return the mixture with a further centre, which has a small share."""
        return replace(
            self,
            centres=np.append(self.centres, centre),
            shares=np.append(self.shares * 0.98, 0.02),
            off=self.off * 0.98,
        )


def find_centres(
    groups: Groups, sigma: float, sure: float = 1, price: float = 1.0
) -> Mixture | None:
    """Find how many centres there are, and where; None if values are spread out.

    Centres are added, one at a time, where means are least expected, and kept if they are
    worth their price. Where noise is not normally distributed, two centres fit the values
    around one better than that one does. Means of many values are normally distributed all
    the same: between near centres only those of at least `sure` values decide. A centre must
    gain `price` times the logarithm of the number of groups.

    >>> random = np.random.default_rng(0)
    >>> single = np.concatenate([random.normal(0, 0.1, 500), random.normal(1, 0.1, 100)])
    >>> found = find_centres(Groups(np.ones(600), single, np.zeros(600)), 0.1)
    >>> found.centres.round(1).tolist(), found.shares.round(1).tolist()
    ([-0.0, 1.0], [0.8, 0.2])
    """
    return _Search(groups, sigma, sure, price).found()


@dataclass(frozen=True)
class _Means:
    """Means of `size` values each, and how many of them lie here: parallel columns."""

    size: Floats
    mean: Floats
    count: Floats

    @classmethod
    def of(cls, groups: Groups, sigma: float) -> "_Means":
        """Put means of as many values into cells far smaller than they vary."""
        cell = np.round(groups.mean * np.sqrt(groups.size) * (_CELLS / sigma))
        order = np.lexsort((groups.mean, cell, groups.size))
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(cell[order]) != 0) | (np.diff(groups.size[order]) != 0)
        starts = np.flatnonzero(new)
        count = np.diff(starts, append=len(order)).astype(np.float64)
        mean = np.add.reduceat(groups.mean[order], starts) / count
        return cls(groups.size[order][starts], mean, count)

    def of_at_least(self, size: float) -> "_Means":
        kept = self.size >= size
        return _Means(self.size[kept], self.mean[kept], self.count[kept])


class _Search:
    def __init__(self, groups: Groups, sigma: float, sure: float, price: float) -> None:
        self.means, self.sigma = _Means.of(groups, sigma), sigma
        free = np.maximum(groups.size - 1, 1)
        varies_so = groups.squares <= sigma**2 * (free + 4 * np.sqrt(2 * free))
        self.full = groups.where((groups.size >= FULL) & varies_so)
        self.sure = None if sure <= 1 else self.means.of_at_least(sure)
        self.even = 1 / max(float(np.ptp(groups.mean)), 10 * sigma)
        self.price = price * log(max(len(groups.mean), 2))

    def found(self) -> Mixture | None:
        fullest = self.means.mean[np.argmax(self.means.count * self.means.size)]
        one = np.ones(1)
        best = self._fitted(Mixture(fullest * one, 0.98 * one, one, np.full(2, 0.01), -np.inf))
        while (more := self._with_another(best)) is not None:
            best = more
            if len(best.centres) > MOST_CENTRES or self._side_by_side(best):
                return None
        best = self._with_left_out(self._pruned(best))
        if best.off.sum() > MOST_OFF:
            return None
        order = np.argsort(best.centres, kind="stable")
        return replace(
            best,
            centres=best.centres[order],
            shares=best.shares[order],
            values=best.values[order],
        )

    def _with_left_out(self, now: Mixture) -> Mixture:
        """Return the mixture with centres for full groups that are far from all of them.

        Where there are few groups, one of them is not worth the price of a centre; but so many
        values in the same place are no accident.
        """
        while len(now.centres) < MOST_CENTRES:
            apart = np.abs(self.full.mean[:, None] - now.centres[None, :]).min(1)
            far = self.full.where(apart > self.sigma * np.maximum(6 / np.sqrt(self.full.size), 1))
            if not len(far.size):
                break
            now = self._fitted(now.beside(float(far.mean[np.argmax(far.size)])))
        return now

    def _side_by_side(self, found: Mixture) -> bool:
        """Whether most centres are as near to the next as noise reaches: they fill a range."""
        if len(found.centres) <= MOST_SIDE_BY_SIDE:
            return False
        return bool(np.median(np.diff(np.sort(found.centres))) < NEAR * self.sigma)

    def _with_another(self, now: Mixture) -> Mixture | None:
        """Return a mixture with one centre more that is worth it, None if there is none."""
        tried = [self._fitted(now.beside(place)) for place in self._unexpected(now)]
        worth = [one for one in tried if self._pays(one, len(now.centres), now)]
        return max(worth, key=lambda one: one.log_likelihood, default=None)

    def _pruned(self, now: Mixture) -> Mixture:
        """Leave out centres for as long as one is not worth its price."""
        while len(now.centres) > 1:
            fewer = [self._fitted(now.without(one)) for one in range(len(now.centres))]
            needless = [rest for one, rest in enumerate(fewer) if not self._pays(now, one, rest)]
            if not needless:
                break
            now = max(needless, key=lambda one: one.log_likelihood)
        return now

    def _pays(self, more: Mixture, centre: int, fewer: Mixture) -> bool:
        """Whether one of the centres is worth its price, given the best mixture without it."""
        if more.log_likelihood - fewer.log_likelihood <= self.price:
            return False
        nearest = np.abs(np.delete(more.centres, centre) - more.centres[centre]).min()
        if self.sure is None or nearest > NEAR * self.sigma:
            return True
        if not len(self.sure.mean):
            return False
        one, other = (self._fitted(fit, self.sure).log_likelihood for fit in (more, fewer))
        return bool(one - other > self.price)

    def _unexpected(self, now: Mixture) -> list[float]:
        """Return the places where a centre would gain most, at least σ from each other."""
        means = self.means
        density = product(self._densities(now.centres, means), now.shares)
        density += product(self._off(now.centres, now.shares, means), now.off)
        weight = means.count / np.maximum(density, _TINY)
        cell = np.round(means.mean * (2 / self.sigma))
        places = np.unique(cell)
        if len(places) > _MOST_PLACES:
            gained = np.bincount(np.searchsorted(places, cell), weight, len(places))
            places = places[np.sort(np.argsort(-gained, kind="stable")[:_MOST_PLACES])]
        places = places * (self.sigma / 2)
        gain = np.concatenate(
            [product(weight, self._densities(some, means)) for some in np.array_split(places, 20)]
        )
        chosen: list[float] = []
        for place in places[np.argsort(-gain, kind="stable")].tolist():
            if all(abs(place - one) >= self.sigma for one in chosen):
                chosen.append(place)
            if len(chosen) == _TRIED:
                break
        return chosen

    def _fitted(self, now: Mixture, means: _Means | None = None) -> Mixture:
        """Fit centres and shares by expectation maximisation, from these on."""
        means = self.means if means is None else means
        centres, shares, off = now.centres, now.shares, now.off
        total, before = float(means.count.sum()), -np.inf
        for _ in range(_STEPS):
            each = self._densities(centres, means) * shares
            away = self._off(centres, shares, means) * off
            density = np.maximum(each.sum(1) + away.sum(1), _TINY)
            likelihood = float((means.count * log(density)).sum())
            weight = means.count / density
            part = each * weight[:, None]
            values = product(means.size, part)
            if likelihood - before < _GAIN:
                break
            before = likelihood
            summed = product(means.mean * means.size, part)
            centres = np.where(values > _TINY, summed / np.maximum(values, _TINY), centres)
            shares = part.sum(0) / total
            off = np.maximum(product(weight, away) / total, 1e-9)
        return Mixture(centres, shares, values, off, likelihood)

    def _off(self, centres: Floats, shares: Floats, means: _Means) -> Floats:
        """Return how dense means are that belong to no centre: anywhere, and near the centres."""
        width = _WIDE * self.sigma
        apart = (means.mean[:, None] - centres[None, :]) / width
        near = product(exp(-0.5 * apart**2), shares) / (width * np.sqrt(2 * np.pi) * shares.sum())
        return np.stack([np.full(len(near), self.even), near], axis=1)

    def _densities(self, centres: Floats, means: _Means) -> Floats:
        deviation = self.sigma / np.sqrt(means.size)[:, None]
        apart = (means.mean[:, None] - centres[None, :]) / deviation
        found: Floats = exp(-0.5 * apart**2) / (deviation * np.sqrt(2 * np.pi))
        return found
