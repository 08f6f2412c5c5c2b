"""Cluster repeated values: find the number of centers that they vary around, and the centers.

Values of one group were read in the same situation, so they vary around the same center, and
their mean varies less than each of them: by σ / √n. Means separate centers that overlap in single
values. The density of a mean is a mixture of normal distributions around all centers and of two
for outliers: a uniform one over the whole range, and a wide one around the centers. σ is
estimated from the groups.

Input: groups of values and σ. Output: a `Mixture`, or None if values are not clustered.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp, log, product

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_CENTERS = 30
"""Maximum number of centers; values with more are spread out, not clustered."""

MOST_OFF = 0.1
"""Maximum share of the groups that may belong to no center."""

MOST_SIDE_BY_SIDE = 8
"""Number of centers above which they form one wide range, if most are near to the next."""

NEAR = 4.0
"""Distance in σ below which two centers may be one whose noise is not normally distributed."""

FULL = 12
"""Number of values from which a group with no more than the usual variance belongs to a center."""

_STEPS, _GAIN = 500, 1e-4
"""Maximum number of steps of a fit, and the gain in nats of a step below which it ends."""

_WIDE = 15.0
"""Standard deviation, in σ, of the outliers around centers."""

_CELLS = 10
"""Number of cells per standard deviation of a mean in which means count as equal."""

_TRIED = 3
"""Number of places that are tried for a further center."""

_MOST_PLACES = 1_000
"""Maximum number of places whose gain is computed."""

_TINY = 1e-300


@dataclass(frozen=True)
class Groups:
    """Grouped values: their number, mean and sum of squared deviations; parallel columns."""

    size: Floats
    mean: Floats
    squares: Floats

    @classmethod
    def by(cls, key: Ints, values: Floats) -> "Groups":
        """Group values with the same key.

        >>> Groups.by(np.array([7, 7, 3]), np.array([1.0, 2.0, 5.0])).mean.tolist()
        [5.0, 1.5]
        """
        _, of_value, count = np.unique(key, return_inverse=True, return_counts=True)
        mean = np.bincount(of_value, values) / count
        squares = np.bincount(of_value, (values - mean[of_value]) ** 2)
        return cls(count.astype(np.float64), mean, squares.astype(np.float64))

    @property
    def repeats(self) -> int:
        """Number of values after the first of their group."""
        return int((self.size - 1).sum())

    def where(self, mask: NDArray[np.bool_]) -> "Groups":
        """Return the groups that a mask selects."""
        return Groups(self.size[mask], self.mean[mask], self.squares[mask])


@dataclass(frozen=True)
class Mixture:
    """Centers, each with its share of the groups and its number of values.

    `off` has the shares of groups that belong to no center: anywhere, and near the centers.
    """

    centers: Floats
    shares: Floats
    values: Floats
    off: Floats
    log_likelihood: float

    def without(self, center: int) -> "Mixture":
        """Return all centers but the one with this number."""
        shares = np.delete(self.shares, center)
        return replace(
            self,
            centers=np.delete(self.centers, center),
            shares=shares / max(float(shares.sum()), _TINY) * float(self.shares.sum()),
        )

    def beside(self, center: float) -> "Mixture":
        """Return the mixture with a further center, which has a small share."""
        return replace(
            self,
            centers=np.append(self.centers, center),
            shares=np.append(self.shares * 0.98, 0.02),
            off=self.off * 0.98,
        )


def find_centers(
    groups: Groups, sigma: float, sure: float = 1, price: float = 1.0
) -> Mixture | None:
    """Find the number of centers and their values; None if values are spread out.

    Centers are added one at a time, where means are least expected, and stay if they are worth
    their price: `price` times the logarithm of the number of groups, in nats. If noise is not
    normally distributed, two centers fit values around one center better. Means of many values are
    normally distributed nevertheless, so only means of at least `sure` values decide between near
    centers.
    """
    return _Search(groups, sigma, sure, price).run()


@dataclass(frozen=True)
class _Means:
    """Means of `size` values each, and the number of them in a cell: parallel columns."""

    size: Floats
    mean: Floats
    count: Floats

    @classmethod
    def of(cls, groups: Groups, sigma: float) -> "_Means":
        """Put means of equally many values into cells far smaller than their deviation."""
        cell = np.round(groups.mean * np.sqrt(groups.size) * (_CELLS / sigma))
        order = np.lexsort((groups.mean, cell, groups.size))
        is_new = np.ones(len(order), bool)
        is_new[1:] = (np.diff(cell[order]) != 0) | (np.diff(groups.size[order]) != 0)
        starts = np.flatnonzero(is_new)
        count = np.diff(starts, append=len(order)).astype(np.float64)
        mean = np.add.reduceat(groups.mean[order], starts) / count
        return cls(groups.size[order][starts], mean, count)

    def of_at_least(self, size: float) -> "_Means":
        mask = self.size >= size
        return _Means(self.size[mask], self.mean[mask], self.count[mask])


class _Search:
    """One search for centers: the means, and the minimum gain of a center."""

    def __init__(self, groups: Groups, sigma: float, sure: float, price: float) -> None:
        self.means, self.sigma = _Means.of(groups, sigma), sigma
        free = np.maximum(groups.size - 1, 1)
        is_usual = groups.squares <= sigma**2 * (free + 4 * np.sqrt(2 * free))
        self.full = groups.where((groups.size >= FULL) & is_usual)
        self.sure = None if sure <= 1 else self.means.of_at_least(sure)
        self.even = 1 / max(float(np.ptp(groups.mean)), 10 * sigma)
        self.price = price * log(max(len(groups.mean), 2))

    def run(self) -> Mixture | None:
        fullest = self.means.mean[np.argmax(self.means.count * self.means.size)]
        single = np.ones(1)
        best = self._fitted(
            Mixture(fullest * single, 0.98 * single, single, np.full(2, 0.01), -np.inf)
        )
        while (larger := self._with_another(best)) is not None:
            best = larger
            if len(best.centers) > MAX_CENTERS or self._fill_a_range(best):
                return None
        best = self._with_full_groups(self._pruned(best))
        if best.off.sum() > MOST_OFF:
            return None
        order = np.argsort(best.centers, kind="stable")
        return replace(
            best, centers=best.centers[order], shares=best.shares[order], values=best.values[order]
        )

    def _with_full_groups(self, mixture: Mixture) -> Mixture:
        """Return the mixture with centers for full groups that are far from all of them.

        With few groups, one group is not worth the price of a center, but a full one is no
        accident.
        """
        while len(mixture.centers) < MAX_CENTERS:
            apart = np.abs(self.full.mean[:, None] - mixture.centers[None, :]).min(1)
            far = self.full.where(apart > self.sigma * np.maximum(6 / np.sqrt(self.full.size), 1))
            if not len(far.size):
                break
            mixture = self._fitted(mixture.beside(float(far.mean[np.argmax(far.size)])))
        return mixture

    def _fill_a_range(self, mixture: Mixture) -> bool:
        """Return whether most centers are as near to the next as noise reaches."""
        if len(mixture.centers) <= MOST_SIDE_BY_SIDE:
            return False
        return bool(np.median(np.diff(np.sort(mixture.centers))) < NEAR * self.sigma)

    def _with_another(self, mixture: Mixture) -> Mixture | None:
        """Return the best mixture with one more center that is worth it, or None."""
        larger = [self._fitted(mixture.beside(place)) for place in self._unexpected(mixture)]
        worthy = [
            candidate
            for candidate in larger
            if self._is_worth(candidate, len(mixture.centers), mixture)
        ]
        return max(worthy, key=lambda candidate: candidate.log_likelihood, default=None)

    def _pruned(self, mixture: Mixture) -> Mixture:
        """Remove centers while one is not worth its price."""
        while len(mixture.centers) > 1:
            smaller = [
                self._fitted(mixture.without(center)) for center in range(len(mixture.centers))
            ]
            needless = [
                rest
                for center, rest in enumerate(smaller)
                if not self._is_worth(mixture, center, rest)
            ]
            if not needless:
                break
            mixture = max(needless, key=lambda candidate: candidate.log_likelihood)
        return mixture

    def _is_worth(self, mixture: Mixture, center: int, without: Mixture) -> bool:
        """Return whether a center is worth its price, given the best mixture without it."""
        if mixture.log_likelihood - without.log_likelihood <= self.price:
            return False
        nearest = np.abs(np.delete(mixture.centers, center) - mixture.centers[center]).min()
        if self.sure is None or nearest > NEAR * self.sigma:
            return True
        if not len(self.sure.mean):
            return False
        gains = [self._fitted(fit, self.sure).log_likelihood for fit in (mixture, without)]
        return bool(gains[0] - gains[1] > self.price)

    def _unexpected(self, mixture: Mixture) -> list[float]:
        """Return the places where a center would gain most, at least σ from each other."""
        means = self.means
        density = product(self._densities(mixture.centers, means), mixture.shares)
        density += product(self._off(mixture.centers, mixture.shares, means), mixture.off)
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
            if all(abs(place - earlier) >= self.sigma for earlier in chosen):
                chosen.append(place)
            if len(chosen) == _TRIED:
                break
        return chosen

    def _fitted(self, mixture: Mixture, means: _Means | None = None) -> Mixture:
        """Fit centers and shares by expectation maximization, starting from these."""
        means = self.means if means is None else means
        centers, shares, off = mixture.centers, mixture.shares, mixture.off
        total, before = float(means.count.sum()), -np.inf
        for _ in range(_STEPS):
            near = self._densities(centers, means) * shares
            away = self._off(centers, shares, means) * off
            density = np.maximum(near.sum(1) + away.sum(1), _TINY)
            likelihood = float((means.count * log(density)).sum())
            weight = means.count / density
            part = near * weight[:, None]
            values = product(means.size, part)
            if likelihood - before < _GAIN:
                break
            before = likelihood
            summed = product(means.mean * means.size, part)
            centers = np.where(values > _TINY, summed / np.maximum(values, _TINY), centers)
            shares = part.sum(0) / total
            off = np.maximum(product(weight, away) / total, 1e-9)
        return Mixture(centers, shares, values, off, likelihood)

    def _off(self, centers: Floats, shares: Floats, means: _Means) -> Floats:
        """Return the density of means that belong to no center: anywhere, and near the centers."""
        width = _WIDE * self.sigma
        apart = (means.mean[:, None] - centers[None, :]) / width
        near = product(exp(-0.5 * apart**2), shares) / (width * np.sqrt(2 * np.pi) * shares.sum())
        return np.stack([np.full(len(near), self.even), near], axis=1)

    def _densities(self, centers: Floats, means: _Means) -> Floats:
        deviation = self.sigma / np.sqrt(means.size)[:, None]
        apart = (means.mean[:, None] - centers[None, :]) / deviation
        density: Floats = exp(-0.5 * apart**2) / (deviation * np.sqrt(2 * np.pi))
        return density
