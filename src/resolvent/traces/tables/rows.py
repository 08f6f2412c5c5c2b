"""Rows of a table, and the roles of its columns → `TraceSet`."""

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
from resolvent.errors import TableWarning, TraceError, locating
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.given_columns import Column
from resolvent.traces.symbols import NO_EVENT, Label, as_label, as_symbol, label_order, symbol_text
from resolvent.traces.tables.column_types import known_types
from resolvent.traces.tables.distinct import converted, distinct, distinct_labels
from resolvent.traces.tables.episodes import Episodes, RowNumbers, episodes_of, numbers_of
from resolvent.traces.tables.roles import Names, Roles, Spelled, as_names
from resolvent.traces.tables.sources import TableSource
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner, Vocabulary, codes_of, distinct_pairs
from resolvent.wording import amount, visible

NOTHING_SEEN = "nothing"
"""The observation of traces from a table that has none."""

ONLY_ACTION = "step"
"""The action of traces from a table that has none."""


def traces_of(source: TableSource, roles: Roles, *, moved_by_actions: bool = False) -> TraceSet:
    """Read a table whose columns' roles are known; labels may be the actions before them."""

    def warn(text: str) -> None:
        warnings.warn(text, TableWarning, stacklevel=8)

    table = source.read(roles.wanted)
    with known_types(str(source.path or "the table")):
        return traces_of_rows(source, table, roles, warn, moved_by_actions)[0]


def traces_of_rows(
    source: TableSource,
    table: pa.Table,
    roles: Roles,
    warn: Callable[[str], None],
    moved_by_actions: bool,
) -> tuple[TraceSet, bool]:
    """Make traces of what was read, and say whether the rows stood in order.

    `warn` is told what of the rows the traces leave out.
    """
    episodes = episodes_of(table, as_names(roles.episode), as_names(roles.order), source.place)
    traces = _Table(source, table, roles, episodes, warn).traces(moved_by_actions)
    return traces, isinstance(episodes.rows, range)


