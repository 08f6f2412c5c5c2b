"""Tables and logs in any layout → `TraceSet`."""

from collections.abc import Mapping, Sequence
from typing import Any

from resolvent._util.progress import FractionListener
from resolvent._util.validation import telling_of_memory
from resolvent.traces.io.lines import MISSING
from resolvent.traces.schema import (
    CommandLineValue,
    Name,
    TableSchema,
    as_names,
    log_roles,
    table_roles,
)
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet

Names = Name | Sequence[Name]


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
    final_observation: Symbol | CommandLineValue | None = None,
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
    roles = table_roles(
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
    return _read(source, roles, delimiter, missing, progress)


def read_log(
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
    last row without input and outputs is left out, with a `TableWarning`.

    Args:
        source: As for `read_table`.
        episode: The run of the row; each run starts in the initial state. Left out: one run.
        order: Numbers or times that order the rows of a run. Left out: the order of the
            table.
        input: The input of the system; several columns make one input.
        output: The output of the system; several columns make several outputs. Other names
            for them are passed as `{"answer": "observation"}`.
        delimiter: As for `read_table`.
        missing: As for `read_table`.
        progress: As for `read_table`.

    >>> import pyarrow as pa
    >>> log = pa.table({"event": ["coin", "push", "push"], "response": ["ok", "open", "locked"]})
    >>> traces = read_log(log, input="event", output="response")
    >>> traces[0].actions, [sorted(label) for label in traces[0].labels]
    (('coin', 'push', 'push'), [[], ['coin'], ['push'], ['push']])
    >>> traces[0].columns["response"]
    ('ok', 'open', 'locked')
    """
    roles = log_roles(episode, order, input, output)
    return _read(source, roles, delimiter, missing, progress, moved_by_actions=True)


def _read(
    source: Any,
    roles: TableSchema,
    delimiter: str | None,
    missing: Sequence[str],
    progress: FractionListener | None,
    *,
    moved_by_actions: bool = False,
) -> TraceSet:
    # Importing Arrow's compute functions takes longer than the rest of `import resolvent`.
    from resolvent.traces.io.sources import open_table
    from resolvent.traces.io.table import traces_of

    events = as_names(roles.label) + as_names(roles.next_label)
    with telling_of_memory("a table was read"):
        opened = open_table(
            source, delimiter=delimiter, missing=missing, progress=progress, events=events
        )
        return traces_of(opened, roles, moved_by_actions=moved_by_actions)
