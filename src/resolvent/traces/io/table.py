"""An Arrow table and the roles of its columns → `TraceSet`, and back.

Tables of all sources come here: CSV files, data frames, and Parquet files, whole or in shards.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.files import first_line
from resolvent._util.text import amount, visible
from resolvent.errors import TraceError, locating
from resolvent.traces.columns import Column
from resolvent.traces.io.arrow import (
    EpisodeTable,
    Locate,
    converted,
    distinct,
    distinct_labels,
    nulls,
    sort_by_episode,
    without_views,
)
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    REWARD,
    TERMINATED,
    TRUNCATED,
    ColumnNames,
    TableSchema,
    as_names,
    column_text,
)
from resolvent.traces.symbols import (
    NO_EVENT,
    Label,
    as_label,
    as_symbol,
    finite_reward,
    label_order,
    symbol_text,
)
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner, Vocabulary, codes_of, distinct_pairs

NO_OBSERVATION = "nothing"  # the observation throughout tables that have none
ONLY_ACTION = "step"  # the action throughout tables that have none

EPISODE, STEP = "episode", "step"
OWN_COLUMNS = b"resolvent.columns"  # key of the further columns in the metadata of files of traces


class TableTraces(NamedTuple):
    """The traces of a table, whether its rows were in order, and warnings about rows left out."""

    traces: TraceSet
    is_sorted: bool
    warnings: Sequence[str] = ()


def traces_of_table(
    table: pa.Table, schema: TableSchema, locate: Locate, name: str | None = None
) -> TableTraces:
    """Return the traces of a table; `name` is its file, if it has one."""
    if not table.num_rows:
        nothing: Column = (), np.empty(0, np.int32)
        columns = dict.fromkeys((OBSERVATION, LABEL, ACTION, *schema.step_columns), nothing)
        return TableTraces(TraceSet.taking_over(columns, [0], [], []), is_sorted=False)
    keys = as_names(schema.episode), as_names(schema.order)
    try:
        rows = sort_by_episode(without_views(table), *keys, locate)
        return _Conversion(rows, schema, "" if name is None else f"{name}: ").result()
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise TraceError(
            f"{name or 'the table'}: has a column of a type that is not read "
            f"({first_line(error)}): write it as text, numbers or booleans"
        ) from error
    except TraceError as error:
        if name is None or str(error).startswith(name):  # with the location of a row
            raise
        raise type(error)(f"{name}: {error}") from error


@dataclass(frozen=True)
class _Conversion:
    """The conversion of a table in order; `prefix` names its file at the start of messages."""

    rows: EpisodeTable
    schema: TableSchema
    prefix: str

    def result(self) -> TableTraces:
        """Return the traces."""
        schema = self.schema
        if schema.layout == "traces":
            self._check_layout()
        self._check_steps()
        actions = self._symbols(schema.action, ONLY_ACTION, of_steps=True)
        columns = {OBSERVATION: self._observations(), LABEL: self._labels(actions), ACTION: actions}
        if schema.reward is not None:
            columns[REWARD] = self._encoded(schema.reward, finite_reward, of_steps=True)
        for name, column in schema.column_of_output.items():
            columns[name] = self._symbols(column, of_steps=True)
        traces = TraceSet.taking_over(
            columns,
            offsets=np.append(0, np.cumsum(self.lengths)),
            terminated=self._flags(schema.terminated),
            truncated=self._flags(schema.truncated),
        )
        return TableTraces(traces, self.rows.was_sorted, [*self._warnings()])

    # Which rows are steps.

    @cached_property
    def missing(self) -> dict[str, NDArray[np.bool_]]:
        """Whether each row has no value, for each column of steps."""
        return {name: nulls(self.rows.table[name]) for name in self.schema.of_steps}

    @cached_property
    def final(self) -> NDArray[np.bool_]:
        """Whether the last row of each episode holds only the final observation."""
        if not self.schema.of_steps:
            return np.full(len(self.rows.starts), self.schema.next_observation is None)
        last = [missing[self.rows.ends - 1] for missing in self.missing.values()]
        return np.asarray(np.all(last, axis=0))

    @cached_property
    def dropped(self) -> NDArray[np.bool_]:
        """Whether the last row of each episode is a step without a following observation."""
        schema = self.schema
        is_unknown = schema.next_observation is None and schema.final_observation is None
        return ~self.final & (is_unknown and schema.observation is not None)

    @cached_property
    def extra(self) -> NDArray[np.bool_]:
        """Whether each episode has an observation after its last row."""
        return ~(self.final | self.dropped)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of steps of each episode."""
        return self.rows.ends - self.rows.starts - ~self.extra

    @cached_property
    def steps(self) -> NDArray[np.int64] | None:
        """The rows that are steps; None if all are."""
        if self.extra.all():
            return None
        return np.delete(np.arange(self.rows.table.num_rows), self.rows.ends[~self.extra] - 1)

    def _check_layout(self) -> None:
        """Raise `TraceError` unless steps are 0, 1, 2, … and each episode has a final row."""
        table, starts = self.rows.table, self.rows.starts
        if self.schema.order is not None:
            column = table[str(self.schema.order)]
            if not pa.types.is_integer(column.type):
                raise TraceError(f"the column `step` is of type {column.type}: use integers")
            step = np.asarray(column.to_numpy())
            expected = np.arange(len(step)) - np.repeat(starts, self.rows.ends - starts)
            if np.any(wrong := step != expected):
                row = int(np.argmax(wrong))
                raise TraceError(
                    f"{self.rows.locate(row)}: step {step[row]} of {self._episode(row)}, not the "
                    f"expected step {expected[row]}: steps must be 0, 1, 2, … without gaps or "
                    f"repeats"
                )
        for name, missing in self.missing.items():
            has_value = ~missing[self.rows.ends - 1]
            if np.any(has_value):
                row = int(self.rows.ends[np.argmax(has_value)]) - 1
                raise TraceError(
                    f"{self.rows.locate(row)}: the {name} is {table[name][row]} in the last row of "
                    f"{self._episode(row)}: end each episode with a row that holds the final "
                    f"observation and label, and null for what belongs to steps"
                )

    def _check_steps(self) -> None:
        """Raise `TraceError` unless episodes have steps, and only final rows lack their values."""
        is_step = np.ones(self.rows.table.num_rows, bool)
        is_step[self.rows.ends[self.final] - 1] = False
        for name, missing in self.missing.items():
            if np.any(wrong := missing & is_step):
                raise TraceError(
                    f"{self.rows.locate(int(np.argmax(wrong)))}: the column "
                    f"`{visible(name)}` has no value: give it one; only the last row of an "
                    f"episode may lack what belongs to steps, and then all of it"
                )
        if not np.all(self.lengths):
            row = int(self.rows.ends[np.argmin(self.lengths)]) - 1
            raise TraceError(
                f"{self.rows.locate(row)}: {self._episode(row)} has this one row, and a step needs "
                f"the observation after it: leave the episode out, or name next_observation"
            )

    def _episode(self, row: int) -> str:
        names = as_names(self.schema.episode)
        values = ", ".join(visible(str(self.rows.table[name][row])) for name in names)
        return f"episode {values}" if names else "the table"

    def _warnings(self) -> Iterator[str]:
        """Yield messages about rows that the traces lack."""
        episodes = amount(len(self.lengths), "episode")
        names = ", ".join(f"`{visible(name)}`" for name in self.schema.of_steps)
        verb = "is" if len(self.schema.of_steps) == 1 else "are"
        if dropped := int(self.dropped.sum()):
            yield (
                f"{self.prefix}the last row is a step, and the observation after it is unknown, in "
                f"{dropped:,} of {episodes}: that row gives the final observation, and its {names} "
                f"{verb} dropped; to keep the step, name next_observation or give a "
                f"final_observation"
            )
        if self.schema.layout == "log" and (empty := int(self.final.sum())):
            row = int(self.rows.ends[np.argmax(self.final)]) - 1
            yield (
                f"{self.rows.locate(row)}: the last row has no value for {names}, in {empty:,} of "
                f"{episodes}: it is skipped"
            )

    # The columns.

    def _observations(self) -> Column:
        schema, at = self.schema, self.rows.ends[self.extra]
        if schema.observation is None:
            return [NO_OBSERVATION], _core.repeated_code(0, self.rows.table.num_rows + len(at))
        values, codes = self._symbols(schema.observation)
        if not len(at):
            return values, codes
        role = schema.next_observation
        if role is None:
            after: Column = [as_symbol(schema.final_observation)], np.zeros(len(at), np.int32)
        else:
            after = self._symbols(role, of_steps=True)
        with locating("final_observation" if role is None else f"`{visible(str(role))}`"):
            interner: Interner[Any] = Interner()
            of_rows = interner.encode(values)[codes]
            of_after = interner.encode(after[0])[after[1]]
            values = interner.values_in_order()
        if role is not None:
            last = (np.cumsum(self.lengths) - 1)[self.extra]
            self._check_next_observations(of_rows, np.delete(of_after, last))
            of_after = of_after[last]
        return values, np.insert(of_rows, at, of_after)

    def _check_next_observations(self, of_rows: Codes, after_steps: Codes) -> None:
        """Raise `TraceError` unless each row begins with the next observation before it."""
        rows = np.delete(np.arange(len(of_rows)), self.rows.starts)
        wrong = of_rows[rows] != after_steps
        if np.any(wrong):
            row = int(rows[np.argmax(wrong)])
            raise TraceError(
                f"{self.rows.locate(row)}: the observation is not the next_observation of the "
                f"row before it in {self._episode(row)}: is a row missing, or the order wrong?"
            )

    def _labels(self, actions: Column) -> Column:
        """Return the labels, without events where the table has none."""
        schema = self.schema
        before_first = np.cumsum(self.lengths) - self.lengths
        if schema.layout == "log":
            values, codes = actions
            inputs = [value if isinstance(value, str) else symbol_text(value) for value in values]
            return _with_no_event((list(map(as_label, inputs)), codes), before_first)
        if schema.next_label is not None:
            labels = self._label_column(schema.next_label, of_steps=True)
            return _with_no_event(labels, before_first)
        at = self.rows.ends[self.extra]
        if schema.label is None:
            return [NO_EVENT], _core.repeated_code(0, self.rows.table.num_rows + len(at))
        return _with_no_event(self._label_column(schema.label), at)

    def _symbols(
        self, names: ColumnNames | None, constant: str | None = None, *, of_steps: bool = False
    ) -> Column:
        """Encode the symbols of one column, or tuples of several."""
        if names is None:
            return [constant], np.zeros(int(self.lengths.sum()), np.int32)
        if isinstance(names, str):
            return self._encoded(names, as_symbol, of_steps=of_steps)
        return _tuples([self._encoded(name, as_symbol, of_steps=of_steps) for name in names])

    def _encoded(
        self, name: str, convert: Callable[[Any], Any], *, of_steps: bool = False
    ) -> Column:
        """Encode a column by converting each distinct value once."""
        column, locate = self._column(name, of_steps=of_steps)
        if column.null_count:
            raise TraceError(f"{locate(int(np.argmax(nulls(column))))}: no value: give it one")
        return converted(*distinct(column), convert, locate)

    def _column(self, name: str, *, of_steps: bool) -> tuple[pa.ChunkedArray, Locate]:
        """Return a column, of all rows or of steps, and the locations of its values."""
        column, steps = self.rows.table[name], self.steps if of_steps else None
        if steps is not None:
            column = column.take(pa.array(steps))

        def locate(position: int) -> str:
            row = position if steps is None else int(steps[position])
            return f"{self.rows.locate(row)}, column `{visible(name)}`"

        return column, locate

    def _label_column(self, names: ColumnNames, *, of_steps: bool = False) -> Column:
        """Encode labels: texts, lists of texts, or booleans of the columns' names."""
        if not isinstance(names, str):
            marks = [self._encoded(name, _as_boolean, of_steps=of_steps) for name in names]
            values, codes = _tuples(marks)
            labels = [
                frozenset(name for name, is_event in zip(names, value, strict=True) if is_event)
                for value in values
            ]
            return labels, codes
        column, locate = self._column(names, of_steps=of_steps)
        if pa.types.is_boolean(column.type):
            values, codes = self._encoded(names, _as_boolean, of_steps=of_steps)
            return [frozenset({names}) if is_event else NO_EVENT for is_event in values], codes
        separator = self.schema.label_separator

        def as_events(value: Any) -> Label:
            if isinstance(value, str):
                parts = [value] if separator is None else map(str.strip, value.split(separator))
                return as_label([part for part in parts if part])
            return as_label(value)

        return converted(*distinct_labels(column), as_events, locate)

    def _flags(self, name: str | None) -> NDArray[np.bool_]:
        """Return whether a flag is set in a row of each episode; null is not set."""
        if name is None:
            return np.zeros(len(self.rows.starts), bool)
        column, locate = self._column(name, of_steps=False)
        if pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
            flags = np.array(column.cast(pa.bool_()).fill_null(False).to_numpy())
        else:
            values, codes = converted(
                *distinct(column), lambda value: value is not None and _as_boolean(value), locate
            )
            flags = np.array(values, bool)[codes]
        flags[self.rows.ends[self.dropped] - 1] = False  # flags of dropped steps
        if self.schema.episode is None and np.any(flags[: self.lengths[0] - 1]):
            raise TraceError(
                f"{self.rows.locate(int(np.argmax(flags)))}: `{visible(name)}` is set and the "
                f"table goes on, without an episode column: name the column that distinguishes "
                f"episodes"
            )
        return np.logical_or.reduceat(flags, self.rows.starts)


