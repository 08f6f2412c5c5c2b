"""Our own Parquet files, one row a step ↔ `TraceSet`.

Columns are `episode, step, observation, label, action, reward, terminated,
truncated`; the last three are optional. The last row of an episode holds the
final observation and label, with null action and reward. Flags are written on
that row, and set when any row of the episode sets them. A label is a list of
strings; a plain string is read too, and null as no event.

Further step columns have their own names and are null on the last row of an
episode. The schema's metadata lists those that were written as such, under
`resolvent.columns`; other columns are read only if the caller names them.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from resolvent._util.progress import FractionListener
from resolvent._util.validation import check_expansion
from resolvent.errors import TraceError, locating
from resolvent.traces.column_arrays import Column
from resolvent.traces.io.arrow import (
    check_dictionaries,
    converted,
    distinct,
    distinct_labels,
    nulls,
    without_views,
)
from resolvent.traces.io.episodes import Episodes
from resolvent.traces.io.errors import first_line, readable, unchanged
from resolvent.traces.io.table import TableRows
from resolvent.traces.scan.listing import files_of
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    NAME_COLUMNS,
    OBSERVATION,
    RESERVED,
    REWARD,
    TableSchema,
    check_column_name,
    column_text,
    missing_column_error,
)
from resolvent.traces.symbols import as_label, as_symbol
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

_REQUIRED = ("episode", "step", "observation", "label", "action")
_OPTIONAL = ("reward", "terminated", "truncated")
_OWN_COLUMNS = b"resolvent.columns"


def read_parquet(
    path: Path, progress: FractionListener | None = None, columns: Sequence[str] = ()
) -> TraceSet:
    """Read a Parquet file, or all `.parquet` files of a folder in the order of their names.

    Episodes of different files are different, even if their numbers are the same.
    `columns` are further columns to read beside those that the files list.
    """
    if not path.is_dir():
        return _read_file(path, columns)
    files = parquet_files(path)
    sets = []
    for number, file in enumerate(files):
        if progress:
            progress(number / len(files))
        sets.append(_read_file(file, columns))
    return TraceSet.concatenate(sets, [str(file) for file in files])


def parquet_files(folder: Path) -> list[Path]:
    """Return the `.parquet` files of a folder, and of its partitions, in the order of names."""
    return [folder / Path(file.path).relative_to(folder.absolute()) for file in files_of(folder)]


def _read_file(path: Path, columns: Sequence[str]) -> TraceSet:
    with unchanged(path), readable(path):
        table, further = _read_table(path, columns)
        return traces_of_own_layout(table, further)


def _read_table(path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """Return the table, and the names of its further columns to read."""
    with pq.ParquetFile(path) as file:
        to_read, further = own_columns(file.schema_arrow, columns)
        check_rows(path, file.metadata, len(to_read))
        table = file.read(to_read)
    check_dictionaries(table)
    if table.num_rows == 0:
        raise TraceError("holds no traces: the table has no rows")
    return table, further


def check_rows(path: Path, metadata: pq.FileMetaData, columns: int) -> None:
    """Raise `TooLarge` if a file has far more rows than its size suggests.

    A repeated value takes hardly any space in a file, and four bytes a row in memory.
    """
    check_expansion(
        f"it has {metadata.num_rows:,} rows, and so",
        4 * columns * metadata.num_rows,
        path.stat().st_size,
    )


def own_columns(
    schema: pa.Schema, columns: Sequence[str], beside: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the columns of a file of traces to read, and which of them are further ones.

    Columns `beside` the file, such as keys of its folders, may be further columns, too.
    """
    names = schema.names
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        raise TraceError(
            f"no column `{missing[0]}`: traces need the columns {', '.join(_REQUIRED)}, "
            f"and this file has {', '.join(names)}: {NAME_COLUMNS}"
        )
    further = sorted({*columns, *_own_columns(schema)})
    for name in further:
        if name not in names and name not in beside:
            raise missing_column_error(name, (column for column in names if column not in RESERVED))
    to_read = [name for name in (*_REQUIRED, *_OPTIONAL) if name in names] + further
    for name in to_read:
        if names.count(name) > 1:
            raise TraceError(f"there are several columns `{name}`: rename all but one")
    return to_read, further


