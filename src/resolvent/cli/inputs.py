"""TRACES and its columns on the command line → traces, read whole or shard by shard."""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from resolvent._util.files import is_address
from resolvent._util.startup import is_command
from resolvent._util.text import amount, visible
from resolvent.cli.flags import LABEL_SOURCES, flag, json_or_text, names_in, takes
from resolvent.errors import OptionError
from resolvent.inference.infer import infer
from resolvent.inference.refinement import REFINE_ABOVE_STEPS
from resolvent.machines import Machine
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceDataset, TraceSet, read_log, read_table, read_traces, scan_traces
from resolvent.traces.io.formats import FORMATS
from resolvent.traces.scan.listing import files_of, is_glob
from resolvent.traces.scan.opening import read_footers
from resolvent.traces.schema import DEFAULT_COLUMNS
from resolvent.viz.terminal import ProgressBar

FILE_ROWS = 10_000_000  # maximum number of rows of a Parquet file that is read whole, not by shard

# --- Columns of a table -------------------------------------------------------------------------

_column = partial(
    flag, metavar="COLUMN", panel="Columns of a table or log (CSV, or Parquet of another layout)"
)
_columns = partial(_column, kind=list[str])
_FLAGS = (
    *(_columns(read_table, name) for name in ("episode", "order", "observation", "action")),
    *(_columns(read_table, name) for name in ("label", "next_observation", "next_label")),
    *(_column(read_table, name) for name in ("reward", "terminated", "truncated")),
    _columns(read_log, "input"),
    _column(
        read_table,
        "final_observation",
        parse=json_or_text,
        text="The observation after the last action, if the table lacks it: a text or JSON.",
        metavar="VALUE",
    ),
    _column(read_table, "label_separator", metavar="TEXT"),
    _column(read_table, "delimiter", metavar="CHAR"),
    _columns(read_table, "missing", metavar="TEXT"),
)
_CSV_ONLY = ("delimiter", "missing")
_reading = partial(flag, panel="How TRACES is read")
_FORMAT = "The format, instead of the one of the content."
_DAMAGED = "Refuse Parquet files that cannot be read, or skip them."
_READING_FLAGS = (
    _reading(read_traces, "format", names=FORMATS, text=_FORMAT),
    _reading(scan_traces, "damaged", text=_DAMAGED),
)

_OUTPUTS = "observation and reward; terminated if need be; all outputs of a log"
_TIMING = "current; for derived labels, current-with-initial"
LABELING_FLAGS = (
    flag(infer, "outputs", kind=str, parse=names_in, metavar="NAMES", show_default=_OUTPUTS),
    flag(infer, "labels", names=LABEL_SOURCES),
    flag(infer, "timing", names=LabelTiming, show_default=_TIMING),
)
"""Flags for the outputs and labels of machines."""


@dataclass(frozen=True)
class TableOptions:
    """The columns of a table or log by role, none for a file of traces, and how to read files.

    `--output` names a column of a log with `--input`, and otherwise the file that is written.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    output: Sequence[str] = ()
    format: str | None = None
    damaged: str = "refuse"

    def target(self, short: Path | None) -> Path | None:
        """Return the file to write: that of `-o`, or of `--output` if it names no column."""
        if "input" in self.columns or not self.output:
            return short
        if short is not None or len(self.output) > 1:
            raise OptionError(
                "several files to write are named: give one, or add --input if --output is a "
                "column of a log"
            )
        return Path(self.output[0])

    def read(self, source: Path, columns: Sequence[str], bar: ProgressBar) -> TraceSet:
        """Read a file of traces, a table or a log, with further columns of these names."""
        progress = bar.reading(source)
        if not self.columns:
            return read_traces(source, columns=columns, progress=progress, format=self.format)
        csv = {name: self.columns[name] for name in _CSV_ONLY if name in self.columns}
        read: Callable[..., TraceSet] = read_log if "input" in self.columns else read_table
        return read(source, progress=progress, **csv, **self._roles(str(source), columns))

    def scan(self, location: str, columns: Sequence[str] = ()) -> TraceDataset:
        """Open files of traces, or of a table or log, to be read shard by shard."""
        roles = self._roles(location, columns) if self.columns else {"columns": columns}
        return scan_traces(location, **roles, damaged=self.damaged)  # type: ignore[arg-type]

    def _roles(self, location: str, columns: Sequence[str]) -> dict[str, Any]:
        """Return columns by the parameters of `read_log` or `read_table` that they are for."""
        roles = {
            name: value[0] if isinstance(value, list) and len(value) == 1 else value
            for name, value in self.columns.items()
            if name not in _CSV_ONLY
        }
        if "input" not in roles:
            return {"outputs": columns, **roles}
        of_table = [name for name in roles if name not in ("input", "episode", "order")]
        if of_table:
            raise OptionError(
                f"--input is for a log of inputs and outputs, --{of_table[0].replace('_', '-')} "
                f"for a table of observations and actions: give one or the other"
            )
        outputs = {name: name for name in columns} | self._named_outputs(location)
        if not outputs:
            raise OptionError("--input needs --output: name the column with the log's outputs")
        return {"output": outputs, **roles}

    def _named_outputs(self, location: str) -> dict[str, str]:
        """Return the column of each `--output`: COLUMN, or NAME=COLUMN if none has this name."""
        from resolvent.traces.io.sources import columns_of_file

        columns: list[str] = []
        if any("=" in text for text in self.output):
            columns = columns_of_file(location, self.columns.get("delimiter"))
        outputs: dict[str, str] = {}
        for text in self.output:
            name, _, column = (text, "", text) if text in columns else text.partition("=")
            if name in outputs:
                raise OptionError(
                    f"there are several --output called `{visible(name)}`: give each its own "
                    f"name, as in other={visible(column or name)}"
                )
            outputs[name] = column or name
        return outputs


def takes_table(
    *, writes: bool = False, reading: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags of `TableOptions`, its argument `table`; with `writes` also `-o`."""

    def build(values: dict[str, Any]) -> TableOptions:
        others = {name: values.pop(name) for name in ("format", "damaged") if name in values}
        output = values.pop("output", ())
        if output and not (writes or "input" in values):
            raise OptionError("--output is a column of a log: name that of its --input, too")
        return TableOptions(values, output, **others)

    text = "With --input: a column with an output of the system, or NAME=COLUMN."
    text += " Without: the file to write, as -o." * writes
    output = _columns(read_log, "output", text=text)
    return takes("table", *(_READING_FLAGS * reading), *_FLAGS, output, build=build)


