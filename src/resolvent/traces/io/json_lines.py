"""JSON lines, one episode a line ↔ `TraceSet`; decoding of any JSON line with errors that locate.

A line is `{"observations": […], "labels": […], "actions": […], "rewards": […],
"terminated": true, "truncated": false, "columns": {"cost": […]}}`. Rewards,
flags and further columns are optional. A label is a list of strings; a string,
an int and null are read too.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from resolvent._util.text import visible
from resolvent.errors import TraceError, located
from resolvent.traces.columns import EpisodeBuilder, check_column_lengths, values_by_episode
from resolvent.traces.io.text import Line
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

T = TypeVar("T")

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
    episodes = EpisodeBuilder()
    for location, text in lines:
        try:
            episode = decode_line(decoder, text, _location, _SHAPE)
            lists = {
                OBSERVATION: episode.observations,
                LABEL: episode.labels,
                ACTION: episode.actions,
                **_step_columns(episode, columns, text),
            }
            check_column_lengths(lists)
            episodes.add(lists, terminated=episode.terminated, truncated=episode.truncated)
        except TraceError as error:
            raise located(location, error) from error
    return TraceSet.from_episodes(episodes)


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


def _location(path: str) -> str:
    if match := _STEP_PATH.match(path):
        return f"step {match[2]}: the {match[1]}"
    return path.removeprefix("$.")


def json_lines(traces: TraceSet) -> Iterator[bytes]:
    """Yield one line for each trace, with labels as sorted lists."""
    labels = [sorted(label) for label in traces.labels]
    for number, columns in enumerate(values_by_episode(traces, labels)):
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


# --- Any JSON line ------------------------------------------------------------------------------


def decode_line(
    decoder: msgspec.json.Decoder[T], text: bytes, locate: Callable[[str], str], shape: str
) -> T:
    """Decode a line of JSON; a `TraceError` describes the first mistake.

    `locate` turns a path such as `$.rewards[3]` into words; `shape` shows a correct line.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        message = message[0].lower() + message[1:]
        location = f"{locate(path.rstrip('`'))}: " if path else ""
        raise TraceError(f"{location}{message}; a line should be {shape}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(_malformed_text(text, error, locate)) from error


def _malformed_text(text: bytes, error: Exception, locate: Callable[[str], str]) -> str:
    # JSON has no NaN and no Infinity, yet much software writes them. Python's own decoder
    # accepts them, so it can locate them.
    try:
        not_finite = _first_not_finite(json.loads(text), "$")
    except (ValueError, RecursionError):
        not_finite = None
    if not_finite:
        path, number = not_finite
        return f"{locate(path)} is {number}; numbers must be finite"
    if not text.endswith(b"\n"):
        return (
            f"the last line has no end and is not whole ({error}): "
            f"the file looks truncated; remove the line or make the file again"
        )
    return f"not valid JSON ({error}): put each episode on one line of its own, or remove the line"


def _first_not_finite(value: Any, path: str) -> tuple[str, float] | None:
    """Return the first NaN or infinity in a JSON value, with its path."""
    if isinstance(value, float) and not math.isfinite(value):
        return path, value
    parts: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, list):
        parts = ((f"{path}[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, dict):
        parts = ((f"{path}.{key}", part) for key, part in value.items())
    return next(filter(None, (_first_not_finite(part, at) for at, part in parts)), None)
