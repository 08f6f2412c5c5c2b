"""An Arrow table and the roles of its columns → `TraceSet`."""

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import amount, visible
from resolvent.errors import TableWarning, TraceError, locating
from resolvent.traces.column_arrays import Column
from resolvent.traces.io.arrow import (
    converted,
    distinct,
    distinct_labels,
    nulls,
)
from resolvent.traces.io.episodes import Episodes, RowNumbers, episodes_of, numbers_of
from resolvent.traces.io.errors import type_errors_located
from resolvent.traces.io.sources import TableSource
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    REWARD,
    CommandLineValue,
    Names,
    TableSchema,
    as_names,
)
from resolvent.traces.symbols import NO_EVENT, Label, as_label, as_symbol, label_order, symbol_text
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner, Vocabulary, codes_of, distinct_pairs

NOTHING_SEEN = "nothing"
"""The observation throughout tables that have none."""

ONLY_ACTION = "step"
"""The action throughout tables that have none."""


def traces_of(
    source: TableSource, roles: TableSchema, *, moved_by_actions: bool = False
) -> TraceSet:
    """Read a table with these roles; `moved_by_actions` as for `TableRows.traces`."""

    def warn(text: str) -> None:
        warnings.warn(text, TableWarning, stacklevel=8)

    table = source.read(roles.wanted)
    with type_errors_located(str(source.path or "the table")):
        return table_to_traces(source, table, roles, warn, moved_by_actions)[0]


def table_to_traces(
    source: TableSource,
    table: pa.Table,
    roles: TableSchema,
    warn: Callable[[str], None],
    moved_by_actions: bool,
) -> tuple[TraceSet, bool]:
    """Return the traces of a table that was read, and whether its rows were in order.

    `warn` receives warnings about rows that the traces leave out.
    """
    episodes = episodes_of(table, as_names(roles.episode), as_names(roles.order), source.place)
    path = None if source.path is None else str(source.path)
    rows = TableRows(table, roles, episodes, source.place, path, warn)
    return rows.traces(moved_by_actions), isinstance(episodes.rows, range)