def _as_boolean(value: Any) -> bool:
    # A CSV file that spells one number in several ways, as 1 and 1.0, has texts.
    with suppress(ValueError):
        if (number := float(value) if isinstance(value, str) else value) in (0, 1):
            return bool(number)
    raise TraceError(f"{value!r} is neither true nor false: use booleans, or 0 and 1")


def _with_no_event(labels: Column, at: NDArray[np.int64]) -> Column:
    """Return labels with no event inserted before each of these positions."""
    values, codes = labels
    vocabulary = Vocabulary(sorted({*values, NO_EVENT}, key=label_order))  # the order of trace sets
    new_codes = codes_of(values, vocabulary, -1)
    no_event = vocabulary.code(NO_EVENT)
    return vocabulary, _core.recode_with_inserted(codes, new_codes, at.astype(np.int64), no_event)


def _tuples(columns: Sequence[Column]) -> Column:
    """Encode the tuples of the values of several columns."""
    (values, codes), *rest = columns
    tuples = [(value,) for value in values]
    for next_values, next_codes in rest:
        pairs, codes = distinct_pairs(codes, next_codes, len(tuples), len(next_values))
        indices = [divmod(pair, len(next_values)) for pair in pairs.tolist()]
        tuples = [(*tuples[first], next_values[second]) for first, second in indices]
    return tuples, codes


# --- Writing ------------------------------------------------------------------------------------


def arrow_table(traces: TraceSet) -> pa.Table:
    """Return the table of a Parquet file; `TraceError` for symbols that no column can hold."""
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
            EPISODE: np.repeat(np.arange(len(traces)), lengths),
            STEP: step,
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
        table = table.replace_schema_metadata({OWN_COLUMNS: msgspec.json.encode(list(further))})
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
