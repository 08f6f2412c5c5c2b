"""Intervals: the values of one number → edges, and from them names of intervals.

`intervals_of` finds the edges for values. `Intervals` discretizes one number, `Parts` the numbers
in a tuple.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount, short
from resolvent._util.validation import is_zero_dim, quoted
from resolvent.errors import MissingExtra, OptionError, TraceError
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.symbols import Symbol, symbol_text

Floats: TypeAlias = NDArray[np.float64]

Position: TypeAlias = tuple[int | str, ...]
"""Path to a number in an observation: indices in tuples and keys of mappings.

It is `()` if the observation is a number, and `("position", 0)` for the first number of a row
in a mapping.
"""

ANY_NUMBER = "any number"  # name of the only interval of a number without edges
LARGEST = 1e300  # largest absolute value; the distances of larger ones may be too large for a float
MOVED = 0.01  # largest share of an interval's values that may change sides when edges are rounded
SHIFTED = 0.05  # largest share of an interval's width by which rounding may shift its edges
MOST_CLUSTERED = 20_000  # maximum number of values for k-means; more are sampled evenly, sorted


@dataclass(frozen=True)
class Intervals:
    """Discretizes one number: the intervals between edges, each with a name.

    An edge belongs to the interval above it. With `centers`, one for each interval, intervals
    are named after these.
    """

    edges: tuple[float, ...]
    centers: tuple[float, ...] | None = None
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        edges = _finite_floats(self.edges, "edges")
        if any(low >= high for low, high in pairwise(edges)):
            raise OptionError(f"edges must be strictly increasing: {list(edges)} are not")
        names = [ANY_NUMBER]
        if edges:
            texts = list(map(number_text, edges))
            between = (f"{low}…{high}" for low, high in pairwise(texts))
            names = [f"below {texts[0]}", *between, f"above {texts[-1]}"]
        if self.centers is not None:
            centers = _finite_floats(self.centers, "centers")
            if len(centers) != len(edges) + 1 or len(set(centers)) < len(centers):
                raise OptionError(
                    f"{len(edges)} edges make {len(edges) + 1} intervals: "
                    "give each a center, no two of them equal"
                )
            object.__setattr__(self, "centers", centers)
            if edges:
                names = [f"about {number_text(center)}" for center in centers]
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "names", tuple(names))

    def __len__(self) -> int:
        return len(self.edges) + 1

    def __call__(self, value: Any) -> str:
        """Return the name of the interval that contains a number; text stays as it is."""
        if isinstance(value, float) or type(value) is int:
            if not math.isfinite(value):
                raise TraceError(f"{value} lies in no interval: readings must be finite")
            return self.names[bisect_right(self.edges, value)]
        if isinstance(value, str):
            return value
        raise TraceError(f"{value!r} is not a number: only numbers lie in intervals")


def number_text(number: float) -> str:
    """Write a number with the fewest digits that distinguish it from all others."""
    return repr(number).removesuffix(".0")


def _finite_floats(numbers: Iterable[Any], name: str) -> tuple[float, ...]:
    try:
        floats = tuple(float(number) + 0.0 for number in numbers)  # one zero, not two
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name} must be a row of numbers, such as [-0.2, 0, 0.2]") from None
    if not all(map(math.isfinite, floats)):
        raise OptionError(f"{name} must be finite, but are {list(floats)}")
    return floats


def intervals_of(values: Floats, method: str, bins: int, seed: int) -> Intervals:
    """Return at most `bins` intervals by one of `METHODS`, rounded if hardly any value moves."""
    values = np.sort(values)
    if max(-values[0], values[-1]) > LARGEST:
        raise TraceError(f"readings beyond {LARGEST:g} are too large to put into intervals")
    bins = min(bins, len(np.unique(values)))
    return METHODS[method](values, bins, seed) if bins > 1 else Intervals(())


def _quantile(values: Floats, bins: int, seed: int) -> Intervals:
    edges = np.quantile(values, np.arange(1, bins) / bins)
    # Without edges that have no value below them, or none above the edge before.
    edges = edges[np.diff(np.searchsorted(values, edges, side="left"), prepend=0) > 0]
    return Intervals(tuple(rounded(edges, values)))


def _uniform(values: Floats, bins: int, seed: int) -> Intervals:
    edges = np.linspace(values[0], values[-1], bins + 1)[1:-1]
    return Intervals(tuple(rounded(np.unique(edges), values)))


def _k_means(values: Floats, bins: int, seed: int) -> Intervals:
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise MissingExtra(
            'Discretizer("kmeans") needs scikit-learn: pip install "resolvent[discretize]", '
            'or use "quantile" or "uniform"'
        ) from error
    sample = values
    if len(values) > MOST_CLUSTERED:
        sample = values[np.linspace(0, len(values) - 1, MOST_CLUSTERED).round().astype(int)]
    bins = min(bins, len(np.unique(sample)))
    k_means = KMeans(n_clusters=bins, n_init=10, random_state=seed)
    cluster = k_means.fit(sample.reshape(-1, 1)).labels_
    # Threads add up in any order: the clusters are the same each time, and the last digits of
    # their centers are not. So centers are computed again.
    clusters = np.split(sample, np.flatnonzero(np.diff(cluster)) + 1)
    centers = np.array([values_of_cluster.mean() for values_of_cluster in clusters])
    edges = rounded((centers[:-1] + centers[1:]) / 2, values)
    return Intervals(tuple(edges), tuple(_rounded_centers(centers)))


METHODS: dict[str, Callable[[Floats, int, int], Intervals]] = {
    "quantile": _quantile,
    "uniform": _uniform,
    "kmeans": _k_means,
}


def rounded(edges: Floats, values: Floats) -> Floats:
    """Round edges to the fewest decimals that keep nearly all sorted values on their sides."""
    n_below = np.searchsorted(values, edges, side="left")
    counts = np.diff(np.concatenate([[0], n_below, [len(values)]]))
    widths = np.diff(np.concatenate([values[:1], edges, values[-1:]]))
    widths[-1] = widths[-1] or widths[-2]  # the highest value may lie on the last edge
    max_moved = MOVED * np.minimum(counts[:-1], counts[1:])
    max_shift = SHIFTED * np.minimum(widths[:-1], widths[1:])
    for decimals in range(-magnitude(values[-1] - values[0]), 18):
        nearest, lower = shorter_numbers(edges, decimals)
        # A value on the edge stays above it if the edge is rounded down.
        moved_by_nearest, moved_by_lower = (
            np.abs(n_below - np.searchsorted(values, rounding, side="left"))
            for rounding in (nearest, lower)
        )
        shorter = np.where(moved_by_nearest <= moved_by_lower, nearest, lower)
        moved = np.minimum(moved_by_nearest, moved_by_lower)
        if np.all(moved <= max_moved) and np.all(np.abs(shorter - edges) <= max_shift):
            return shorter
    return edges + 0.0


def _rounded_centers(centers: Floats) -> Floats:
    """Round centers to the fewest decimals that change none by over a tenth of the least gap."""
    gap = float(np.diff(centers).min())
    for decimals in range(-magnitude(gap), 18):
        shorter = np.round(centers, decimals) + 0.0
        if np.all(np.abs(shorter - centers) <= gap / 10):
            return shorter
    return centers


def shorter_numbers(numbers: Floats, decimals: int) -> tuple[Floats, Floats]:
    """Return numbers rounded to the nearest with this number of decimals, and rounded down."""
    nearest = np.round(numbers, decimals)
    lower: Floats = np.where(nearest > numbers, nearest - 10.0**-decimals, nearest)
    # The difference may have a digit in the last place, which names would show.
    return nearest + 0.0, np.round(lower, decimals) + 0.0


def magnitude(number: float) -> int:
    """Return the number of digits before a number's point, negative for small numbers."""
    return Decimal(number).adjusted() + 1 if number > 0 else 0


