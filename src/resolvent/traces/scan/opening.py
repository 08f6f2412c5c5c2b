"""Parquet files of one layout → shards of whole episodes, or all traces at once.

Files of traces have one row a step, with the columns `episode, step, observation, label, action,
reward, terminated, truncated`; the last three are optional. The last row of an episode holds the
final observation and label, with null action and reward. Flags are written on that row, and set
when any row of the episode sets them. A label is a list of strings; a plain string is read too, and
null as no event. Further step columns have their own names and are null on the last row of an
episode; the schema's metadata lists them, and others are read only if the caller names them.
"""

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from resolvent._util.parallel import FractionListener
from resolvent._util.text import amount, visible
from resolvent._util.validation import check_expansion
from resolvent.errors import DamagedFile, OptionError, TraceError, locating
from resolvent.traces.io.table import EPISODE, OWN_COLUMNS, STEP, TableTraces, traces_of_table
from resolvent.traces.scan.footer import (
    Bounds,
    Episode,
    are_disjoint,
    are_in_sequence,
    boundary_episode,
    common_bounds,
)
from resolvent.traces.scan.listing import StoredFile
from resolvent.traces.scan.shards import Rows, StoredShards, joined
from resolvent.traces.scan.storage import FILE_NAME, Footer, RowGroup, StoredFiles
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    NAME_COLUMNS,
    OBSERVATION,
    RESERVED,
    REWARD,
    TERMINATED,
    TRUNCATED,
    TableSchema,
    as_names,
    check_column_name,
    check_columns,
    missing_column_error,
)
from resolvent.traces.trace_set import TraceSet

_REQUIRED = (EPISODE, STEP, OBSERVATION, LABEL, ACTION)
SHARD_ROWS = 1 << 20  # maximum number of rows of a shard that has several row groups
_READERS = 8
_READERS_ELSEWHERE = 64  # at a time, from storage that is slow to answer
_SORT_TRACES = "sort the file by episode and step, or read it whole with read_traces"
_SORT_TABLE = (
    "sort the rows by it before writing them, or, if each file counts its own episodes, "
    f"name {FILE_NAME} as part of the episode, too"
)
"""Remedies where the rows of an episode are not consecutive."""


def read_footers(
    files: Sequence[StoredFile], episode: Sequence[str] = (), *, skips: bool = False
) -> tuple[StoredFiles, list[Footer]]:
    """Read the footers of all files, several at a time; with `skips` some may be damaged."""
    stored = StoredFiles.of(files)
    read = partial(stored.footer, episode=episode, skips=skips)
    most = _READERS if all(file.root is None for file in files) else _READERS_ELSEWHERE
    with ThreadPoolExecutor(min(most, len(files))) as readers:
        footers = list(readers.map(read, range(len(files))))
    fingerprints = tuple(footer.fingerprint for footer in footers)
    errors = {number: footer.error for number, footer in enumerate(footers) if footer.error}
    return replace(stored, fingerprints=fingerprints, errors=errors), footers


def open_files(
    files: Sequence[StoredFile],
    schema: TableSchema | None,
    columns: Sequence[str] = (),
    *,
    skips: bool = False,
) -> tuple[StoredShards, TableSchema]:
    """Open files as shards, and check that they have the same columns; `skips` damaged ones.

    Without a schema they are files of traces with further `columns`, each with its own episodes.
    """
    episode = ("episode",) if schema is None else as_names(schema.episode)
    stored, footers = read_footers(files, episode, skips=skips)
    schema = _shared_schema(footers, schema, columns)
    _check_same_types(footers, schema)
    across_files = schema.layout != "traces"
    shards = _split(stored, footers, episode, across_files=across_files, skips=skips)
    if not episode and len(shards) > 1:
        raise OptionError(
            f"{shards.name(0)} and {len(shards) - 1:,} more shards would be one episode: name the "
            f"column that distinguishes episodes ({FILE_NAME} if each file is one)"
        )
    return shards, schema


