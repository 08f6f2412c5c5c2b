"""Which columns of a place's files hold what: rows of whole episodes → `TraceSet`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolvent.errors import DamagedFile, OptionError, TraceError, locating
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.files.parquet import own_columns, traces_of_own
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.row_groups import FILE_NAME, Footer, StoredFiles
from resolvent.traces.scan.shards import Pieces, Rows, footers, pieces_of
from resolvent.traces.tables.column_types import known_types
from resolvent.traces.tables.episodes import rows_in_order
from resolvent.traces.tables.roles import Roles, as_names
from resolvent.traces.tables.rows import traces_of_rows
from resolvent.traces.tables.sources import TableSource, without_views
from resolvent.traces.trace_set import TraceSet
from resolvent.wording import amount, visible

Warn = Callable[[str], None]


class Layout(Protocol):
    """What the columns of all files hold."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""

    def traces(self, rows: Rows, warn: Warn) -> tuple[TraceSet, bool]:
        """Make traces of what was read, and say whether it can be read `without_order` next time.

        That is so if rows are known to stand in order. `warn` is told what the traces leave out.
        """

    def without_order(self) -> "Layout":
        """Return a layout for rows in order, which does not read what they are ordered by."""


@dataclass(frozen=True)
class OwnLayout:
    """The columns of Parquet files that Resolvent writes; each file has episodes of its own.

    Attributes:
        columns: Those that are read.
        further: Those of them that are further columns of steps.
        constant: Those of these that have one value in a whole file.
    """

    columns: tuple[str, ...]
    further: tuple[str, ...]
    constant: tuple[str, ...] = ()

    def traces(self, rows: Rows, warn: Warn) -> tuple[TraceSet, bool]:
        """Make traces of what was read, of which nothing is left out."""
        if not rows.table.num_rows:
            rewards = [REWARD] if REWARD in self.columns else []
            return _no_traces([*rewards, *self.further]), False
        rows = rows._replace(table=without_views(rows.table))
        table = _blank_at_ends(rows.table, self.constant, [ACTION])
        counted = "step" in self.columns
        name = rows.spans[0][0]
        with known_types(name), locating(name):
            traces = traces_of_own(table, self.further)
            return traces, counted and rows_in_order(rows.table, ["episode"], ["step"])

    def without_order(self) -> "OwnLayout":
        """Return a layout for rows in order."""
        return replace(self, columns=tuple(name for name in self.columns if name != "step"))


@dataclass(frozen=True)
class NamedLayout:
    """Columns whose roles somebody named, as for `read_table` and `read_log`.

    Attributes:
        roles: Which columns hold what.
        moved_by_actions: Whether labels are the actions before them, as in a log.
        constant: Outputs that have one value in a whole file.
    """

    roles: Roles
    moved_by_actions: bool
    constant: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.roles.wanted

    def traces(self, rows: Rows, warn: Warn) -> tuple[TraceSet, bool]:
        """Make traces of what was read, as `read_table` does."""
        if not rows.table.num_rows:
            rewards = [REWARD] if self.roles.reward is not None else []
            return _no_traces([*rewards, *self.roles.column_of_output]), False
        of_steps = [name for name in self.roles.of_steps if name not in self.constant]
        table = _blank_at_ends(without_views(rows.table), self.constant, of_steps)
        source = _Read(list(self.columns), table.select, rows=rows)
        with known_types(rows.spans[0][0]):
            return traces_of_rows(source, table, self.roles, warn, self.moved_by_actions)

    def without_order(self) -> "NamedLayout":
        """Return a layout for rows in order."""
        return replace(self, roles=replace(self.roles, order=None))


@dataclass(frozen=True)
class _Read(TableSource):
    """Rows that were read, as a table that knows where they stand."""

    rows: Rows | None = None

    def place(self, row: int) -> str:
        """Name a row as an error would."""
        return super().place(row) if self.rows is None else self.rows.place(row)


def _no_traces(of_steps: Sequence[str]) -> TraceSet:
    """Return no traces, with columns as others of the place have."""
    nothing: tuple[Sequence[Any], Any] = (), np.empty(0, np.int32)
    columns = dict.fromkeys((OBSERVATION, LABEL, ACTION, *of_steps), nothing)
    return TraceSet.taking_over(columns, offsets=[0], terminated=[], truncated=[])


def _blank_at_ends(table: pa.Table, constant: Iterable[str], of_steps: Sequence[str]) -> pa.Table:
    """Take the one value of a file from rows that are no steps, for nothing else is there."""
    for name in constant:
        place = table.column_names.index(name)
        ends = [table[other].is_null() for other in of_steps]
        if not ends:
            continue
        is_end = ends[0]
        for further in ends[1:]:
            is_end = pc.and_(is_end, further)
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        blank = pc.if_else(is_end, pa.scalar(None, column.type), column)
        table = table.set_column(place, name, blank)
    return table


