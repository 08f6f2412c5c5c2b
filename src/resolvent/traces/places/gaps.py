"""Damaged files → what is left out for them: whole pieces, and episodes that may go on in these.

A piece that cannot be read has no traces. An episode that begins or goes on in it may lack rows,
so it is left out of the pieces beside it as well, never cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent.errors import DamagedFile
from resolvent.traces.places.pieces import Pieces, Rows, episode_codes
from resolvent.wording import amount


@dataclass(frozen=True)
class Gap:
    """What of a piece is left out.

    Attributes:
        piece: What the piece is called.
        rows: How many rows it says it holds, if all of it is left out and that is known.
        whole: Whether all of it is left out.
        first: Whether its first episode is, which may have begun where nothing can be read.
        last: Whether its last episode is, which may go on there.
        why: What is damaged.
    """

    piece: str
    rows: int | None = None
    whole: bool = False
    first: bool = False
    last: bool = False
    why: str = ""

    @property
    def episodes(self) -> int:
        """How many episodes are left out of a piece that can be read."""
        return self.first + self.last


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
    goes_on = list(pieces.goes_on)
    if gap.first:
        goes_on[number] = False
    if gap.last:
        goes_on[number + 1] = False
    rows = replace(pieces, goes_on=tuple(goes_on)).read(number, columns)
    if not rows.table.num_rows:
        return rows
    codes = episode_codes([rows.table.select(list(pieces.episode))], pieces.episode)
    stays = np.ones(len(codes), bool)
    if gap.first:
        stays &= codes != codes[0]
    if gap.last:
        stays &= codes != codes[-1]
    return _taken(rows, np.flatnonzero(stays))


def gaps_text(gaps: Mapping[int, Gap]) -> str:
    """Say in one line what was left out.

    >>> gaps_text({3: Gap("a", 7, whole=True, why="a: damaged"), 4: Gap("b", first=True)})
    '1 piece that cannot be read is left out, with 7 rows (a: damaged), and 1 episode beside it \
that may lack rows'
    """
    whole = [gap for gap in gaps.values() if gap.whole]
    episodes = sum(gap.episodes for gap in gaps.values())
    rows = sum(gap.rows or 0 for gap in whole)
    unknown = sum(gap.rows is None for gap in whole)
    parts = []
    if whole:
        counted = [amount(rows, "row")] * (unknown < len(whole))
        counted += [f"{amount(unknown, 'file')} of unknown length"] * bool(unknown)
        more = f", and {len(whole) - 1:,} more" * (len(whole) > 1)
        be = "is" if len(whole) == 1 else "are"
        parts.append(
            f"{amount(len(whole), 'piece')} that cannot be read {be} left out, with "
            f"{' and '.join(counted)} ({whole[0].why}{more})"
        )
    if episodes:
        beside = f" beside {'it' if len(whole) == 1 else 'them'}" if whole else " left out"
        why = "" if whole else f" ({next(gap.why for gap in gaps.values())})"
        parts.append(f"{amount(episodes, 'episode')}{beside} that may lack rows{why}")
    return ", and ".join(parts)


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
