"""Discretization: numbers in observations or actions → names of intervals.

`numbers_in` finds the numbers, `Discretizer.fit` the edges for them, and `Discretizer.transform`
replaces them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent._util.records import builtin
from resolvent._util.text import amount, listed, short
from resolvent._util.validation import quoted
from resolvent.errors import ModelError, OptionError, TraceError
from resolvent.preprocess.intervals import (
    METHODS,
    Floats,
    Intervals,
    Part,
    Parts,
    Position,
    as_positions,
    intervals_of,
    position_text,
)
from resolvent.traces.digest import trace_hashes
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.symbols import Symbol, as_array, as_symbol, is_mapping, symbol_text
from resolvent.traces.trace_set import TraceSet, with_column

Counts: TypeAlias = NDArray[np.int64]

EXPLICIT: Final = "given"
AUTO: Final = "auto"

MOST_NUMBERS: Final = 64  # maximum length of a row of numbers; longer ones are signals or pictures
_SYMBOL_TYPES: Final = (float, tuple, str, int)  # these are symbols already: a fast path
_OPTIONS: Final = ("method", "bins", "columns", "ints", "of")


@dataclass(frozen=True)
class Discretizer:
    """Replaces the numbers in observations by intervals, so that similar observations are equal.

    A new discretizer holds options only. `fit` returns one with intervals computed from data,
    `Discretizer.at` one with the given edges. Only these can be called with an observation, or
    `transform` traces.

    Floats are discretized. All else stays as it is: ints, strings, and arrays of more than one
    dimension or more than 64 numbers (pictures and signals).

    Args:
        method: `"quantile"` for intervals with equally many values, `"uniform"` for intervals
            of one width, `"kmeans"` for intervals around cluster centers, which needs
            scikit-learn.
        bins: Maximum number of intervals, for all numbers or a row with one for each.
        columns: The numbers to discretize: indices in a row, keys of a mapping, or tuples of
            these for nested ones; ints count if named. By default all floats.
        ints: Whether ints are discretized, too.
        of: `"observation"` or `"action"`, where the numbers are; inputs of a log are actions.
        intervals_: The intervals of each number by its position; None before `fit`.
        sizes_: The number of parts of each tuple or mapping that contains numbers.

    >>> from resolvent.traces import Trace
    >>> cart = TraceSet([Trace([-0.3, 0.04, 0.1, 0.4], [None] * 4, "lrr")])
    >>> halves = Discretizer("quantile", bins=2).fit(cart)
    >>> halves(0.02), halves.transform(cart)[0].observations
    ('below 0.07', ('below 0.07', 'below 0.07', 'above 0.07', 'above 0.07'))
    """

    method: str = "quantile"
    bins: int | tuple[int, ...] = 8
    columns: tuple[Position, ...] | None = field(default=None, kw_only=True)
    ints: bool = field(default=False, kw_only=True)
    of: str = field(default=OBSERVATION, kw_only=True)
    intervals_: tuple[tuple[Position, Intervals], ...] | None = field(
        default=None, kw_only=True, repr=False
    )
    sizes_: tuple[tuple[Position, int], ...] = field(default=(), kw_only=True, repr=False)
    _reader: Part | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        methods = (*METHODS, EXPLICIT, AUTO) if self.is_fitted else (*METHODS,)
        if not isinstance(self.method, str) or self.method not in methods:
            raise OptionError(
                f"Discretizer({quoted(self.method)}): use one of {', '.join(map(repr, METHODS))}, "
                "or Discretizer.at with edges"
            )
        if not isinstance(self.of, str) or self.of not in (OBSERVATION, ACTION):
            raise OptionError(f"of={quoted(self.of)}: use {OBSERVATION!r} or {ACTION!r}")
        if not isinstance(self.ints, bool):
            raise OptionError(f"ints={quoted(self.ints)}: choose True or False")
        intervals, sizes = dict(self.intervals_ or ()), dict(self.sizes_)
        put = object.__setattr__
        put(self, "bins", _checked_bins(self.bins))
        put(self, "columns", None if self.columns is None else as_positions(self.columns))
        put(self, "_reader", Parts.of(intervals, sizes) if self.is_fitted else None)

    @classmethod
    def at(
        cls, edges: Sequence[float] | Mapping[Any, Sequence[float]], *, of: str = OBSERVATION
    ) -> "Discretizer":
        """Return a discretizer with these edges, for all numbers or for each by its position.

        An edge belongs to the interval above it. Numbers without edges stay as they are. A
        row of one number is that number.

        >>> Discretizer.at([-0.2, 0.0, 0.2])(0.13)
        '0…0.2'
        >>> Discretizer.at({0: [0.5], 2: [10, 20]})((0.25, 7, 20.0))
        ('below 0.5', 7, 'above 20')
        >>> Discretizer.at({"heat": [20]})((("door", "open"), ("heat", 18.5)))
        (('door', 'open'), ('heat', 'below 20'))
        """
        by_position: Mapping[Any, Any] = edges if isinstance(edges, Mapping) else {(): edges}
        if not by_position:
            raise OptionError("Discretizer.at: give the edges of at least one number")
        rows = list(map(_checked_edges, by_position.values()))
        intervals = tuple(zip(as_positions(by_position), map(Intervals, rows), strict=True))
        return cls(EXPLICIT, tuple(len(row) + 1 for row in rows), intervals_=intervals, of=of)

    @property
    def is_fitted(self) -> bool:
        """Whether there are intervals, so that observations can be discretized."""
        return self.intervals_ is not None

    @property
    def edges_(self) -> dict[str, list[float]]:
        """The edges of each number's intervals, by the number's name; empty before `fit`."""
        return {self._text(position): list(row.edges) for position, row in self.intervals_ or ()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as estimators of scikit-learn do."""
        return {name: getattr(self, name) for name in _OPTIONS}

    def fit(self, data: TraceSet | ArrayLike, seed: int = 0) -> "Discretizer":
        """Return a discretizer with intervals for the numbers in traces or in an array.

        Equal traces count once, so that repeated traces change nothing. An array has a number,
        or a row of numbers, for each observation. `seed` is that of k-means. A discretizer
        with given or automatic edges is returned unchanged.

        >>> rows = [[0.0, 5.0], [1.0, 6.0], [2.0, 9.0], [4.0, 7.0]]
        >>> Discretizer("uniform", bins=4).fit(rows).edges_
        {'[0]': [1.0, 2.0, 3.0], '[1]': [6.0, 7.0, 8.0]}
        """
        if self.method not in METHODS:
            return self
        numbers = self.chosen(content := numbers_in(data, self.of))
        bins = (self.bins,) * len(numbers) if isinstance(self.bins, int) else self.bins
        if len(bins) != len(numbers):
            raise OptionError(
                f"bins are given for {amount(len(bins), 'number')}, but {self.of}s have "
                f"{len(numbers)} ({', '.join(self._text(number.position) for number in numbers)}): "
                "give one count for each, or one for all"
            )
        intervals = {
            number.position: intervals_of(number.values, self.method, count, seed)
            for number, count in zip(numbers, bins, strict=True)
        }
        return self.with_intervals(content, intervals)

    def with_intervals(
        self, content: "Content", intervals: Mapping[Position, Intervals], method: str | None = None
    ) -> "Discretizer":
        """Return a discretizer with these intervals, for observations of this shape."""
        prefixes = {path[:length] for path in intervals for length in range(len(path))}
        sizes = tuple((path, size) for path, size in content.sizes if path in prefixes)
        of_numbers = tuple(intervals.items())
        return replace(self, method=method or self.method, intervals_=of_numbers, sizes_=sizes)

    def chosen(self, content: "Content") -> "tuple[Number, ...]":
        """Return the numbers to discretize."""
        if self.columns is None:
            numbers = tuple(number for number in content.numbers if self.ints or not number.is_int)
            if not numbers:
                raise TraceError(_no_numbers(content, self.of))
            return numbers
        by_position = {number.position: number for number in content.numbers}
        for position in self.columns:
            if position not in by_position:
                existing = ", ".join(map(self._text, by_position)) or "none"
                raise OptionError(
                    f"columns: {self._text(position)} is no number of these {self.of}s; "
                    f"their numbers: {existing}"
                )
        return tuple(by_position[position] for position in self.columns)

    def _text(self, position: Position) -> str:
        return position_text(position, self.of)

    def __call__(self, value: Any) -> Symbol:
        """Return the discretized observation or action; names of intervals stay as they are."""
        reader = self._reader
        if reader is None:
            raise OptionError(f"{self!r} is not fitted yet: call fit with traces first")
        symbol = value if type(value) in _SYMBOL_TYPES else as_symbol(value)
        if isinstance(reader, Intervals) and isinstance(symbol, tuple):
            reader = Parts({0: reader}, 1)  # a row of one number is that number
        try:
            return reader(symbol)
        except TraceError as error:
            raise TraceError(f"{self.of} {short(symbol_text(symbol))}: {error}") from error

    def transform(self, traces: TraceSet) -> TraceSet:
        """Return traces with discretized observations or actions.

        A second transformation changes nothing.
        """
        symbols, symbol_codes = traces.all_columns[self.of]
        values: dict[Symbol, int] = {}
        codes = [values.setdefault(self(symbol), len(values)) for symbol in symbols]
        return with_column(traces, self.of, list(values), np.array(codes, np.int32)[symbol_codes])

    def as_dict(self) -> dict[str, Any]:
        """Return the discretizer as JSON values, which `from_dict` reads.

        >>> Discretizer.at({"heat": [20]}).as_dict()
        {'method': 'given', 'bins': [2], 'intervals': [{'at': ['heat'], 'edges': [20.0]}]}
        """
        fields: dict[str, Any] = {
            name: value
            for name, value in self.get_params().items()
            if name in ("method", "bins") or value != getattr(Discretizer, name)
        }
        if self.intervals_ is not None:
            fields["intervals"] = [
                {"at": position, "edges": row.edges}
                | ({} if row.centers is None else {"centers": row.centers})
                for position, row in self.intervals_
            ]
        if self.sizes_:
            fields["sizes"] = [{"at": position, "parts": size} for position, size in self.sizes_]
        json: dict[str, Any] = builtin(fields)
        return json

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Discretizer":
        """Return the discretizer that `as_dict` wrote; `ModelError` if a field is wrong.

        >>> halves = Discretizer(bins=2).fit([0.5, 1.5, 4.0, 4.5])
        >>> Discretizer.from_dict(halves.as_dict()) == halves
        True
        """
        try:
            if unknown := sorted(fields.keys() - {*_OPTIONS, "intervals", "sizes"}):
                raise OptionError(f"there is no {listed(unknown)}")
            options = dict(fields)
            sizes, intervals = options.pop("sizes", ()), options.pop("intervals", None)
            if intervals is not None:
                positions = as_positions([tuple(row["at"]) for row in intervals])
                rows = (Intervals(tuple(row["edges"]), row.get("centers")) for row in intervals)
                intervals = tuple(zip(positions, rows, strict=True))
            sizes = tuple((tuple(row["at"]), _checked_size(row["parts"])) for row in sizes)
            method, bins = options.pop("method"), options.pop("bins")
            return cls(method, bins, **options, intervals_=intervals, sizes_=sizes)
        except (KeyError, TypeError, AttributeError, OptionError) as error:
            raise ModelError(f"this is no discretizer: {error}") from error

    def __str__(self) -> str:
        if self.intervals_ is None:
            return repr(self)
        return "\n".join(
            f"{self._text(position)}: {', '.join(row.names)}" for position, row in self.intervals_
        )


