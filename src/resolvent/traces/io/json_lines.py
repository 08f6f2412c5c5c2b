"""Files with one trace in each line, as JSON or in the paper's JSON ↔ `TraceSet`.

A line of JSON is `{"observations": […], "labels": […], "actions": […], "rewards": […],
"terminated": true, "truncated": false, "columns": {"cost": […]}}`. Rewards, flags and further
columns are optional. A label is a list of strings; a string, an int and null are read too.

A line of the paper's format is `[[[label, observation], action, reward], …]`. The label "None" is
no event; any other string or int is one proposition. The last entry repeats the last action and
reward, and only its observation and label count. How an episode ended is not stored: the authors'
generators run each to its end, so all are read as terminated.
"""

import codecs
import io
import json
import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from resolvent._util.files import compression_of
from resolvent._util.parallel import FractionListener
from resolvent._util.text import visible
from resolvent._util.validation import (
    bytes_text,
    check_expansion,
    how_to_raise,
    limit,
    ran_out_of_memory,
)
from resolvent.errors import TooLarge, TraceError, located, locating
from resolvent.traces.columns import Column, ColumnBuilder, EpisodeBuilder, canonical_column
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    OBSERVED_COLUMNS,
    RESERVED,
    REWARD,
    check_column_name,
    missing_column_error,
)
from resolvent.traces.symbols import NO_EVENT, Label, label_text
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet

T = TypeVar("T")

BUFFER_BYTES = 1 << 20
_SECONDS_BETWEEN_REPORTS = 0.05

_SHAPE = '{"observations": […], "labels": […], "actions": […], "rewards": […]}'
_KEYS_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST_DECODER = msgspec.json.Decoder(list[Any])
_STEP_PATH = re.compile(r"\$\.(observation|label|action|reward)s\[(\d+)\]")

_NO_EVENT_LABEL = "None"
_PAPER_SHAPE = "[[[label, observation], action, reward], …]"
_ENTRY_PATH = re.compile(r"\$\[(\d+)\]((?:\[[01]\])*(?:\[2\])?)")
_ENTRY_PARTS = {
    "[0]": ": [label, observation]",
    "[0][0]": ": the label",
    "[0][1]": ": the observation",
    "[1]": ": the action",
    "[2]": ": the reward",
}

_Entry = tuple[tuple[str | int | None, Any], Any, float]
_ENTRY_DECODER = msgspec.json.Decoder(_Entry)
_ENTRIES_DECODER = msgspec.json.Decoder(list[_Entry])
MAX_TEXTS = 1 << 19  # distinct entries kept as text: more repeat too little to help


# --- Lines --------------------------------------------------------------------------------------


class Line(NamedTuple):
    """One line of a file, and its location in errors."""

    location: str
    text: bytes


def read_lines(
    file: "io.BufferedReader[Any]", name: str, progress: FractionListener | None = None
) -> Iterator[Line]:
    """Yield the lines that are not blank, decompressed if necessary, with their line ends."""
    size = os.fstat(file.fileno()).st_size  # 0 for a pipe, whose end is not known
    next_report = time.monotonic()
    number, held, longest = 0, 0, limit("line_bytes")
    compression = compression_of(file.peek(4))
    lines = file
    if compression is not None:
        lines = io.BufferedReader(pa.CompressedInputStream(file, compression), BUFFER_BYTES)
    try:
        for number, text in enumerate(iter(partial(lines.readline, longest + 1), b""), 1):
            held += len(text)
            if len(text) > longest:
                raise TooLarge(
                    f"{name}, line {number} is longer than the limit of {bytes_text(longest)}: put "
                    f"each episode on one line of its own; "
                    f"{how_to_raise('line_bytes', 4 * longest)}"
                )
            if compression and size:
                check_expansion(name, held, size)
            if progress and size and time.monotonic() >= next_report:
                progress(min(file.tell() / size, 1.0))
                next_report = time.monotonic() + _SECONDS_BETWEEN_REPORTS
            if number == 1:
                text = text.removeprefix(codecs.BOM_UTF8)
            if not text.isspace():
                yield Line(f"{name}, line {number}", text)
    except OSError as error:
        if ran_out_of_memory(error):
            raise
        raise TraceError(
            f"{name}: cannot be read past line {number} ({error}): "
            f"the file looks truncated or damaged; make it again"
        ) from error


