"""Tables and logs of any layout → `TraceSet`."""

from collections.abc import Mapping, Sequence
from typing import Any

from resolvent.errors import OptionError
from resolvent.limits import telling_of_memory
from resolvent.progress import FractionListener
from resolvent.traces.symbols import Symbol
from resolvent.traces.tables.headers import MISSING
from resolvent.traces.tables.roles import (
    Name,
    Roles,
    Spelled,
    as_names,
    named,
    named_one,
    named_outputs,
)
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
    final_observation: Symbol | Spelled | None = None,
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

    >>> import pyarrow as pa
    >>> skies, walks = ["sun", "rain", "sun", "sun"], ["out", None, "in", None]
    >>> table = pa.table({"day": [1, 1, 2, 2], "sky": skies, "walk": walks})
    >>> traces = read_table(table, episode="day", observation="sky", action="walk")
    >>> traces[0].observations, traces[0].actions
    (('sun', 'rain'), ('out',))
    """
    roles = _table_roles(
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
    """Read the log of a system that is given inputs and gives outputs, one row each.

    An input is the action of its step and also the event that moves the machine: the label
    of the next one. There is one observation throughout and no reward. Outputs are further
    columns, and `infer` makes a machine for each: the Mealy machine of the system. A run's
    last row without input and outputs is left out, with a `TableWarning`.

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

    >>> import pyarrow as pa
    >>> log = pa.table({"event": ["coin", "push", "push"], "response": ["ok", "open", "locked"]})
    >>> traces = read_log(log, input="event", output="response")
    >>> traces[0].actions, [sorted(label) for label in traces[0].labels]
    (('coin', 'push', 'push'), [[], ['coin'], ['push'], ['push']])
    >>> traces[0].columns["response"]
    ('ok', 'open', 'locked')
    """
    roles = _log_roles(episode, order, input, output)
    return _read(source, roles, delimiter, missing, progress, moved_by_actions=True)


def roles_of(
    table: Mapping[str, Any],
    input: Any,  # noqa: A002
    output: Any,
) -> tuple[Roles, bool] | None:
    """Return the roles that a caller names, and whether they are those of a log; None if none.

    >>> roles_of({"episode": "run", "reward": None}, "event", "answer")[1]
    True
    >>> roles_of({"episode": None, "outputs": ()}, None, None)
    """
    given = {name: value for name, value in table.items() if not (value is None or value == ())}
    if input is None and output is None:
        return (_table_roles(**given), False) if given else None
    for name in given:
        if name not in ("episode", "order"):
            raise OptionError(
                f"input and output are for a log, {name} for a table of observations and "
                f"actions: give one or the other"
            )
    if output is None:
        raise OptionError("input needs output: name the column with what the system answers")
    return _log_roles(given.get("episode"), given.get("order"), input, output), True


def _table_roles(**given: Any) -> Roles:
    """Return what the arguments of `read_table` say, checked."""
    several = ("observation", "action", "label", "next_observation", "next_label")
    checked: dict[str, Any] = {
        "episode": named(given.get("episode"), "episode", may_be_empty=True),
        "order": named(given.get("order"), "order", may_be_empty=True),
        "outputs": named_outputs(given.get("outputs", ()), "outputs"),
        "label_separator": given.get("label_separator"),
        "final_observation": given.get("final_observation"),
    }
    checked |= {name: named(given.get(name), name) for name in several}
    checked |= {
        name: named_one(given.get(name), name) for name in ("reward", "terminated", "truncated")
    }
    return Roles(**checked)


def _log_roles(episode: Any, order: Any, input: Any, output: Any) -> Roles:  # noqa: A002
    """Return what the arguments of `read_log` say, checked."""
    if input is None:
        raise OptionError("input is None: name the column with what the system is given")
    return Roles(
        episode=named(episode, "episode", may_be_empty=True),
        order=named(order, "order", may_be_empty=True),
        action=named(input, "input"),
        outputs=named_outputs(output, "output"),
    )


def _read(
    source: Any,
    roles: Roles,
    delimiter: str | None,
    missing: Sequence[str],
    progress: FractionListener | None,
    *,
    moved_by_actions: bool = False,
) -> TraceSet:
    # Loading what computes with Arrow takes longer than all else of `import resolvent`.
    from resolvent.traces.tables.rows import traces_of
    from resolvent.traces.tables.sources import open_table

    events = as_names(roles.label) + as_names(roles.next_label)
    with telling_of_memory("a table was read"):
        opened = open_table(
            source, delimiter=delimiter, missing=missing, progress=progress, events=events
        )
        return traces_of(opened, roles, moved_by_actions=moved_by_actions)
