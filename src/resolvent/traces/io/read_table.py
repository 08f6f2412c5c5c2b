"""Tables and logs in any layout → `TraceSet`, or a `TraceDataset` that is read in shards."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from resolvent._util.parallel import FractionListener
from resolvent._util.text import described_by
from resolvent._util.validation import explain_memory_errors, quoted
from resolvent.errors import OptionError, TableWarning
from resolvent.traces.schema import (
    TABLE_ARGUMENTS,
    Name,
    Names,
    TableSchema,
    check_column_names,
    table_schema,
)
from resolvent.traces.source import TraceDataset
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")  # missing values in CSV files


def read_table(
    source: Any,
    *,
    episode: Names | None = None,
    order: Names | None = None,
    observation: Names | None = None,
    action: Names | None = None,
    reward: Name | None = None,
    label: Names | None = None,
    outputs: Names | Mapping[str, Name] = (),
    terminated: Name | None = None,
    truncated: Name | None = None,
    next_observation: Names | None = None,
    next_label: Names | None = None,
    final_observation: Symbol | None = None,
    label_separator: str | None = None,
    delimiter: str | None = None,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
) -> TraceSet:
    """Read traces from a table with one row a step, given the roles of its columns.

    Args:
        source: A pandas or Polars data frame, an Arrow table or record-batch reader (or
            anything else with the Arrow PyCapsule interface), or the path of a CSV file,
            plain or compressed, or of a Parquet file or a folder of them.
        episode: The episode of the row; episodes are sorted by it. Left out: the whole table
            is one episode.
        order: Numbers or times that order the rows of an episode. Left out: the order of the
            table.
        observation: The observation before the action; several columns make a tuple. Left
            out: one observation throughout.
        action: The action; several columns make a tuple. Left out: one action throughout.
        reward: The reward of the action. Left out: traces without rewards.
        label: The events up to the observation: texts or lists of texts (null is no event),
            a column of booleans, or several, whose names are the events where they are true.
            Left out: no event anywhere.
        outputs: Further step columns, which keep their names; or other names for them,
            `{"cost": "COST_EUR"}`.
        terminated: Whether the episode terminated, set in any of its rows.
        truncated: Whether the episode was truncated, set in any of its rows.
        next_observation: The observation after the action.
        next_label: The events during the step, instead of `label`; of the same types.
        final_observation: The observation after the last action of an episode, if the table
            does not have it.
        label_separator: The separator of events within one text.
        delimiter: The delimiter of a CSV file. Left out: the one of comma, semicolon and tab
            that its first line suggests.
        missing: Texts of a CSV file that are missing values.
        progress: Called now and then with the fraction of a CSV file that is read.

    The first line that applies determines the final observation of an episode:

    | the table has | then the last row |
    |---|---|
    | a last row without `action`, `reward` and `outputs` | holds the final observation |
    | `next_observation` | is a step, and that column has the final observation |
    | no `observation` | is a step: there is nothing to observe |
    | no `next_observation`, but you pass `final_observation` | is a step, followed by that |
    | none of these | gives the final observation alone: its step is dropped, with a warning |

    The warning is a `TableWarning`. The first line applies to Resolvent's own Parquet files.

    >>> import pyarrow as pa
    >>> skies, walks = ["sun", "rain", "sun", "sun"], ["out", None, "in", None]
    >>> table = pa.table({"day": [1, 1, 2, 2], "sky": skies, "walk": walks})
    >>> traces = read_table(table, episode="day", observation="sky", action="walk")
    >>> traces[0].observations, traces[0].actions
    (('sun', 'rain'), ('out',))
    """
    arguments = locals()
    schema = table_schema({name: arguments[name] for name in TABLE_ARGUMENTS})
    return _read(source, schema, delimiter, missing, progress)


@described_by(read_table)
def read_log(  # noqa: D417  # `read_table` describes the rest
    source: Any,
    *,
    episode: Names | None = None,
    order: Names | None = None,
    input: Names,  # noqa: A002
    output: Names | Mapping[str, Name],
    delimiter: str | None = None,
    missing: Sequence[str] = MISSING,
    progress: FractionListener | None = None,
) -> TraceSet:
    """Read the log of a system with an input and outputs in each row.

    The input is the action of its step and also the event that moves the machine: the label
    of the next step. There is one observation throughout and no reward. Outputs are further
    columns, and `infer` makes a machine for each: the Mealy machine of the system. A run's
    last row without input and outputs is skipped, with a `TableWarning`.

    Args:
        episode: The run of the row; each run starts in the initial state. Left out: one run.
        order: Numbers or times that order the rows of a run. Left out: the order of the
            table.
        input: The input of the system; several columns make one input.
        output: The output of the system; several columns make several outputs. Other names
            for them are passed as `{"answer": "observation"}`.

    >>> import pyarrow as pa
    >>> log = pa.table({"event": ["coin", "push", "push"], "response": ["ok", "open", "locked"]})
    >>> traces = read_log(log, input="event", output="response")
    >>> traces[0].actions, [sorted(label) for label in traces[0].labels]
    (('coin', 'push', 'push'), [[], ['coin'], ['push'], ['push']])
    >>> traces[0].columns["response"]
    ('ok', 'open', 'locked')
    """
    schema = table_schema({"episode": episode, "order": order, "input": input, "output": output})
    return _read(source, schema, delimiter, missing, progress)


def _read(
    source: Any,
    schema: TableSchema,
    delimiter: str | None,
    missing: Sequence[str],
    progress: FractionListener | None,
) -> TraceSet:
    # Importing Arrow's compute functions takes longer than the rest of `import resolvent`.
    from resolvent.traces.io.sources import read_source

    with explain_memory_errors("a table was read"):
        result = read_source(source, schema, delimiter, missing, progress)
    for message in result.warnings:
        warnings.warn(message, TableWarning, stacklevel=3)
    return result.traces


@described_by(read_table)
def scan_traces(  # noqa: D417  # `read_table` describes the rest
    location: str | Path | Iterable[str | Path],
    columns: Iterable[str] = (),
    *,
    episode: Names | None = None,
    order: Names | None = None,
    observation: Names | None = None,
    action: Names | None = None,
    reward: Name | None = None,
    label: Names | None = None,
    outputs: Names | Mapping[str, Name] = (),
    terminated: Name | None = None,
    truncated: Name | None = None,
    next_observation: Names | None = None,
    next_label: Names | None = None,
    final_observation: Symbol | None = None,
    label_separator: str | None = None,
    input: Names | None = None,  # noqa: A002
    output: Names | Mapping[str, Name] | None = None,
    damaged: Literal["refuse", "skip"] = "refuse",
) -> TraceDataset:
    """Open Parquet files without reading them into memory, wherever they are.

    `infer` reads them shard by shard, as often as it needs, so that they may be larger than
    memory. A shard is a file or, of a file with more than a million rows, row groups with about
    that number of rows. Only the columns that are needed are read.

    With any of the arguments of `read_table` the files are one table in a layout of its own: an
    episode may continue in the next file. Keys of `key=value` folders are columns, and so is
    `__filename`.

    Args:
        location: A folder, whose files come in the order of their names, with its `key=value`
            folders; a file; a glob, such as `"logs/**/*.parquet"`; an address that PyArrow
            opens, such as `"s3://bucket/logs"`; or a list of these. What begins with a dot or
            an underscore is not read.
        columns: Further columns to read from files of traces, beside those that they list as
            their own.
        input: As for `read_log`, with `output`: the files are a log.
        output: As for `read_log`.
        damaged: "refuse" raises an error if a file is damaged or gone. "skip" skips shards that
            cannot be read, and episodes beside them that may have rows there; `result.warnings`
            of `infer` lists these, and elsewhere a `TableWarning` does.

    Raises:
        DamagedFile: when a file cannot be read and `damaged` is "refuse".
        StorageError: when storage fails again and again.
        TraceError: when the location cannot be reached or holds no Parquet files, when files
            differ in the columns that are read, when the rows of an episode are not consecutive,
            and, as shards are read, when a file has changed since it was opened.

    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> log = pa.table({"run": [1, 1, 2], "event": ["coin", "push", "push"], "out": [0, 1, 0]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(log, f"{folder.name}/log.parquet")
    >>> location = f"{folder.name}/*.parquet"
    >>> scanned = scan_traces(location, episode="run", input="event", output="out")
    >>> len(scanned), scanned.rows, scanned.read(0)[0].actions
    (1, 3, ('coin', 'push'))
    >>> folder.cleanup()
    """
    arguments = locals()
    from resolvent.traces.scan.listing import files_of, uri_text
    from resolvent.traces.scan.opening import open_files

    if not isinstance(damaged, str) or damaged not in ("refuse", "skip"):
        raise OptionError(f"damaged is {quoted(damaged)}: write 'refuse' or 'skip'")
    further = check_column_names(columns)
    named = {name: arguments[name] for name in (*TABLE_ARGUMENTS, "input", "output")}
    named = {name: value for name, value in named.items() if value is not None and value != ()}
    schema = table_schema(named) if named else None
    if schema is not None and further:
        raise OptionError(
            "columns are for files of traces: of a table, name them as outputs (output of a log)"
        )
    if isinstance(location, Iterator):  # it can be gone through once, and its name is needed, too
        location = list(location)
    shards, schema = open_files(files_of(location), schema, further, skips=damaged == "skip")
    return TraceDataset(uri_text(location), shards, schema)
