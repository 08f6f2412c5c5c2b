"""Column names of traces, and which columns of a table hold them (`TableSchema`).

Beside observations, labels and actions, traces have step columns, with one entry for
each step: `reward`, and further ones that the user names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Literal, TypeVar

from resolvent._util.text import listed, short, visible
from resolvent._util.validation import is_zero_dim, quoted
from resolvent.errors import OptionError, TraceError
from resolvent.traces.symbols import Symbol, as_symbol

T = TypeVar("T")

OBSERVATION, LABEL, ACTION, REWARD = "observation", "label", "action", "reward"
OBSERVED_COLUMNS = (OBSERVATION, LABEL)  # with an entry before the first step and after each
BASIC_COLUMNS = (OBSERVATION, LABEL, ACTION)  # columns of all traces
TERMINATED, TRUNCATED = "terminated", "truncated"
DEFAULT_COLUMNS = (OBSERVATION, REWARD, TERMINATED)  # others are read only by name
_OWN_NAMES = (*BASIC_COLUMNS, REWARD)
RESERVED = frozenset(
    {*_OWN_NAMES, *(f"{name}s" for name in _OWN_NAMES)} | {TERMINATED, TRUNCATED, "episode", "step"}
)

Name = str | int  # as the caller names a column: in a pandas frame often 0, 1, 2
Names = Name | Sequence[Name]  # a column, or several, as the caller names them
ColumnNames = str | Sequence[str]  # a column of a table, or several
_OF_LOGS = {"input": "action", "output": "outputs"}  # roles in a table of the columns of a log

NAME_COLUMNS = (
    "say what they hold by --observation, --action, --reward and --label, or by --input and "
    "--output for a log (rs.read_table and rs.read_log in Python)"
)
"""Remedy in errors about a table that was passed as traces."""


def check_column_name(name: Any) -> str:
    """Return the name of a further column; `TraceError` if it is not allowed."""
    if not isinstance(name, str) or not name:
        raise TraceError(
            f"{quoted(name)} cannot be the name of a column: use a string that is not empty"
        )
    if name in RESERVED:
        raise TraceError(
            f"a column cannot be called `{name}`, which means something else in traces: "
            f"give it another name"
        )
    return str(as_symbol(name))


def check_column_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Return the distinct names that a caller lists, sorted; a string is not a list."""
    if isinstance(names, str):
        raise TraceError(f"columns={quoted(names)} is a string: give a list of names, [{names!r}]")
    if not isinstance(names, Iterable) or is_zero_dim(names):
        raise TraceError(f"columns={quoted(names)}: give a list of names")
    return tuple(sorted(set(map(check_column_name, names))))


def in_column_order(columns: Mapping[str, T]) -> dict[str, T]:
    """Return step columns in their order: rewards first, then by name."""
    return dict(sorted(columns.items(), key=lambda column: (column[0] != REWARD, column[0])))


def default_outputs(columns: Iterable[str], *, observations: int) -> tuple[str, ...]:
    """Return the outputs predicted by default: next observation and reward, or a log's columns."""
    columns = tuple(columns)
    if columns and REWARD not in columns and observations == 1:
        return columns
    return (OBSERVATION, REWARD) if REWARD in columns else (OBSERVATION,)


def column_text(name: str) -> str:
    """Return the name of a column in errors, such as `rewards` or `column cost`."""
    return f"{name}s" if name in _OWN_NAMES else f"column `{short(name)}`"


def missing_column_error(name: str, columns: Iterable[str]) -> TraceError:
    """Return the error about a missing column, with the columns that exist."""
    names = list(columns)
    existing = "there are no further columns"
    if names:
        existing = f"there {'is' if len(names) == 1 else 'are'} {listed(names)}"
    return TraceError(f"the traces have no {column_text(name)}: {existing}")


def check_columns(wanted: Iterable[str], existing: Sequence[str], file: str = "") -> None:
    """Raise `TraceError` unless a table, possibly in a file, has each of some columns once."""
    prefix = f"{file}: " if file else ""
    for name in wanted:
        if name not in existing:
            names = ", ".join(map(visible, existing))
            raise TraceError(f"{prefix}there is no column `{visible(name)}`: there are {names}")
        if existing.count(name) > 1:
            raise TraceError(
                f"{prefix}there are several columns `{visible(name)}`: rename all but one"
            )


