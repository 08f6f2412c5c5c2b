"""Blocks of rows → pieces that can be read in any order, each with whole episodes.

An episode belongs to the piece in which it begins. Where it goes on in the next one, its rows
are read from there as well, and that piece leaves them out. Rows of one episode that stand in
several pieces have to follow each other: otherwise they are refused, never cut.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent.errors import DamagedFile, TraceError
from resolvent.traces.places.addresses import without_secrets
from resolvent.traces.places.blocks import (
    Block,
    Bounds,
    Footer,
    StoredFiles,
    footer_of,
    whole_keys,
)
from resolvent.traces.places.listing import StoredFile
from resolvent.traces.tables.distinct import distinct
from resolvent.traces.vocabulary import distinct_pairs
from resolvent.wording import visible

PIECE_ROWS = 1 << 20
"""Row groups are read together as long as they have no more rows than this."""

_READERS = 8


class Rows(NamedTuple):
    """Rows that were read, and where they stand: (file's name, first row there, count)."""

    table: pa.Table
    spans: tuple[tuple[str, int, int], ...]

    def place(self, row: int) -> str:
        """Name a row as an error would."""
        for name, first, count in self.spans:
            if row < count:
                return f"{name}, row {first + row}"
            row -= count
        raise IndexError(row)


@dataclass(frozen=True)
class Pieces:
    """Files in pieces.

    Attributes:
        stored: The files.
        blocks: Their row groups, in order, without empty ones.
        cuts: Where each piece begins among them, and where the last one ends.
        episode: The columns that tell episodes apart.
        goes_on: Whether an episode may go on in a piece from the one before it.
        remedy: What to do where the rows of an episode do not follow each other.
    """

    stored: StoredFiles
    blocks: tuple[Block, ...]
    cuts: tuple[int, ...]
    episode: tuple[str, ...]
    goes_on: tuple[bool, ...]
    remedy: str

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(block.rows for block in self.blocks)

    def name(self, number: int) -> str:
        """Call a piece by its file, and by its row groups where the file has several pieces."""
        blocks = self._blocks(number)
        name = self.stored.files[blocks[0].file].name
        first, last = blocks[0].group, blocks[-1].group
        alone = all(
            self.blocks[near].file != blocks[0].file
            for near in (self.cuts[number] - 1, self.cuts[number + 1])
            if 0 <= near < len(self.blocks)
        )
        if alone:
            return name
        return f"{name}, row group {first}" + (f" to {last}" if last > first else "")

    def _blocks(self, number: int) -> tuple[Block, ...]:
        return self.blocks[self.cuts[number] : self.cuts[number + 1]]

    def blocks_in(self, number: int) -> tuple[Block, ...]:
        """Return the row groups of a piece."""
        return self._blocks(number)

    def seal(self, number: int) -> tuple[Any, ...]:
        """Return all that the rows of a piece depend on, as plain data."""
        before = self._own_seals[number - 1] if self.goes_on[number] else None
        return before, self._seals_from[number], self.episode, sorted(self.stored.whole)

    @cached_property
    def _own_seals(self) -> tuple[str, ...]:
        """A digest for each piece of which files it is of, and which row groups of these."""
        return tuple(
            _digest(
                without_secrets(file.root or ""),
                file.path,
                self.stored.seals[blocks[0].file],
                blocks,
            )
            for blocks in map(self._blocks, range(len(self)))
            for file in (self.stored.files[blocks[0].file],)
        )

    @cached_property
    def _seals_from(self) -> tuple[str, ...]:
        """A digest for each piece of itself and of all in which its last episode may go on."""
        found: list[str] = []
        for number in reversed(range(len(self))):
            goes_on = number + 1 < len(self) and self.goes_on[number + 1]
            found.append(_digest(self._own_seals[number], found[-1] if goes_on else None))
        return tuple(reversed(found))

    def read(self, number: int, columns: Sequence[str]) -> Rows:
        """Read the columns of all episodes that begin in a piece; there may be none."""
        blocks = self._blocks(number)
        table = self.stored.read(blocks, columns)
        rows = table.num_rows
        went_on = self.goes_on[number]
        goes_on = number + 1 < len(self) and self.goes_on[number + 1]
        if not (went_on or goes_on):
            return Rows(table, (self._span(blocks[0], 0, rows),))
        before = self._blocks(number - 1) if went_on else ()
        after = self._blocks(number + 1) if goes_on else ()
        keys = [self._keys(before), table.select(list(self.episode)), self._keys(after)]
        lengths = [one.num_rows for one in keys]
        earlier, own, later = np.split(episode_codes(keys, self.episode), np.cumsum(lengths)[:2])
        skipped = _run(own, earlier[-1]) if went_on else 0
        own = own[skipped:]
        if went_on:
            self._refuse_shared(own, earlier, (blocks[0], skipped), (before[0], 0))
        if not len(own):  # all of it is one episode that began before
            return Rows(table.slice(0, 0), ())
        parts, spans = [table.slice(skipped)], [self._span(blocks[0], skipped, rows - skipped)]
        if goes_on and (taken := _run(later, own[-1])):
            for part in self._rest_of_episode(number + 1, taken, keys[1], columns):
                parts.append(part.table)
                spans += part.spans
        return Rows(_joined(parts), tuple(spans))

    def _rest_of_episode(
        self, number: int, taken: int, keys: pa.Table, columns: Sequence[str]
    ) -> list[Rows]:
        """Read the rows with which the last episode goes on from a piece on."""
        last = keys.slice(keys.num_rows - 1)
        found = []
        while True:
            blocks = self._blocks(number)
            table = self.stored.read(_holding(blocks, taken), columns, taken)
            found.append(Rows(table, (self._span(blocks[0], 0, taken),)))
            number += 1
            ends = taken < sum(block.rows for block in blocks)
            if ends or number == len(self) or not self.goes_on[number]:
                return found
            codes = episode_codes([last, self._keys(self._blocks(number))], self.episode)
            taken = _run(codes[1:], codes[0])
            if not taken:
                return found

    def _keys(self, blocks: Sequence[Block]) -> pa.Table:
        """Read the columns that tell the episodes of some blocks of a file apart."""
        if not blocks:
            return pa.table({name: pa.nulls(0) for name in self.episode})
        return self.stored.read(blocks, self.episode)

    def _span(self, block: Block, skipped: int, rows: int) -> tuple[str, int, int]:
        return self.stored.files[block.file].name, block.first + skipped, rows

    def _refuse_shared(
        self,
        here: NDArray[np.int64],
        there: NDArray[np.int64],
        where: tuple[Block, int],
        other: tuple[Block, int],
    ) -> None:
        """Refuse an episode that has rows in two pieces, with those of another between."""
        if np.any(shared := np.isin(here, there)):
            row = int(np.argmax(shared))
            place = int(np.argmax(there == here[row]))
            raise self._not_together(
                self._span(where[0], where[1] + row, 1), self._span(other[0], other[1] + place, 1)
            )

    def _not_together(self, *spans: tuple[str, int, int]) -> TraceError:
        named = " and ".join(f"{name}, row {row}" for name, row, _ in sorted(spans))
        names = ", ".join(map(visible, self.episode))
        return TraceError(
            f"rows of one episode (by `{names}`) stand apart, at {named}, with rows of another "
            f"between them, so that they are not read together: {self.remedy}"
        )

    def check_together(self, numbers: Sequence[int]) -> None:
        """Refuse an episode whose rows in some pieces, which follow each other, do not.

        It reads the columns that tell episodes apart, and keeps a number for each episode.
        """
        begun: list[NDArray[np.int64]] = []
        last: pa.Table | None = None
        at_end = self._blocks(numbers[0])[0], 0
        for number in numbers:
            block = self._blocks(number)[0]
            try:
                keys = self._keys(self._blocks(number))
            except DamagedFile:  # what goes on there is left out when it is read
                if not self.stored.skips:
                    raise
                begun.append(np.empty(0, np.int64))
                continue
            skipped = 0
            if last is None:
                codes = episode_codes([keys], self.episode)
            else:
                both = episode_codes([last, keys], self.episode)
                codes, skipped = both[1:], _run(both[1:], both[0])
                self._refuse_shared(codes[skipped:], both[:1], (block, skipped), at_end)
            _, firsts = np.unique(codes[skipped:], return_index=True)
            begun.append(_hashes(keys.take(firsts + skipped)))
            last, end = keys.slice(keys.num_rows - 1), self._blocks(number)[-1]
            at_end = end, end.rows - 1
        for found, number in _repeats(begun):
            self._refuse_same(numbers[found], numbers[number])

    def _refuse_same(self, found: int, number: int) -> None:
        """Refuse an episode that two pieces have, unless only hashes of episodes are equal."""
        first, second = self._blocks(found), self._blocks(number)
        keys = [self._keys(first), self._keys(second)]
        codes = episode_codes(keys, self.episode)
        length = keys[0].num_rows
        self._refuse_shared(codes[length:], codes[:length], (second[0], 0), (first[0], 0))


def _digest(*told: Any) -> str:
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _holding(blocks: Sequence[Block], rows: int) -> Sequence[Block]:
    """Return as many of the first blocks as have so many rows."""
    ends = np.cumsum([block.rows for block in blocks])
    return blocks[: int(np.searchsorted(ends, rows)) + 1]


def _run(codes: NDArray[np.int64], code: int) -> int:
    """Return how many of the first codes are this one."""
    other = codes != code
    return int(np.argmax(other)) if other.any() else len(codes)


def _hashes(keys: pa.Table) -> NDArray[np.int64]:
    """Return a number for each row, which rows with other values hardly ever have."""
    if keys.num_columns == 1 and pa.types.is_integer(keys.schema.types[0]):
        return np.asarray(keys.column(0).cast(pa.int64(), safe=False).to_numpy())
    rows = zip(*(column.to_pylist() for column in keys.columns), strict=True)
    return np.fromiter(map(hash, rows), np.int64, keys.num_rows)


def _repeats(numbers: Sequence[NDArray[np.int64]]) -> Iterator[tuple[int, int]]:
    """Return pairs of arrays that have a number in common, each for one such number.

    >>> list(_repeats([np.array([1, 2]), np.array([3]), np.array([2, 4])]))
    [(0, 2)]
    """
    ends = np.cumsum([len(one) for one in numbers])
    joined = np.concatenate(numbers)
    order = np.argsort(joined, kind="stable")
    for place in np.flatnonzero(np.diff(joined[order]) == 0).tolist():
        first, second = np.searchsorted(ends, order[place : place + 2], side="right").tolist()
        yield first, second


def episode_codes(tables: Sequence[pa.Table], names: Sequence[str]) -> NDArray[np.int64]:
    """Return a code for each row of some tables, the same for rows with the same values."""
    joined = _joined(tables)
    together: NDArray[Any] | None = None
    many = 0
    for name in names:
        column = joined[name]
        if len(names) == 1 and pa.types.is_integer(column.type) and not column.null_count:
            return np.asarray(column.to_numpy())
        values, codes = distinct(column)
        if together is None:
            together, many = codes, len(values)
        else:
            kept, together = distinct_pairs(together, codes, many, len(values))
            many = len(kept)
    assert together is not None  # noqa: S101 -- there is a column of episodes
    return together.astype(np.int64)


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables of the same columns one below the other, whatever width their numbers have."""
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


def footers(
    files: Sequence[StoredFile], episode: Sequence[str], *, skips: bool = False
) -> tuple[StoredFiles, list[Footer]]:
    """Read the ends of all files, several at a time; `skips`: some of them may be damaged."""
    stored = StoredFiles(tuple(files), whole=whole_keys(files), skips=skips)
    with ThreadPoolExecutor(min(_READERS, len(files))) as readers:
        found = list(
            readers.map(lambda number: footer_of(stored, number, episode), range(len(files)))
        )
    return stored, found


def pieces_of(
    stored: StoredFiles,
    ends: Sequence[Footer],
    episode: Sequence[str],
    *,
    across_files: bool,
    remedy: str,
) -> Pieces:
    """Put row groups together, and say where an episode may go on in the next piece.

    Episodes go on from file to file only if `across_files`; otherwise each file has its own.
    """
    blocks: list[Block] = []
    bounds: list[Bounds | None] = []
    cuts: list[int] = []
    for number, end in enumerate(ends):
        first, together = 0, PIECE_ROWS
        for group, count in enumerate(end.groups):
            if count:
                if together + count > PIECE_ROWS:
                    cuts.append(len(blocks))
                    together = 0
                together += count
                blocks.append(Block(number, group, first, count))
                bounds.append(end.bounds[group])
            first += count
        if end.is_damaged:  # a piece of its own, in which an episode may begin or end
            cuts.append(len(blocks))
            blocks.append(Block(number, 0, 0, 0))
            bounds.append(_bounds_by_place(stored, number, ends, episode))
    if not any(block.rows for block in blocks):
        raise TraceError(f"{stored.files[0].name} holds no traces: the table has no rows")
    goes_on = tuple(
        bool(episode)
        and cut > 0
        and (across_files or blocks[cut].file == blocks[cut - 1].file)
        and not _apart(bounds[cut - 1], bounds[cut])
        for cut in cuts
    )
    pieces = Pieces(stored, tuple(blocks), (*cuts, len(blocks)), tuple(episode), goes_on, remedy)
    scopes: dict[int, list[int]] = {}
    for number, cut in enumerate(cuts):
        if blocks[cut].rows:
            scopes.setdefault(0 if across_files else blocks[cut].file, []).append(number)
    for scope in scopes.values() if episode else ():
        around = [_around(bounds[pieces.cuts[one] : pieces.cuts[one + 1]]) for one in scope]
        if not _in_order(around):
            pieces.check_together(scope)
    return pieces


class _Beyond(NamedTuple):
    """A value before all others, or after them."""

    before: bool

    def __lt__(self, other: Any) -> bool:
        return self.before and self != other

    def __gt__(self, other: Any) -> bool:
        return not self.before and self != other


def _bounds_by_place(
    stored: StoredFiles, number: int, ends: Sequence[Footer], episode: Sequence[str]
) -> Bounds | None:
    """Return what is known of the episodes of a file that cannot be read: what its path says."""
    in_files = {name for end in ends for name in end.schema.names}
    told = {
        name: value
        for name, value in stored.constants(number).items()
        if name not in in_files and value is not None
    }
    if not told.keys() & set(episode):
        return None
    least, most = (tuple(told.get(name, _Beyond(end)) for name in episode) for end in (True, False))
    return least, most


def _apart(one: Bounds | None, other: Bounds | None) -> bool:
    """Whether two blocks certainly share no episode."""
    if one is None or other is None:
        return False
    try:
        return one[1] < other[0] or other[1] < one[0]
    except TypeError:
        return False


def _around(bounds: Sequence[Bounds | None]) -> Bounds | None:
    """Return the bounds of all blocks of a piece together."""
    known = [one for one in bounds if one is not None]
    if len(known) < len(bounds):
        return None
    try:
        return min(one[0] for one in known), max(one[1] for one in known)
    except TypeError:
        return None


def _in_order(bounds: Sequence[Bounds | None]) -> bool:
    """Whether pieces certainly share no episode but, at most, one with a neighbour.

    >>> _in_order([((1,), (4,)), ((4,), (6,)), ((9,), (9,))])
    True
    >>> _in_order([((1,), (4,)), ((9,), (9,)), ((4,), (6,))])
    False
    """
    if len(bounds) < 2:
        return True
    known = [(one, number) for number, one in enumerate(bounds) if one is not None]
    try:
        ordered = sorted(known)
    except TypeError:
        return False
    return len(known) == len(bounds) and all(
        one[1] < other[0] or (one[1] == other[0] and abs(first - second) == 1)
        for (one, first), (other, second) in pairwise(ordered)
    )