@dataclass(frozen=True)
class Number:
    """A number in observations: its position, its values without text, and whether all are ints."""

    position: Position
    values: Floats
    is_int: bool


@dataclass
class Content:
    """The numbers in observations that may be discretized, and the shape around them.

    `sizes` are the numbers of parts of tuples and mappings that may contain numbers, `pictures` the
    positions and shapes of arrays with too many of them.
    """

    numbers: list[Number] = field(default_factory=list)
    sizes: list[tuple[Position, int]] = field(default_factory=list)
    pictures: list[tuple[Position, tuple[int, ...]]] = field(default_factory=list)

    def add(self, symbols: Sequence[Any], counts: Counts, position: Position = ()) -> None:
        """Add the numbers at a position, given the part there of each symbol, and its count."""
        types = set(map(type, symbols))
        if types <= {float, int, str} and types != {str}:
            self.numbers.append(_number(symbols, counts, position))
        elif types == {tuple} and len(set(map(len, symbols))) == 1:
            array = as_array(symbols[0])
            if array is not None and (array.ndim > 1 or len(array) > MOST_NUMBERS):
                self.pictures.append((position, array.shape))
                return
            self.sizes.append((position, len(symbols[0])))
            for index, column in enumerate(zip(*symbols, strict=True)):
                key = _common_key(column)
                if key is None:
                    self.add(column, counts, (*position, index))
                else:
                    self.add([value for _, value in column], counts, (*position, key))
        elif tuple in types and float in _types_within(symbols):
            shapes = {len(symbol) if type(symbol) is tuple else 0: symbol for symbol in symbols}
            examples = listed(map(symbol_text, [*shapes.values()][:2]), " and ")
            where = f" as {position_text(position)}" if position else ""
            raise TraceError(
                f"{examples} differ in shape{where}: what has numbers to put into intervals must "
                f"have one shape"
            )


