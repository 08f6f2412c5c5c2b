"""Confidence sets of probability vectors: their size and their worst members.

Input: relative frequencies and a radius. Output: the probabilities within that Kullback-Leibler
divergence that minimize a mean value, unseen outcomes included (Filippi, Cappé and Garivier 2010).
"""

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp, log, log_gamma

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

_HALVINGS = 60

_TOUCHING = 1e-290
"""Smallest difference of two values that counts: shares divided by less overflow."""


def worst_probabilities(
    row: Rows, share: Numbers, value: Numbers, radius: Numbers, lowest: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the plausible probabilities that minimize the mean value of each row.

    `row` is the row of each value; there are as many rows as radii. `lowest` is the value of an
    unseen outcome of each row. The second array is its probability, 0 in rows that have a value
    as low as that.

    >>> row, half, values = np.zeros(2, int), np.full(2, 0.5), np.array([0.0, 1.0])
    >>> chance, rest = worst_probabilities(row, half, values, np.array([0.1]), np.zeros(1))
    >>> chance.round(3).tolist(), rest.round(3).tolist()
    ([0.713, 0.287], [0.0])
    """
    rows = len(radius)
    above = value - lowest[row]
    # Where taking from all is within the radius, the unseen outcome gets the rest.
    safe = np.where(above > _TOUCHING, above, 1.0)
    touching = np.bincount(row, above <= _TOUCHING, rows) > 0
    inverse = np.bincount(row, share / safe, rows)
    distance = np.bincount(row, share * log(safe), rows)
    distance += log(np.where(inverse > 0, inverse, 1.0))
    outside = ~touching & (distance < radius)
    weight = np.where(outside, exp(np.where(outside, distance - radius, 0.0)), 1.0)
    chance = share / safe / np.where(inverse > 0, inverse, 1.0)[row] * weight[row]
    within = np.flatnonzero(~outside & (radius > 0) & (np.bincount(row, minlength=rows) > 0))
    chance[~outside[row]] = share[~outside[row]]
    if len(within):
        _shift(row, share, value, radius, within, chance)
    return chance, np.where(outside, 1 - weight, 0.0)


def _shift(
    row: Rows, share: Numbers, value: Numbers, radius: Numbers, rows: Rows, chance: Numbers
) -> None:
    """Shift the shares of some rows towards lower values, as far as the radius allows."""
    number = np.full(len(radius), -1)
    number[rows] = np.arange(len(rows))
    at = np.flatnonzero(number[row] >= 0)
    row, share, value, radius = number[row[at]], share[at], value[at], radius[rows]
    least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    np.minimum.at(least, row, value)
    np.maximum.at(most, row, value)
    span = most - least
    flat = span <= 0
    span[flat] = 1.0
    above = (value - least[row]) / span[row]
    # The probabilities are share / (above + gap): a small gap shifts far, a large one hardly.
    near, far = np.full(len(rows), -40.0), log(4 + 4 / np.sqrt(radius))
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        reach = above + exp(middle)[row]
        inverse = np.bincount(row, share / reach, len(rows))
        distance = np.bincount(row, share * log(reach), len(rows)) + log(inverse)
        too_far = distance > radius
        near, far = np.where(too_far, middle, near), np.where(too_far, far, middle)
    reach = above + exp(near)[row]  # rather a little too far than not far enough
    inverse = np.bincount(row, share / reach, len(rows))
    chance[at] = np.where(flat[row], share, share / reach / inverse[row])


def lowest_mean(mean: Numbers, radius: Numbers) -> Numbers:
    """Return the lowest plausible expectation of numbers between 0 and 1, given their mean.

    The mean of n such numbers concentrates at least as fast as that of n coin flips.

    >>> lowest_mean(np.array([0.5, 0.0, 1.0]), np.array([0.1, 0.1, 0.1])).round(3).tolist()
    [0.287, 0.0, 0.905]
    """
    low, high = np.zeros(len(mean)), mean.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_far = _coin_divergence(mean, middle) > radius
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return low


def _coin_divergence(seen: Numbers, true: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(seen > 0, seen * log(seen / true), 0.0)
        tails = np.where(seen < 1, (1 - seen) * log((1 - seen) / (1 - true)), 0.0)
    return np.where((true >= 1) & (seen < 1), np.inf, heads + tails)


def log_regret(row: Rows, count: Numbers, rows: int, values: int) -> Numbers:
    """Return the log-likelihood ratio of each row's shares and a Dirichlet mixture.

    The mixture has the parameter 1 / values for each value. By Ville's inequality the true
    probabilities p of a row seen n times fulfil n · KL(shares ‖ p) ≤ regret + log(1 / delta) with
    probability 1 − delta, for any stopping rule. Counts need not be whole numbers.
    """
    prior = 1 / values
    total = np.bincount(row, count, rows).astype(float, copy=False)
    fitted = np.bincount(row, count * log(np.where(count > 0, count, 1)), rows)
    fitted -= total * log(np.where(total > 0, total, 1))
    bet = np.bincount(row, log_gamma(count + prior) - log_gamma(prior), rows)
    regret: Numbers = np.maximum(fitted - bet + log_gamma(total + 1), 0.0)
    return regret
