"""Rows of a table in any order → the same rows in order, episode after episode."""

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

Locate = Callable[[int], str]
"""Returns the location of a row in errors, given its number."""

_ORDERED_TEXTS = (
    pa.int64(),
    pa.float64(),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
    pa.time64("ns"),
)
"""Types of texts that can order rows."""


@dataclass(frozen=True)
class EpisodeTable:
    """A table whose rows are in order, episode after episode.

    Attributes:
        table: The rows.
        starts: The first row of each episode.
        locate: Returns the location of a row in errors.
        was_sorted: Whether the rows were in order already.
    """

    table: pa.Table
    starts: NDArray[np.int64]
    locate: Locate
    was_sorted: bool = True

    @property
    def ends(self) -> NDArray[np.int64]:
        """The row after the last one of each episode."""
        return np.append(self.starts[1:], self.table.num_rows)


def sort_by_episode(
    table: pa.Table, episode: Sequence[str], order: Sequence[str], locate: Locate
) -> EpisodeTable:
    """Sort rows by episode, and by order within each; episodes are sorted by their values.

    Without `episode` all rows are one episode; without `order` the rows of an episode keep
    the order of the table.

    >>> table = pa.table({"session": ["b", "a", "b"], "time": [2, 7, 1]})
    >>> episodes = sort_by_episode(table, ["session"], ["time"], str)
    >>> episodes.table["time"].to_pylist(), episodes.starts.tolist(), episodes.locate(0)
    ([7, 1, 2], [0, 1], '1')
    """
    groups = [_ranks(table[name], name, locate) for name in episode]
    times = [_times(table[name], name, locate) for name in order]
    keys = [*groups, *times]
    if all(key.dtype.kind in "iu" and np.can_cast(key.dtype, np.int64) for key in keys):
        starts = _core.starts_in_order(  # most tables are sorted already
            [key.astype(np.int64, copy=False) for key in groups],
            [key.astype(np.int64, copy=False) for key in times],
            table.num_rows,
        )
        if starts is not None:
            return EpisodeTable(table, starts, locate)
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
            _refuse_repeat(rows[first : first + 2], episode, order, locate)
    return EpisodeTable(
        table.take(rows),
        np.append(0, np.flatnonzero(~same) + 1),
        lambda row: locate(int(rows[row])),
        was_sorted=False,
    )


def _refuse_repeat(
    rows: NDArray[np.int64], episode: Sequence[str], order: Sequence[str], locate: Locate
) -> None:
    first, second = sorted(rows.tolist())
    of_both = f"`{visible(', '.join(order))}`"
    if episode:
        of_both += f" and `{visible(', '.join(episode))}`"
    raise TraceError(
        f"{locate(second)}: the same {of_both} as {locate(first)}, so nothing says which comes "
        f"first: order by a further column, or leave out the order if rows stand in it"
    )


def _check_present(column: pa.ChunkedArray, name: str, locate: Locate) -> None:
    if column.null_count:
        row = int(np.argmax(nulls(column)))
        raise TraceError(
            f"{locate(row)}: the column `{visible(name)}` has no value: every row needs its own"
        )


def _ranks(column: pa.ChunkedArray, name: str, locate: Locate) -> NDArray[Any]:
    """Return integers in the order of the values."""
    _check_present(column, name, locate)
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    values, codes = distinct(column)
    try:
        ordered = {value: rank for rank, value in enumerate(sorted(set(values)))}
    except TypeError as error:
        raise TraceError(
            f"the column `{visible(name)}` is of type {column.type}: distinguish episodes by "
            f"numbers, texts or times"
        ) from error
    return np.array([ordered[value] for value in values])[codes]


def _times(column: pa.ChunkedArray, name: str, locate: Locate) -> NDArray[Any]:
    """Return numbers in the order of the rows' times."""
    _check_present(column, name, locate)
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
                f"{locate(row)}: `{visible(name)}` is {numbers[row]}, which has no place in an "
                f"order: give it a finite number"
            )
        return numbers
    if pa.types.is_decimal(kind):
        return _ranks(column, name, locate)
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
            numbers = [Decimal(text) for text in texts.to_pylist()]
            rank_of = {number: rank for rank, number in enumerate(sorted(set(numbers)))}
            parsed = pa.array([rank_of[number] for number in numbers], pa.int64())
        return pa.chunked_array([parsed.take(pa.array(codes))])
    raise TraceError(
        f"the column `{visible(name)}` holds texts such as {values[0]!r}, which "
        f"are neither numbers nor ISO 8601 times: convert them, or leave out the order if rows "
        f"stand in it"
    )