def own_pieces(
    files: Sequence[StoredFile], columns: Sequence[str], *, skips: bool = False
) -> tuple[Pieces, OwnLayout]:
    """Open files of traces, and check that they have the same columns.

    `skips`: those that are damaged are left out.
    """
    stored, ends = footers(files, ["episode"], skips=skips)
    wanted: dict[str, None] = {}
    further: Sequence[str] = ()
    first: list[str] | None = None
    constant: set[str] = set()
    for number, (file, end) in enumerate(zip(files, ends, strict=True)):
        if end.is_damaged:
            continue
        beside = stored.constants(number)
        with locating(file.name):
            read, further = own_columns(end.schema, columns, beside)
            of_steps = [name for name in (REWARD, *further) if name in read]
            if first is None:
                first, model = of_steps, file
            for name in {*first} ^ {*of_steps}:
                has, lacks = (file, model) if name in of_steps else (model, file)
                raise TraceError(
                    f"the columns are not those of {model.name}: {has.name} has "
                    f"`{visible(name)}`, and {lacks.name} has not; make them alike"
                )
        wanted |= dict.fromkeys(read)
        constant |= {name for name in further if name not in end.schema.names}
    layout = OwnLayout(tuple(wanted), tuple(further), tuple(sorted(constant)))
    stored = _checked(stored, ends, layout.columns, {REWARD, "terminated", "truncated"})
    pieces = pieces_of(
        stored,
        ends,
        ["episode"],
        across_files=False,
        remedy="sort the file by episode and step, or read it whole with read_traces",
    )
    return pieces, layout


def named_pieces(
    files: Sequence[StoredFile], layout: NamedLayout, *, skips: bool = False
) -> tuple[Pieces, NamedLayout]:
    """Open files of a table whose columns have roles, and check that all have these columns.

    `skips`: those that are damaged are left out.
    """
    roles = layout.roles
    episode = as_names(roles.episode)
    stored, ends = footers(files, episode, skips=skips)
    constant: set[str] = set()
    for number, (file, end) in enumerate(zip(files, ends, strict=True)):
        if end.is_damaged:
            continue
        beside = stored.constants(number)
        names = end.schema.names
        for name in layout.columns:
            if names.count(name) > 1:
                raise TraceError(
                    f"{file.name}: there are several columns `{visible(name)}`: rename all but one"
                )
            if name in names:
                continue
            if name not in beside:
                listed = [*names, *(key for key in beside if key != FILE_NAME)]
                raise TraceError(
                    f"{file.name}: there is no column `{visible(name)}`: there are "
                    f"{', '.join(map(visible, listed))}"
                )
            constant.add(name)
    outputs = [name for name in roles.column_of_output.values() if name in constant]
    numbers = {name for name in (roles.reward, roles.terminated, roles.truncated) if name}
    stored = _checked(stored, ends, layout.columns, numbers)
    pieces = pieces_of(
        stored,
        ends,
        episode,
        across_files=True,
        remedy="sort the rows by it before writing them, or, if each file counts its own episodes, "
        f"name {FILE_NAME} as part of the episode, too",
    )
    if not episode and len(pieces) > 1:
        raise OptionError(
            f"{pieces.name(0)} and {len(pieces) - 1:,} more pieces would be one episode: name the "
            f"column that tells episodes apart ({FILE_NAME} if each file is one)"
        )
    return pieces, replace(layout, constant=tuple(outputs))


def _checked(
    stored: StoredFiles, ends: Sequence[Footer], columns: Sequence[str], numbers: set[str]
) -> StoredFiles:
    """Return files that are known to be alike, sealed as they are now."""
    whole = [
        (file.name, end.schema)
        for file, end in zip(stored.files, ends, strict=True)
        if not end.is_damaged
    ]
    if not whole:
        raise DamagedFile(
            f"{stored.files[0].name}: nothing can be read of it, nor of any other of "
            f"{amount(len(ends), 'file')}: they look damaged; make them again"
        )
    schemas = [schema for _, schema in whole]
    check_alike([name for name, _ in whole], schemas, columns, numbers)
    texts = {
        name
        for name in columns
        if all(name in schema.names and _is_text(schema.field(name).type) for schema in schemas)
    }
    return replace(stored, seals=tuple(end.seal for end in ends), texts=frozenset(texts))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_alike(
    names: Sequence[str], schemas: Sequence[pa.Schema], columns: Sequence[str], numbers: set[str]
) -> None:
    """Refuse files of which one has a column of another kind than the first that has it.

    Integers of any width are of one kind, and so are texts; of columns in `numbers`, which are
    compared as numbers, floats and decimals too. A column without any value is of every kind.

    >>> one, other = pa.schema([("answer", pa.int64())]), pa.schema([("answer", pa.string())])
    >>> check_alike(["a.parquet", "b.parquet"], [one, other], ["answer"], set())
    Traceback (most recent call last):
    resolvent.errors.TraceError: b.parquet: the column `answer` is of type string, but of type \
int64 in a.parquet: write both alike
    """
    for column in columns:
        first: tuple[str, pa.DataType] | None = None
        for name, schema in zip(names, schemas, strict=True):
            if column not in schema.names:
                continue
            kind = schema.field(column).type
            if pa.types.is_null(kind):
                continue
            if first is None:
                first = name, kind
            elif _kind(kind, column in numbers) != _kind(first[1], column in numbers):
                raise TraceError(
                    f"{name}: the column `{visible(column)}` is of type {kind}, but of type "
                    f"{first[1]} in {first[0]}: write both alike"
                )


def _kind(kind: pa.DataType, as_number: bool) -> Any:
    """Return what two types share whose values are the same symbols."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type, as_number)
    if pa.types.is_integer(kind):
        return "number" if as_number else "integer"
    if as_number and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return "timestamp", kind.tz is None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "list", _kind(kind.value_type, as_number)
    return str(kind)
