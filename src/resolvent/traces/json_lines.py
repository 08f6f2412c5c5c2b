"""JSON lines, one episode a line ↔ `TraceSet`.

A line is `{"observations": […], "labels": […], "actions": […], "rewards": […],
"terminated": true, "truncated": false}`; the two flags may be left out. A label
is a list of strings; a string, an int and null are read too.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from resolvent.errors import locating
from resolvent.traces.columns import CodedEpisodes, ColumnCoder, episodes
from resolvent.traces.lines import Line, decode_line
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet

_SHAPE = '{"observations": […], "labels": […], "actions": […], "rewards": […]}'
_STEP_PATH = re.compile(r"\$\.(observation|label|action|reward)s\[(\d+)\]")


class _Episode(msgspec.Struct):
    observations: list[Any]
    labels: list[tuple[str | int, ...] | str | int | None]
    actions: list[Any]
    rewards: list[float]
    terminated: bool = False
    truncated: bool = False


_EPISODE = msgspec.json.Decoder(_Episode)


def read_json_lines(lines: Iterable[Line]) -> TraceSet:
    """Read one trace from each line.

    >>> text = b'{"observations":[0,1], "labels":[[],["key"]], "actions":["up"], "rewards":[1]}'
    >>> read_json_lines([Line("line 1", text)])[0]
    Trace(observations=(0, 1), labels=(frozenset(), frozenset({'key'})), actions=('up',), \
rewards=(1.0,), terminated=False, truncated=False)
    """
    coder, episodes_read = ColumnCoder(), CodedEpisodes()
    for place, text in lines:
        with locating(place):
            episode = decode_line(_EPISODE, text, _where, _SHAPE)
            lists = (episode.observations, episode.labels, episode.actions, episode.rewards)
            check_lengths(*map(len, lists))
            episodes_read.add(
                *coder.code(*lists), terminated=episode.terminated, truncated=episode.truncated
            )
    return episodes_read.trace_set(coder.values())


def _where(path: str) -> str:
    if match := _STEP_PATH.match(path):
        return f"step {match[2]}: the {match[1]}"
    return path.removeprefix("$.")


def json_lines(traces: TraceSet) -> Iterator[bytes]:
    """Yield one line for each trace, with labels as sorted lists."""
    spelled = [sorted(label) for label in traces.labels]
    for number, columns in enumerate(episodes(traces, spelled)):
        flags = bool(traces.terminated[number]), bool(traces.truncated[number])
        yield msgspec.json.encode(_Episode(*columns, *flags)) + b"\n"
