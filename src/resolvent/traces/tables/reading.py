"""Tables and logs of any layout → `TraceSet`."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resolvent.errors import TableWarning, TraceError, locating
from resolvent.progress import FractionListener
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.symbols import NO_EVENT, Label, Symbol, as_label, as_symbol, symbol_text
from resolvent.traces.tables.csv_files import MISSING
from resolvent.traces.tables.distinct import converted, distinct, distinct_labels
from resolvent.traces.tables.episodes import Episodes, episodes_of
from resolvent.traces.tables.roles import Names, Roles, as_names
from resolvent.traces.tables.sources import TableSource, open_table
from resolvent.traces.trace_set import Column, TraceSet
from resolvent.traces.vocabulary import Codes, Interner, distinct_pairs
from resolvent.wording import amount, visible

NOTHING_SEEN = "nothing"
"""The observation of traces from a table that has none."""

ONLY_ACTION = "step"
"""The action of traces from a table that has none."""


def read_table(
    source: Any,
    *,
    episode: Names | None = None,
    order: Names | None = None,
    observation: Names | None = None,
    action: Names | None = None,
    reward: str | None = None,
    label: Names | None = None,
    outputs: Names | Mapping[str, str] = (),
    terminated: str | None = None,
    truncated: str | None = None,
    next_observation: Names | None = None,
    next_label: Names | None = None,
    final_observation: Symbol | None = None,
    label_separator: str | None = None,
    delimiter: str | None = None,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
) -> TraceSet:
    """Read traces from a table with one row a step, saying which columns hold what.

    Args:
        source: A pandas or Polars data frame, an Arrow table or record-batch reader (or
            anything else with the Arrow PyCapsule interface), or the path of a CSV file,
            plain or compressed, or of a Parquet file or a folder of them.
        episode: Tells episodes apart; they come in the order of its values. Left out: the
            whole table is one episode.
        order: Numbers or times that say in which order the rows of an episode come. Left
            out: as they stand.
        observation: What was seen before the action; several columns make a tuple. Left
            out: one observation throughout.
        action: What was done; several columns make a tuple. Left out: one action
            throughout.
        reward: What the action was paid. Left out: traces without rewards.
        label: What had happened when the observation was seen: texts or lists of texts
            (nothing there is no event), a column of booleans, or several, whose names are
            the events where they are true. Left out: no event anywhere.
        outputs: Further columns of steps, which keep their names; or other names for them,
            `{"cost": "COST_EUR"}`.
        terminated: Whether the episode ended, set in any of its rows.
        truncated: Whether the episode was cut off, set in any of its rows.
        next_observation: What was seen after the action.
        next_label: What happened during the step, instead of `label`; of the same kinds.
        final_observation: What to put where the table does not tell what was seen after
            the last action of an episode.
        label_separator: What separates events within one text.
        delimiter: Of a CSV file, if it is not the one of comma, semicolon and tab that its
            first line suggests.
        missing: Texts of a CSV file that stand for no value.
        progress: Called now and then with the fraction of a CSV file that is read.

    What follows the last action of an episode is, the first of these that is so:

    | the table has | then the last row |
    |---|---|
    | a last row without `action`, `reward` and `outputs` | holds the final observation |
    | `next_observation` | is a step, and that column has the final observation |
    | no `observation` | is a step: there is nothing to see |
    | a `final_observation` that you give | is a step, followed by that |
    | none of these | gives the final observation alone: its step is dropped, with a warning |

    The warning is a `TableWarning`. Resolvent's own Parquet files have the first of these.

    >>> table = pa.table({"day": [1, 1, 2, 2], "sky": ["sun", "rain", "sun", "sun"],
    ...                   "walk": ["out", None, "in", None]})
    >>> traces = read_table(table, episode="day", observation="sky", action="walk")
    >>> traces[0].observations, traces[0].actions
    (('sun', 'rain'), ('out',))
    """
    roles = Roles(
        episode=episode,
        order=order,
        observation=observation,
        action=action,
        reward=reward,
        label=label,
        outputs=outputs,
        terminated=terminated,
        truncated=truncated,
        next_observation=next_observation,
        next_label=next_label,
        label_separator=label_separator,
        final_observation=final_observation,
    )
    opened = open_table(source, delimiter=delimiter, missing=missing, progress=progress)
    return traces_of(opened, roles)


def read_log(
    source: Any,
    *,
    episode: Names | None = None,
    order: Names | None = None,
    input: Names,  # noqa: A002
    output: Names | Mapping[str, str],
    delimiter: str | None = None,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
) -> TraceSet:
    """Read the log of a system that is given inputs and gives outputs, one row each.

    An input is the action of its step and also the event that moves the machine: the label
    of the next one. There is one observation throughout and no reward. Outputs are further
    columns, and `infer` makes a machine for each: the Mealy machine of the system.

    Args:
        source: As for `read_table`.
        episode: Tells runs of the system apart, each from its start. Left out: one run.
        order: Numbers or times that say in which order the rows of a run come. Left out: as
            they stand.
        input: What the system is given; several columns make one input.
        output: What it answers; several columns make several outputs. Names other than the
            columns' own are given as `{"answer": "observation"}`.
        delimiter: As for `read_table`.
        missing: As for `read_table`.
        progress: As for `read_table`.

    >>> log = pa.table({"event": ["coin", "push", "push"], "response": ["ok", "open", "locked"]})
    >>> traces = read_log(log, input="event", output="response")
    >>> traces[0].actions, [sorted(label) for label in traces[0].labels]
    (('coin', 'push', 'push'), [[], ['coin'], ['push'], ['push']])
    >>> traces[0].columns["response"]
    ('ok', 'open', 'locked')
    """
    roles = Roles(episode=episode, order=order, action=input, outputs=output)
    opened = open_table(source, delimiter=delimiter, missing=missing, progress=progress)
    return traces_of(opened, roles, moved_by_actions=True)


def traces_of(source: TableSource, roles: Roles, *, moved_by_actions: bool = False) -> TraceSet:
    """Read a table whose columns' roles are known; labels may be the actions before them."""
    table = source.read(roles.wanted)
    episodes = episodes_of(table, as_names(roles.episode), as_names(roles.order), source.place)
    return _Table(source, table, roles, episodes).traces(moved_by_actions)