# --- Traces -------------------------------------------------------------------------------------


def opened(
    location: str,
    table: TableOptions,
    columns: Sequence[str],
    bar: ProgressBar,
    *,
    in_shards: bool = True,
    on: str = "threads",
    cache_dir: str | None = None,
) -> TraceSet | TraceDataset:
    """Read traces, or only open them if there are many and not all are needed at once.

    If damaged files are skipped, they are always only opened. Traces in memory need neither
    workers nor a cache: a note on standard error says so.
    """
    # A million labels are millions of objects, none of them garbage, and each search through them
    # takes about a second.
    gc.disable()
    try:
        traces = _opened(location, table, columns, bar, in_shards)
        if is_command():
            gc.freeze()
    finally:
        gc.enable()
    options = [f"--on {on}"] * (on != "threads") + [f"--cache-dir {cache_dir}"] * bool(cache_dir)
    if options and isinstance(traces, TraceSet):
        print(
            f"resolvent: note: {amount(traces.steps, 'step')} were read into memory; not used: "
            f"{visible(', '.join(options))}",
            file=sys.stderr,
        )
    return traces


def _opened(
    location: str, table: TableOptions, columns: Sequence[str], bar: ProgressBar, in_shards: bool
) -> TraceSet | TraceDataset:
    path = Path(location)
    is_listed = _is_address_or_glob(location)
    if table.damaged == "skip":
        if path.is_file() and not _is_parquet(path):
            raise OptionError(f"{location} is no Parquet file: leave out --damaged skip")
        return table.scan(location, columns)
    if is_listed and table.format not in (None, "parquet"):
        raise OptionError(f"{location} is read as Parquet: leave out the format {table.format!r}")
    if not is_listed and not path.is_dir() and not _is_parquet(path):
        return table.read(path, columns, bar)
    files = files_of(location)
    partitioned = path.is_dir() and any(Path(file.path).parent != path.absolute() for file in files)
    most = FILE_ROWS if path.is_file() else REFINE_ABOVE_STEPS
    if (
        is_listed
        or (partitioned and table.columns)
        or (in_shards and sum(sum(footer.groups) for footer in read_footers(files)[1]) > most)
    ):
        scanned = table.scan(location, columns)
        return scanned if in_shards and scanned.rows > REFINE_ABOVE_STEPS else scanned.read_all()
    return table.read(path, columns, bar)


def files_read(location: str) -> list[Path]:
    """Return the files and folders on this machine that TRACES names."""
    if not _is_address_or_glob(location):
        return [Path(location)]
    return [Path(file.path) for file in files_of(location) if file.root is None]


def columns_to_read(outputs: Sequence[str]) -> list[str]:
    """Return those of the columns to predict that are read only if they are named."""
    return [name for name in outputs if name not in DEFAULT_COLUMNS]


def columns_of(machines: Mapping[str, Machine]) -> list[str]:
    """Return the columns that traces need to test machines on them."""
    return columns_to_read([machine.predicts for machine in machines.values()])


def _is_address_or_glob(location: str) -> bool:
    return is_address(location) or (is_glob(location) and not Path(location).exists())


def _is_parquet(path: Path) -> bool:
    if path.is_file():
        with suppress(OSError), path.open("rb") as file:  # the reader reports why
            return file.read(4) == b"PAR1"
    return False