def read_files(
    files: Sequence[StoredFile],
    schema: TableSchema | None,
    columns: Sequence[str] = (),
    progress: FractionListener | None = None,
) -> TableTraces:
    """Read all traces of files, as for `open_files`; the rows of an episode may be anywhere."""
    stored, footers = read_footers(files)
    schema = _shared_schema(footers, schema, columns)
    read = []
    for number, footer in enumerate(footers):
        if progress:
            progress(number / len(files))
        row_groups = [RowGroup(number, group, 0, rows) for group, rows in enumerate(footer.groups)]
        rows = sum(footer.groups)
        # A repeated value takes hardly any space in a file, and four bytes a row in memory.
        size = 4 * len(schema.columns) * rows
        with locating(footer.name):
            check_expansion(f"it has {rows:,} rows, and so", size, footer.fingerprint.size)
        if rows:
            table = stored.read(row_groups, schema.columns)
            read.append(Rows(table, ((footer.name, 0, rows),)))
    if schema.layout == "traces":
        names = [rows.spans[0][0] for rows in read]
        parts = [
            traces_of_table(rows.table, schema, rows.location, name).traces
            for rows, name in zip(read, names, strict=True)
        ]
        return TableTraces(TraceSet.concatenate(parts, names), is_sorted=False)
    together = Rows(joined([rows.table for rows in read]), tuple(rows.spans[0] for rows in read))
    return traces_of_table(together.table, schema, together.location, files[0].name)


def _shared_schema(
    footers: Sequence[Footer], schema: TableSchema | None, columns: Sequence[str]
) -> TableSchema:
    """Return the schema of files, which need to have the same columns."""
    readable = [footer for footer in footers if footer.error is None]
    if not readable:
        raise DamagedFile(
            f"{footers[0].name}: neither this file nor any other of "
            f"{amount(len(footers), 'file')} can be read: they look damaged; make them again"
        )
    if schema is None:
        schema = _schema_of_trace_files(readable, columns)
    else:
        schema = _schema_of_table_files(readable, schema)
    if not any(sum(footer.groups) for footer in footers):
        raise TraceError(f"{readable[0].name} holds no traces: the table has no rows")
    return schema


def _schema_of_trace_files(readable: Sequence[Footer], columns: Sequence[str]) -> TableSchema:
    """Return the schema of files of traces, which need the same step columns."""
    schemas: list[TableSchema] = []
    first_file = readable[0].name
    for footer in readable:
        with locating(footer.name):
            own = _schema_of_traces(footer.schema, columns, footer.constants)
            names = footer.schema.names
            check_columns([column for column in own.columns if column in names], names)
            schemas.append(own)
            first = schemas[0].step_columns
            for column in sorted({*first} ^ {*own.step_columns}):
                with_it, without = first_file, footer.name
                if column not in first:
                    with_it, without = without, with_it
                raise TraceError(
                    f"the columns are not those of {first_file}: {with_it} has "
                    f"`{visible(column)}`, and {without} does not; give all files the same columns"
                )
    return replace(
        schemas[0],
        terminated=next(filter(None, (schema.terminated for schema in schemas)), None),
        truncated=next(filter(None, (schema.truncated for schema in schemas)), None),
        constants=tuple(sorted({name for schema in schemas for name in schema.constants})),
    )


def _schema_of_traces(
    schema: pa.Schema, columns: Iterable[str], keys: Collection[str] = ()
) -> TableSchema:
    """Return the columns to read: a file's own, and `columns`, also of folders (`keys`)."""
    names = schema.names
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        raise TraceError(
            f"no column `{missing[0]}`: traces need the columns {', '.join(_REQUIRED)}, "
            f"and this file has {', '.join(names)}: {NAME_COLUMNS}"
        )
    further = sorted({*columns, *_own_columns(schema)})
    for name in further:
        if name not in names and name not in keys:
            raise missing_column_error(name, (column for column in names if column not in RESERVED))
    optional = {name: name for name in (REWARD, TERMINATED, TRUNCATED) if name in names}
    return TableSchema(
        episode=EPISODE,
        order=STEP,
        observation=OBSERVATION,
        action=ACTION,
        label=LABEL,
        outputs=tuple(further),
        layout="traces",
        constants=tuple(name for name in further if name not in names),
        **optional,
    )


def _own_columns(schema: pa.Schema) -> list[str]:
    """Return the further columns that `arrow_table` wrote and that still exist."""
    listed = (schema.metadata or {}).get(OWN_COLUMNS, b"[]")
    try:
        names = msgspec.json.decode(listed, type=list[str])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise TraceError(
            f"the metadata `{OWN_COLUMNS.decode()}` is not a list of names: make the file again"
        ) from None
    return [check_column_name(name) for name in names if name in schema.names]


def _schema_of_table_files(readable: Sequence[Footer], schema: TableSchema) -> TableSchema:
    """Return the schema of a table, whose columns are in all files or in the keys of folders."""
    constant: set[str] = set()
    for footer in readable:
        names = footer.schema.names
        keys = [key for key in footer.constants if key not in names]
        constant.update(keys)
        wanted = [column for column in schema.columns if column not in keys or column != FILE_NAME]
        check_columns(wanted, [*names, *(key for key in keys if key != FILE_NAME)], footer.name)
    outputs = schema.column_of_output.values()
    return replace(schema, constants=tuple(name for name in outputs if name in constant))