def check_same_columns(names: Iterable[str], expected: Iterable[str], called: str) -> None:
    """Raise `TraceError` unless traces have the columns of other traces, `called` so in errors."""
    names, expected = set(names), set(expected)
    for name in in_column_order(dict.fromkeys(names ^ expected)):
        text, pronoun = column_text(name), "them" if name == REWARD else "it"
        difference = f"no {text}, but {called} has"
        if name in names:
            difference = f"{text} here, but {called} has none"
        raise TraceError(f"{difference}: give {pronoun} to all traces or to none")


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table that hold traces; most fields are arguments of `read_table`.

    `layout` is "table", as for `read_table`; "log", as for `read_log`, where labels are the actions
    before them; or "traces", that of Parquet files of traces. `constants` are outputs that have one
    value in a file, also in rows that are no steps.
    """

    episode: ColumnNames | None = None
    order: ColumnNames | None = None
    observation: ColumnNames | None = None
    action: ColumnNames | None = None
    reward: str | None = None
    label: ColumnNames | None = None
    outputs: ColumnNames | Mapping[str, str] | None = ()
    terminated: str | None = None
    truncated: str | None = None
    next_observation: ColumnNames | None = None
    next_label: ColumnNames | None = None
    final_observation: Symbol | None = None
    label_separator: str | None = None
    layout: Literal["table", "log", "traces"] = "table"
    constants: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.column_of_output:
            if name in RESERVED:
                raise OptionError(
                    f"an output cannot be called `{name}`, which means something else in traces: "
                    f"give it another name, {{'answer': '{name}'}}, or answer={name} on the "
                    f"command line"
                )
            check_column_name(name)
        if not (self.observation or self.reward or self.column_of_output):
            raise OptionError(
                "nothing to predict: name a column for observation, reward or outputs"
            )
        if self.next_observation is not None:
            if self.observation is None:
                raise OptionError("next_observation needs observation: name that column, too")
            if self.final_observation is not None:
                raise OptionError(
                    "next_observation and final_observation both give the final observation: "
                    "leave out one"
                )
        if self.label is not None and self.next_label is not None:
            raise OptionError("label and next_label both give the labels: leave out one")
        separator = self.label_separator
        if separator is not None and not (isinstance(separator, str) and separator):
            raise OptionError(f"label_separator={quoted(separator)}: give a text such as ','")

    @property
    def column_of_output(self) -> dict[str, str]:
        """The table's column of each output, by the name of the output in the traces."""
        if isinstance(self.outputs, Mapping):
            return dict(self.outputs)
        return {name: name for name in as_names(self.outputs)}

    @property
    def of_steps(self) -> tuple[str, ...]:
        """Columns with a value for each step, null in the row of a final observation."""
        outputs = self.column_of_output.values()
        columns = (*as_names(self.action), *as_names(self.reward), *outputs)
        return tuple(name for name in columns if name not in self.constants)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, each once."""
        columns: Iterable[Any] = (
            *(self.episode, self.order, self.observation, self.of_steps, self.constants),
            *(self.label, self.terminated, self.truncated),
            *(self.next_observation, self.next_label),
        )
        return tuple(dict.fromkeys(name for names in columns for name in as_names(names)))

    @property
    def step_columns(self) -> tuple[str, ...]:
        """The step columns of the traces, beside the actions."""
        rewards = () if self.reward is None else (REWARD,)
        return (*rewards, *self.column_of_output)


TABLE_ARGUMENTS = tuple(
    field.name for field in fields(TableSchema) if field.name not in ("layout", "constants")
)
"""Arguments of `read_table` that describe columns."""


def as_names(names: ColumnNames | None) -> tuple[str, ...]:
    """Return the columns of one role as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def table_schema(arguments: Mapping[str, Any]) -> TableSchema:
    """Return the schema that arguments of `read_table`, or of `read_log`, describe, checked."""
    is_log = not arguments.keys().isdisjoint(_OF_LOGS)
    if is_log:
        for name in arguments.keys() - {*_OF_LOGS, "episode", "order"}:
            raise OptionError(
                f"input and output are for a log, {name} for a table of observations and "
                f"actions: give one or the other"
            )
        if "output" not in arguments:
            raise OptionError("input needs output: name the column with what the system answers")
        if arguments.get("input") is None:
            raise OptionError("input is None: name the column with what the system is given")
    fields: dict[str, Any] = {"layout": "log" if is_log else "table"}
    for name, value in arguments.items():
        if name in ("output", "outputs") and isinstance(value, Mapping):
            value = {key: _column(column, f"{name} {key!r}") for key, column in value.items()}
        elif name in ("reward", "terminated", "truncated"):
            value = None if value is None else _column(value, name)
        elif name not in ("label_separator", "final_observation"):
            value = _columns(value, name)
        fields[_OF_LOGS.get(name, name)] = value
    return TableSchema(**fields)


def _columns(names: Any, role: str) -> ColumnNames | None:
    """Return the columns that a caller names for a role, as texts; None if none."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable) or is_zero_dim(names):
        return _column(names, role)
    columns = tuple(_column(name, role) for name in names)
    if not columns and role not in ("episode", "order", "output", "outputs"):
        raise OptionError(f"{role} is an empty list: name at least one column")
    return columns


def _column(name: Any, role: str) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, Integral) and not isinstance(name, bool):
        return str(int(name))
    raise OptionError(f"{role} is {quoted(name)}, which names no column: give the name of one")
