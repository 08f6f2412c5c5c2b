"""JSON lines, one episode a line ↔ `TraceSet`.

A line is `{"observations": […], "labels": […], "actions": […], "rewards": […],
"terminated": true, "truncated": false, "columns": {"cost": […]}}`. Rewards,
flags and further columns are optional. A label is a list of strings; a string,
an int and null are read too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from resolvent._util.text import visible
from resolvent.errors import TraceError, locating
from resolvent.traces.columns import ColumnEncoder, TraceSetBuilder, check_column_lengths, episodes
from resolvent.traces.io.lines import Line, decode_line
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    RESERVED,
    REWARD,
    check_column_name,
    missing_column_error,
)
from resolvent.traces.trace_set import TraceSet

_SHAPE = '{"observations": […], "labels": […], "actions": […], "rewards": […]}'
_STEP_PATH = re.compile(r"\$\.(observation|label|action|reward)s\[(\d+)\]")


class _Episode(msgspec.Struct):
    observations: list[Any]
    labels: list[tuple[str | int, ...] | str | int | None]
    actions: list[Any]
    rewards: list[float] | UnsetType = UNSET
    terminated: bool = False
    truncated: bool = False
    columns: dict[str, list[Any]] | UnsetType = UNSET


def read_json_lines(lines: Iterable[Line], columns: Sequence[str] = ()) -> TraceSet:
    """Read one trace from each line.

    `columns` names keys of the line to read as columns, beside those under `"columns"`.

    >>> text = b'{"observations":[0,1], "labels":[[],["key"]], "actions":["up"], "cost":[1]}'
    >>> read_json_lines([Line("line 1", text)], columns=["cost"])[0]
    Trace(observations=(0, 1), labels=(frozenset(), frozenset({'key'})), actions=('up',), \
rewards=None, terminated=False, truncated=False, columns={'cost': (1,)})
    """
    decoder = msgspec.json.Decoder(_episode_with(columns))
    coder, coded_episodes = ColumnEncoder(), TraceSetBuilder()
    for place, text in lines:
        with locating(place):
            episode = decode_line(decoder, text, _where, _SHAPE)
            lists = {
                OBSERVATION: episode.observations,
                LABEL: episode.labels,
                ACTION: episode.actions,
                **_step_columns(episode, columns, text),
            }
            check_column_lengths(lists)
            coded_episodes.add(
                coder.code(lists), terminated=episode.terminated, truncated=episode.truncated
            )
    return coded_episodes.trace_set(coder.values())


def _episode_with(columns: Sequence[str]) -> type[_Episode]:
    """Return the struct of a line whose keys may include these columns."""
    fields = [
        (_field(name), list[Any] | UnsetType, msgspec.field(default=UNSET, name=name))
        for name in columns
        if name not in _Episode.__struct_encode_fields__
    ]
    if not fields:
        return _Episode
    try:
        return cast("type[_Episode]", msgspec.defstruct("_Episode", fields, bases=(_Episode,)))
    except ValueError as error:  # a name that JSON escapes
        names = ", ".join(map(visible, columns))
        raise TraceError(
            f"columns {names}: one of them has quotes or control characters, and stands under "
            f'"columns" in JSON lines: leave it out here ({error})'
        ) from error


def _field(name: str) -> str:
    """Return the attribute of a column, whose name need not be a Python identifier."""
    return f"column_{name.encode().hex()}"


def _step_columns(
    episode: _Episode, names: Sequence[str], text: bytes
) -> Mapping[str, Sequence[Any]]:
    columns: dict[str, list[Any]] = {}
    if episode.rewards is not UNSET:
        columns[REWARD] = episode.rewards
    if episode.columns is not UNSET:
        columns |= {check_column_name(name): values for name, values in episode.columns.items()}
    for name in names:
        if name not in columns:
            values = getattr(episode, _field(name), UNSET)
            if values is UNSET:
                keys = msgspec.json.decode(text, type=dict[str, Any]).keys()
                existing = {*columns, *keys}.difference(RESERVED, _Episode.__struct_fields__)
                raise missing_column_error(name, sorted(existing))
            columns[name] = values
    return columns


def _where(path: str) -> str:
    if match := _STEP_PATH.match(path):
        return f"step {match[2]}: the {match[1]}"
    return path.removeprefix("$.")


def json_lines(traces: TraceSet) -> Iterator[bytes]:
    """Yield one line for each trace, with labels as sorted lists."""
    labels = [sorted(label) for label in traces.labels]
    for number, columns in enumerate(episodes(traces, labels)):
        episode = _Episode(
            columns.pop(OBSERVATION),
            columns.pop(LABEL),
            columns.pop(ACTION),
            columns.pop(REWARD, UNSET),
            bool(traces.terminated[number]),
            bool(traces.truncated[number]),
            columns or UNSET,
        )
        yield msgspec.json.encode(episode) + b"\n"
