"""The layout of Parquet files of traces, one row a step: its schema, and `TraceSet` → table.

Columns are `episode, step, observation, label, action, reward, terminated,
truncated`; the last three are optional. The last row of an episode holds the
final observation and label, with null action and reward. Flags are written on
that row, and set when any row of the episode sets them. A label is a list of
strings; a plain string is read too, and null as no event.

Further step columns have their own names and are null on the last row of an
episode. The schema's metadata lists those that were written as such, under
`resolvent.columns`; other columns are read only if the caller names them.
"""

from collections.abc import Collection, Iterable
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from resolvent.errors import TraceError
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
    check_column_name,
    column_text,
    missing_column_error,
)
from resolvent.traces.symbols import as_symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

_EPISODE, _STEP = "episode", "step"
_REQUIRED = (_EPISODE, _STEP, OBSERVATION, LABEL, ACTION)
_OWN_COLUMNS = b"resolvent.columns"


def schema_of_traces(
    schema: pa.Schema, columns: Iterable[str], keys: Collection[str] = ()
) -> TableSchema:
    """Return the columns to read from a file of traces.

    `columns` are further columns to read beside those that the file lists as its own; they may be
    `keys` of its folders, too.
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
        if name not in names and name not in keys:
            raise missing_column_error(name, (column for column in names if column not in RESERVED))
    optional = {name: name for name in (REWARD, TERMINATED, TRUNCATED) if name in names}
    return TableSchema(
        episode=_EPISODE,
        order=_STEP,
        observation=OBSERVATION,
        action=ACTION,
        label=LABEL,
        outputs=tuple(further),
        layout="traces",
        constants=tuple(name for name in further if name not in names),
        **optional,
    )


def _own_columns(schema: pa.Schema) -> list[str]:
    """Return the further columns that `write_parquet` wrote and that still exist."""
    listed = (schema.metadata or {}).get(_OWN_COLUMNS, b"[]")
    try:
        names = msgspec.json.decode(listed, type=list[str])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise TraceError(
            f"the metadata `{_OWN_COLUMNS.decode()}` is not a list of names: make the file again"
        ) from None
    return [check_column_name(name) for name in names if name in schema.names]


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
        name: np.repeat(getattr(traces, name), lengths) & final for name in (TERMINATED, TRUNCATED)
    }
    labels = pa.array([sorted(label) for label in traces.labels], pa.list_(pa.string()))
    further = {
        name: _with_nulls(_symbol_array(name, column.values), column.codes, final)
        for name, column in traces.columns.items()
    }
    rewards = {REWARD: further.pop(REWARD)} if REWARD in further else {}
    table = pa.table(
        {
            _EPISODE: np.repeat(np.arange(len(traces)), lengths),
            _STEP: step,
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
