"""Damaged files → what is left out for them: whole pieces, and episodes that may go on in these.

A piece that cannot be read has no traces. An episode that begins or goes on in it may lack rows,
so it is left out of the pieces beside it as well, never cut.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent.errors import DamagedFile
from resolvent.traces.gap import Gap
from resolvent.traces.places.keys import episode_codes
from resolvent.traces.places.pieces import Pieces, Rows


def read_or_find(pieces: Pieces, number: int, columns: Sequence[str]) -> tuple[Rows, Gap | None]:
    """Read a piece as far as it can be read, and say what had to be left out."""
    try:
        return pieces.read(number, columns), None
    except DamagedFile as error:
        why = str(error)
    name, blocks = pieces.name(number), pieces.blocks_in(number)
    if not _is_readable(pieces, number, columns):
        rows = sum(block.rows for block in blocks) or None
        return _no_rows(columns), Gap(name, rows, whole=True, why=why)
    began_before = pieces.goes_on[number]
    gap = Gap(name, why=why)
    if began_before and not _is_readable(pieces, number - 1, pieces.episode):
        gap = replace(gap, first=True)
        try:
            return read_around(pieces, number, columns, gap), gap
        except DamagedFile:
            pass
    gap = replace(gap, last=True)
    return read_around(pieces, number, columns, gap), gap


def read_around(pieces: Pieces, number: int, columns: Sequence[str], gap: Gap) -> Rows:
    """Read a piece without what is left out of it, and without looking there."""
    if gap.whole:
        return _no_rows(columns)
    goes_on = pieces.goes_on.copy()
    if gap.first:
        goes_on[number] = False
    if gap.last:
        goes_on[number + 1] = False
    rows = replace(pieces, goes_on=goes_on).read(number, columns)
    if not rows.table.num_rows:
        return rows
    codes = episode_codes([rows.table.select(list(pieces.episode))], pieces.episode)
    stays = np.ones(len(codes), bool)
    if gap.first:
        stays &= codes != codes[0]
    if gap.last:
        stays &= codes != codes[-1]
    return _taken(rows, np.flatnonzero(stays))


def _is_readable(pieces: Pieces, number: int, columns: Sequence[str]) -> bool:
    try:
        pieces.stored.read(pieces.blocks_in(number), columns)
    except DamagedFile:
        return False
    return True


def _no_rows(columns: Sequence[str]) -> Rows:
    return Rows(pa.table({name: pa.nulls(0) for name in columns}), ())


def _taken(rows: Rows, kept: NDArray[np.int64]) -> Rows:
    """Return some rows, with where each run of them stands."""
    spans: list[tuple[str, int, int]] = []
    start = 0
    for name, first, count in rows.spans:
        here = kept[(kept >= start) & (kept < start + count)] - start
        runs = np.split(here, np.flatnonzero(np.diff(here) != 1) + 1)
        spans += [(name, first + int(run[0]), len(run)) for run in runs if len(run)]
        start += count
    return Rows(rows.table.take(kept), tuple(spans))
