"""Rows of a table in any order → the rows of each episode, in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import visible
from resolvent.errors import TraceError
from resolvent.traces.io.arrow import distinct, is_text, nulls

Place = Callable[[int], str]

RowNumbers = NDArray[np.int64] | range
"""The numbers of some rows: a range if they are all rows in the order of the table."""

_ORDERED_TEXTS = (
    pa.int64(),
    pa.float64(),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
    pa.time64("ns"),
)
"""Types of texts that can order rows."""


@dataclass(frozen=True)
class Episodes:
    """The rows of a table, episode after episode.

    Attributes:
        rows: The numbers of all rows, in order.
        starts: The position of each episode's first row among them.
    """

    rows: RowNumbers
    starts: NDArray[np.int64]

    @property
    def ends(self) -> NDArray[np.int64]:
        """The position after each episode's last row."""
        return np.append(self.starts[1:], len(self.rows))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of rows of each episode."""
        return self.ends - self.starts

    @property
    def last(self) -> NDArray[np.int64]:
        """The number of each episode's last row."""
        at = self.ends - 1
        return at if isinstance(self.rows, range) else self.rows[at]


def numbers_of(rows: RowNumbers) -> NDArray[np.int64]:
    """Return numbers of rows as an array."""
    return np.arange(len(rows)) if isinstance(rows, range) else rows


def episodes_of(
    table: pa.Table, episode: Sequence[str], order: Sequence[str], place: Place
) -> Episodes:
    """Sort rows by episode, and by order within each; episodes are sorted by their values.

    Without `episode` all rows are one episode; without `order` the rows of an episode keep
    the order of the table.

    >>> table = pa.table({"session": ["b", "a", "b"], "time": [2, 7, 1]})
    >>> episodes = episodes_of(table, ["session"], ["time"], str)
    >>> episodes.rows.tolist(), episodes.starts.tolist()
    ([1, 2, 0], [0, 1])
    """
    groups = [_ranks(table[name], name, place) for name in episode]
    times = [_times(table[name], name, place) for name in order]
    keys = [*groups, *times]
    if all(_fits(key) for key in keys):  # most tables are sorted already
        starts = _core.starts_in_order(
            [key.astype(np.int64, copy=False) for key in groups],
            [key.astype(np.int64, copy=False) for key in times],
            table.num_rows,
        )
        if starts is not None:
            return Episodes(range(table.num_rows), starts)
    rows = np.lexsort(keys[::-1])
    same = np.ones(len(rows) - 1, bool)
    for key in groups:
        same &= np.diff(key[rows]) == 0
    if times:
        repeated = same.copy()
        for key in times:
            repeated &= key[rows][1:] == key[rows][:-1]
        if np.any(repeated):
            first = int(np.argmax(repeated))
            _refuse_repeat(int(rows[first]), int(rows[first + 1]), episode, order, place)
    return Episodes(rows, np.append(0, np.flatnonzero(~same) + 1))


def rows_in_order(table: pa.Table, episode: Sequence[str], order: Sequence[str]) -> bool:
    """Return whether rows are in order; False for keys that are no integers or timestamps.

    >>> rows_in_order(pa.table({"run": [1, 1, 2], "time": [3, 4, 1]}), ["run"], ["time"])
    True
    >>> rows_in_order(pa.table({"run": [1, 1, 2], "time": [4, 3, 1]}), ["run"], ["time"])
    False
    """
    columns = [table[name] for name in (*episode, *order)]
    if any(column.null_count or not _is_counted(column.type) for column in columns):
        return False
    keys = [np.asarray(column.cast(pa.int64()).to_numpy()) for column in columns]
    count = len(episode)
    return _core.starts_in_order(keys[:count], keys[count:], table.num_rows) is not None


def _is_counted(kind: pa.DataType) -> bool:
    is_integer = pa.types.is_integer(kind) and kind != pa.uint64()
    return bool(is_integer or pa.types.is_timestamp(kind))


def _fits(key: NDArray[Any]) -> bool:
    return key.dtype.kind in "iu" and np.can_cast(key.dtype, np.int64)


def _refuse_repeat(
    first: int, second: int, episode: Sequence[str], order: Sequence[str], place: Place
) -> None:
    first, second = sorted((first, second))
    of_both = f"`{visible(', '.join(order))}`"
    if episode:
        of_both += f" and `{visible(', '.join(episode))}`"
    raise TraceError(
        f"{place(second)}: the same {of_both} as {place(first)}, so nothing says which comes "
        f"first: order by a further column, or leave out the order if rows stand in it"
    )


def _check_present(column: pa.ChunkedArray, name: str, place: Place) -> None:
    if column.null_count:
        row = int(np.argmax(nulls(column)))
        raise TraceError(
            f"{place(row)}: the column `{visible(name)}` has no value: every row needs its own"
        )


def _ranks(column: pa.ChunkedArray, name: str, place: Place) -> NDArray[Any]:
    """Return integers in the order of the values."""
    _check_present(column, name, place)
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    values, codes = distinct(column)
    try:
        ordered = {value: rank for rank, value in enumerate(sorted(set(values)))}
    except TypeError as error:
        raise TraceError(
            f"the column `{visible(name)}` is of type {column.type}: tell episodes apart by "
            f"numbers, texts or times"
        ) from error
    return np.array([ordered[value] for value in values])[codes]


def _times(column: pa.ChunkedArray, name: str, place: Place) -> NDArray[Any]:
    """Return numbers in the order of the rows' times."""
    _check_present(column, name, place)
    if is_text(column.type):
        column = _parsed(column, name)
    kind = column.type
    if pa.types.is_integer(kind):
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(kind):
        numbers = np.asarray(column.to_numpy())
        if np.any(wrong := ~np.isfinite(numbers)):
            row = int(np.argmax(wrong))
            raise TraceError(
                f"{place(row)}: `{visible(name)}` is {numbers[row]}, which has no place in an "
                f"order: give it a finite number"
            )
        return numbers
    if pa.types.is_decimal(kind):
        return _ranks(column, name, place)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return np.asarray(column.cast(width).to_numpy())
    raise TraceError(
        f"the column `{visible(name)}` is of type {kind}: order rows by numbers or times"
    )


def _parsed(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return texts as numbers or times; `TraceError` for other texts, which have no order."""
    values, codes = distinct(column)
    texts = pc.utf8_trim_whitespace(pa.array(values, pa.string()))
    for kind in _ORDERED_TEXTS:
        try:
            parsed = pc.cast(texts, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        if pa.types.is_floating(kind) and pc.all(pc.is_finite(parsed)).as_py():
            # Integers with many digits would become the same float.
            parsed = _exact_ranks(texts.to_pylist())
        return pa.chunked_array([parsed.take(pa.array(codes))])
    raise TraceError(
        f"the column `{visible(name)}` holds texts such as {values[0]!r}, which "
        f"are neither numbers nor ISO 8601 times: convert them, or leave out the order if rows "
        f"stand in it"
    )


def _exact_ranks(texts: Sequence[str]) -> pa.Array:
    """Return integers in the exact order of the numbers in texts.

    >>> _exact_ranks(["1e23", "100000000000000000000001", "2.50", "2.5"]).to_pylist()
    [1, 2, 0, 0]
    """
    numbers = [Decimal(text) for text in texts]
    rank_of = {number: rank for rank, number in enumerate(sorted(set(numbers)))}
    return pa.array([rank_of[number] for number in numbers], pa.int64())