def _own_columns(schema: pa.Schema) -> list[str]:
    """Return the further columns that `write_parquet` wrote and that still exist."""
    listed = (schema.metadata or {}).get(_OWN_COLUMNS, b"[]")
    try:
        names = msgspec.json.decode(listed, type=list[str])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise TraceError(
            f"the metadata `{_OWN_COLUMNS.decode()}` is no list of names: make the file again"
        ) from None
    return [check_column_name(name) for name in names if name in schema.names]


class _OwnRows(TableRows):
    """Rows of our own layout, which is stricter than that of other tables."""

    def check_step_values(self) -> None:
        """Raise `TraceError` unless exactly the last rows of episodes lack values of steps."""
        is_last = np.zeros(self.table.num_rows, bool)
        is_last[self.episodes.last] = True
        for name in self.roles.of_steps:
            null = nulls(self.table[name])
            if not np.any(wrong := null != is_last):
                continue
            row = int(np.argmax(wrong))
            if null[row]:
                raise TraceError(
                    f"{self.place(row)}: the {name} is null: only the last row of an episode, "
                    f"which holds the final observation, may have no {name}"
                )
            raise TraceError(
                f"{self.place(row)}: the {name} is {self.table[name][row]} on the episode's last "
                f"row: end each episode with a row that holds the final observation and label, "
                f"and null for what belongs to steps"
            )

    def check_lengths(self) -> None:
        """Raise `TraceError` if an episode has no step."""
        shortest = int(np.argmin(self.lengths))
        with locating(f"episode {self.table['episode'][int(self.episodes.starts[shortest])]}"):
            steps = int(self.lengths[shortest])
            check_lengths(steps + 1, steps + 1, steps)

    def labels(self) -> Column:
        """Return the labels of texts or lists of texts."""
        return converted(*distinct_labels(self.table[LABEL]), as_label, self.place)

    def as_reward(self, value: Any) -> float:
        """Return a reward as a finite float."""
        reward: Any = as_symbol(float(value))
        return float(reward)

    def null_text(self, name: str, row: int) -> str:
        """Return the message about a missing value."""
        return f"{self.place(row)}: the {name} is null: give it a value"

    def value_place(self, name: str, row: int) -> str:
        """Return the location of a value in errors."""
        return f"{self.place(row)}: the {name}"


def traces_of_own_layout(table: pa.Table, further: Sequence[str]) -> TraceSet:
    """Return the traces of whole episodes in our own layout, with these further columns.

    Without a column `step`, rows must be in order.
    """
    table, episodes = _own_episodes(without_views(table))
    optional = {name: name for name in _OPTIONAL if name in table.column_names}
    roles = TableSchema(
        episode="episode",
        observation=OBSERVATION,
        label=LABEL,
        action=ACTION,
        outputs=tuple(name for name in further if name in table.column_names),
        **optional,
    )
    _check_types(table)
    place = partial(_place, table, episodes.starts)
    return _OwnRows(table, roles, episodes, place, None, lambda text: None).traces()


def _own_episodes(table: pa.Table) -> tuple[pa.Table, Episodes]:
    """Sort the rows of a table by episode and step, and check that the steps are 0, 1, 2, …."""
    episode = _episode_keys(table)
    if "step" not in table.column_names:
        return table, _episodes_in_order(episode)
    step = _steps(table)
    changes = np.diff(episode)
    if not np.all((changes > 0) | ((changes == 0) & (np.diff(step) > 0))):
        order = np.lexsort((step, episode))
        table, episode, step = table.take(order), episode[order], step[order]
    episodes = _episodes_in_order(episode)
    expected = np.arange(len(step)) - np.repeat(episodes.starts, episodes.lengths)
    if np.any(wrong := step != expected):
        row = int(np.argmax(wrong))
        raise TraceError(
            f"episode {table['episode'][row]}: step {step[row]} stands where step "
            f"{expected[row]} should: steps must be 0, 1, 2, … without gaps or repeats"
        )
    return table, episodes


def _episodes_in_order(episode: NDArray[Any]) -> Episodes:
    first = np.concatenate([[True], episode[1:] != episode[:-1]])
    return Episodes(range(len(episode)), np.flatnonzero(first))