def numbers_in(data: TraceSet | ArrayLike, of: str = OBSERVATION) -> Content:
    """Return the numbers in distinct traces' observations or actions, or in an array's columns."""
    if isinstance(data, TraceSet):
        if not len(data):
            raise TraceError("there are no traces to fit Discretizer on")
        content, traces = Content(), distinct_traces(data)
        symbols = list(traces.values[of])
        content.add(symbols, np.bincount(traces.codes[of], minlength=len(symbols)))
        return content
    try:
        array = np.asarray(data)
    except ValueError:
        raise TraceError("rows of readings differ in length: give rows of one length") from None
    if array.ndim not in (1, 2) or not array.size:
        raise TraceError(
            f"an array of shape {array.shape} has no readings: give one number for each "
            "observation, or a row of numbers for each"
        )
    if array.dtype.kind not in "iuf":
        raise TraceError(f"an array of type {array.dtype} has no readings: give numbers, or traces")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise TraceError(f"row {row}: {array[row]} is not finite: leave such rows out")
    is_int = array.dtype.kind != "f"
    floats = array.T.astype(np.float64)
    if array.ndim == 1:
        return Content([Number((), floats, is_int)])
    numbers = [Number((index,), column, is_int) for index, column in enumerate(floats)]
    return Content(numbers, [((), len(floats))])


