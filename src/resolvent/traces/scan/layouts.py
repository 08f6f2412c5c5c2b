"""Open files of one layout, and turn rows of whole episodes into traces."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resolvent._util.text import amount, visible
from resolvent.errors import DamagedFile, OptionError, TraceError, locating
from resolvent.traces.io.arrow import without_views
from resolvent.traces.io.episodes import rows_in_order
from resolvent.traces.io.errors import type_errors_located
from resolvent.traces.io.parquet import own_columns, traces_of_own_layout
from resolvent.traces.io.sources import TableSource
from resolvent.traces.io.table import table_to_traces
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.row_groups import FILE_NAME, Footer, StoredFiles
from resolvent.traces.scan.shards import Rows, StoredShards, read_footers, split_into_shards
from resolvent.traces.schema import ACTION, LABEL, OBSERVATION, REWARD, TableSchema, as_names
from resolvent.traces.trace_set import TraceSet

Warn = Callable[[str], None]


class Layout(Protocol):
    """The roles of the columns of all files."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""

    def traces(self, rows: Rows, warn: Warn) -> tuple[TraceSet, bool]:
        """Return traces, and whether the rows are in order, to be read `without_order` next time.

        `warn` is called with messages about rows that are dropped.
        """

    def without_order(self) -> "Layout":
        """Return a layout for rows in order, which does not read the columns that order them."""


@dataclass(frozen=True)
class TraceLayout:
    """The layout of Parquet files of traces; each file has its own episodes.

    Attributes:
        columns: Those that are read.
        further: Those of them that are further columns of steps.
        constant: Further columns that have one value per file.
    """

    columns: tuple[str, ...]
    further: tuple[str, ...]
    constant: tuple[str, ...] = ()

    def traces(self, rows: Rows, warn: Warn) -> tuple[TraceSet, bool]:
        """Return traces of all rows, and whether these are in order."""
        if not rows.table.num_rows:
            rewards = [REWARD] if REWARD in self.columns else []
            return _no_traces([*rewards, *self.further]), False
        rows = rows._replace(table=without_views(rows.table))
        table = _blank_at_ends(rows.table, self.constant, [ACTION])
        counted = "step" in self.columns
        name = rows.spans[0][0]
        with type_errors_located(name), locating(name):
            traces = traces_of_own_layout(table, self.further)
            return traces, counted and rows_in_order(rows.table, ["episode"], ["step"])

    def without_order(self) -> "TraceLayout":
        """Return a layout for rows in order."""
        return replace(self, columns=tuple(name for name in self.columns if name != "step"))


@dataclass(frozen=True)
class TableLayout:
    """A layout with named roles, as for `read_table` and `read_log`.

    Attributes:
        roles: The roles of the columns.
        moved_by_actions: Whether labels are the actions before them, as in a log.
        constant: Outputs that have one value per file.
    """

    roles: TableSchema
    moved_by_actions: bool
    constant: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.roles.wanted

    def traces(self, rows: Rows, warn: Warn) -> tuple[TraceSet, bool]:
        """Return traces as `read_table` does, and whether the rows are in order."""
        if not rows.table.num_rows:
            rewards = [REWARD] if self.roles.reward is not None else []
            return _no_traces([*rewards, *self.roles.column_of_output]), False
        of_steps = [name for name in self.roles.of_steps if name not in self.constant]
        table = _blank_at_ends(without_views(rows.table), self.constant, of_steps)
        source = _ShardRows(list(self.columns), table.select, rows=rows)
        with type_errors_located(rows.spans[0][0]):
            return table_to_traces(source, table, self.roles, warn, self.moved_by_actions)

    def without_order(self) -> "TableLayout":
        """Return a layout for rows in order."""
        return replace(self, roles=replace(self.roles, order=None))


@dataclass(frozen=True)
class _ShardRows(TableSource):
    """Rows of a shard, as a table that knows their locations."""

    rows: Rows | None = None

    def place(self, row: int) -> str:
        """Return the name of a row for errors."""
        return super().place(row) if self.rows is None else self.rows.place(row)


def _no_traces(of_steps: Sequence[str]) -> TraceSet:
    """Return an empty set of traces with the columns of the other shards."""
    nothing: tuple[Sequence[Any], Any] = (), np.empty(0, np.int32)
    columns = dict.fromkeys((OBSERVATION, LABEL, ACTION, *of_steps), nothing)
    return TraceSet.taking_over(columns, offsets=[0], terminated=[], truncated=[])


def _blank_at_ends(table: pa.Table, constant: Iterable[str], of_steps: Sequence[str]) -> pa.Table:
    """Remove constant columns from rows that are no steps: they are empty otherwise."""
    for name in constant:
        place = table.column_names.index(name)
        nulls = [table[column].is_null() for column in of_steps]
        if not nulls:
            continue
        is_end = nulls[0]
        for further in nulls[1:]:
            is_end = pc.and_(is_end, further)
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        blank = pc.if_else(is_end, pa.scalar(None, column.type), column)
        table = table.set_column(place, name, blank)
    return table