# --- JSON lines ---------------------------------------------------------------------------------


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
    """
    decoder = msgspec.json.Decoder(_Episode)
    episodes = EpisodeBuilder()
    for location, text in lines:
        try:
            episode = _decode_line(decoder, text, _SHAPE)
            lists = {
                OBSERVATION: episode.observations,
                LABEL: episode.labels,
                ACTION: episode.actions,
                **_step_columns(episode, columns, text),
            }
            episodes.add(lists, terminated=episode.terminated, truncated=episode.truncated)
        except TraceError as error:
            raise located(location, error) from error
    return TraceSet.from_episodes(episodes)


def _step_columns(
    episode: _Episode, names: Sequence[str], text: bytes
) -> Mapping[str, Sequence[Any]]:
    columns = {} if episode.rewards is UNSET else {REWARD: episode.rewards}
    if episode.columns is not UNSET:
        columns |= {check_column_name(name): values for name, values in episode.columns.items()}
    beside: dict[str, msgspec.Raw] = {}
    if set(names).difference(columns):
        beside = _decode_line(_KEYS_DECODER, text, _SHAPE)
    for name in names:
        if name not in columns:
            if name not in beside:
                existing = {*columns, *beside}.difference(RESERVED, _Episode.__struct_fields__)
                raise missing_column_error(name, sorted(existing))
            with locating(name):
                part = bytes(beside[name]) + b"\n"  # with an end, as a whole line has
                columns[name] = _decode_line(_LIST_DECODER, part, _SHAPE)
    return columns


def json_lines(traces: TraceSet) -> Iterator[bytes]:
    """Yield one line for each trace, with labels as sorted lists."""
    propositions: dict[Label, Any] = {label: sorted(label) for label in traces.labels}
    for number in range(len(traces)):
        columns = traces.values_of(number)
        episode = _Episode(
            columns.pop(OBSERVATION),
            [propositions[label] for label in columns.pop(LABEL)],
            columns.pop(ACTION),
            columns.pop(REWARD, UNSET),
            bool(traces.terminated[number]),
            bool(traces.truncated[number]),
            columns or UNSET,
        )
        yield msgspec.json.encode(episode) + b"\n"


# --- The paper's lines --------------------------------------------------------------------------


def read_paper_lines(lines: Iterable[Line], columns: Sequence[str] = ()) -> TraceSet:
    """Read one trace from each line; the format has no further columns."""
    if columns:
        raise missing_column_error(columns[0], ())
    entries = _EntryTable()
    parts = []
    for location, text in lines:
        try:
            rows = entries.rows_of(text)
            check_lengths(len(rows), len(rows), max(len(rows) - 1, 0))
        except TraceError as error:
            raise located(location, error) from error
        parts.append(rows)
    ends = np.cumsum([len(rows) for rows in parts])
    observed = np.concatenate(parts)
    steps = np.delete(observed, ends - 1)
    return TraceSet.taking_over(
        {
            name: (vocabulary, codes[observed if name in OBSERVED_COLUMNS else steps])
            for name, (vocabulary, codes) in entries.columns().items()
        },
        offsets=np.append(0, ends - np.arange(1, len(parts) + 1)),
        terminated=np.ones(len(parts), bool),
        truncated=np.zeros(len(parts), bool),
    )


class _EntryTable(dict[bytes, int]):
    """The distinct entries of a file as a table of codes, and the row of each entry by its text.

    Entries repeat a lot, so looking up the text of an entry is several times faster than
    decoding it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._builder = ColumnBuilder()
        self._builder.labels[_NO_EVENT_LABEL] = self._builder.labels[None]
        self._count = 0
        self._new: list[bytes] = []

    def __missing__(self, text: bytes) -> int:
        row = self[text] = self._count + len(self._new)
        self._new.append(text)
        return row

    def rows_of(self, text: bytes) -> NDArray[np.int32]:
        """Return the row of each entry of a line."""
        if len(self) < MAX_TEXTS and (rows := self._rows_by_text(text.strip())) is not None:
            return rows
        first = self._count
        self._add(_decode_line(_ENTRIES_DECODER, text, _PAPER_SHAPE))
        return np.arange(first, self._count, dtype=np.int32)

    def _rows_by_text(self, text: bytes) -> NDArray[np.int32] | None:
        """Look up the entries of a line by their text; None if the line must be decoded."""
        if not (text.startswith(b"[[[") and text.endswith(b"]]")):
            return None
        texts = text[3:-2].split(b"], [[" if b"], [[" in text else b"],[[")
        rows = np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))
        if self._new:
            # The separator may also occur within a string or a nested list. But if each
            # text, closed again, is an entry, then the line is exactly the list of these
            # entries, since joining them gives the line.
            try:
                self._add([_ENTRY_DECODER.decode(b"[[" + entry + b"]") for entry in self._new])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TraceError):
                for entry in self._new:
                    del self[entry]
                return None
            finally:
                self._new.clear()
        return rows

    def _add(self, entries: list[_Entry]) -> None:
        if entries:
            heads, actions, rewards = zip(*entries, strict=True)
            labels, observations = zip(*heads, strict=True)
            self._builder.extend(
                {OBSERVATION: observations, LABEL: labels, ACTION: actions, REWARD: rewards}
            )
            self._count += len(entries)

    def columns(self) -> dict[str, Column]:
        """Return the columns of all entries.

        Sorting the values of the few entries here spares a `TraceSet` recoding the many steps.
        """
        columns = self._builder.columns()
        return {name: canonical_column(name, column) for name, column in columns.items()}


