"""Many readings of one number → the intervals they are put into."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import MissingExtra, TraceError
from resolvent.senses.intervals import Intervals

Floats = NDArray[np.float64]

LARGEST = 1e300
"""Beyond this, distances between readings may be too large for a float."""

MOVED = 0.01
"""The share of an interval's readings that may change sides so that its edges are short."""

SHIFTED = 0.05
"""The share of an interval's width that its edges may be shifted by so that they are short."""

MOST_CLUSTERED = 20_000
"""How many readings k-means looks at; of more, so many evenly among the sorted ones."""


def intervals_of(values: Floats, method: str, bins: int, seed: int) -> Intervals:
    """Return at most so many intervals for these readings, by one of `METHODS`.

    Edges are rounded as far as hardly any reading changes sides.

    >>> intervals_of(np.arange(100) / 7, "quantile", 4, seed=0).names
    ('below 3.5', '3.5…7.1', '7.1…10.6', 'above 10.6')
    >>> intervals_of(np.array([0.0, 0, 0, 1, 9]), "uniform", 3, seed=0).names
    ('below 3', '3…6', 'above 6')
    """
    values = np.sort(values)
    if max(-values[0], values[-1]) > LARGEST:
        raise TraceError(f"readings beyond {LARGEST:g} are too large to put into intervals")
    bins = min(bins, len(np.unique(values)))
    if bins < 2:
        return Intervals(())
    return METHODS[method](values, bins, seed)


def _quantile(values: Floats, bins: int, seed: int) -> Intervals:
    edges = np.quantile(values, np.arange(1, bins) / bins)
    return Intervals(tuple(rounded(_separating(edges, values), values)))


def _uniform(values: Floats, bins: int, seed: int) -> Intervals:
    edges = np.linspace(values[0], values[-1], bins + 1)[1:-1]
    return Intervals(tuple(rounded(np.unique(edges), values)))


def _k_means(values: Floats, bins: int, seed: int) -> Intervals:
    looked_at = values
    if len(values) > MOST_CLUSTERED:
        looked_at = values[np.linspace(0, len(values) - 1, MOST_CLUSTERED).round().astype(int)]
    bins = min(bins, len(np.unique(looked_at)))
    clustering = _import_k_means()(n_clusters=bins, n_init=10, random_state=seed)
    cluster = clustering.fit(looked_at.reshape(-1, 1)).labels_
    # Threads add up in any order: which readings are together is the same each time, and
    # the last digits of their centres are not. So centres are worked out again.
    parts = np.split(looked_at, np.flatnonzero(np.diff(cluster)) + 1)
    centres = np.array([part.mean() for part in parts])
    edges = rounded((centres[:-1] + centres[1:]) / 2, values)
    return Intervals(tuple(edges), tuple(_short(centres)))


METHODS: dict[str, Callable[[Floats, int, int], Intervals]] = {
    "quantile": _quantile,
    "uniform": _uniform,
    "kmeans": _k_means,
}


def _separating(edges: Floats, values: Floats) -> Floats:
    """Leave out each edge below which there is no reading, or none above the edge before."""
    below = np.searchsorted(values, edges, side="left")
    return edges[np.diff(below, prepend=0) > 0]


def rounded(edges: Floats, values: Floats) -> Floats:
    """Round edges to as few decimals as keep nearly all of the sorted readings on their sides.

    >>> readings = np.array([0.0, 1 / 3, 2 / 3, 1])
    >>> rounded(np.array([1 / 3, 2 / 3]), readings).tolist()
    [0.33, 0.66]
    """
    below = np.searchsorted(values, edges, side="left")
    held = np.diff(np.concatenate([[0], below, [len(values)]]))
    widths = np.diff(np.concatenate([values[:1], edges, values[-1:]]))
    widths[-1] = widths[-1] or widths[-2]  # the highest reading may lie on the last edge
    may_move = MOVED * np.minimum(held[:-1], held[1:])
    may_shift = SHIFTED * np.minimum(widths[:-1], widths[1:])
    for decimals in range(-magnitude(values[-1] - values[0]), 18):
        nearest, lower = shorter_numbers(edges, decimals)
        # Where a reading lies on the edge, it stays above one that is rounded down.
        moved_nearest, moved_lower = (
            np.abs(below - np.searchsorted(values, one, side="left")) for one in (nearest, lower)
        )
        shorter = np.where(moved_nearest <= moved_lower, nearest, lower)
        fewest = np.minimum(moved_nearest, moved_lower)
        if np.all(fewest <= may_move) and np.all(np.abs(shorter - edges) <= may_shift):
            return shorter
    return edges + 0.0


def _short(centres: Floats) -> Floats:
    """Round centres to as few decimals as change none by more than a tenth of the way to the next.

    >>> _short(np.array([0.1234, 0.5678])).tolist()
    [0.1, 0.6]
    """
    gap = float(np.diff(centres).min())
    for decimals in range(-magnitude(gap), 18):
        shorter = np.round(centres, decimals) + 0.0
        if np.all(np.abs(shorter - centres) <= gap / 10):
            return shorter
    return centres


def shorter_numbers(numbers: Floats, decimals: int) -> tuple[Floats, Floats]:
    """Return numbers rounded to the nearest with so many decimals, and rounded down."""
    nearest = np.round(numbers, decimals)
    lower: Floats = np.where(nearest > numbers, nearest - 10.0**-decimals, nearest)
    # The difference may have a digit in the last place, which names would show.
    return nearest + 0.0, np.round(lower, decimals) + 0.0


def magnitude(number: float) -> int:
    """Return how many digits there are before a number's point; from 0 down for small ones."""
    return Decimal(number).adjusted() + 1 if number > 0 else 0


def _import_k_means() -> Any:
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise MissingExtra(
            'Discretise("kmeans") needs scikit-learn: pip install "resolvent[discretise]", '
            'or use "quantile" or "uniform"'
        ) from error
    return KMeans
