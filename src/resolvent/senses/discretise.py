"""Observations that are numbers → observations that say which interval each number lies in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from resolvent._util.text import amount, listed, short
from resolvent._util.validation import shown
from resolvent.errors import ModelError, OptionError, TraceError
from resolvent.senses.edges import METHODS, intervals_of
from resolvent.senses.intervals import Intervals
from resolvent.senses.parts import Part, Parts, coded, parts_of
from resolvent.senses.readings import (
    Place,
    Reading,
    Readings,
    as_places,
    nothing_numeric,
    place_text,
    readings,
)
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.symbols import Symbol, as_symbol, symbol_text
from resolvent.traces.trace_set import TraceSet

GIVEN = "given"
AUTO = "auto"
_SYMBOLS = (float, tuple, str, int)
_TOLD = {"method", "bins", "columns", "ints", "of", "intervals", "sizes"}


@dataclass(frozen=True)
class Discretise:
    """Puts the numbers of observations into intervals, so that equal situations look equal.

    A new one holds what was asked for. `fit` looks at readings and returns one that holds
    intervals, too; `Discretise.at` takes intervals as they are given. Only these can be
    called, with one observation, or used `on` traces.

    Floats are put into intervals; ints, strings and all else stay as they are, and so do
    arrays of more than one dimension or more than 64 numbers, which are pictures or signals.

    Args:
        method: How intervals are found: `"quantile"`, each with as many readings as any
            other; `"uniform"`, all of one width; `"kmeans"`, around centres, for which
            scikit-learn must be installed.
        bins: How many intervals there are for each number: one count for all, or a row
            with one for each. Where fewer values occur, there are fewer.
        columns: Which numbers are put into intervals: positions in a row, keys of a
            mapping, or tuples of these for what lies deeper; ints count where they are
            named. By default all floats.
        ints: Whether ints are readings, too, and not symbols.
        of: Whether `"observation"` or `"action"` has the numbers: those of a log's inputs
            are actions.

    >>> from resolvent.traces import Trace
    >>> cart = TraceSet([Trace([-0.3, 0.04, 0.1, 0.4], [None] * 4, "lrr")])
    >>> halves = Discretise("quantile", bins=2).fit(cart)
    >>> halves(0.02), halves.on(cart)[0].observations
    ('below 0.07', ('below 0.07', 'below 0.07', 'above 0.07', 'above 0.07'))
    """

    method: str = "quantile"
    bins: int | tuple[int, ...] = 8
    columns: tuple[Place, ...] | None = field(default=None, kw_only=True)
    ints: bool = field(default=False, kw_only=True)
    of: str = field(default=OBSERVATION, kw_only=True)
    intervals: tuple[tuple[Place, Intervals], ...] | None = field(default=None, kw_only=True)
    sizes: tuple[tuple[Place, int], ...] = field(default=(), kw_only=True)
    _reader: Part | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = (*METHODS, GIVEN, AUTO) if self.intervals is not None else (*METHODS,)
        if not isinstance(self.method, str) or self.method not in known:
            raise OptionError(
                f"Discretise({shown(self.method)}): use one of {', '.join(map(repr, METHODS))}, "
                "or Discretise.at with edges"
            )
        if not isinstance(self.of, str) or self.of not in (OBSERVATION, ACTION):
            raise OptionError(f"of={shown(self.of)}: use {OBSERVATION!r} or {ACTION!r}")
        if not isinstance(self.ints, bool):
            raise OptionError(f"ints={shown(self.ints)}: choose True or False")
        put = object.__setattr__
        put(self, "bins", _counts(self.bins))
        put(self, "columns", None if self.columns is None else as_places(self.columns))
        reader = None
        if self.intervals is not None:
            reader = parts_of(dict(self.intervals), dict(self.sizes))
        put(self, "_reader", reader)

    @classmethod
    def at(
        cls, edges: Sequence[float] | Mapping[Any, Sequence[float]], *, of: str = OBSERVATION
    ) -> "Discretise":
        """Return one with the edges that are given, for all numbers or for each by its place.

        An edge belongs to the interval above it. Numbers without edges stay as they are. A
        row of one number is that number.

        >>> Discretise.at([-0.2, 0.0, 0.2])(0.13)
        '0…0.2'
        >>> Discretise.at({0: [0.5], 2: [10, 20]})((0.25, 7, 20.0))
        ('below 0.5', 7, 'above 20')
        >>> Discretise.at({"heat": [20]})((("door", "open"), ("heat", 18.5)))
        (('door', 'open'), ('heat', 'below 20'))
        """
        by_place: Mapping[Any, Any] = edges if isinstance(edges, Mapping) else {(): edges}
        if not by_place:
            raise OptionError("Discretise.at: give the edges of at least one number")
        places = as_places(by_place)
        rows = [_row(one) for one in by_place.values()]
        return cls(
            GIVEN,
            tuple(len(one) + 1 for one in rows),
            intervals=tuple(zip(places, map(Intervals, rows), strict=True)),
            of=of,
        )

    @property
    def is_fitted(self) -> bool:
        """Whether there are intervals, so that observations can be put into them."""
        return self.intervals is not None

    def fit(self, data: TraceSet | ArrayLike, seed: int = 0) -> "Discretise":
        """Return one with intervals for the readings of traces or of an array.

        Equal traces count once, so that repeating traces changes nothing. An array has one
        number for each observation, or a row of numbers for each. The seed is that of k-means.
        One whose edges were given, or found by `auto_discretise`, stays as it is.

        >>> Discretise("uniform", bins=4).fit([[0.0, 5.0], [1.0, 6.0], [2.0, 9.0], [4.0, 7.0]])
        Discretise('uniform', bins=4, edges={'[0]': [1.0, 2.0, 3.0], '[1]': [6.0, 7.0, 8.0]})
        """
        if self.method not in METHODS:
            return self
        found = readings(data, self.of)
        numbers = self.chosen(found)
        bins = (self.bins,) * len(numbers) if isinstance(self.bins, int) else self.bins
        if len(bins) != len(numbers):
            raise OptionError(
                f"bins are given for {amount(len(bins), 'number')}, but {self.of}s have "
                f"{len(numbers)} ({', '.join(self._called(one.place) for one in numbers)}): "
                "give one count for each, or one for all"
            )
        return self.with_intervals(
            found,
            {
                one.place: intervals_of(one.values, self.method, count, seed)
                for one, count in zip(numbers, bins, strict=True)
            },
        )

    def with_intervals(
        self, found: Readings, intervals: Mapping[Place, Intervals], method: str | None = None
    ) -> "Discretise":
        """Return one with these intervals, which reads observations shaped like those found."""
        on_the_way = {place[:length] for place in intervals for length in range(len(place))}
        sizes = tuple((place, size) for place, size in found.sizes if place in on_the_way)
        return replace(
            self,
            method=method or self.method,
            intervals=tuple(intervals.items()),
            sizes=sizes,
        )

    def chosen(self, found: Readings) -> tuple[Reading, ...]:
        """Return which of the numbers found are to be put into intervals."""
        if self.columns is None:
            numbers = tuple(one for one in found.numbers if self.ints or not one.is_whole)
            if not numbers:
                raise TraceError(nothing_numeric(found, self.of))
            return numbers
        by_place = {one.place: one for one in found.numbers}
        for place in self.columns:
            if place not in by_place:
                there = ", ".join(map(self._called, by_place)) or "none"
                raise OptionError(
                    f"columns: {self._called(place)} is no number of these {self.of}s; "
                    f"their numbers: {there}"
                )
        return tuple(by_place[place] for place in self.columns)

    def _called(self, place: Place) -> str:
        return place_text(place, self.of)

    def __call__(self, value: Any) -> Symbol:
        """Return an observation, or action, with its numbers named; names stay as they are."""
        symbol = value if type(value) in _SYMBOLS else as_symbol(value)
        reader = self._fitted(symbol)
        try:
            return reader(symbol)
        except TraceError as error:
            raise TraceError(f"{self.of} {short(symbol_text(symbol))}: {error}") from error

    def on(self, traces: TraceSet) -> TraceSet:
        """Return traces with the numbers of their observations, or actions, named by intervals.

        To do so twice changes nothing.
        """
        columns: dict[str, Any] = dict(traces.all_columns)
        symbols, before = columns[self.of]
        reader = self._fitted(symbols[0] if len(symbols) else None)
        if not len(traces):
            return traces
        try:
            values, codes = coded(reader, symbols)
        except TraceError:
            for symbol in symbols:
                self(symbol)  # raises at the one that is the matter
            raise
        columns[self.of] = (values, codes.astype(np.int32)[before])
        return TraceSet.taking_over(
            columns,
            offsets=traces.offsets,
            terminated=traces.terminated,
            truncated=traces.truncated,
        )

    def _fitted(self, symbol: Symbol) -> Part:
        """Return what reads symbols like this one: a row of one number is that number."""
        if self._reader is None:
            raise OptionError(f"{self!r} is not fitted yet: call fit with traces first")
        alone = isinstance(self._reader, Intervals) and isinstance(symbol, tuple)
        return Parts((0,), (self._reader,), 1) if alone else self._reader

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values, from which `from_dict` makes an equal one.

        >>> Discretise.at({"heat": [20]}).as_dict()
        {'method': 'given', 'bins': [2], 'intervals': [{'at': ['heat'], 'edges': [20.0]}]}
        """
        told: dict[str, Any] = {
            "method": self.method,
            "bins": self.bins if isinstance(self.bins, int) else list(self.bins),
        }
        if self.columns is not None:
            told["columns"] = [list(place) for place in self.columns]
        if self.ints:
            told["ints"] = True
        if self.of != OBSERVATION:
            told["of"] = self.of
        if self.intervals is not None:
            told["intervals"] = [
                {"at": list(place), "edges": list(one.edges)}
                | ({} if one.centres is None else {"centres": list(one.centres)})
                for place, one in self.intervals
            ]
        if self.sizes:
            told["sizes"] = [{"at": list(place), "parts": size} for place, size in self.sizes]
        return told

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Discretise":
        """Return the one that `as_dict` told of.

        >>> halves = Discretise(bins=2).fit([0.5, 1.5, 4.0, 4.5])
        >>> Discretise.from_dict(halves.as_dict()) == halves
        True
        """
        try:
            if unknown := sorted(set(told) - _TOLD):
                raise OptionError(f"there is no {listed(unknown)}")
            intervals = told.get("intervals")
            if intervals is not None:
                as_places([tuple(one["at"]) for one in intervals])
                intervals = tuple(
                    (
                        tuple(one["at"]),
                        Intervals(
                            tuple(one["edges"]),
                            tuple(one["centres"]) if "centres" in one else None,
                        ),
                    )
                    for one in intervals
                )
            return cls(
                told["method"],
                told["bins"],
                columns=told.get("columns"),
                ints=told.get("ints", False),
                of=told.get("of", OBSERVATION),
                intervals=intervals,
                sizes=tuple((tuple(one["at"]), _size(one)) for one in told.get("sizes", ())),
            )
        except (KeyError, TypeError, AttributeError, OptionError) as error:
            raise ModelError(f"this tells of no discretising: {error}") from error

    def __repr__(self) -> str:
        told = [repr(self.method)]
        if self.method not in (GIVEN, AUTO):
            told.append(f"bins={self.bins!r}")
        if self.columns is not None:
            told.append(f"columns={self.columns!r}")
        if self.ints:
            told.append("ints=True")
        if self.of != OBSERVATION:
            told.append(f"of={self.of!r}")
        if self.intervals is not None:
            edges = {self._called(place): list(one.edges) for place, one in self.intervals}
            told.append(f"edges={edges!r}")
        return f"Discretise({', '.join(told)})"

    def __str__(self) -> str:
        if self.intervals is None:
            return repr(self)
        return "\n".join(
            f"{self._called(place)}: {', '.join(one.names)}" for place, one in self.intervals
        )


def _size(told: Mapping[str, Any]) -> int:
    parts = told["parts"]
    if type(parts) is not int or parts < 1:
        raise OptionError(f"parts={shown(parts)}: a tuple with numbers has at least one")
    return parts


def _row(edges: Any) -> tuple[Any, ...]:
    try:
        row = () if isinstance(edges, str) else tuple(edges)
    except TypeError:
        row = ()
    if not row:
        raise OptionError(
            f"edges={shown(edges)}: give a row of at least one number, such as [-0.2, 0, 0.2]"
        )
    return row


def _counts(bins: Any) -> int | tuple[int, ...]:
    counts = (bins,) if isinstance(bins, int | np.integer) else bins
    try:
        whole = tuple(int(one) for one in counts)
        is_whole = all(one == count for one, count in zip(whole, counts, strict=True))
    except (TypeError, ValueError):
        is_whole, whole = False, ()
    if not is_whole or not whole or min(whole) < 2:
        raise OptionError(
            f"bins={shown(bins)}: give a whole number of at least 2, or a row of such"
        )
    return whole if counts is bins else whole[0]
