"""Blocks of rows → pieces that can be read in any order, each with whole episodes.

An episode belongs to the piece in which it begins. Where it goes on in the next one, its rows
are read from there as well, and that piece leaves them out. Rows of one episode that stand in
several pieces have to follow each other: otherwise they are refused, never cut.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent._util.storage import without_secrets
from resolvent.by_value import ByValue
from resolvent.errors import DamagedFile, TraceError
from resolvent.traces.scan.episodes import (
    Bounds,
    Episode,
    are_apart,
    are_in_order,
    bounds_around,
    episode_codes,
    hashes,
    joined,
    repeats,
    rows_of,
    run_of,
    touching,
)
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.packed import PackedBlocks, PackedFiles, PackedSeals
from resolvent.traces.scan.row_groups import (
    Block,
    Footer,
    StoredFiles,
    footer_of,
    whole_keys,
)
from resolvent.traces.source import Arrangement, Gap
from resolvent.wording import visible

SHARD_ROWS = 1 << 20
"""Row groups are read together as long as they have no more rows than this."""

_READERS = 8
_READERS_ELSEWHERE = 64
"""Files whose ends are read at a time, where each takes a while to answer."""
_NOTHING_KNOWN: Mapping[int, Arrangement] = MappingProxyType({})

_LOOKED_AT = 1 << 12
"""Rows of a piece that are looked at first to find out how far an episode goes on there."""


class Rows(NamedTuple):
    """Rows that were read, and where they stand: (file's name, first row there, count).

    `leading` is the number of rows of the shard before them, of an episode that began earlier.
    """

    table: pa.Table
    spans: tuple[tuple[str, int, int], ...]
    leading: int = 0

    def place(self, row: int) -> str:
        """Name a row as an error would."""
        for name, first, count in self.spans:
            if row < count:
                return f"{name}, row {first + row}"
            row -= count
        raise IndexError(row)


@dataclass(frozen=True, eq=False)
class Pieces(ByValue):
    """Files in pieces.

    Attributes:
        stored: The files.
        blocks: Their row groups, in order, without empty ones.
        cuts: Where each piece begins among them, and where the last one ends.
        episode: The columns that tell episodes apart.
        goes_on: Whether an episode may go on in a piece from the one before it.
        remedy: What to do where the rows of an episode do not follow each other.
        shared: The only episode that a piece may share with the one before it, where footers
            tell it.
        fronts: How many rows at the front of a piece go on from the one before it, by its number,
            where that was found at opening.
    """

    stored: StoredFiles
    blocks: PackedBlocks
    cuts: NDArray[np.int64]
    episode: tuple[str, ...]
    goes_on: NDArray[np.bool_]
    remedy: str
    shared: tuple[Episode | None, ...] = ()
    fronts: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return self.blocks.rows

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

    def rows_in(self, number: int) -> int:
        """Return the number of rows of a shard."""
        return sum(block.rows for block in self._blocks(number))

    def seal(self, number: int) -> tuple[Any, ...]:
        """Return all that the rows of a piece depend on, as plain data."""
        before = self._own_seal(number - 1) if self.goes_on[number] else None
        return before, self._seal_from(number), self.episode, sorted(self.stored.whole)

    def _own_seal(self, number: int) -> str:
        """Return a digest of which file a piece is of, and which row groups of it."""
        blocks = self._blocks(number)
        file = self.stored.files[blocks[0].file]
        seal = self.stored.seals[blocks[0].file]
        return _digest(without_secrets(file.root or ""), file.path, seal, blocks)

    def _seal_from(self, number: int) -> str:
        """Return a digest of a piece and of all in which its last episode may go on."""
        if number not in self._seals_from:
            # Neighbours are asked for next: those that go on from each other are done together.
            after = number + 1
            while self._goes_on(after) and after not in self._seals_from:
                after += 1
            following = self._seals_from[after] if self._goes_on(after) else None
            for one in reversed(range(number, after)):
                following = self._seals_from[one] = _digest(self._own_seal(one), following)
        return self._seals_from[number]

    @cached_property
    def _seals_from(self) -> dict[int, str]:
        return {}

    def read(
        self,
        number: int,
        columns: Sequence[str],
        known: Mapping[int, Arrangement] = _NOTHING_KNOWN,
    ) -> Rows:
        """Read the columns of all episodes that begin in a piece; there may be none.

        `known` is how the rows of pieces stand that were read before: nobody looks again at what
        these share with others.
        """
        blocks = self._blocks(number)
        rows = sum(block.rows for block in blocks)
        front = self._known_front(number, known)
        if front == rows > 0 and not self.stored.skips:  # an episode that began before is all of it
            return Rows(pa.table({name: pa.nulls(0) for name in columns}), (), front)
        table = self.stored.read(blocks, columns)
        if front is None:
            front = self._front(number, table)
        if front == rows:
            return Rows(table.slice(0, 0), (), front)
        parts, spans = [table.slice(front)], [self._span(blocks[0], front, rows - front)]
        for following, taken in self._going_on(number, table, known):
            after = self._blocks(following)
            parts.append(self.stored.read(_holding(after, taken), columns, taken))
            spans.append(self._span(after[0], 0, taken))
        return Rows(joined(parts), tuple(spans), front)

    def _known_front(self, number: int, known: Mapping[int, Arrangement]) -> int | None:
        if number in known:
            return known[number].leading_rows
        return self.fronts.get(number) if self.goes_on[number] else None

    def _goes_on(self, number: int) -> bool:
        return number < len(self) and bool(self.goes_on[number])

    def _front(self, number: int, table: pa.Table) -> int:
        """Return how many rows of a piece come first that go on from the one before it.

        Raises:
            TraceError: when it shares an episode with one beside it whose rows stand apart.
        """
        front = 0
        if self._goes_on(number):
            same = self._is_shared(number, table)
            front = -1 if same is None else run_of(same, True)
            if same is None or np.any(same[front:]):
                front = self._front_by_keys(number)
        if self._goes_on(number + 1):
            # An episode that the next piece may have as well has to be the last one here.
            same = self._is_shared(number + 1, table)
            if same is not None and not same[-1] and np.any(same):
                self._front_by_keys(number + 1)
        return front

    def _is_shared(self, number: int, table: pa.Table) -> NDArray[np.bool_] | None:
        """Return which rows are of the one episode that a piece may share with that before it."""
        episode = self.shared[number] if self.shared else None
        if episode is None:
            return None
        keys = table.select(list(self.episode))
        return rows_of(keys, episode)

    def _front_by_keys(self, number: int) -> int:
        """Return what `_front` does, from the episodes of a piece and of the one before it."""
        before, blocks = self._blocks(number - 1), self._blocks(number)
        keys = [self._keys(before), self._keys(blocks)]
        earlier, own = np.split(episode_codes(keys, self.episode), [keys[0].num_rows])
        front = run_of(own, earlier[-1])
        self._refuse_shared(own[front:], earlier, (blocks[0], front), (before[0], 0))
        return front

    def _going_on(
        self, number: int, table: pa.Table, known: Mapping[int, Arrangement]
    ) -> Iterator[tuple[int, int]]:
        """Find the pieces in which the last episode of one goes on, and with how many rows."""
        last = table.select(list(self.episode)).slice(table.num_rows - 1)
        while self._goes_on(number := number + 1):
            taken = self._known_front(number, known)
            if taken is None:
                taken = self._run_of(last, number)
            if taken:
                yield number, taken
            if taken < sum(block.rows for block in self._blocks(number)):
                return

    def _run_of(self, episode: pa.Table, number: int) -> int:
        """Return how many rows of an episode a piece begins with, reading as few as possible."""
        blocks = self._blocks(number)
        rows, looked_at = sum(block.rows for block in blocks), _LOOKED_AT
        while True:
            looked_at = min(looked_at, rows)
            keys = self.stored.read(_holding(blocks, looked_at), self.episode, looked_at)
            codes = episode_codes([episode, keys], self.episode)
            found = run_of(codes[1:], codes[0])
            if found < looked_at or looked_at == rows:
                return found
            looked_at *= 16

    def _keys(self, blocks: Sequence[Block]) -> pa.Table:
        """Read the columns that tell the episodes of some blocks of a file apart."""
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

    def check_together(self, numbers: Sequence[int]) -> dict[int, int]:
        """Refuse an episode whose rows in some pieces, which follow each other, do not.

        It reads the columns that tell episodes apart, and keeps a number for each episode. What it
        returns are `fronts`.
        """
        fronts: dict[int, int] = {}
        begun: list[NDArray[np.int64]] = []
        last: pa.Table | None = None
        last_of = -1
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
                codes, skipped = both[1:], run_of(both[1:], both[0])
                self._refuse_shared(codes[skipped:], both[:1], (block, skipped), at_end)
            if last_of == number - 1 and self._goes_on(number):
                fronts[number] = skipped
            _, firsts = np.unique(codes[skipped:], return_index=True)
            begun.append(hashes(keys.take(firsts + skipped)))
            last, last_of = keys.slice(keys.num_rows - 1), number
            end = self._blocks(number)[-1]
            at_end = end, end.rows - 1
        for found, number in repeats(begun):
            self._refuse_same(numbers[found], numbers[number])
        return fronts

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


def footers(
    files: Sequence[StoredFile], episode: Sequence[str], *, skips: bool = False
) -> tuple[StoredFiles, list[Footer]]:
    """Read the ends of all files, several at a time; `skips`: some of them may be damaged."""
    stored = StoredFiles(tuple(files), whole=whole_keys(files), skips=skips)
    most = _READERS if all(file.root is None for file in files) else _READERS_ELSEWHERE
    with ThreadPoolExecutor(min(most, len(files))) as readers:
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
        first, together = 0, SHARD_ROWS
        for group, count in enumerate(end.groups):
            if count:
                if together + count > SHARD_ROWS:
                    cuts.append(len(blocks))
                    together = 0
                together += count
                blocks.append(Block(number, group, first, count))
                bounds.append(end.bounds[group])
            first += count
        if end.is_damaged:  # a piece of its own, in which an episode may begin or end
            cuts.append(len(blocks))
            blocks.append(Block(number, 0, 0, 0))
            bounds.append(bounds_by_place(stored, number, ends, episode))
    if not any(block.rows for block in blocks):
        raise TraceError(f"{stored.files[0].name} holds no traces: the table has no rows")
    around = [bounds_around(bounds[one:other]) for one, other in pairwise((*cuts, len(blocks)))]
    goes_on = tuple(
        bool(episode)
        and number > 0
        and (across_files or blocks[cut].file == blocks[cut - 1].file)
        and not are_apart(around[number - 1], around[number])
        for number, cut in enumerate(cuts)
    )
    pieces = Pieces(
        replace(stored, files=PackedFiles.of(stored.files), seals=PackedSeals.of(stored.seals)),
        PackedBlocks.of(blocks),
        np.array([*cuts, len(blocks)], np.int64),
        tuple(episode),
        np.array(goes_on, bool),
        remedy,
    )
    scopes: dict[int, list[int]] = {}
    for number, cut in enumerate(cuts):
        if blocks[cut].rows:
            scopes.setdefault(0 if across_files else blocks[cut].file, []).append(number)
    shared: list[Episode | None] = [None] * len(pieces)
    fronts: dict[int, int] = {}
    for scope in scopes.values() if episode else ():
        if not are_in_order([around[number] for number in scope]):
            fronts |= pieces.check_together(scope)
        elif not stored.skips:  # of damaged files nobody can tell what they share
            for number in scope:
                if goes_on[number]:
                    shared[number] = touching(around[number - 1], around[number])
    return replace(pieces, shared=tuple(shared) if any(shared) else (), fronts=fronts)


class _Beyond(NamedTuple):
    """A value before all others, or after them."""

    before: bool

    def __lt__(self, other: Any) -> bool:
        return self.before and self != other

    def __gt__(self, other: Any) -> bool:
        return not self.before and self != other


def bounds_by_place(
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


def read_or_find(pieces: Pieces, number: int, columns: Sequence[str]) -> tuple[Rows, Gap | None]:
    """Read a piece as far as it can be read, and say what had to be left out."""
    try:
        return pieces.read(number, columns), None
    except DamagedFile as error:
        why = str(error)
    name, blocks = pieces.name(number), pieces._blocks(number)
    if not _is_readable(pieces, number, columns):
        rows = sum(block.rows for block in blocks) or None
        return _no_rows(columns), Gap(name, rows, whole=True, why=why)
    began_before = pieces.goes_on[number]
    gap = Gap(name, why=why)
    if began_before and not _is_readable(pieces, number - 1, pieces.episode):
        gap = replace(gap, first=True)
        try:
            return read_without(pieces, number, columns, gap), gap
        except DamagedFile:
            pass
    gap = replace(gap, last=True)
    return read_without(pieces, number, columns, gap), gap


def read_without(pieces: Pieces, number: int, columns: Sequence[str], gap: Gap) -> Rows:
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
        pieces.stored.read(pieces._blocks(number), columns)
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