@dataclass(frozen=True)
class _Table:
    """The columns of a table and its rows in order, on the way to traces."""

    source: TableSource
    table: pa.Table
    roles: Roles
    episodes: Episodes

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
    def steps(self) -> NDArray[np.int64]:
        """The numbers of the rows that are steps, in order."""
        if self.extra.all():
            return self.episodes.rows
        return np.delete(self.episodes.rows, self.episodes.ends[~self.extra] - 1)

    def _nulls(self, name: str) -> NDArray[np.bool_]:
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
        warnings.warn(
            f"{path}the last row is a step, and nothing says what was seen after it, in "
            f"{int(self.dropped.sum()):,} of {amount(len(self.lengths), 'episode')}: that row "
            f"gives the final observation, and its {names} {verb} dropped; to keep the step, "
            f"name next_observation or give a final_observation",
            TableWarning,
            stacklevel=5,
        )

    # The columns.

    def _observations(self) -> Column:
        roles, at = self.roles, self.episodes.ends[self.extra]
        values, codes = self._symbols(roles.observation, self.episodes.rows, NOTHING_SEEN)
        if roles.observation is None or not len(at):
            return values, np.insert(codes, at, 0)
        if roles.next_observation is None:
            after: Column = [as_symbol(roles.final_observation)], np.zeros(len(at), np.int32)
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
            row = int(self.episodes.rows[~first][np.argmax(wrong)])
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
            return [NO_EVENT], np.zeros(len(rows) + len(at), np.int32)
        values, codes = self._label_column(roles.label, rows)
        return _with(values, NO_EVENT), np.insert(codes, at, _position(values, NO_EVENT))

    def _after_each(self, labels: Column) -> Column:
        """Return labels of steps as what has happened after them, with no event at the start."""
        values, codes = labels
        starts = np.cumsum(self.lengths) - self.lengths
        none = _position(values, NO_EVENT)
        return _with(values, NO_EVENT), np.insert(codes, starts, none)

    def _symbols(
        self, names: Names | None, rows: NDArray[np.int64], constant: str | None = None
    ) -> Column:
        """Code the symbols of some rows: of one column, or tuples of several."""
        if names is None:
            return [constant], np.zeros(len(rows), np.int32)
        if isinstance(names, str):
            return self._coded(names, rows, as_symbol)
        return _tuples([self._coded(name, rows, as_symbol) for name in names])

    def _coded(self, name: str, rows: NDArray[np.int64], convert: Callable[[Any], Any]) -> Column:
        column = self._taken(name, rows)
        if column.null_count:
            place = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise TraceError(
                f"{self.source.place(int(rows[place]))}: the column `{visible(name)}` has no "
                f"value: give it one"
            )
        return converted(*distinct(column), convert, self._place_in(name, rows))

    def _taken(self, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
        return self.table[name].take(pa.array(rows))

    def _place_in(self, name: str, rows: NDArray[np.int64]) -> Callable[[int], str]:
        return lambda row: f"{self.source.place(int(rows[row]))}, column `{visible(name)}`"

    def _rewards(self, name: str) -> Column:
        return self._coded(name, self.steps, _as_reward)

    def _label_column(self, names: Names, rows: NDArray[np.int64]) -> Column:
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

    def _marks(self, name: str, rows: NDArray[np.int64]) -> Column:
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
        if self.roles.episode is None and np.any(flags[:-1]):
            row = int(np.argmax(flags))
            raise TraceError(
                f"{self.source.place(row)}: `{visible(name)}` is set and the table goes on, but "
                f"nothing says which rows belong together: name an episode column"
            )
        return np.logical_or.reduceat(flags, self.episodes.starts)


def _as_mark(value: Any) -> bool:
    if value in (0, 1):
        return bool(value)
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


def _with(values: Sequence[Any], value: Any) -> list[Any]:
    """Return the values, and one more unless it is among them."""
    return [*values] if value in values else [*values, value]


def _position(values: Sequence[Any], value: Any) -> int:
    """Return where a value stands, or would stand if it came last."""
    return values.index(value) if value in values else len(values)


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
