"""Stored files → shards of whole episodes that can be read alone, in any order and process.

An episode belongs to the shard with its first row. Its rows in later shards are read with it,
and those shards leave them out. Rows of one episode in several shards have to be consecutive:
otherwise they are refused, never cut.

A shard that cannot be read has no traces. An episode that begins or continues there may lack rows,
so it is skipped in the shards beside it as well.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent._util.files import without_secrets
from resolvent._util.records import ByValue
from resolvent._util.text import visible
from resolvent.errors import DamagedFile, TraceError
from resolvent.traces.io.arrow import distinct
from resolvent.traces.scan.footer import Episode
from resolvent.traces.scan.storage import RowGroup, StoredFiles
from resolvent.traces.source import ShardFacts, SkippedRows
from resolvent.traces.vocabulary import distinct_pairs

_FIRST_ROWS = 1 << 12  # number of rows that are read first to find where an episode ends in a shard

_FILE, _ROWS = RowGroup._fields.index("file"), RowGroup._fields.index("rows")
_NO_FACTS = ShardFacts()
Span = tuple[str, int, int]  # the name of a file, a row of it, and a number of rows from there on


@dataclass(frozen=True)
class Rows:
    """Rows of a shard and their locations, after `leading` rows of an earlier shard's episode.

    `kept` are the numbers of the rows among those of the spans; None if these are all rows.
    """

    table: pa.Table
    spans: tuple[Span, ...] = ()
    leading: int | None = None
    skipped: SkippedRows | None = None
    kept: NDArray[np.int64] | None = None

    def location(self, row: int) -> str:
        """Return the name of a row in errors."""
        if self.kept is not None:
            row = int(self.kept[row])
        for name, first, count in self.spans:
            if row < count:
                return f"{name}, row {first + row}"
            row -= count
        raise IndexError(row)


@dataclass(frozen=True, eq=False)
class StoredShards(ByValue):
    """Stored files, split into shards.

    Attributes:
        row_groups: Their row groups, in order, without empty ones: a row for each `RowGroup`.
        starts: Index of the first row group of each shard, and the number of row groups.
        continues: Whether an episode of the shard before may continue in a shard.
        episode: The columns that identify episodes.
        remedy: Advice in errors about rows of an episode that are not consecutive.
        boundaries: The only episode that a shard may share with the one before it, by shard, where
            footers determine it.
        leading: Number of leading rows by shard, where these were found at opening.
    """

    stored: StoredFiles
    row_groups: NDArray[np.int64]
    starts: NDArray[np.int64]
    continues: NDArray[np.bool_]
    episode: tuple[str, ...]
    remedy: str
    skips: bool = False
    boundaries: Mapping[int, Episode] = field(default_factory=dict)
    leading: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def rows(self) -> int:
        """Number of rows of all shards."""
        return int(self.row_groups[:, _ROWS].sum())

    def name(self, shard: int) -> str:
        """Return the file of a shard, with its row groups if the file has several shards."""
        row_groups = self.row_groups_of(shard)
        file, first, last = row_groups[0].file, row_groups[0].group, row_groups[-1].group
        name = self.stored.files[file].name
        start, stop = self.starts[shard : shard + 2]
        of_file = self.row_groups[max(start - 1, 0) : stop + 1, _FILE] == file
        if np.count_nonzero(of_file) == len(row_groups):
            return name
        return f"{name}, row group {first}" + (f" to {last}" if last > first else "")

    def row_groups_of(self, shard: int) -> list[RowGroup]:
        """Return the row groups of a shard."""
        rows = self.row_groups[self.starts[shard] : self.starts[shard + 1]].tolist()
        return list(map(RowGroup._make, rows))

    def rows_in(self, shard: int) -> int:
        """Return the number of rows of a shard."""
        return sum(row_group.rows for row_group in self.row_groups_of(shard))

    def fingerprint(self, shard: int) -> tuple[Any, ...]:
        """Return all that the rows of a shard depend on: shards that its episodes may reach."""
        chain = int(np.searchsorted(self._chains, shard, side="right")) - 1
        first, stop = self._chains[chain : chain + 2].tolist()
        if first not in self._chain_digests:
            digest = hashlib.sha256()
            for member in range(first, stop):
                row_groups = self.row_groups_of(member)
                number = row_groups[0].file
                file, state = self.stored.files[number], self.stored.fingerprints[number]
                parts = without_secrets(file.root or ""), file.path, state, row_groups
                digest.update(repr(parts).encode())
            self._chain_digests[first] = digest.hexdigest()
        keys = sorted(self.stored.integer_keys)
        return self._chain_digests[first], shard - first, self.episode, keys

    @cached_property
    def _chains(self) -> NDArray[np.int64]:
        """The first shard of each chain of shards that may share episodes, and their number."""
        return np.append(np.flatnonzero(~self.continues), len(self))

    @cached_property
    def _chain_digests(self) -> dict[int, str]:
        """The digests of chains that were computed so far, by their first shards."""
        return {}

    # Reading.

    def read(
        self,
        shard: int,
        columns: Sequence[str],
        facts: Mapping[int, ShardFacts] = MappingProxyType({}),
    ) -> Rows:
        """Read columns of all episodes that begin in a shard; there may be none.

        With the facts of shards that were read before, their episodes are not compared again.
        """
        rows, row_groups = self.rows_in(shard), self.row_groups_of(shard)
        skipped, leading = facts.get(shard, _NO_FACTS).skipped, self._known_leading(shard, facts)
        is_readable = not self.skips or (shard in facts and skipped is None)
        if (skipped and skipped.whole) or (is_readable and leading == rows > 0):
            table = pa.table({name: pa.nulls(0) for name in columns})
            return Rows(table, leading=leading, skipped=skipped)
        table = self.stored.read(row_groups, columns)
        if skipped and skipped.first:
            leading = 0
        elif leading is None:
            leading = self._leading_rows(shard, table)
        if leading == rows:
            return Rows(table.slice(0, 0), leading=leading, skipped=skipped)
        parts = [table.slice(leading)]
        spans = [self._span(row_groups[0], leading, rows - leading)]
        if not (skipped and skipped.last):
            for following, continued in self._continuations(shard, table, facts):
                after = _first_row_groups(self.row_groups_of(following), continued)
                parts.append(self.stored.read(after, columns, continued))
                spans.append(self._span(after[0], 0, continued))
        result = Rows(joined(parts), tuple(spans), leading, skipped)
        return result if skipped is None else self._without_skipped(result, skipped)

    def _known_leading(self, shard: int, facts: Mapping[int, ShardFacts]) -> int | None:
        leading = facts.get(shard, _NO_FACTS).leading_rows
        return leading if leading is not None else self.leading.get(shard)

    def read_readable(self, shard: int, columns: Sequence[str]) -> Rows:
        """Read a shard without episodes that may reach a shard that cannot be read."""
        try:
            return self.read(shard, columns)
        except DamagedFile as error:
            damage = SkippedRows(self.name(shard), str(error))
        for first, last in ((True, False), (False, True), (True, True)):
            skipped = replace(damage, first=first, last=last)
            with suppress(DamagedFile):
                return self.read(shard, columns, {shard: ShardFacts(skipped)})
        skipped = replace(damage, rows=self.rows_in(shard) or None, whole=True)
        return self.read(shard, columns, {shard: ShardFacts(skipped)})

    def _without_skipped(self, rows: Rows, skipped: SkippedRows) -> Rows:
        """Return rows without the first or last episode, or both."""
        codes = self._episode_codes([rows.table])
        is_left_out = (skipped.first & (codes == codes[0])) | (skipped.last & (codes == codes[-1]))
        kept = np.flatnonzero(~is_left_out)
        return replace(rows, table=rows.table.take(kept), kept=kept)

    def _continues(self, shard: int) -> bool:
        return shard < len(self) and bool(self.continues[shard])

    def _leading_rows(self, shard: int, table: pa.Table) -> int:
        """Return the number of leading rows of an episode that began in an earlier shard.

        Raises errors as `leading_rows` does.
        """
        leading = 0
        if self._continues(shard):
            same = self._is_of_boundary_episode(shard, table)
            leading = -1 if same is None else _run_length(same, True)
            if same is None or np.any(same[leading:]):
                leading = self.leading_rows([shard - 1, shard])[shard]
        if self._continues(shard + 1):
            # An episode that the next shard may share has to be the last one here.
            same = self._is_of_boundary_episode(shard + 1, table)
            if same is not None and not same[-1] and np.any(same):
                self.leading_rows([shard, shard + 1])
        return leading

    def _is_of_boundary_episode(self, shard: int, table: pa.Table) -> NDArray[np.bool_] | None:
        """Return the rows of the only episode that a shard may share with the one before."""
        episode = self.boundaries.get(shard)
        if episode is None:
            return None
        keys = table.select(list(self.episode))
        if len(episode) == 1 and pa.types.is_integer(keys[0].type) and not keys[0].null_count:
            return np.asarray(keys[0].to_numpy() == episode[0])
        row = [
            pa.array([value], dtype.value_type).dictionary_encode()
            if pa.types.is_dictionary(dtype)
            else pa.array([value], dtype)
            for value, dtype in zip(episode, keys.schema.types, strict=True)
        ]
        codes = self._episode_codes([pa.table(row, names=keys.column_names), keys])
        return np.asarray(codes[1:] == codes[0])

    def _continuations(
        self, shard: int, table: pa.Table, facts: Mapping[int, ShardFacts]
    ) -> Iterator[tuple[int, int]]:
        """Yield the shards that continue the last episode, with its number of rows there."""
        last = table.slice(table.num_rows - 1)
        while self._continues(shard := shard + 1):
            continued = self._known_leading(shard, facts)
            if continued is None:
                continued = self._continued_rows(last, shard)
            if continued:
                yield shard, continued
            if continued < self.rows_in(shard):
                return

    def _continued_rows(self, last: pa.Table, shard: int) -> int:
        """Return the number of leading rows of an episode in a shard, reading few rows."""
        row_groups, rows, first = self.row_groups_of(shard), self.rows_in(shard), _FIRST_ROWS
        while True:
            first = min(first, rows)
            keys = self.stored.read(_first_row_groups(row_groups, first), self.episode, first)
            codes = self._episode_codes([last, keys])
            length = _run_length(codes[1:], codes[0])
            if length < first or first == rows:
                return length
            first *= 16

    def _episode_codes(self, tables: Sequence[pa.Table]) -> NDArray[np.int64]:
        """Return a code for each row of some tables, the same for rows of one episode."""
        names = list(self.episode)
        table = joined([table.select(names) for table in tables])
        if len(names) == 1 and pa.types.is_integer(table[0].type) and not table[0].null_count:
            return np.asarray(table[0].to_numpy())
        values, codes = distinct(table[0])
        count = len(values)
        for name in names[1:]:
            values, more = distinct(table[name])
            pairs, codes = distinct_pairs(codes, more, count, len(values))
            count = len(pairs)
        return codes.astype(np.int64)

    def _span(self, row_group: RowGroup, skipped: int, rows: int) -> Span:
        return self.stored.files[row_group.file].name, row_group.first + skipped, rows

    # Refusing episodes whose rows are not consecutive.

    def leading_rows(self, shards: Sequence[int], *, skips_damaged: bool = False) -> dict[int, int]:
        """Return the number of leading rows by shard that belong to an episode of the one before.

        Reads the columns that identify episodes, and keeps a hash of each. Raises `TraceError` when
        rows of an episode are not consecutive, and `DamagedFile` unless `skips_damaged`.
        """
        leading: dict[int, int] = {}
        hashes: list[NDArray[np.int64]] = []
        last: pa.Table | None = None
        last_shard = -1
        for shard in shards:
            try:
                keys = self._keys(shard)
            except DamagedFile:  # episodes that continue there are skipped when they are read
                if not skips_damaged:
                    raise
                hashes.append(np.empty(0, np.int64))
                continue
            before = 0
            codes = self._episode_codes([keys])
            if last is not None:
                both = self._episode_codes([last, keys])
                codes, before = both[1:], _run_length(both[1:], both[0])
                if np.any(codes[before:] == both[0]):
                    self._refuse_scattered(last_shard, shard)
            if last_shard == shard - 1 and self._continues(shard):
                leading[shard] = before
            _, firsts = np.unique(codes[before:], return_index=True)
            hashes.append(_hashes(keys.take(firsts + before)))
            last, last_shard = keys.slice(keys.num_rows - 1), shard
        for earlier, later in _repeats(hashes):
            self._refuse_scattered(shards[earlier], shards[later])
        return leading

    def _keys(self, shard: int) -> pa.Table:
        return self.stored.read(self.row_groups_of(shard), self.episode)

    def _refuse_scattered(self, earlier: int, later: int) -> None:
        """Refuse an episode of two shards; none if only the hashes of different ones are equal.

        Rows at the end of the first shard and the beginning of the next are not scattered.
        """
        tables = [self._keys(earlier), self._keys(later)]
        codes = self._episode_codes(tables)
        before, after = np.split(codes, [tables[0].num_rows])
        start = _run_length(after, before[-1]) if later == earlier + 1 else 0
        if not np.any(shared := np.isin(after[start:], before)):
            return
        row = start + int(np.argmax(shared))
        spans = (
            self._span(self.row_groups_of(earlier)[0], int(np.argmax(before == after[row])), 1),
            self._span(self.row_groups_of(later)[0], row, 1),
        )
        named = " and ".join(f"{name}, row {row}" for name, row, _ in sorted(spans))
        raise TraceError(
            f"rows of one episode (by `{', '.join(map(visible, self.episode))}`) are not "
            f"consecutive, at {named}, with rows of another episode between them: {self.remedy}"
        )


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables of the same columns, whose integers may differ in width."""
    if len(tables) == 1:
        return tables[0]
    some = [table for table in tables if table.num_rows] or tables[:1]
    try:
        return pa.concat_tables(some, promote_options="permissive")
    except pa.ArrowException:  # codes of a dictionary beside plain texts
        plain = []
        for table in some:
            dtypes = [
                dtype.value_type if pa.types.is_dictionary(dtype) else dtype
                for dtype in table.schema.types
            ]
            schema = pa.schema(zip(table.column_names, dtypes, strict=True))
            plain.append(table.cast(schema))
        return pa.concat_tables(plain, promote_options="permissive")