def paper_lines(traces: TraceSet) -> Iterator[bytes]:
    """Yield one line for each trace; `TraceError` for content that the format cannot hold."""
    if tuple(traces.columns) != (REWARD,):
        names = ", ".join(map(visible, traces.columns)) or "no rewards"
        raise TraceError(
            f"the paper's format holds rewards and no further columns, but these traces have "
            f"{names}: write jsonl or parquet instead"
        )
    spellings = {label: _spelling(label) for label in traces.labels}
    for columns in map(traces.values_of, range(len(traces))):
        actions, rewards = columns[ACTION], columns[REWARD]
        actions.append(actions[-1])
        rewards.append(rewards[-1])
        heads = zip(map(spellings.get, columns[LABEL]), columns[OBSERVATION], strict=True)
        yield msgspec.json.encode(list(zip(heads, actions, rewards, strict=True))) + b"\n"


def _spelling(label: Label) -> str:
    """Return a label as the paper's files spell it."""
    if label == NO_EVENT:
        return _NO_EVENT_LABEL
    (proposition, *rest) = label
    if rest or proposition == _NO_EVENT_LABEL:
        raise TraceError(
            f'the label "{label_text(label)}" cannot be written in the paper\'s format, which has '
            f'one proposition a label and keeps "{_NO_EVENT_LABEL}" for no event: write jsonl or '
            f"parquet instead"
        )
    return proposition


# --- Decoding and encoding ----------------------------------------------------------------------


def _decode_line(decoder: msgspec.json.Decoder[T], text: bytes, shape: str) -> T:
    """Decode a line of JSON, of a `shape`; a `TraceError` describes the first mistake."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        message = message[0].lower() + message[1:]
        location = f"{_location(path.rstrip('`'))}: " if path else ""
        raise TraceError(f"{location}{message}; a line should be {shape}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(_malformed_text(text, error)) from error


def _location(path: str) -> str:
    """Return a path within a line, such as `$.rewards[3]` or `$[3][2]`, in words."""
    if match := _STEP_PATH.match(path):
        return f"step {match[2]}: the {match[1]}"
    if match := _ENTRY_PATH.match(path):
        return f"step {match[1]}" + _ENTRY_PARTS.get(match[2], "")
    return path.removeprefix("$.")


def _malformed_text(text: bytes, error: Exception) -> str:
    # JSON has no NaN and no Infinity, yet much software writes them. Python's own decoder
    # accepts them, so it can locate them.
    with suppress(ValueError, RecursionError):
        if not_finite := _first_not_finite(json.loads(text), "$"):
            return f"{_location(not_finite[0])} is {not_finite[1]}; numbers must be finite"
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
    parts: dict[str, Any] = {}
    if isinstance(value, list):
        parts = {f"{path}[{index}]": part for index, part in enumerate(value)}
    elif isinstance(value, dict):
        parts = {f"{path}.{key}": part for key, part in value.items()}
    return next(filter(None, (_first_not_finite(part, at) for at, part in parts.items())), None)