def distinct_traces(traces: TraceSet) -> TraceSet:
    """Return the first of each set of equal traces."""
    _, first = np.unique(trace_hashes(traces), return_index=True)
    return traces if len(first) == len(traces) else traces.take(np.sort(first))


def _number(values: Sequence[Any], counts: Counts, position: Position) -> Number:
    is_number = [type(value) is not str for value in values]
    try:
        array = np.array([*compress(values, is_number)], np.float64)
    except OverflowError:
        raise TraceError("an int is too large to be a reading: use floats") from None
    is_int = float not in set(map(type, values))
    return Number(position, np.repeat(array, counts[is_number]), is_int)


def _common_key(column: Sequence[Any]) -> str | None:
    """Return the key that all pairs of a column share; None if they are no pairs of a mapping."""
    if not is_mapping(tuple(column)):
        return None
    first, *others = {key for key, _ in column}
    return None if others else first


def _types_within(symbols: Sequence[Any]) -> set[type]:
    parts = (_types_within(x) if type(x) is tuple else {type(x)} for x in symbols)
    return set().union(*parts)


def _no_numbers(content: Content, of: str) -> str:
    """Return the error's text for observations, or actions, without numbers to discretize."""
    if content.pictures:
        position, shape = content.pictures[0]
        size = "×".join(map(str, shape))
        return (
            f"{position_text(position, of)} is an array of {size} numbers: pictures are not put "
            f"into intervals number by number; turn them into a few readings, or into symbols"
        )
    if content.numbers:
        texts = ", ".join(position_text(number.position, of) for number in content.numbers)
        return (
            f"{of}s have no floats, but ints ({texts}), which are taken for symbols: "
            "pass ints=True if they are readings"
        )
    remedy = "leave Discretizer out"
    if of == OBSERVATION:
        remedy = f"leave it out, or give Discretizer(of={ACTION!r}) if actions have"
    return f"{of}s have no numbers to put into intervals: {remedy}"


def _checked_size(parts: Any) -> int:
    if type(parts) is not int or parts < 1:
        raise OptionError(f"parts={quoted(parts)}: a tuple with numbers has at least one")
    return parts


def _checked_edges(edges: Any) -> tuple[Any, ...]:
    row: tuple[Any, ...] = ()
    with suppress(TypeError):
        row = () if isinstance(edges, str) else tuple(edges)
    if not row:
        raise OptionError(
            f"edges={quoted(edges)}: give a row of at least one number, such as [-0.2, 0, 0.2]"
        )
    return row


def _checked_bins(bins: Any) -> int | tuple[int, ...]:
    is_single_count = isinstance(bins, int | np.integer)
    with suppress(TypeError, ValueError):
        counts = (bins,) if is_single_count else tuple(bins)
        numbers = tuple(map(int, counts))
        if numbers == counts and min(numbers) >= 2:
            return numbers[0] if is_single_count else numbers
    raise OptionError(f"bins={quoted(bins)}: give a whole number of at least 2, or a row of such")
