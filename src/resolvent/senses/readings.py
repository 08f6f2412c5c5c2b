"""Observations, in traces or an array → the numbers in them, each with its place.

The place of a number is a path of positions in tuples and keys of mappings: `()` for an
observation that is a number, `(2,)` for the third of a row, `("position", 0)` for the
first of a row that a mapping holds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent._util.text import amount, short
from resolvent._util.validation import is_single, shown
from resolvent.errors import OptionError, TraceError
from resolvent.traces.sampling import trace_hashes
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.symbols import array_shape, symbol_text
from resolvent.traces.trace_set import TraceSet

Place: TypeAlias = tuple[int | str, ...]

MOST_NUMBERS = 64
"""A row of more numbers than this is a picture or a signal, and not a few readings."""


@dataclass(frozen=True)
class Reading:
    """One number of observations, with its value in each of them.

    Attributes:
        place: Where it stands in an observation.
        values: Its values; text that stands in a number's place is left out.
        is_whole: Whether all values are ints.
    """

    place: Place
    values: NDArray[np.float64]
    is_whole: bool


@dataclass(frozen=True)
class Readings:
    """The numbers of observations, how many parts observations have, and what is left alone.

    Attributes:
        numbers: Each number that may be put into intervals.
        sizes: The number of parts of each tuple or mapping that numbers may stand in.
        pictures: The places of arrays of too many numbers, and their shapes.
    """

    numbers: tuple[Reading, ...]
    sizes: tuple[tuple[Place, int], ...]
    pictures: tuple[tuple[Place, tuple[int, ...]], ...]


def place_text(place: Place, of: str = OBSERVATION) -> str:
    """Write a place in an observation, or an action, as a reader of the data would.

    >>> place_text(()), place_text((2,)), place_text(("position", 0))
    ('the observation', '[2]', 'position[0]')
    """
    if not place:
        return f"the {of}"
    first, *rest = place
    text = first if isinstance(first, str) else f"[{first}]"
    return short(text + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in rest))


def as_places(columns: Iterable[Any]) -> tuple[Place, ...]:
    """Return places as paths, whichever way they are written.

    >>> as_places([0, "heat", ("position", 1)])
    ((0,), ('heat',), ('position', 1))
    """
    if isinstance(columns, str | int):
        columns = (columns,)
    if not isinstance(columns, Iterable) or is_single(columns):
        raise OptionError(f"columns={shown(columns)}: give a list of positions or keys")
    places = tuple(tuple(one) if isinstance(one, tuple | list) else (one,) for one in columns)
    if not all(type(key) in (int, str) for place in places for key in place):
        raise OptionError(
            f"columns={shown(columns)}: use positions in a row, keys of a mapping, or tuples of "
            f"these"
        )
    ordered = sorted(places, key=lambda place: [(type(key).__name__, str(key)) for key in place])
    if not places or any(longer[: len(one)] == one for one, longer in pairwise(ordered)):
        raise OptionError(f"columns={shown(columns)}: name each number once, and at least one")
    return places


def key_position(parts: tuple[Any, ...], key: int | str) -> int | None:
    """Return where the value of a key, or a position, stands in a tuple; None if it does not.

    >>> key_position((("door", "open"), ("heat", 20.5)), "heat"), key_position((1, 2), 2)
    (1, None)
    """
    if isinstance(key, int):
        return key if 0 <= key < len(parts) else None
    return next(
        (
            position
            for position, part in enumerate(parts)
            if isinstance(part, tuple) and len(part) == 2 and part[0] == key
        ),
        None,
    )


def readings(data: TraceSet | ArrayLike, of: str = OBSERVATION) -> Readings:
    """Return the numbers of traces, in observations or actions, or of an array."""
    if isinstance(data, TraceSet):
        if not len(data):
            raise TraceError("there are no traces to fit Discretise on")
        return readings_of_traces(data, of)
    try:
        array = np.asarray(data)
    except ValueError:
        raise TraceError("rows of readings differ in length: give rows of one length") from None
    return readings_of_array(array)


def nothing_numeric(found: Readings, of: str) -> str:
    """Say why observations, or actions, have nothing to put into intervals, and what to do."""
    if found.pictures:
        place, shape = found.pictures[0]
        size = "×".join(map(str, shape))
        return (
            f"{place_text(place, of)} is an array of {size} numbers: pictures are not put into "
            "intervals number by number; turn them into a few readings, or into symbols"
        )
    if found.numbers:
        where = ", ".join(place_text(one.place, of) for one in found.numbers)
        return (
            f"{of}s have no floats, but ints ({where}), which are taken for symbols: "
            "pass ints=True if they are readings"
        )
    other = (
        f"leave it out, or give Discretise(of={ACTION!r}) if actions have"
        if of == OBSERVATION
        else "leave Discretise out"
    )
    return f"{of}s have no numbers to put into intervals: {other}"


def values_at(symbols: Iterable[Any], place: Place) -> list[Any]:
    """Return what stands at a place of each symbol.

    >>> values_at([(("heat", (20.5, 3)),), (("heat", (18.5, 4)),)], ("heat", 0))
    [20.5, 18.5]
    """
    values = list(symbols)
    for key in place:
        position = key_position(values[0], key)
        if isinstance(key, int):
            values = [value[position] for value in values]
        else:
            values = [value[position][1] for value in values]
    return values


def readings_of_traces(traces: TraceSet, of: str = OBSERVATION) -> Readings:
    """Return the numbers of all observations, or actions, of traces; equal traces count once.

    >>> from resolvent.traces import Trace
    >>> day = Trace([(20.5, "on"), (21.0, "on"), (20.5, "off")], [None] * 3, "ab")
    >>> found = readings_of_traces(TraceSet([day, day]))
    >>> [(one.place, one.values.tolist()) for one in found.numbers]
    [((0,), [20.5, 20.5, 21.0])]
    """
    different = different_traces(traces)
    symbols = list(different.values[of])
    times = np.bincount(different.codes[of], minlength=len(symbols))
    search = _Search(times)
    search.look(symbols)
    return Readings(tuple(search.numbers), tuple(search.sizes.items()), tuple(search.pictures))


def readings_of_array(array: NDArray[Any]) -> Readings:
    """Return the numbers of an array: a row of readings, or a table with one in each column.

    >>> [one.place for one in readings_of_array(np.array([[0.5, 2], [1, 3]])).numbers]
    [(0,), (1,)]
    """
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
    is_whole = array.dtype.kind != "f"
    if array.ndim == 1:
        return Readings((Reading((), array.astype(np.float64), is_whole),), (), ())
    columns = tuple(
        Reading((number,), column.astype(np.float64), is_whole)
        for number, column in enumerate(array.T)
    )
    return Readings(columns, (((), array.shape[1]),), ())


def different_traces(traces: TraceSet) -> TraceSet:
    """Return each trace once."""
    starts = traces.offsets[:-1] + np.arange(len(traces))
    sums = np.add.reduceat(traces.observation_codes, starts, dtype=np.int64)
    if len(np.unique(sums)) == len(traces):  # as nearly always where readings never repeat
        return traces
    _, first = np.unique(trace_hashes(traces), return_index=True)
    return traces if len(first) == len(traces) else traces.take(np.sort(first))


class _Search:
    """Looks for numbers in symbols that occur so many times each, part by part."""

    def __init__(self, times: NDArray[np.int64]) -> None:
        self.times = times
        self.numbers: list[Reading] = []
        self.sizes: dict[Place, int] = {}
        self.pictures: list[tuple[Place, tuple[int, ...]]] = []

    def look(self, symbols: Sequence[Any], place: Place = ()) -> None:
        """Look at what stands at a place in each symbol, and at its parts."""
        kinds = set(map(type, symbols))
        if kinds <= {float, int, str} and kinds != {str}:
            self.numbers.append(self._reading(symbols, kinds, place))
        elif kinds == {tuple} and len(set(map(len, symbols))) == 1:
            self._look_at_parts(symbols, place)
        elif tuple in kinds and float in _kinds_within(symbols):
            raise _different_shapes(symbols, place)

    def _look_at_parts(self, symbols: Sequence[Any], place: Place) -> None:
        first = symbols[0]
        shape = array_shape(first)
        if shape is not None and (len(shape) > 1 or shape[0] > MOST_NUMBERS):
            self.pictures.append((place, shape))
            return
        self.sizes[place] = len(first)
        for position, column in enumerate(zip(*symbols, strict=True)):
            key = _common_key(column)
            if key is None:
                self.look(column, (*place, position))
            else:
                self.look([value for _, value in column], (*place, key))

    def _reading(self, values: Sequence[Any], kinds: set[type], place: Place) -> Reading:
        times = self.times
        if str in kinds:
            times = times[[type(value) is not str for value in values]]
            values = [value for value in values if type(value) is not str]
        try:
            array = np.array(values, np.float64)
        except OverflowError:
            raise TraceError("an int is too large to be a reading: use floats") from None
        return Reading(place, np.repeat(array, times), float not in kinds)


def _common_key(column: Sequence[Any]) -> str | None:
    """Return the key that all pairs of a column share, None if these are no pairs of a mapping."""
    first = column[0]
    if not (isinstance(first, tuple) and len(first) == 2 and isinstance(first[0], str)):
        return None
    alike = all(type(one) is tuple and len(one) == 2 and one[0] == first[0] for one in column)
    return str(first[0]) if alike else None


def _kinds_within(symbols: Sequence[Any]) -> set[type]:
    kinds: set[type] = set()
    for symbol in symbols:
        if type(symbol) is tuple:
            kinds |= _kinds_within(symbol)
        else:
            kinds.add(type(symbol))
    return kinds


def _different_shapes(symbols: Sequence[Any], place: Place) -> TraceError:
    first = symbols[0]
    other = next(one for one in symbols if _size(one) != _size(first))
    return TraceError(
        f"{short(symbol_text(first))} ({_size(first)}) and {short(symbol_text(other))} "
        f"({_size(other)}) both occur{f' as {place_text(place)}' if place else ''}: "
        "what has numbers to put into intervals must have one shape"
    )


def _size(symbol: Any) -> str:
    return amount(len(symbol), "part") if isinstance(symbol, tuple) else type(symbol).__name__