def _run_length(codes: NDArray[Any], code: Any) -> int:
    """Return the number of leading codes that equal `code`."""
    differs = codes != code
    return int(np.argmax(differs)) if differs.any() else len(codes)


def _first_row_groups(row_groups: Sequence[RowGroup], rows: int) -> Sequence[RowGroup]:
    """Return the first row groups that together have at least `rows` rows."""
    ends = np.cumsum([row_group.rows for row_group in row_groups])
    return row_groups[: int(np.searchsorted(ends, rows)) + 1]


def _hashes(keys: pa.Table) -> NDArray[np.int64]:
    """Return a hash for each row."""
    if keys.num_columns == 1 and pa.types.is_integer(keys.schema.types[0]):
        return np.asarray(keys.column(0).cast(pa.int64(), safe=False).to_numpy())
    rows = zip(*(column.to_pylist() for column in keys.columns), strict=True)
    return np.fromiter(map(hash, rows), np.int64, keys.num_rows)


def _repeats(numbers: Sequence[NDArray[np.int64]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of arrays that share a number, one for each shared number."""
    ends = np.cumsum(list(map(len, numbers)))
    together = np.concatenate(numbers)
    order = np.argsort(together, kind="stable")
    for at in np.flatnonzero(np.diff(together[order]) == 0).tolist():
        first, second = np.searchsorted(ends, order[at : at + 2], side="right").tolist()
        yield first, second