def open_trace_files(
    files: Sequence[StoredFile], columns: Sequence[str], *, skips: bool = False
) -> tuple[StoredShards, TraceLayout]:
    """Open files of traces, and check that they have the same columns; `skips` damaged ones."""
    stored, all_footers = read_footers(files, ["episode"], skips=skips)
    wanted: dict[str, None] = {}
    further: Sequence[str] = ()
    first: list[str] | None = None
    constant: set[str] = set()
    for number, (file, footer) in enumerate(zip(files, all_footers, strict=True)):
        if footer.is_damaged:
            continue
        constants = stored.constants(number)
        with locating(file.name):
            read, further = own_columns(footer.schema, columns, constants)
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
        constant |= {name for name in further if name not in footer.schema.names}
    layout = TraceLayout(tuple(wanted), tuple(further), tuple(sorted(constant)))
    stored = _checked(stored, all_footers, layout.columns, {REWARD, "terminated", "truncated"})
    shards = split_into_shards(
        stored,
        all_footers,
        ["episode"],
        across_files=False,
        remedy="sort the file by episode and step, or read it whole with read_traces",
    )
    return shards, layout


def open_table_files(
    files: Sequence[StoredFile], layout: TableLayout, *, skips: bool = False
) -> tuple[StoredShards, TableLayout]:
    """Open the files of one table, and check that all have its columns; `skips` damaged ones."""
    roles = layout.roles
    episode = as_names(roles.episode)
    stored, all_footers = read_footers(files, episode, skips=skips)
    constant: set[str] = set()
    for number, (file, footer) in enumerate(zip(files, all_footers, strict=True)):
        if footer.is_damaged:
            continue
        constants = stored.constants(number)
        names = footer.schema.names
        for name in layout.columns:
            if names.count(name) > 1:
                raise TraceError(
                    f"{file.name}: there are several columns `{visible(name)}`: rename all but one"
                )
            if name in names:
                continue
            if name not in constants:
                listed = [*names, *(key for key in constants if key != FILE_NAME)]
                raise TraceError(
                    f"{file.name}: there is no column `{visible(name)}`: there are "
                    f"{', '.join(map(visible, listed))}"
                )
            constant.add(name)
    outputs = [name for name in roles.column_of_output.values() if name in constant]
    numbers = {name for name in (roles.reward, roles.terminated, roles.truncated) if name}
    stored = _checked(stored, all_footers, layout.columns, numbers)
    shards = split_into_shards(
        stored,
        all_footers,
        episode,
        across_files=True,
        remedy="sort the rows by it before writing them, or, if each file counts its own episodes, "
        f"name {FILE_NAME} as part of the episode, too",
    )
    if not episode and len(shards) > 1:
        raise OptionError(
            f"{shards.name(0)} and {len(shards) - 1:,} more pieces would be one episode: name the "
            f"column that tells episodes apart ({FILE_NAME} if each file is one)"
        )
    return shards, replace(layout, constant=tuple(outputs))


def _checked(
    stored: StoredFiles, all_footers: Sequence[Footer], columns: Sequence[str], numbers: set[str]
) -> StoredFiles:
    """Check that columns have the same types in all files; return these with fingerprints."""
    readable = [
        (file.name, footer.schema)
        for file, footer in zip(stored.files, all_footers, strict=True)
        if not footer.is_damaged
    ]
    if not readable:
        raise DamagedFile(
            f"{stored.files[0].name}: nothing can be read of it, nor of any other of "
            f"{amount(len(all_footers), 'file')}: they look damaged; make them again"
        )
    schemas = [schema for _, schema in readable]
    check_same_types([name for name, _ in readable], schemas, columns, numbers)
    texts = {
        name
        for name in columns
        if all(name in schema.names and _is_text(schema.field(name).type) for schema in schemas)
    }
    return replace(
        stored,
        fingerprints=tuple(footer.fingerprint for footer in all_footers),
        texts=frozenset(texts),
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_same_types(
    names: Sequence[str], schemas: Sequence[pa.Schema], columns: Sequence[str], numbers: set[str]
) -> None:
    """Refuse files with a column of another kind than in the first file that has it.

    Integers of any width are of one kind, and so are texts; for columns in `numbers`, which are
    compared as numbers, floats and decimals too. A column without any value is of every kind.

    >>> numbers, texts = (pa.schema([("answer", kind)]) for kind in (pa.int64(), pa.string()))
    >>> check_same_types(["a.parquet", "b.parquet"], [numbers, texts], ["answer"], set())
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
            elif _type_class(kind, column in numbers) != _type_class(first[1], column in numbers):
                raise TraceError(
                    f"{name}: the column `{visible(column)}` is of type {kind}, but of type "
                    f"{first[1]} in {first[0]}: write both alike"
                )


def _type_class(kind: pa.DataType, as_number: bool) -> Any:
    """Return a key that is equal for types whose values are the same symbols."""
    if pa.types.is_dictionary(kind):
        return _type_class(kind.value_type, as_number)
    if pa.types.is_integer(kind):
        return "number" if as_number else "integer"
    if as_number and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return "timestamp", kind.tz is None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "list", _type_class(kind.value_type, as_number)
    return str(kind)
