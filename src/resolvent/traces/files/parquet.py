"""Parquet, one row a step ↔ `TraceSet`.

Columns are `episode, step, observation, label, action, reward, terminated,
truncated`; the last three may be left out. The last row of an episode holds the
final observation and label, with null action and reward. Flags are written on
that row, and read as set when any row of the episode sets them. A label is a
list of strings; a plain string is read too, and null as no event.

Further columns of steps stand under their own names, null on the last row of an
episode. The schema's metadata lists those that were written as such, under
`resolvent.columns`; of any others only those are read that the caller names.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from resolvent.errors import TraceError, locating
from resolvent.limits import check_expansion, ran_out_of_memory
from resolvent.progress import FractionListener
from resolvent.traces.column_names import (
    ACTION,
    LABEL,
    OBSERVATION,
    RESERVED,
    REWARD,
    check_column_name,
    column_text,
    no_column,
)
from resolvent.traces.files.changes import unchanged
from resolvent.traces.given_columns import Column
from resolvent.traces.places.listing import files_of
from resolvent.traces.symbols import Symbol, as_label, as_symbol
from resolvent.traces.tables.column_types import OF_TYPES, first_line, words_of_types
from resolvent.traces.tables.distinct import converted, distinct, distinct_labels
from resolvent.traces.tables.roles import NAME_COLUMNS
from resolvent.traces.tables.sources import without_views
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

    Each file's episodes are its own, even where their numbers are the same.
    Further columns are those that the file lists as its own, and those named here.
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
        return _Rows.of(table).traces(further)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what Arrow has against a file into a `TraceError` of one line."""
    with locating(str(path)):
        try:
            yield
        except OF_TYPES as error:
            raise TraceError(words_of_types(error)) from error
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if ran_out_of_memory(error):
                raise
            reason = first_line(error)
            raise TraceError(
                f"cannot be read as Parquet ({reason}): the file looks damaged; make it again"
            ) from error


