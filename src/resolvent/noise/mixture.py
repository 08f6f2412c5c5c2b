"""Cluster repeated values: find the number of centers that they vary around, and the centers.

Values of one group vary around the same center, so their mean varies less than each of them: by
σ / √n. Means separate centers that overlap in single values. The density of a mean is a mixture of
normal distributions around all centers and of two for outliers: a uniform one over the whole range,
and a wide one around the centers.

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

_MAX_OUTLIERS = 0.1
"""Maximum share of the groups that may belong to no center."""

_MAX_NEAR_CENTERS = 8
"""Number of centers above which they form one wide range, if most are near to the next."""

_NEAR = 4.0
"""Distance in σ below which two centers may be one whose noise is not normally distributed."""

_FULL = 12
"""Number of values from which a group with no more than the usual variance belongs to a center."""

_MAX_STEPS, _MIN_GAIN = 500, 1e-4
"""Maximum number of steps of a fit, and the gain in nats of a step below which it ends."""

_OUTLIER_SIGMA = 15.0
"""Standard deviation, in σ, of the outliers around centers."""

_CELLS = 10
"""Number of cells per standard deviation of a mean in which means count as equal."""

_ATTEMPTS = 3
"""Number of positions that are tried for a further center."""

_MAX_POSITIONS = 1_000
"""Maximum number of positions whose gain is computed."""

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

    `outliers` has the shares of groups that belong to no center: anywhere, and near the centers.
    """

    centers: Floats
    shares: Floats
    values: Floats
    outliers: Floats
    log_likelihood: float

    def without(self, center: int) -> "Mixture":
        """Return the mixture without the center with this index."""
        shares = np.delete(self.shares, center)
        return replace(
            self,
            centers=np.delete(self.centers, center),
            shares=shares / max(float(shares.sum()), _TINY) * float(self.shares.sum()),
        )

    def adding(self, center: float) -> "Mixture":
        """Return the mixture with a further center, which has a small share."""
        return replace(
            self,
            centers=np.append(self.centers, center),
            shares=np.append(self.shares * 0.98, 0.02),
            outliers=self.outliers * 0.98,
        )


def find_centers(
    groups: Groups, sigma: float, normal_size: float = 1, price: float = 1.0
) -> Mixture | None:
    """Find the number of centers and their values; None if values are spread out.

    Centers are added one at a time, where means are least expected, and stay if they are worth
    their price: `price` times the logarithm of the number of groups, in nats. Values around one
    center that are not normally distributed fit two centers better; so only means of at least
    `normal_size` values, which are normally distributed, decide between near centers.
    """
    return _Search(groups, sigma, normal_size, price).run()


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