@dataclass(frozen=True)
class TableRows:
    """The rows of a table in order of episodes and steps, to be made into traces.

    Attributes:
        table: The columns of the table.
        roles: The columns' roles.
        episodes: The rows of each episode.
        place: Returns the location of a row in errors.
        path: The file of the table; None if it is in memory.
        warn: Receives warnings about rows that the traces leave out.
    """

    table: pa.Table
    roles: TableSchema
    episodes: Episodes
    place: Callable[[int], str]
    path: str | None
    warn: Callable[[str], None]

    def traces(self, moved_by_actions: bool = False) -> TraceSet:
        """Return the traces.

        `moved_by_actions`: the label after each step is its action, as in a log.
        """
        self.check_step_values()
        self.check_lengths()
        actions = self._symbols(self.roles.action, self.steps, ONLY_ACTION)
        columns = {
            OBSERVATION: self._observations(),
            LABEL: self._after_each(_labels_of(actions)) if moved_by_actions else self.labels(),
            ACTION: actions,
        }
        if self.roles.reward is not None:
            columns[REWARD] = self.encoded(self.roles.reward, self.steps, self.as_reward)
        for name, column in self.roles.column_of_output.items():
            columns[name] = self._symbols(column, self.steps)
        traces = TraceSet.taking_over(
            columns,
            offsets=np.append(0, np.cumsum(self.lengths)),
            terminated=self.flags(self.roles.terminated),
            truncated=self.flags(self.roles.truncated),
        )
        if self.dropped.any():
            self._warn_of_dropped()
        if moved_by_actions and self.final.any():
            self._warn_of_empty()
        return traces

    # Which rows are steps.

    @cached_property
    def final(self) -> NDArray[np.bool_]:
        """Whether the last row of each episode holds only the final observation."""
        if not self.roles.of_steps:
            return np.full(len(self.episodes.starts), self.roles.next_observation is None)
        last = [nulls(self.table[name])[self.episodes.last] for name in self.roles.of_steps]
        return np.asarray(np.all(last, axis=0))

    @cached_property
    def dropped(self) -> NDArray[np.bool_]:
        """Whether the last row of each episode is a step without a following observation."""
        roles = self.roles
        if (
            roles.observation is None
            or roles.next_observation is not None
            or roles.final_observation is not None
        ):
            return np.zeros(len(self.final), bool)
        return ~self.final

    @cached_property
    def extra(self) -> NDArray[np.bool_]:
        """Whether each episode has an observation after its last row."""
        return ~(self.final | self.dropped)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of steps of each episode."""
        return self.episodes.lengths - ~self.extra

    @cached_property
    def steps(self) -> RowNumbers:
        """The numbers of the rows that are steps, in order."""
        if self.extra.all():
            return self.episodes.rows
        rows = numbers_of(self.episodes.rows)
        return np.delete(rows, self.episodes.ends[~self.extra] - 1)

    @cached_property
    def last_steps(self) -> NDArray[np.int64]:
        """The positions among the steps of the last step of each episode."""
        return np.cumsum(self.lengths) - 1

    def check_step_values(self) -> None:
        """Raise `TraceError` unless only rows with a final observation lack values of steps."""
        for name in self.roles.of_steps:
            if not self.table[name].null_count:
                continue
            missing = nulls(self.table[name])
            missing[self.episodes.last[self.final]] = False
            if np.any(missing):
                raise TraceError(
                    f"{self.place(int(np.argmax(missing)))}: the column "
                    f"`{visible(name)}` has no value: give it one; only the last row of an "
                    f"episode may lack what belongs to steps, and then all of it"
                )

    def check_lengths(self) -> None:
        """Raise `TraceError` if an episode has no step."""
        if np.all(self.lengths):
            return
        row = int(self.episodes.last[np.argmin(self.lengths)])
        raise TraceError(
            f"{self.place(row)}: {self._episode(row)} has this one row, and a step needs "
            f"what was seen after it: leave the episode out, or name next_observation"
        )

    def _episode(self, row: int) -> str:
        names = as_names(self.roles.episode)
        values = ", ".join(visible(str(self.table[name][row])) for name in names)
        return f"episode {values}" if names else "the table"

    def _warn_of_dropped(self) -> None:
        names = ", ".join(f"`{visible(name)}`" for name in self.roles.of_steps)
        verb = "is" if len(self.roles.of_steps) == 1 else "are"
        path = "" if self.path is None else f"{self.path}: "
        self.warn(
            f"{path}the last row is a step, and nothing says what was seen after it, in "
            f"{int(self.dropped.sum()):,} of {amount(len(self.lengths), 'episode')}: that row "
            f"gives the final observation, and its {names} {verb} dropped; to keep the step, "
            f"name next_observation or give a final_observation"
        )

    def _warn_of_empty(self) -> None:
        names = ", ".join(f"`{visible(name)}`" for name in self.roles.of_steps)
        row = int(self.episodes.last[np.argmax(self.final)])
        self.warn(
            f"{self.place(row)}: the last row has no value for {names}, in "
            f"{int(self.final.sum()):,} of {amount(len(self.lengths), 'episode')}: it is left out"
        )

    # The columns.

    def _observations(self) -> Column:
        roles, at = self.roles, self.episodes.ends[self.extra]
        if roles.observation is None:
            return [NOTHING_SEEN], _core.repeated_code(0, len(self.episodes.rows) + len(at))
        values, codes = self._symbols(roles.observation, self.episodes.rows)
        if not len(at):
            return values, codes
        if roles.next_observation is None:
            final = roles.final_observation
            if isinstance(final, CommandLineValue):
                final = final.like(values[0])
            after: Column = [as_symbol(final)], np.zeros(len(at), np.int32)
            with locating("final_observation"):
                values, of_rows, of_last = _joint_codes((values, codes), after)
            return values, np.insert(of_rows, at, of_last)
        after = self._symbols(roles.next_observation, self.steps)
        with locating(f"`{visible(str(roles.next_observation))}`"):
            values, of_rows, after_steps = _joint_codes((values, codes), after)
        self._check_next_observations(of_rows, after_steps)
        return values, np.insert(of_rows, at, after_steps[self.last_steps[self.extra]])

    def _check_next_observations(self, of_rows: Codes, after_steps: Codes) -> None:
        """Raise `TraceError` unless each row begins with the next observation before it."""
        first = np.zeros(len(of_rows), bool)
        first[self.episodes.starts] = True
        continues = np.ones(len(after_steps), bool)
        continues[self.last_steps[self.extra]] = False
        wrong = of_rows[~first] != after_steps[continues]
        if np.any(wrong):
            row = int(numbers_of(self.episodes.rows)[~first][np.argmax(wrong)])
            raise TraceError(
                f"{self.place(row)}: the observation is not the next_observation of the "
                f"row before it in {self._episode(row)}: is a row missing, or the order wrong?"
            )

    def labels(self) -> Column:
        """Return the labels, without events where the table has none."""
        roles, rows = self.roles, self.episodes.rows
        at = self.episodes.ends[self.extra]
        if roles.next_label is not None:
            return self._after_each(self._label_column(roles.next_label, self.steps))
        if roles.label is None:
            return [NO_EVENT], _core.repeated_code(0, len(rows) + len(at))
        return _with_no_event(self._label_column(roles.label, rows), at)

    def _after_each(self, labels: Column) -> Column:
        """Return labels of steps as labels after them, with no event at the start."""
        return _with_no_event(labels, np.cumsum(self.lengths) - self.lengths)

    def _symbols(
        self, names: Names | None, rows: RowNumbers, constant: str | None = None
    ) -> Column:
        """Encode the symbols of some rows: of one column, or tuples of several."""
        if names is None:
            return [constant], np.zeros(len(rows), np.int32)
        if isinstance(names, str):
            return self.encoded(names, rows, as_symbol)
        return _tuples([self.encoded(name, rows, as_symbol) for name in names])

    def encoded(self, name: str, rows: RowNumbers, convert: Callable[[Any], Any]) -> Column:
        """Encode some rows of a column by converting each distinct value once."""
        column = self._at(name, rows)
        if column.null_count:
            row = int(rows[int(np.argmax(nulls(column)))])
            raise TraceError(self.null_text(name, row))
        return converted(*distinct(column), convert, self._value_place(name, rows))

    def null_text(self, name: str, row: int) -> str:
        """Return the message about a missing value."""
        return f"{self.place(row)}: the column `{visible(name)}` has no value: give it one"

    def value_place(self, name: str, row: int) -> str:
        """Return the location of a value in errors."""
        return f"{self.place(row)}, column `{visible(name)}`"

    def _value_place(self, name: str, rows: RowNumbers) -> Callable[[int], str]:
        return lambda position: self.value_place(name, int(rows[position]))

    def _at(self, name: str, rows: RowNumbers) -> pa.ChunkedArray:
        if isinstance(rows, range):
            return self.table[name]
        return self.table[name].take(pa.array(rows))

    def as_reward(self, value: Any) -> float:
        """Return a reward as a finite float."""
        try:
            if isinstance(value, bool):
                raise ValueError
            reward = float(value) + 0.0
        except (TypeError, ValueError):
            raise TraceError(f"{value!r} is no number: rewards must be numbers") from None
        if not math.isfinite(reward):
            raise TraceError(f"the reward is {reward}: rewards must be finite")
        return reward

    def _label_column(self, names: Names, rows: RowNumbers) -> Column:
        """Encode the labels of some rows."""
        if not isinstance(names, str):
            values, codes = _tuples([self.encoded(name, rows, _as_boolean) for name in names])
            labels = [
                frozenset(name for name, is_event in zip(names, value, strict=True) if is_event)
                for value in values
            ]
            return labels, codes
        column = self._at(names, rows)
        if pa.types.is_boolean(column.type):
            values, codes = self.encoded(names, rows, _as_boolean)
            return [frozenset({names}) if is_event else NO_EVENT for is_event in values], codes
        separator = self.roles.label_separator

        def as_events(value: Any) -> Label:
            if isinstance(value, str):
                parts = [value] if separator is None else map(str.strip, value.split(separator))
                return as_label([part for part in parts if part])
            return as_label(value)

        return converted(*distinct_labels(column), as_events, self._value_place(names, rows))

    def flags(self, name: str | None) -> NDArray[np.bool_]:
        """Return whether a flag is set in a row of each episode; null is not set."""
        if name is None:
            return np.zeros(len(self.episodes.starts), bool)
        rows = self.episodes.rows
        column = self._at(name, rows)
        if pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
            flags = np.array(column.cast(pa.bool_()).fill_null(False).to_numpy())
        else:
            values, codes = converted(
                *distinct(column),
                lambda value: value is not None and _as_boolean(value),
                self._value_place(name, rows),
            )
            flags = np.array(values, bool)[codes]
        flags[self.episodes.ends[self.dropped] - 1] = False  # flags of dropped steps
        if self.roles.episode is None and np.any(flags[: self.lengths[0] - 1]):
            row = int(rows[np.argmax(flags)])
            raise TraceError(
                f"{self.place(row)}: `{visible(name)}` is set and the table goes on, but "
                f"nothing says which rows belong together: name an episode column"
            )
        return np.logical_or.reduceat(flags, self.episodes.starts)


def _as_boolean(value: Any) -> bool:
    # A CSV file that spells one number in several ways, as 1 and 1.0, has texts.
    with suppress(ValueError):
        if (number := float(value) if isinstance(value, str) else value) in (0, 1):
            return bool(number)
    raise TraceError(f"{value!r} is neither true nor false: use booleans, or 0 and 1")


def _labels_of(actions: Column) -> Column:
    """Return labels with one event, the action."""
    values, codes = actions
    labels = [as_label(value if isinstance(value, str) else symbol_text(value)) for value in values]
    return labels, codes


def _with_no_event(labels: Column, at: NDArray[np.int64]) -> Column:
    """Return labels with no event inserted before each of these positions.

    >>> _with_no_event(([frozenset("b"), frozenset("a")], np.int32([0, 1])), np.array([0]))[1]
    array([0, 2, 1], dtype=int32)
    """
    values, codes = labels
    vocabulary = Vocabulary(sorted({*values, NO_EVENT}, key=label_order))  # the order of trace sets
    new_codes = codes_of(values, vocabulary, -1)
    no_event = vocabulary.code(NO_EVENT)
    return vocabulary, _core.recode_with_inserted(codes, new_codes, at.astype(np.int64), no_event)


def _joint_codes(first: Column, second: Column) -> tuple[list[Any], Codes, Codes]:
    """Encode two columns by the same values."""
    interner: Interner[Any] = Interner()
    codes = [interner.encode(values)[codes] for values, codes in (first, second)]
    return interner.values_in_order(), codes[0], codes[1]


def _tuples(columns: Sequence[Column]) -> Column:
    """Encode the tuples of the values of several columns.

    >>> _tuples([(["a", "b"], np.int32([0, 1, 0])), ([7, 8], np.int32([1, 1, 1]))])
    ([('a', 8), ('b', 8)], array([0, 1, 0], dtype=int32))
    """
    (values, codes), *rest = columns
    tuples = [(value,) for value in values]
    for next_values, next_codes in rest:
        pairs, codes = distinct_pairs(codes, next_codes, len(tuples), len(next_values))
        indices = [divmod(pair, len(next_values)) for pair in pairs.tolist()]
        tuples = [(*tuples[first], next_values[second]) for first, second in indices]
    return tuples, codes