def _check_same_types(footers: Sequence[Footer], schema: TableSchema) -> None:
    """Refuse files with a column of another kind than in the first file that has it.

    Integers of any width are of one kind, and so are texts; for rewards and flags, which are
    compared as numbers, floats and decimals too. A column without any value is of every kind.
    """
    numbers = (schema.reward, schema.terminated, schema.truncated)
    for column in schema.columns:
        first: tuple[str, pa.DataType] | None = None
        for footer in footers:
            dtype = footer.schema.field(column).type if column in footer.schema.names else pa.null()
            if pa.types.is_null(dtype):
                continue
            if first is None:
                first = footer.name, dtype
            elif _type_class(dtype, column in numbers) != _type_class(first[1], column in numbers):
                raise TraceError(
                    f"{footer.name}: the column `{visible(column)}` is of type {dtype}, but of "
                    f"type {first[1]} in {first[0]}: write both with the same type"
                )


def _type_class(dtype: pa.DataType, as_number: bool) -> Any:
    """Return a key that is equal for types whose values are the same symbols."""
    of = pa.types
    if of.is_dictionary(dtype):
        return _type_class(dtype.value_type, as_number)
    if of.is_integer(dtype):
        return "number" if as_number else "integer"
    if as_number and (of.is_floating(dtype) or of.is_decimal(dtype)):
        return "number"
    if of.is_string(dtype) or of.is_large_string(dtype) or of.is_string_view(dtype):
        return "text"
    if of.is_timestamp(dtype):
        return "timestamp", dtype.tz is None
    if of.is_list(dtype) or of.is_large_list(dtype):
        return "list", _type_class(dtype.value_type, as_number)
    return str(dtype)


def _split(
    stored: StoredFiles,
    footers: Sequence[Footer],
    episode: Sequence[str],
    *,
    across_files: bool,
    skips: bool,
) -> StoredShards:
    """Group row groups into shards, and find where an episode may continue in the next shard.

    Episodes continue in the next file only if `across_files`.
    """
    row_groups: list[RowGroup] = []
    bounds: list[Bounds | None] = []
    starts: list[int] = []
    for number, footer in enumerate(footers):
        first, together = 0, SHARD_ROWS
        for group, count in enumerate(footer.groups):
            if count:
                if together + count > SHARD_ROWS:
                    starts.append(len(row_groups))
                    together = 0
                together += count
                row_groups.append(RowGroup(number, group, first, count))
                bounds.append(footer.bounds[group])
            first += count
        if footer.error is not None:  # a shard of its own, where episodes may begin or end
            starts.append(len(row_groups))
            row_groups.append(RowGroup(number, 0, 0, 0))
            bounds.append(_bounds_by_path(footer, footers, episode))
    shard_bounds = [
        common_bounds(bounds[start:stop]) for start, stop in pairwise((*starts, len(row_groups)))
    ]
    continues = [
        bool(episode)
        and shard > 0
        and (across_files or row_groups[start].file == row_groups[start - 1].file)
        and not are_disjoint(shard_bounds[shard - 1], shard_bounds[shard])
        for shard, start in enumerate(starts)
    ]
    shards = StoredShards(
        stored,
        np.array(row_groups, np.int64),
        np.array([*starts, len(row_groups)], np.int64),
        np.array(continues, bool),
        tuple(episode),
        remedy=_SORT_TABLE if across_files else _SORT_TRACES,
        skips=skips,
    )
    scopes: dict[int, list[int]] = {}
    for shard, start in enumerate(starts):
        if row_groups[start].rows:
            scopes.setdefault(0 if across_files else row_groups[start].file, []).append(shard)
    boundaries: dict[int, Episode] = {}
    leading: dict[int, int] = {}
    for scope in scopes.values() if episode else ():
        if not are_in_sequence([shard_bounds[shard] for shard in scope]):
            leading |= shards.leading_rows(scope, skips_damaged=skips)
        elif not skips:  # episodes of damaged files are unknown
            for shard in scope:
                shared = boundary_episode(shard_bounds[shard - 1], shard_bounds[shard])
                if continues[shard] and shared is not None:
                    boundaries[shard] = shared
    return replace(shards, boundaries=boundaries, leading=leading)


def _bounds_by_path(
    damaged: Footer, footers: Sequence[Footer], episode: Sequence[str]
) -> Bounds | None:
    """Return bounds of an unreadable file in the first columns of episodes, from its path."""
    in_files = {name for footer in footers for name in footer.schema.names}
    values = (None if name in in_files else damaged.constants.get(name) for name in episode)
    prefix = tuple(takewhile(lambda value: value is not None, values))
    return (prefix, prefix) if prefix else None