@dataclass(frozen=True)
class Parts:
    """Discretizes some parts of a tuple, by index or key."""

    readers: dict[int | str, "Part"]
    size: int | None = None

    @staticmethod
    def of(
        intervals: Mapping[Position, Intervals],
        sizes: Mapping[Position, int],
        position: Position = (),
    ) -> "Part":
        """Return the reader of the part at a position, given the intervals of all numbers in it.

        `sizes` are the numbers of parts of the tuples on the way.
        """
        if position in intervals:
            return intervals[position]
        depth = len(position)
        keys = dict.fromkeys(path[depth] for path in intervals if path[:depth] == position)
        readers = {key: Parts.of(intervals, sizes, (*position, key)) for key in keys}
        return Parts(readers, sizes.get(position))

    def __call__(self, symbol: Symbol) -> Symbol:
        """Return the tuple with these parts discretized."""
        if not isinstance(symbol, tuple):
            raise TraceError(f"it is {short(symbol_text(symbol))} where {self._expected}")
        parts = list(symbol)
        if self.size is not None and len(parts) != self.size:
            raise TraceError(f"it has {amount(len(parts), 'part')} where {self._expected}")
        for key, reader in self.readers.items():
            index = part_index(symbol, key)
            if index is None:
                raise TraceError(f"it has no part {key!r} where {self._expected}")
            part = symbol[index]
            parts[index] = reader(part) if type(key) is int else (key, reader(part[1]))
        return tuple(parts)

    @property
    def _expected(self) -> str:
        shape = f"with part {next(iter(self.readers))!r}"
        if self.size is not None:
            shape = f"of {amount(self.size, 'part')}"
        return f"a tuple {shape} should be: fit Discretizer on observations of this shape"


Part: TypeAlias = Intervals | Parts  # discretizes an observation, or a part of one


def part_index(parts: tuple[Any, ...], key: int | str) -> int | None:
    """Return the index of a key's pair in a tuple, or of an index itself; None if there is none."""
    if isinstance(key, int):
        return key if 0 <= key < len(parts) else None
    for index, part in enumerate(parts):
        if isinstance(part, tuple) and len(part) == 2 and part[0] == key:
            return index
    return None


def position_text(position: Position, of: str = OBSERVATION) -> str:
    """Write a position in an observation or action as an expression, as `position[0]`."""
    if not position:
        return f"the {of}"
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in position)
    return short(text.removeprefix("."))


def as_positions(columns: Iterable[Any]) -> tuple[Position, ...]:
    """Return positions as paths; `OptionError` if one is invalid or occurs twice."""
    if isinstance(columns, str | int):
        columns = (columns,)
    if not isinstance(columns, Iterable) or is_zero_dim(columns):
        raise OptionError(f"columns={quoted(columns)}: give a list of indices or keys")
    paths = tuple(tuple(name) if isinstance(name, tuple | list) else (name,) for name in columns)
    if not all(type(key) in (int, str) for path in paths for key in path):
        raise OptionError(
            f"columns={quoted(columns)}: use indices in a row, keys of a mapping, or tuples of "
            f"these"
        )
    ordered = sorted(paths, key=lambda path: [(type(key).__name__, str(key)) for key in path])
    if not paths or any(longer[: len(path)] == path for path, longer in pairwise(ordered)):
        raise OptionError(f"columns={quoted(columns)}: name each number once, and at least one")
    return paths
