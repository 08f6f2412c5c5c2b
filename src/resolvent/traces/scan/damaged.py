"""Read shards around damaged files: skip whole shards, and episodes that may go on in them.

A shard that cannot be read has no traces. An episode that begins or goes on there may lack rows, so
it is skipped in the shards beside it as well, never cut.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent.errors import DamagedFile
from resolvent.traces.scan.episodes import episode_codes
from resolvent.traces.scan.shards import Rows, StoredShards
from resolvent.traces.source import SkippedRows


def read_skipping(
    shards: StoredShards, number: int, columns: Sequence[str]
) -> tuple[Rows, SkippedRows | None]:
    """Read a shard as far as possible, and return its skipped rows."""
    try:
        return shards.read(number, columns), None
    except DamagedFile as error:
        why = str(error)
    name, row_groups = shards.name(number), shards.row_groups_of(number)
    if not _is_readable(shards, number, columns):
        rows = sum(row_group.rows for row_group in row_groups) or None
        return _no_rows(columns), SkippedRows(name, rows, whole=True, why=why)
    began_before = shards.continues[number]
    gap = SkippedRows(name, why=why)
    if began_before and not _is_readable(shards, number - 1, shards.episode):
        gap = replace(gap, first=True)
        try:
            return read_without(shards, number, columns, gap), gap
        except DamagedFile:
            pass
    gap = replace(gap, last=True)
    return read_without(shards, number, columns, gap), gap


def read_without(
    shards: StoredShards, number: int, columns: Sequence[str], gap: SkippedRows
) -> Rows:
    """Read a shard without its skipped rows, and without opening damaged shards."""
    if gap.whole:
        return _no_rows(columns)
    continues = shards.continues.copy()
    if gap.first:
        continues[number] = False
    if gap.last:
        continues[number + 1] = False
    rows = replace(shards, continues=continues).read(number, columns)
    if not rows.table.num_rows:
        return rows
    codes = episode_codes([rows.table.select(list(shards.episode))], shards.episode)
    stays = np.ones(len(codes), bool)
    if gap.first:
        stays &= codes != codes[0]
    if gap.last:
        stays &= codes != codes[-1]
    return _take_rows(rows, np.flatnonzero(stays))


def _is_readable(shards: StoredShards, number: int, columns: Sequence[str]) -> bool:
    try:
        shards.stored.read(shards.row_groups_of(number), columns)
    except DamagedFile:
        return False
    return True


def _no_rows(columns: Sequence[str]) -> Rows:
    return Rows(pa.table({name: pa.nulls(0) for name in columns}), ())


def _take_rows(rows: Rows, indices: NDArray[np.int64]) -> Rows:
    """Return rows by index, with their locations."""
    spans: list[tuple[str, int, int]] = []
    start = 0
    for name, first, count in rows.spans:
        here = indices[(indices >= start) & (indices < start + count)] - start
        runs = np.split(here, np.flatnonzero(np.diff(here) != 1) + 1)
        spans += [(name, first + int(run[0]), len(run)) for run in runs if len(run)]
        start += count
    return Rows(rows.table.take(indices), tuple(spans))