class _Search:
    """One search for centers: the means, and the minimum gain of a center."""

    def __init__(self, groups: Groups, sigma: float, normal_size: float, price: float) -> None:
        self.means, self.sigma = _Means.of(groups, sigma), sigma
        free = np.maximum(groups.size - 1, 1)
        is_usual = groups.squares <= sigma**2 * (free + 4 * np.sqrt(2 * free))
        self.full = groups.where((groups.size >= _FULL) & is_usual)
        self.normal_means = None
        if normal_size > 1:
            means, large = self.means, self.means.size >= normal_size
            self.normal_means = _Means(means.size[large], means.mean[large], means.count[large])
        self.uniform_density = 1 / max(float(np.ptp(groups.mean)), 10 * sigma)
        self.price = price * log(max(len(groups.mean), 2))

    def run(self) -> Mixture | None:
        fullest = self.means.mean[[np.argmax(self.means.count * self.means.size)]]
        single, outliers = np.ones(1), np.full(2, 0.01)
        best = self._fitted(Mixture(fullest, 0.98 * single, single, outliers, -np.inf))
        while (larger := self._grown(best)) is not None:
            best, count = larger, len(larger.centers)
            # If most centers are as near to the next as noise reaches, they fill a range.
            near = np.median(np.diff(np.sort(best.centers))) < _NEAR * self.sigma
            if count > MAX_CENTERS or (count > _MAX_NEAR_CENTERS and near):
                return None
        best = self._with_full_groups(self._pruned(best))
        if best.outliers.sum() > _MAX_OUTLIERS:
            return None
        order = np.argsort(best.centers, kind="stable")
        shares, values = best.shares[order], best.values[order]
        return replace(best, centers=best.centers[order], shares=shares, values=values)

    def _with_full_groups(self, mixture: Mixture) -> Mixture:
        """Return the mixture with centers for full groups that are far from all of them.

        With few groups, one is not worth the price of a center, but a full one is significant.
        """
        while len(mixture.centers) < MAX_CENTERS:
            apart = np.abs(self.full.mean[:, None] - mixture.centers[None, :]).min(1)
            far = self.full.where(apart > self.sigma * np.maximum(6 / np.sqrt(self.full.size), 1))
            if not len(far.size):
                break
            mixture = self._fitted(mixture.adding(float(far.mean[np.argmax(far.size)])))
        return mixture

    def _grown(self, mixture: Mixture) -> Mixture | None:
        """Return the best mixture with one more center that is worth its price, or None."""
        larger = (self._fitted(mixture.adding(center)) for center in self._unexpected(mixture))
        center = len(mixture.centers)
        worthy = [grown for grown in larger if self._is_worth(grown, center, mixture)]
        return max(worthy, key=lambda grown: grown.log_likelihood, default=None)

    def _pruned(self, mixture: Mixture) -> Mixture:
        """Remove centers while one is not worth its price."""
        while (centers := len(mixture.centers)) > 1:
            smaller = [self._fitted(mixture.without(center)) for center in range(centers)]
            worth = [self._is_worth(mixture, center, rest) for center, rest in enumerate(smaller)]
            if all(worth):
                break
            better = (rest for rest, is_worth in zip(smaller, worth, strict=True) if not is_worth)
            mixture = max(better, key=lambda rest: rest.log_likelihood)
        return mixture

    def _is_worth(self, mixture: Mixture, center: int, without: Mixture) -> bool:
        """Return whether a center is worth its price, given the best mixture without it."""
        if mixture.log_likelihood - without.log_likelihood <= self.price:
            return False
        nearest = np.abs(np.delete(mixture.centers, center) - mixture.centers[center]).min()
        means = self.normal_means
        if means is None or nearest > _NEAR * self.sigma:
            return True
        if not len(means.mean):
            return False
        more, less = (self._fitted(fit, means).log_likelihood for fit in (mixture, without))
        return more - less > self.price

    def _unexpected(self, mixture: Mixture) -> list[float]:
        """Return the positions where a center would gain most, at least σ from each other."""
        means, centers, shares = self.means, mixture.centers, mixture.shares
        density = product(self._densities(centers, means), shares)
        density += product(self._outlier_densities(centers, shares, means), mixture.outliers)
        weight = means.count / np.maximum(density, _TINY)
        cell = np.round(means.mean * (2 / self.sigma))
        positions = np.unique(cell)
        if len(positions) > _MAX_POSITIONS:
            gained = np.bincount(np.searchsorted(positions, cell), weight, len(positions))
            positions = positions[np.sort(np.argsort(-gained, kind="stable")[:_MAX_POSITIONS])]
        positions = positions * (self.sigma / 2)
        parts = np.array_split(positions, 20)
        gain = np.concatenate([product(weight, self._densities(part, means)) for part in parts])
        chosen: list[float] = []
        for position in positions[np.argsort(-gain, kind="stable")].tolist():
            if all(abs(position - earlier) >= self.sigma for earlier in chosen):
                chosen.append(position)
            if len(chosen) == _ATTEMPTS:
                break
        return chosen

    def _fitted(self, mixture: Mixture, means: _Means | None = None) -> Mixture:
        """Fit centers and shares by expectation maximization, starting from these."""
        means = self.means if means is None else means
        centers, shares, outliers = mixture.centers, mixture.shares, mixture.outliers
        total, before = float(means.count.sum()), -np.inf
        for _ in range(_MAX_STEPS):
            near = self._densities(centers, means) * shares
            far = self._outlier_densities(centers, shares, means) * outliers
            density = np.maximum(near.sum(1) + far.sum(1), _TINY)
            likelihood = float((means.count * log(density)).sum())
            weight = means.count / density
            part = near * weight[:, None]
            values = product(means.size, part)
            if likelihood - before < _MIN_GAIN:
                break
            before = likelihood
            summed = product(means.mean * means.size, part)
            centers = np.where(values > _TINY, summed / np.maximum(values, _TINY), centers)
            shares = part.sum(0) / total
            outliers = np.maximum(product(weight, far) / total, 1e-9)
        return Mixture(centers, shares, values, outliers, likelihood)

    def _outlier_densities(self, centers: Floats, shares: Floats, means: _Means) -> Floats:
        """Return the densities of means that belong to no center: anywhere, and near a center."""
        width = _OUTLIER_SIGMA * self.sigma
        apart = (means.mean[:, None] - centers[None, :]) / width
        near = product(exp(-0.5 * apart**2), shares) / (width * np.sqrt(2 * np.pi) * shares.sum())
        return np.stack([np.full(len(near), self.uniform_density), near], axis=1)

    def _densities(self, centers: Floats, means: _Means) -> Floats:
        deviation = self.sigma / np.sqrt(means.size)[:, None]
        apart = (means.mean[:, None] - centers[None, :]) / deviation
        density: Floats = exp(-0.5 * apart**2) / (deviation * np.sqrt(2 * np.pi))
        return density