def _place(table: pa.Table, starts: NDArray[np.int64], row: int) -> str:
    step = row - int(starts[np.searchsorted(starts, row, side="right") - 1])
    return f"episode {table['episode'][row]}, step {step}"


def _check_types(table: pa.Table) -> None:
    """Raise `TraceError` unless rewards are numbers and flags are booleans."""
    for name in _OPTIONAL:
        if name not in table.column_names:
            continue
        kind = table[name].type
        if name == REWARD:
            is_right = any(
                is_type(kind)
                for is_type in (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
            )
            remedy = "rewards must be numbers"
        else:
            is_right = pa.types.is_boolean(kind) or pa.types.is_null(kind)
            remedy = "use booleans"
        if not is_right:
            raise TraceError(f"the column `{name}` is of type {kind}: {remedy}")


def _episode_keys(table: pa.Table) -> NDArray[Any]:
    """Return integers that order the episodes: their numbers, or else the order of appearance."""
    column = table["episode"]
    _check_present(column, "episode")
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    return distinct(column)[1]


def _steps(table: pa.Table) -> NDArray[np.int64]:
    column = table["step"]
    _check_present(column, "step")
    if not pa.types.is_integer(column.type):
        raise TraceError(f"the column `step` is of type {column.type}: steps must be integers")
    try:
        return np.asarray(column.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid as error:
        raise TraceError(
            f"a step is out of range ({first_line(error)}): steps must be 0, 1, 2, …"
        ) from error


def _check_present(column: pa.ChunkedArray, name: str) -> None:
    if column.null_count:
        row = int(np.argmax(nulls(column)))
        raise TraceError(f"row {row}: the {name} is null: every row needs its {name}")


def write_parquet(traces: TraceSet, file: BinaryIO) -> None:
    """Write a table with one row a step; `TraceError` for symbols that no column can hold."""
    pq.write_table(arrow_table(traces), file, compression="zstd")


def arrow_table(traces: TraceSet) -> pa.Table:
    """Return the table of a Parquet file of the traces; `TraceError` as for `write_parquet`."""
    lengths = np.diff(traces.offsets) + 1
    ends = np.cumsum(lengths)
    final = np.zeros(traces.steps + len(traces), bool)
    final[ends - 1] = True
    step = np.arange(len(final)) - np.repeat(ends - lengths, lengths)
    flags = {
        name: np.repeat(getattr(traces, name), lengths) & final
        for name in ("terminated", "truncated")
    }
    labels = pa.array([sorted(label) for label in traces.labels], pa.list_(pa.string()))
    further = {
        name: _with_nulls(_symbol_array(name, column.values), column.codes, final)
        for name, column in traces.columns.items()
    }
    rewards = {REWARD: further.pop(REWARD)} if REWARD in further else {}
    table = pa.table(
        {
            "episode": np.repeat(np.arange(len(traces)), lengths),
            "step": step,
            OBSERVATION: _symbol_array(OBSERVATION, traces.observations).take(
                pa.array(traces.observation_codes)
            ),
            LABEL: labels.take(pa.array(traces.label_codes)),
            ACTION: _with_nulls(_symbol_array(ACTION, traces.actions), traces.action_codes, final),
            **rewards,
            **flags,
            **further,
        }
    )
    if further:
        table = table.replace_schema_metadata({_OWN_COLUMNS: msgspec.json.encode(list(further))})
    return table


def _with_nulls(values: pa.Array, codes: Codes, null: NDArray[np.bool_]) -> pa.Array:
    """Return the values of rows that are not null, and null for the others."""
    indices = np.zeros(len(null), np.int32)
    indices[~null] = codes
    return values.take(pa.array(indices, mask=null))


def _symbol_array(name: str, symbols: Any) -> pa.Array:
    try:
        values = pa.array(list(symbols))
        # Arrow would change tuples like (1, 2.5), whose parts it gives one type.
        same = repr([as_symbol(value) for value in values.to_pylist()]) == repr(list(symbols))
    except (pa.ArrowException, OverflowError):
        same = False
    if not same:
        raise TraceError(
            f"the {column_text(name)} cannot be written: not of one type that Parquet can hold "
            f"(such as {symbols[0]!r}): write jsonl instead"
        )
    return values
