"""Compare rows by episode: codes of rows, and bounds of the episodes of row groups."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent.traces.io.arrow import distinct
from resolvent.traces.vocabulary import distinct_pairs

Bounds = tuple[tuple[Any, ...], tuple[Any, ...]]
"""Least and greatest values of the episodes of a row group, column by column."""

Episode = tuple[Any, ...]
"""The values that identify an episode, column by column."""


def run_length(codes: NDArray[Any], code: Any) -> int:
    """Return the number of leading codes that equal `code`."""
    differs = codes != code
    return int(np.argmax(differs)) if differs.any() else len(codes)


def rows_of(keys: pa.Table, episode: Episode) -> NDArray[np.bool_]:
    """Return which rows are of an episode.

    >>> rows_of(pa.table({"day": [1, 1, 2], "run": ["a", "b", "b"]}), (1, "b")).tolist()
    [False, True, False]
    """
    names = keys.column_names
    if len(names) == 1 and pa.types.is_integer(keys[names[0]].type) and not keys[0].null_count:
        return np.asarray(keys[0].to_numpy() == episode[0])
    codes = episode_codes([_one_row(episode, keys.schema), keys], names)
    return np.asarray(codes[1:] == codes[0])


def _one_row(episode: Episode, schema: pa.Schema) -> pa.Table:
    """Return an episode as a row of a table like others."""
    columns = []
    for value, kind in zip(episode, schema.types, strict=True):
        is_coded = pa.types.is_dictionary(kind)
        column = pa.array([value], kind.value_type if is_coded else kind)
        columns.append(column.dictionary_encode() if is_coded else column)
    return pa.table(columns, names=schema.names)


def hashes(keys: pa.Table) -> NDArray[np.int64]:
    """Return a hash for each row."""
    if keys.num_columns == 1 and pa.types.is_integer(keys.schema.types[0]):
        return np.asarray(keys.column(0).cast(pa.int64(), safe=False).to_numpy())
    rows = zip(*(column.to_pylist() for column in keys.columns), strict=True)
    return np.fromiter(map(hash, rows), np.int64, keys.num_rows)


def repeats(numbers: Sequence[NDArray[np.int64]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of arrays that share a number, one for each shared number.

    >>> list(repeats([np.array([1, 2]), np.array([3]), np.array([2, 4])]))
    [(0, 2)]
    """
    ends = np.cumsum(list(map(len, numbers)))
    joined = np.concatenate(numbers)
    order = np.argsort(joined, kind="stable")
    for place in np.flatnonzero(np.diff(joined[order]) == 0).tolist():
        first, second = np.searchsorted(ends, order[place : place + 2], side="right").tolist()
        yield first, second


def episode_codes(tables: Sequence[pa.Table], names: Sequence[str]) -> NDArray[np.int64]:
    """Return a code for each row of some tables, the same for rows with the same values."""
    table = joined(tables)
    codes_so_far: NDArray[Any] | None = None
    count = 0
    for name in names:
        column = table[name]
        if len(names) == 1 and pa.types.is_integer(column.type) and not column.null_count:
            return np.asarray(column.to_numpy())
        values, codes = distinct(column)
        if codes_so_far is None:
            codes_so_far, count = codes, len(values)
        else:
            pairs, codes_so_far = distinct_pairs(codes_so_far, codes, count, len(values))
            count = len(pairs)
    assert codes_so_far is not None  # noqa: S101 -- there is a column of episodes
    return codes_so_far.astype(np.int64)


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables of the same columns, whose integers may differ in width."""
    if len(tables) == 1:
        return tables[0]
    some = [table for table in tables if table.num_rows] or tables[:1]
    try:
        return pa.concat_tables(some, promote_options="permissive")
    except pa.ArrowException:  # codes of a dictionary beside plain texts
        return pa.concat_tables([_plain(table) for table in some], promote_options="permissive")


def _plain(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.name, plain)
    return table


def are_disjoint(first: Bounds | None, second: Bounds | None) -> bool:
    """Whether two row groups certainly share no episode."""
    if first is None or second is None:
        return False
    try:
        return first[1] < second[0] or second[1] < first[0]
    except TypeError:
        return False


def common_bounds(bounds: Sequence[Bounds | None]) -> Bounds | None:
    """Return the bounds of all row groups of a shard together."""
    stated = [pair for pair in bounds if pair is not None]
    if len(stated) < len(bounds):
        return None
    try:
        return min(low for low, _ in stated), max(high for _, high in stated)
    except TypeError:
        return None


def boundary_episode(first: Bounds | None, second: Bounds | None) -> Episode | None:
    """Return the only episode that two shards may share, at the boundary between them.

    >>> boundary_episode(((1,), (4,)), ((4,), (6,))), boundary_episode(((4,), (6,)), ((1,), (4,)))
    ((4,), (4,))
    """
    if first is None or second is None:
        return None
    episode = first[1] if first[1] == second[0] else first[0]
    return episode if all(type(value) in (int, str) for value in episode) else None


def are_in_sequence(bounds: Sequence[Bounds | None]) -> bool:
    """Whether shards certainly share no episode, except for one with a neighbor.

    >>> are_in_sequence([((1,), (4,)), ((4,), (6,)), ((9,), (9,))])
    True
    >>> are_in_sequence([((1,), (4,)), ((9,), (9,)), ((4,), (6,))])
    False
    """
    if len(bounds) < 2:
        return True
    stated = [(pair, number) for number, pair in enumerate(bounds) if pair is not None]
    try:
        ordered = sorted(stated)
    except TypeError:
        return False
    return len(stated) == len(bounds) and all(
        low[1] < high[0] or (low[1] == high[0] and abs(first - second) == 1)
        for (low, first), (high, second) in pairwise(ordered)
    )
