"""Options that say which columns of a table or log hold what, shared by commands that read traces.

`--output` has two meanings where a command also writes a file: with `--input` it names a
column of a log, without it is the long form of `-o`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.progress import FractionListener
from resolvent._util.text import visible
from resolvent.cli.printing import saying_warnings
from resolvent.errors import OptionError
from resolvent.traces import (
    TraceDataset,
    TraceSet,
    read_log,
    read_table,
    read_traces,
    scan_traces,
)
from resolvent.traces.io.lines import MISSING
from resolvent.traces.scan.listing import columns_at
from resolvent.traces.schema import CommandLineValue

_PANEL = "Columns of a table (CSV, or Parquet of another layout)"

_COLUMNS = {
    "episode": "Tells episodes apart; without it there is one.",
    "order": "Numbers or times that order the rows of an episode; without it as they stand.",
    "observation": "What was seen before the action.",
    "action": "What was done.",
    "reward": "What the action was paid.",
    "label": "What had happened when the observation was seen; or columns of booleans.",
    "next_observation": "What was seen after the action.",
    "next_label": "What happened during the step, instead of --label.",
    "terminated": "Whether the episode ended.",
    "truncated": "Whether the episode was cut off.",
    "input": "What a system was given, if TRACES is a log of inputs and outputs.",
}
_TEXTS = {
    "final_observation": ("VALUE", "What to put after an episode's last action, if unknown."),
    "label_separator": ("TEXT", "What separates events within one text."),
    "delimiter": ("CHAR", "Of a CSV file, if not the comma, semicolon or tab of its first line."),
}
_PREFIX = "table_"
"""Keeps names of parameters apart from those that a command has already."""

_TUPLES = ("observation", "action", "input")
_SINGLE = ("reward", "terminated", "truncated")


@dataclass(frozen=True)
class TableOptions:
    """Which columns hold what, as the command line says it; nothing for a file of traces."""

    episode: list[str] | None = None
    order: list[str] | None = None
    observation: list[str] | None = None
    action: list[str] | None = None
    reward: str | None = None
    label: list[str] | None = None
    next_observation: list[str] | None = None
    next_label: list[str] | None = None
    terminated: str | None = None
    truncated: str | None = None
    input: list[str] | None = None
    final_observation: str | None = None
    label_separator: str | None = None
    delimiter: str | None = None
    missing: list[str] | None = None
    output: list[str] | None = None

    def target(self, short: Path | None) -> Path | None:
        """Return the file to write: that of `-o`, or of `--output` if it names no column."""
        if self.input or not self.output:
            return short
        if short is not None or len(self.output) > 1:
            raise OptionError(
                "there are several files to write to: give one, or name the log's --input if "
                "--output is a column"
            )
        return Path(self.output[0])

    @property
    def given(self) -> bool:
        """Whether anything is said about columns."""
        others = (getattr(self, field.name) for field in fields(self) if field.name != "output")
        return any(value is not None for value in others)

    def read(
        self,
        source: Path,
        columns: Sequence[str] = (),
        progress: FractionListener | None = None,
        **options: Any,
    ) -> TraceSet:
        """Read a file of traces, a table or a log, with further columns of these names.

        What was read only in part is said on standard error.
        """
        if not self.given:
            return read_traces(source, columns=columns, progress=progress, **options)
        words = self._words(str(source), columns)
        read = read_log if self.input else read_table
        with saying_warnings():
            return read(
                source,
                delimiter=self.delimiter,
                missing=self.missing or MISSING,
                progress=progress,
                **words,
            )

    def scan(
        self, place: str, columns: Sequence[str] = (), *, damaged: str = "refuse"
    ) -> TraceDataset:
        """Open files of traces, or of a table or log, to be gone through in pieces."""
        if not self.given:
            return scan_traces(place, columns, damaged=damaged)  # type: ignore[arg-type]
        return scan_traces(place, **self._words(place, columns), damaged=damaged)  # type: ignore[arg-type]

    def _words(self, place: str, columns: Sequence[str]) -> dict[str, Any]:
        """Return what is said of columns, in the words of `read_log` or of `read_table`."""
        shared = {"episode": _names(self.episode), "order": _names(self.order)}
        roles = {
            name: _names(getattr(self, name))
            for name in (
                *("observation", "action", "label", "next_observation", "next_label"),
                *("reward", "terminated", "truncated", "label_separator"),
            )
        }
        if self.final_observation is not None:
            roles["final_observation"] = CommandLineValue(self.final_observation)
        if not self.input:
            return {"outputs": columns, **shared, **roles}
        for name, value in roles.items():
            if value is not None:
                raise OptionError(
                    f"--input is for a log of inputs and outputs, --{name.replace('_', '-')} for "
                    f"a table of observations and actions: give one or the other"
                )
        outputs = {name: name for name in columns} | self._named_outputs(place)
        if not outputs:
            raise OptionError("--input needs --output: name the column with the log's outputs")
        return {"input": _names(self.input), "output": outputs, **shared}

    def _named_outputs(self, place: str) -> dict[str, str]:
        """Return the column of each `--output`: COLUMN, or NAME=COLUMN if none is called so."""
        from resolvent.traces.io.sources import open_table

        said = self.output or []
        known: list[str] = []
        if any("=" in one for one in said):
            if Path(place).exists():
                known = open_table(place, delimiter=self.delimiter).names
            else:
                known = columns_at(place)
        outputs: dict[str, str] = {}
        for one in said:
            name, _, column = (one, "", one) if one in known else one.partition("=")
            if name in outputs:
                raise OptionError(
                    f"there are several --output called `{visible(name)}`: give each its own "
                    f"name, as in other={visible(column or name)}"
                )
            outputs[name] = column or name
        return outputs


def _names(given: Any) -> Any:
    """Return one name as itself, for several names make tuples."""
    return given[0] if isinstance(given, list) and len(given) == 1 else given


def takes_table(*, writes: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options above; it gets what they say as its argument `table`.

    `writes` is for commands whose `-o` names a file.
    """
    added = _parameters(writes)

    def given_to(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_table(*arguments: Any, **options: Any) -> None:
            said = {one.name: options.pop(one.name, None) or None for one in added}
            table = TableOptions(**{_field(name): value for name, value in said.items()})
            if table.output and not (writes or table.input):
                raise OptionError("--output is a column of a log: name that of its --input, too")
            command(*arguments, table=table, **options)

        signature = inspect.signature(command)
        kept = [one for one in signature.parameters.values() if one.name != "table"]
        replaced = signature.replace(parameters=[*kept, *added])
        with_table.__signature__ = replaced  # type: ignore[attr-defined]
        with_table.__annotations__ = {one.name: one.annotation for one in (*kept, *added)}
        return with_table

    return given_to


def _parameters(writes: bool) -> list[inspect.Parameter]:
    """Return the options as parameters of a function, as Typer reads them."""
    parameters = []
    for name, text in _COLUMNS.items():
        many = name not in _SINGLE
        more = " Repeatable: several columns make one." if name in _TUPLES else ""
        parameters.append(_parameter(name, "COLUMN", text + more, many=many))
    for name, (metavar, text) in _TEXTS.items():
        parameters.append(_parameter(name, metavar, text))
    text = "A text that stands for no value, instead of empty fields, NA, NaN and null; repeatable."
    parameters.append(_parameter("missing", "TEXT", text, many=True))
    text = "With --input: a column with what the system answered, or NAME=COLUMN; repeatable."
    if writes:
        text += " Without: the file to write, as -o."
    parameters.append(_parameter("output", "COLUMN", text, many=True))
    return parameters


def _parameter(name: str, metavar: str, text: str, *, many: bool = False) -> inspect.Parameter:
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        metavar=metavar,
        help=text,
        rich_help_panel=_PANEL,
        show_default=False,
    )
    kind = list[str] | None if many else str | None
    return inspect.Parameter(
        _PREFIX + name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind, option],
    )


def _field(parameter: str) -> str:
    return parameter.removeprefix(_PREFIX)
