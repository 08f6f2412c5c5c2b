"""Split stored files into shards of whole episodes that can be read in any order.

An episode belongs to the shard with its first row. Its rows in later shards are read with it,
and those shards leave them out. Rows of one episode in several shards have to be consecutive:
otherwise they are refused, never cut.
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

from resolvent._util.records import ByValue
from resolvent._util.storage import without_secrets
from resolvent._util.text import visible
from resolvent.errors import DamagedFile, TraceError
from resolvent.traces.scan.episodes import (
    Bounds,
    Episode,
    are_disjoint,
    are_in_sequence,
    boundary_episode,
    common_bounds,
    episode_codes,
    hashes,
    joined,
    repeats,
    rows_of,
    run_length,
)
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.packed import PackedFiles, PackedFingerprints, PackedRowGroups
from resolvent.traces.scan.row_groups import (
    Footer,
    RowGroup,
    StoredFiles,
    footer_of,
    integer_keys,
)
from resolvent.traces.source import RowOrder

SHARD_ROWS = 1 << 20
"""Maximum number of rows of a shard that has several row groups."""

_READERS = 8
_READERS_ELSEWHERE = 64
"""Number of footers that are read at a time from storage that is slow to answer."""

_NO_ROW_ORDERS: Mapping[int, RowOrder] = MappingProxyType({})

_FIRST_ROWS = 1 << 12
"""Number of rows that are read first to find where an episode ends in a shard."""


class Rows(NamedTuple):
    """Rows of a shard and their locations.

    Attributes:
        table: The rows.
        spans: The file, first row there and number of rows of each part.
        leading: Number of rows of the shard before them, of an episode that began earlier.
    """

    table: pa.Table
    spans: tuple[tuple[str, int, int], ...]
    leading: int = 0

    def place(self, row: int) -> str:
        """Return the name of a row for errors."""
        for name, first, count in self.spans:
            if row < count:
                return f"{name}, row {first + row}"
            row -= count
        raise IndexError(row)


@dataclass(frozen=True, eq=False)
class StoredShards(ByValue):
    """Stored files, split into shards.

    Attributes:
        stored: The files.
        row_groups: Their row groups, in order, without empty ones.
        cuts: Index of the first row group of each shard, and the number of row groups.
        episode: The columns that identify episodes.
        continues: Whether an episode of the shard before may go on in a shard.
        remedy: Advice in errors about rows of an episode that are not consecutive.
        shared: The only episode that a shard may share with the one before it, where footers
            determine it.
        leading: Number of leading rows by shard, where these were found at opening.
    """

    stored: StoredFiles
    row_groups: PackedRowGroups
    cuts: NDArray[np.int64]
    episode: tuple[str, ...]
    continues: NDArray[np.bool_]
    remedy: str
    shared: tuple[Episode | None, ...] = ()
    leading: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @property
    def rows(self) -> int:
        """Number of rows of all shards."""
        return self.row_groups.rows

    def name(self, number: int) -> str:
        """Return the file of a shard, with its row groups if the file has several shards."""
        row_groups = self.row_groups_of(number)
        name = self.stored.files[row_groups[0].file].name
        first, last = row_groups[0].group, row_groups[-1].group
        is_only_shard = all(
            self.row_groups[near].file != row_groups[0].file
            for near in (self.cuts[number] - 1, self.cuts[number + 1])
            if 0 <= near < len(self.row_groups)
        )
        if is_only_shard:
            return name
        return f"{name}, row group {first}" + (f" to {last}" if last > first else "")

    def row_groups_of(self, number: int) -> tuple[RowGroup, ...]:
        """Return the row groups of a shard."""
        return self.row_groups[self.cuts[number] : self.cuts[number + 1]]

    def rows_in(self, number: int) -> int:
        """Return the number of rows of a shard."""
        return sum(row_group.rows for row_group in self.row_groups_of(number))

    def fingerprint(self, number: int) -> tuple[Any, ...]:
        """Return all that the rows of a shard depend on, as plain data."""
        before = self._own_fingerprint(number - 1) if self.continues[number] else None
        keys = sorted(self.stored.integer_keys)
        return before, self._fingerprint_from(number), self.episode, keys

    def _own_fingerprint(self, number: int) -> str:
        """Return a digest of the file and row groups of a shard."""
        row_groups = self.row_groups_of(number)
        file = self.stored.files[row_groups[0].file]
        fingerprint = self.stored.fingerprints[row_groups[0].file]
        return _digest(without_secrets(file.root or ""), file.path, fingerprint, row_groups)

    def _fingerprint_from(self, number: int) -> str:
        """Return a digest of a shard and of all shards that may continue its last episode."""
        if number not in self._fingerprints_from:
            # Neighbors are requested next: a chain of continued shards is computed at once.
            after = number + 1
            while self._continues(after) and after not in self._fingerprints_from:
                after += 1
            following = self._fingerprints_from[after] if self._continues(after) else None
            for shard in reversed(range(number, after)):
                following = _digest(self._own_fingerprint(shard), following)
                self._fingerprints_from[shard] = following
        return self._fingerprints_from[number]

    @cached_property
    def _fingerprints_from(self) -> dict[int, str]:
        return {}

    def read(
        self,
        number: int,
        columns: Sequence[str],
        row_orders: Mapping[int, RowOrder] = _NO_ROW_ORDERS,
    ) -> Rows:
        """Read columns of all episodes that begin in a shard; there may be none.

        With the row orders of shards that were read before, their episodes are not compared again.
        """
        row_groups, rows = self.row_groups_of(number), self.rows_in(number)
        leading_rows = self._cached_leading_rows(number, row_orders)
        # An episode that began earlier may be all of the shard.
        if leading_rows == rows > 0 and not self.stored.skips:
            return Rows(pa.table({name: pa.nulls(0) for name in columns}), (), leading_rows)
        table = self.stored.read(row_groups, columns)
        if leading_rows is None:
            leading_rows = self._leading_rows(number, table)
        if leading_rows == rows:
            return Rows(table.slice(0, 0), (), leading_rows)
        parts = [table.slice(leading_rows)]
        spans = [self._span(row_groups[0], leading_rows, rows - leading_rows)]
        for following, continued in self._continuations(number, table, row_orders):
            after = self.row_groups_of(following)
            parts.append(self.stored.read(_first_row_groups(after, continued), columns, continued))
            spans.append(self._span(after[0], 0, continued))
        return Rows(joined(parts), tuple(spans), leading_rows)

    def _cached_leading_rows(self, number: int, row_orders: Mapping[int, RowOrder]) -> int | None:
        if number in row_orders:
            return row_orders[number].leading_rows
        return self.leading.get(number) if self.continues[number] else None

    def _continues(self, number: int) -> bool:
        return number < len(self) and bool(self.continues[number])

    def _leading_rows(self, number: int, table: pa.Table) -> int:
        """Return the number of leading rows of an episode that began in an earlier shard.

        Raises:
            TraceError: when rows of an episode in neighboring shards are not consecutive.
        """
        leading_rows = 0
        if self._continues(number):
            same = self._is_of_boundary_episode(number, table)
            leading_rows = -1 if same is None else run_length(same, True)
            if same is None or np.any(same[leading_rows:]):
                leading_rows = self._leading_rows_by_keys(number)
        if self._continues(number + 1):
            # An episode that the next shard may share has to be the last one here.
            same = self._is_of_boundary_episode(number + 1, table)
            if same is not None and not same[-1] and np.any(same):
                self._leading_rows_by_keys(number + 1)
        return leading_rows

    def _is_of_boundary_episode(self, number: int, table: pa.Table) -> NDArray[np.bool_] | None:
        """Return the rows of the only episode that a shard may share with the one before."""
        episode = self.shared[number] if self.shared else None
        if episode is None:
            return None
        keys = table.select(list(self.episode))
        return rows_of(keys, episode)

    def _leading_rows_by_keys(self, number: int) -> int:
        """Return `_leading_rows` from the episodes of a shard and of the one before it."""
        before, row_groups = self.row_groups_of(number - 1), self.row_groups_of(number)
        keys = [self._keys(before), self._keys(row_groups)]
        earlier, own = np.split(episode_codes(keys, self.episode), [keys[0].num_rows])
        leading_rows = run_length(own, earlier[-1])
        self._refuse_split(
            own[leading_rows:], earlier, (row_groups[0], leading_rows), (before[0], 0)
        )
        return leading_rows

    def _continuations(
        self, number: int, table: pa.Table, row_orders: Mapping[int, RowOrder]
    ) -> Iterator[tuple[int, int]]:
        """Yield the shards that continue the last episode, with its number of rows there."""
        last = table.select(list(self.episode)).slice(table.num_rows - 1)
        while self._continues(number := number + 1):
            continued = self._cached_leading_rows(number, row_orders)
            if continued is None:
                continued = self._continued_rows(last, number)
            if continued:
                yield number, continued
            if continued < self.rows_in(number):
                return

    def _continued_rows(self, episode: pa.Table, number: int) -> int:
        """Return the number of leading rows of an episode in a shard, reading few rows."""
        row_groups = self.row_groups_of(number)
        rows, checked = self.rows_in(number), _FIRST_ROWS
        while True:
            checked = min(checked, rows)
            keys = self.stored.read(_first_row_groups(row_groups, checked), self.episode, checked)
            codes = episode_codes([episode, keys], self.episode)
            length = run_length(codes[1:], codes[0])
            if length < checked or checked == rows:
                return length
            checked *= 16

    def _keys(self, row_groups: Sequence[RowGroup]) -> pa.Table:
        """Read the columns that identify episodes, of row groups of one file."""
        return self.stored.read(row_groups, self.episode)

    def _span(self, row_group: RowGroup, skipped: int, rows: int) -> tuple[str, int, int]:
        return self.stored.files[row_group.file].name, row_group.first + skipped, rows

    def _refuse_split(
        self,
        here: NDArray[np.int64],
        there: NDArray[np.int64],
        here_at: tuple[RowGroup, int],
        there_at: tuple[RowGroup, int],
    ) -> None:
        """Refuse an episode with rows in two shards and rows of another between them."""
        if np.any(shared := np.isin(here, there)):
            row = int(np.argmax(shared))
            place = int(np.argmax(there == here[row]))
            raise self._not_contiguous(
                self._span(here_at[0], here_at[1] + row, 1),
                self._span(there_at[0], there_at[1] + place, 1),
            )

    def _not_contiguous(self, *spans: tuple[str, int, int]) -> TraceError:
        named = " and ".join(f"{name}, row {row}" for name, row, _ in sorted(spans))
        names = ", ".join(map(visible, self.episode))
        return TraceError(
            f"rows of one episode (by `{names}`) stand apart, at {named}, with rows of another "
            f"between them, so that they are not read together: {self.remedy}"
        )

    def check_contiguous(self, numbers: Sequence[int]) -> dict[int, int]:
        """Refuse an episode whose rows in consecutive shards are not consecutive.

        Reads the columns that identify episodes, keeps a hash of each episode, and returns the
        leading rows by shard.
        """
        leading: dict[int, int] = {}
        episode_hashes: list[NDArray[np.int64]] = []
        last: pa.Table | None = None
        last_of = -1
        at_end = self.row_groups_of(numbers[0])[0], 0
        for number in numbers:
            row_group = self.row_groups_of(number)[0]
            try:
                keys = self._keys(self.row_groups_of(number))
            except DamagedFile:  # episodes that go on there are skipped when read
                if not self.stored.skips:
                    raise
                episode_hashes.append(np.empty(0, np.int64))
                continue
            skipped = 0
            if last is None:
                codes = episode_codes([keys], self.episode)
            else:
                both = episode_codes([last, keys], self.episode)
                codes, skipped = both[1:], run_length(both[1:], both[0])
                self._refuse_split(codes[skipped:], both[:1], (row_group, skipped), at_end)
            if last_of == number - 1 and self._continues(number):
                leading[number] = skipped
            _, firsts = np.unique(codes[skipped:], return_index=True)
            episode_hashes.append(hashes(keys.take(firsts + skipped)))
            last, last_of = keys.slice(keys.num_rows - 1), number
            footer = self.row_groups_of(number)[-1]
            at_end = footer, footer.rows - 1
        for earlier, later in repeats(episode_hashes):
            self._refuse_repeated(numbers[earlier], numbers[later])
        return leading

    def _refuse_repeated(self, earlier: int, later: int) -> None:
        """Refuse an episode of two shards, unless only the hashes of different ones are equal."""
        first, second = self.row_groups_of(earlier), self.row_groups_of(later)
        keys = [self._keys(first), self._keys(second)]
        codes = episode_codes(keys, self.episode)
        length = keys[0].num_rows
        self._refuse_split(codes[length:], codes[:length], (second[0], 0), (first[0], 0))


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _first_row_groups(row_groups: Sequence[RowGroup], rows: int) -> Sequence[RowGroup]:
    """Return the first row groups that together have at least `rows` rows."""
    all_footers = np.cumsum([row_group.rows for row_group in row_groups])
    return row_groups[: int(np.searchsorted(all_footers, rows)) + 1]


def read_footers(
    files: Sequence[StoredFile], episode: Sequence[str], *, skips: bool = False
) -> tuple[StoredFiles, list[Footer]]:
    """Read the footers of all files, several at a time; with `skips` some may be damaged."""
    stored = StoredFiles(tuple(files), integer_keys=integer_keys(files), skips=skips)
    most = _READERS if all(file.root is None for file in files) else _READERS_ELSEWHERE
    with ThreadPoolExecutor(min(most, len(files))) as readers:
        all_footers = list(
            readers.map(lambda number: footer_of(stored, number, episode), range(len(files)))
        )
    return stored, all_footers


def split_into_shards(
    stored: StoredFiles,
    all_footers: Sequence[Footer],
    episode: Sequence[str],
    *,
    across_files: bool,
    remedy: str,
) -> StoredShards:
    """Group row groups into shards, and find where an episode may go on in the next shard.

    Episodes go on in the next file only if `across_files`.
    """
    row_groups: list[RowGroup] = []
    bounds: list[Bounds | None] = []
    cuts: list[int] = []
    for number, footer in enumerate(all_footers):
        first, together = 0, SHARD_ROWS
        for group, count in enumerate(footer.groups):
            if count:
                if together + count > SHARD_ROWS:
                    cuts.append(len(row_groups))
                    together = 0
                together += count
                row_groups.append(RowGroup(number, group, first, count))
                bounds.append(footer.bounds[group])
            first += count
        if footer.is_damaged:  # a shard of its own, where episodes may begin or end
            cuts.append(len(row_groups))
            row_groups.append(RowGroup(number, 0, 0, 0))
            bounds.append(bounds_by_path(stored, number, all_footers, episode))
    if not any(row_group.rows for row_group in row_groups):
        raise TraceError(f"{stored.files[0].name} holds no traces: the table has no rows")
    shard_bounds = [
        common_bounds(bounds[start:stop]) for start, stop in pairwise((*cuts, len(row_groups)))
    ]
    continues = tuple(
        bool(episode)
        and number > 0
        and (across_files or row_groups[cut].file == row_groups[cut - 1].file)
        and not are_disjoint(shard_bounds[number - 1], shard_bounds[number])
        for number, cut in enumerate(cuts)
    )
    shards = StoredShards(
        replace(
            stored,
            files=PackedFiles.of(stored.files),
            fingerprints=PackedFingerprints.of(stored.fingerprints),
        ),
        PackedRowGroups.of(row_groups),
        np.array([*cuts, len(row_groups)], np.int64),
        tuple(episode),
        np.array(continues, bool),
        remedy,
    )
    scopes: dict[int, list[int]] = {}
    for number, cut in enumerate(cuts):
        if row_groups[cut].rows:
            scopes.setdefault(0 if across_files else row_groups[cut].file, []).append(number)
    shared: list[Episode | None] = [None] * len(shards)
    leading: dict[int, int] = {}
    for scope in scopes.values() if episode else ():
        if not are_in_sequence([shard_bounds[number] for number in scope]):
            leading |= shards.check_contiguous(scope)
        elif not stored.skips:  # episodes of damaged files are unknown
            for number in scope:
                if continues[number]:
                    shared[number] = boundary_episode(
                        shard_bounds[number - 1], shard_bounds[number]
                    )
    return replace(shards, shared=tuple(shared) if any(shared) else (), leading=leading)


class _Beyond(NamedTuple):
    """A bound before all values, or after them."""

    before: bool

    def __lt__(self, other: Any) -> bool:
        return self.before and self != other

    def __gt__(self, other: Any) -> bool:
        return not self.before and self != other


def bounds_by_path(
    stored: StoredFiles, number: int, all_footers: Sequence[Footer], episode: Sequence[str]
) -> Bounds | None:
    """Return bounds of the episodes of an unreadable file, from the keys in its path."""
    in_files = {name for footer in all_footers for name in footer.schema.names}
    constants = {
        name: value
        for name, value in stored.constants(number).items()
        if name not in in_files and value is not None
    }
    if not constants.keys() & set(episode):
        return None
    least, most = (
        tuple(constants.get(name, _Beyond(before)) for name in episode) for before in (True, False)
    )
    return least, most