@dataclass(frozen=True)
class _Table:
    """The columns of a table and its rows in order, on the way to traces."""

    source: TableSource
    table: pa.Table
    roles: Roles
    episodes: Episodes
    warn: Callable[[str], None]

    def traces(self, moved_by_actions: bool) -> TraceSet:
        """Code all columns."""
        self._check_values_of_steps()
        self._check_lengths()
        actions = self._symbols(self.roles.action, self.steps, ONLY_ACTION)
        columns = {
            OBSERVATION: self._observations(),
            LABEL: self._after_each(_labels_of(actions)) if moved_by_actions else self._labels(),
            ACTION: actions,
        }
        if self.roles.reward is not None:
            columns[REWARD] = self._rewards(self.roles.reward)
        for name, column in self.roles.column_of_output.items():
            columns[name] = self._symbols(column, self.steps)
        traces = TraceSet.taking_over(
            columns,
            offsets=np.append(0, np.cumsum(self.lengths)),
            terminated=self._flags(self.roles.terminated),
            truncated=self._flags(self.roles.truncated),
        )
        if self.dropped.any():
            self._warn_of_dropped()
        if moved_by_actions and self.final.any():
            self._warn_of_empty()
        return traces

    # Which rows are steps.

    @cached_property
    def final(self) -> NDArray[np.bool_]:
        """Whether the last row of each episode has nothing but the final observation."""
        if not self.roles.of_steps:
            return np.full(len(self.episodes.starts), self.roles.next_observation is None)
        nulls = [self._nulls(name)[self.episodes.last] for name in self.roles.of_steps]
        return np.asarray(np.all(nulls, axis=0))

    @cached_property
    def dropped(self) -> NDArray[np.bool_]:
        """Whether the last row of each episode is a step of which nobody knows what followed."""
        known = (
            self.roles.observation is None
            or self.roles.next_observation is not None
            or self.roles.final_observation is not None
        )
        return ~self.final & (not known)

    @cached_property
    def extra(self) -> NDArray[np.bool_]:
        """Whether each episode has an observation after its last row."""
        return ~(self.final | self.dropped)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many steps each episode has."""
        return self.episodes.lengths - ~self.extra

    @cached_property
    def steps(self) -> RowNumbers:
        """The numbers of the rows that are steps, in order."""
        if self.extra.all():
            return self.episodes.rows
        rows = numbers_of(self.episodes.rows)
        return np.delete(rows, self.episodes.ends[~self.extra] - 1)

    def _nulls(self, name: str) -> NDArray[np.bool_]:
        if not self.table[name].null_count:
            return np.zeros(self.table.num_rows, bool)
        return np.asarray(self.table[name].is_null().to_numpy(zero_copy_only=False))

    def _check_values_of_steps(self) -> None:
        """Check that only rows with a final observation lack what belongs to steps."""
        for name in self.roles.of_steps:
            if not self.table[name].null_count:
                continue
            missing = self._nulls(name)
            missing[self.episodes.last[self.final]] = False
            if np.any(missing):
                raise TraceError(
                    f"{self.source.place(int(np.argmax(missing)))}: the column "
                    f"`{visible(name)}` has no value: give it one; only the last row of an "
                    f"episode may lack what belongs to steps, and then all of it"
                )

    def _check_lengths(self) -> None:
        if np.all(self.lengths):
            return
        row = int(self.episodes.last[np.argmin(self.lengths)])
        raise TraceError(
            f"{self.source.place(row)}: {self._episode(row)} has this one row, and a step needs "
            f"what was seen after it: leave the episode out, or name next_observation"
        )

    def _episode(self, row: int) -> str:
        names = as_names(self.roles.episode)
        values = ", ".join(visible(str(self.table[name][row])) for name in names)
        return f"episode {values}" if names else "the table"

    def _warn_of_dropped(self) -> None:
        names = ", ".join(f"`{visible(name)}`" for name in self.roles.of_steps)
        verb = "is" if len(self.roles.of_steps) == 1 else "are"
        path = "" if self.source.path is None else f"{self.source.path}: "
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
            f"{self.source.place(row)}: the last row has no value for {names}, in "
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
            if isinstance(final, Spelled):
                final = final.like(values[0])
            after: Column = [as_symbol(final)], np.zeros(len(at), np.int32)
            with locating("final_observation"):
                values, of_rows, of_last = _together((values, codes), after)
            return values, np.insert(of_rows, at, of_last)
        followed = self._symbols(roles.next_observation, self.steps)
        with locating(f"`{visible(str(roles.next_observation))}`"):
            values, of_rows, after_steps = _together((values, codes), followed)
        self._check_followed(of_rows, after_steps)
        last = (np.cumsum(self.lengths) - 1)[self.extra]
        return values, np.insert(of_rows, at, after_steps[last])

    def _check_followed(self, of_rows: Codes, after_steps: Codes) -> None:
        """Check that each row begins with what the one before it ended with."""
        first = np.zeros(len(of_rows), bool)
        first[self.episodes.starts] = True
        goes_on = np.ones(len(after_steps), bool)
        goes_on[(np.cumsum(self.lengths) - 1)[self.extra]] = False
        wrong = of_rows[~first] != after_steps[goes_on]
        if np.any(wrong):
            row = int(numbers_of(self.episodes.rows)[~first][np.argmax(wrong)])
            raise TraceError(
                f"{self.source.place(row)}: the observation is not the next_observation of the "
                f"row before it in {self._episode(row)}: is a row missing, or the order wrong?"
            )

    def _labels(self) -> Column:
        roles, rows = self.roles, self.episodes.rows
        at = self.episodes.ends[self.extra]
        if roles.next_label is not None:
            return self._after_each(self._label_column(roles.next_label, self.steps))
        if roles.label is None:
            return [NO_EVENT], _core.repeated_code(0, len(rows) + len(at))
        return _with_no_event(self._label_column(roles.label, rows), at)

    def _after_each(self, labels: Column) -> Column:
        """Return labels of steps as what has happened after them, with no event at the start."""
        return _with_no_event(labels, np.cumsum(self.lengths) - self.lengths)

    def _symbols(
        self, names: Names | None, rows: RowNumbers, constant: str | None = None
    ) -> Column:
        """Code the symbols of some rows: of one column, or tuples of several."""
        if names is None:
            return [constant], np.zeros(len(rows), np.int32)
        if isinstance(names, str):
            return self._coded(names, rows, as_symbol)
        return _tuples([self._coded(name, rows, as_symbol) for name in names])

    def _coded(self, name: str, rows: RowNumbers, convert: Callable[[Any], Any]) -> Column:
        column = self._taken(name, rows)
        if column.null_count:
            place = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise TraceError(
                f"{self.source.place(int(rows[place]))}: the column `{visible(name)}` has no "
                f"value: give it one"
            )
        return converted(*distinct(column), convert, self._place_in(name, rows))

    def _taken(self, name: str, rows: RowNumbers) -> pa.ChunkedArray:
        if isinstance(rows, range):
            return self.table[name]
        return self.table[name].take(pa.array(rows))

    def _place_in(self, name: str, rows: RowNumbers) -> Callable[[int], str]:
        return lambda row: f"{self.source.place(int(rows[row]))}, column `{visible(name)}`"

    def _rewards(self, name: str) -> Column:
        return self._coded(name, self.steps, _as_reward)

    def _label_column(self, names: Names, rows: RowNumbers) -> Column:
        """Code the labels of some rows."""
        if not isinstance(names, str):
            values, codes = _tuples([self._marks(name, rows) for name in names])
            labels = [
                frozenset(name for name, marked in zip(names, value, strict=True) if marked)
                for value in values
            ]
            return labels, codes
        column = self._taken(names, rows)
        if pa.types.is_boolean(column.type):
            values, codes = self._marks(names, rows)
            return [frozenset({names}) if marked else NO_EVENT for marked in values], codes
        separator = self.roles.label_separator

        def as_events(value: Any) -> Label:
            if isinstance(value, str):
                parts = [value] if separator is None else map(str.strip, value.split(separator))
                return as_label([part for part in parts if part])
            return as_label(value)

        return converted(*distinct_labels(column), as_events, self._place_in(names, rows))

    def _marks(self, name: str, rows: RowNumbers) -> Column:
        """Code a column of booleans, which may be written 0 and 1."""
        return self._coded(name, rows, _as_mark)

    def _flags(self, name: str | None) -> NDArray[np.bool_]:
        """Return of each episode whether one of its rows sets a flag; none given is not set."""
        if name is None:
            return np.zeros(len(self.episodes.starts), bool)
        rows = self.episodes.rows
        values, codes = converted(
            *distinct(self._taken(name, rows)),
            lambda value: value is not None and _as_mark(value),
            self._place_in(name, rows),
        )
        flags = np.array(values, bool)[codes]
        flags[self.episodes.ends[self.dropped] - 1] = False  # of steps that are not there
        if self.roles.episode is None and np.any(flags[: self.lengths[0] - 1]):
            row = int(rows[np.argmax(flags)])
            raise TraceError(
                f"{self.source.place(row)}: `{visible(name)}` is set and the table goes on, but "
                f"nothing says which rows belong together: name an episode column"
            )
        return np.logical_or.reduceat(flags, self.episodes.starts)


def _as_mark(value: Any) -> bool:
    # A CSV file that writes one number in several ways, as 1 and 1.0, holds texts.
    with suppress(ValueError):
        if (number := float(value) if isinstance(value, str) else value) in (0, 1):
            return bool(number)
    raise TraceError(f"{value!r} is neither true nor false: use booleans, or 0 and 1")


def _as_reward(value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        reward = float(value) + 0.0
    except (TypeError, ValueError):
        raise TraceError(f"{value!r} is no number: rewards must be numbers") from None
    if not math.isfinite(reward):
        raise TraceError(f"the reward is {reward}: rewards must be finite")
    return reward


def _labels_of(actions: Column) -> Column:
    """Return labels that say which action was taken, each an event by itself."""
    values, codes = actions
    labels = [as_label(value if isinstance(value, str) else symbol_text(value)) for value in values]
    return labels, codes


def _with_no_event(labels: Column, at: NDArray[np.int64]) -> Column:
    """Return labels with no event before each of these places.

    >>> _with_no_event(([frozenset("b"), frozenset("a")], np.int32([0, 1])), np.array([0]))[1]
    array([0, 2, 1], dtype=int32)
    """
    values, codes = labels
    kept = Vocabulary(sorted({*values, NO_EVENT}, key=label_order))  # the order of trace sets
    table = codes_of(values, kept, -1)
    none = kept.code(NO_EVENT)
    return kept, _core.recode_with_inserted(codes, table, at.astype(np.int64), none)


def _together(first: Column, second: Column) -> tuple[list[Any], Codes, Codes]:
    """Code two columns by the same values."""
    interner: Interner[Any] = Interner()
    codes = [interner.encode(values)[codes] for values, codes in (first, second)]
    return interner.values_in_order(), codes[0], codes[1]


def _tuples(columns: Sequence[Column]) -> Column:
    """Code the tuples that the values of several columns make.

    >>> _tuples([(["a", "b"], np.int32([0, 1, 0])), ([7, 8], np.int32([1, 1, 1]))])
    ([('a', 8), ('b', 8)], array([0, 1, 0], dtype=int32))
    """
    (values, codes), *others = columns
    tuples = [(value,) for value in values]
    for further, further_codes in others:
        kept, codes = distinct_pairs(codes, further_codes, len(tuples), len(further))
        places = [divmod(pair, len(further)) for pair in kept.tolist()]
        tuples = [(*tuples[first], further[second]) for first, second in places]
    return tuples, codes