def _read_table(path: Path, columns: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """Return the table, and the names of the further columns in it that count."""
    with pq.ParquetFile(path) as file:
        wanted, further = own_columns(file.schema_arrow, columns)
        check_rows(path, file.metadata, len(wanted))
        table = file.read(wanted)
    if table.num_rows == 0:
        raise TraceError("holds no traces: the table has no rows")
    return table, further


def check_rows(path: Path, metadata: pq.FileMetaData, columns: int) -> None:
    """Raise `TooLarge` if a file tells of far more rows than its size suggests.

    A value that repeats takes hardly any room in a file, and four bytes a row in memory.
    """
    check_expansion(
        f"it has {metadata.num_rows:,} rows, and so",
        4 * columns * metadata.num_rows,
        path.stat().st_size,
    )


def own_columns(
    schema: pa.Schema, columns: Sequence[str], beside: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Return which columns of a file of traces are read, and which of them are further ones.

    Those `beside` the file, such as keys of its folders, may be among the further ones, too.
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
            raise no_column(name, (other for other in names if other not in RESERVED))
    wanted = [name for name in (*_REQUIRED, *_OPTIONAL) if name in names] + further
    for name in wanted:
        if names.count(name) > 1:
            raise TraceError(f"there are several columns `{name}`: rename all but one")
    return wanted, further


def traces_of_own(table: pa.Table, further: Sequence[str]) -> TraceSet:
    """Make traces of the rows of whole episodes, with further columns of these names."""
    return _Rows.of(table).traces(further)


def _own_columns(schema: pa.Schema) -> list[str]:
    """Return the further columns that `write_parquet` wrote and that are still there."""
    listed = (schema.metadata or {}).get(_OWN_COLUMNS, b"[]")
    try:
        names = msgspec.json.decode(listed, type=list[str])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise TraceError(
            f"the metadata `{_OWN_COLUMNS.decode()}` is no list of names: make the file again"
        ) from None
    return [check_column_name(name) for name in names if name in schema.names]


@dataclass(frozen=True)
class _Rows:
    """The rows of a table in order of episode and step, checked to be whole traces.

    Rows that are known to stand in order need no column of steps.
    """

    table: pa.Table
    starts: NDArray[np.int64]
    final: NDArray[np.bool_]

    @classmethod
    def of(cls, table: pa.Table) -> "_Rows":
        """Sort a table's rows and find where its episodes start and end."""
        table = without_views(table)
        episode = _episode_keys(table)
        if "step" not in table.column_names:
            return cls._in_order(table, episode)
        step = _steps(table)
        changes = np.diff(episode)
        if not np.all((changes > 0) | ((changes == 0) & (np.diff(step) > 0))):
            order = np.lexsort((step, episode))
            table, episode, step = table.take(order), episode[order], step[order]
        rows = cls._in_order(table, episode)
        starts = rows.starts
        counted = np.arange(len(step)) - np.repeat(starts, rows.lengths)
        if np.any(wrong := step != counted):
            row = int(np.argmax(wrong))
            raise TraceError(
                f"episode {table['episode'][row]}: step {step[row]} stands where step "
                f"{counted[row]} should: steps must be 0, 1, 2, … without gaps or repeats"
            )
        return rows

    @classmethod
    def _in_order(cls, table: pa.Table, episode: NDArray[Any]) -> "_Rows":
        first = np.concatenate([[True], episode[1:] != episode[:-1]])
        return cls(table, np.flatnonzero(first), np.append(first[1:], True))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many rows each episode has."""
        return np.diff(np.append(self.starts, self.table.num_rows))

    def place(self, row: int) -> str:
        """Name a row as an error would."""
        step = row - int(self.starts[np.searchsorted(self.starts, row, side="right") - 1])
        return f"episode {self.table['episode'][row]}, step {step}"

    def traces(self, further: Sequence[str]) -> TraceSet:
        """Code all columns, with the further ones of these names."""
        of_steps = [name for name in (REWARD, *further) if name in self.table.column_names]
        for name in (ACTION, *of_steps):
            self._check_nulls(name)
        short = int(np.argmin(self.lengths))
        with locating(f"episode {self.table['episode'][int(self.starts[short])]}"):
            count = int(self.lengths[short])
            check_lengths(count, count, count - 1)
        seen = np.arange(self.table.num_rows)
        acted = np.flatnonzero(~self.final)
        columns = {
            OBSERVATION: self._code(OBSERVATION, seen, as_symbol),
            LABEL: self._labels(),
            ACTION: self._code(ACTION, acted, as_symbol),
        }
        for name in of_steps:
            convert = self._reward_converter() if name == REWARD else as_symbol
            columns[name] = self._code(name, acted, convert)
        return TraceSet.taking_over(
            columns,
            offsets=np.append(0, np.cumsum(self.lengths - 1)),
            terminated=self._flag("terminated"),
            truncated=self._flag("truncated"),
        )

    def _check_nulls(self, name: str) -> None:
        """Check that the column is null on the final row of each episode and only there."""
        null = self.table[name].is_null().to_numpy(zero_copy_only=False)
        if not np.any(wrong := null != self.final):
            return
        row = int(np.argmax(wrong))
        if not self.final[row]:
            raise TraceError(
                f"{self.place(row)}: the {name} is null: only the last row of an episode, "
                f"which holds the final observation, may have no {name}"
            )
        raise TraceError(
            f"{self.place(row)}: the {name} is {self.table[name][row]} on the episode's last "
            f"row: end each episode with a row that holds the final observation and label, "
            f"and null for what belongs to steps"
        )

    def _code(self, name: str, rows: NDArray[np.int64], convert: Callable[[Any], Symbol]) -> Column:
        """Code the values of some rows by converting each distinct value once."""
        column = self.table[name]
        if len(rows) < len(column):
            column = column.take(rows)
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise TraceError(f"{self.place(int(rows[row]))}: the {name} is null: give it a value")
        return converted(
            *distinct(column), convert, lambda row: f"{self.place(int(rows[row]))}: the {name}"
        )

    def _labels(self) -> Column:
        return converted(*distinct_labels(self.table["label"]), as_label, self.place)

    def _reward_converter(self) -> Callable[[Any], Symbol]:
        kind = self.table[REWARD].type
        if not (
            pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
        ):
            raise TraceError(f"the column `reward` is of type {kind}: rewards must be numbers")
        return lambda reward: as_symbol(float(reward))

    def _flag(self, name: str) -> NDArray[np.bool_]:
        if name not in self.table.column_names:
            return np.zeros(len(self.starts), bool)
        column = self.table[name]
        if not (pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
            raise TraceError(f"the column `{name}` is of type {column.type}: use booleans")
        values = column.cast(pa.bool_()).fill_null(False).to_numpy()
        return np.logical_or.reduceat(values, self.starts)


def _episode_keys(table: pa.Table) -> NDArray[Any]:
    """Return integers that order the episodes: their numbers, or else first come first."""
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
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise TraceError(f"row {row}: the {name} is null: every row needs its {name}")


def write_parquet(traces: TraceSet, file: BinaryIO) -> None:
    """Write a table with one row a step; `TraceError` for symbols no column can hold."""
    pq.write_table(arrow_table(traces), file, compression="zstd")


def arrow_table(traces: TraceSet) -> pa.Table:
    """Return the table that a Parquet file of the traces holds; `TraceError` as there."""
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
    """Lay out the values where they belong, leaving out the rows that are null."""
    indices = np.zeros(len(null), np.int32)
    indices[~null] = codes
    return values.take(pa.array(indices, mask=null))


def _symbol_array(name: str, symbols: Any) -> pa.Array:
    try:
        values = pa.array(list(symbols))
        # Arrow makes one type of tuples like (1, 2.5), and so would change them.
        same = repr([as_symbol(value) for value in values.to_pylist()]) == repr(list(symbols))
    except (pa.ArrowException, OverflowError):
        same = False
    if not same:
        raise TraceError(
            f"the {column_text(name)} cannot be written: not of one type that Parquet can hold "
            f"(such as {symbols[0]!r}): write jsonl instead"
        )
    return values
