"""The paper's JSON lines ↔ `TraceSet`.

A line is one episode, `[[[label, observation], action, reward], …]`. The label
"None" is no event; any other string or int is one proposition. The last entry
repeats the last action and reward, and only its observation and label count.

The format does not store how an episode ended. The authors' generators run each
to its end, so all are read as terminated, and writing drops the flags.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import visible
from resolvent.errors import TraceError, located
from resolvent.traces.columns import Column, ColumnEncoder, canonical_column, values_by_episode
from resolvent.traces.io.json_lines import decode_line
from resolvent.traces.io.text import Line
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    OBSERVED_COLUMNS,
    REWARD,
    missing_column_error,
)
from resolvent.traces.symbols import NO_EVENT, Label, label_text
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet

_NO_EVENT_LABEL = "None"
_SHAPE = "[[[label, observation], action, reward], …]"
_ENTRY_PATH = re.compile(r"\$\[(\d+)\]((?:\[[01]\])*(?:\[2\])?)")
_ENTRY_PARTS = {
    "[0]": "[label, observation]",
    "[0][0]": "the label",
    "[0][1]": "the observation",
    "[1]": "the action",
    "[2]": "the reward",
}

_Entry = tuple[tuple[str | int | None, Any], Any, float]
_ENTRY = msgspec.json.Decoder(_Entry)
_EPISODE = msgspec.json.Decoder(list[_Entry])

MAX_TEXTS = 1 << 19
"""Maximum number of distinct entries kept as text: more of them repeat too little to help."""


def read_paper_lines(lines: Iterable[Line], columns: Sequence[str] = ()) -> TraceSet:
    """Read one trace from each line; the format has no further columns.

    >>> text = b'[[["None", 7], "up", 0.5], [["key", 8], "up", 0.5]]'
    >>> read_paper_lines([Line("line 1", text)])[0]
    Trace(observations=(7, 8), labels=(frozenset(), frozenset({'key'})), actions=('up',), \
rewards=(0.5,), terminated=True, truncated=False)
    """
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
        self._encoder = ColumnEncoder()
        self._encoder.labels[_NO_EVENT_LABEL] = self._encoder.labels[None]
        self._codes = {name: array("i") for name in (OBSERVATION, LABEL, ACTION, REWARD)}
        self._new: list[bytes] = []

    @property
    def _count(self) -> int:
        return len(self._codes[ACTION])

    def __missing__(self, text: bytes) -> int:
        row = self[text] = self._count + len(self._new)
        self._new.append(text)
        return row

    def rows_of(self, text: bytes) -> NDArray[np.int32]:
        """Return the row of each entry of a line."""
        if len(self) < MAX_TEXTS and (rows := self._rows_by_text(text.strip())) is not None:
            return rows
        first = self._count
        self._add(decode_line(_EPISODE, text, _location, _SHAPE))
        return np.arange(first, self._count, dtype=np.int32)

    def _rows_by_text(self, text: bytes) -> NDArray[np.int32] | None:
        """Look up the entries of a line by their text; None if the line must be decoded."""
        if not (text.startswith(b"[[[") and text.endswith(b"]]")):
            return None
        separator = b"], [[" if b"], [[" in text else b"],[["
        texts = text[3:-2].split(separator)
        rows = np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))
        if self._new:
            # The separator may also occur within a string or a nested list. But if each
            # text, closed again, is an entry, then the line is exactly the list of these
            # entries, since joining them gives the line.
            try:
                self._add([_ENTRY.decode(b"[[" + entry + b"]") for entry in self._new])
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
            columns = {OBSERVATION: observations, LABEL: labels, ACTION: actions, REWARD: rewards}
            codes = {name: self._encoder.encode(name, values) for name, values in columns.items()}
            for name, column in codes.items():
                self._codes[name].frombytes(column.tobytes())

    def columns(self) -> dict[str, Column]:
        """Return the columns of all entries.

        Sorting the values of the few entries here spares a `TraceSet` recoding the many steps.
        """
        return {
            name: canonical_column(
                name, (self._encoder.values_of(name), np.frombuffer(codes, np.int32))
            )
            for name, codes in self._codes.items()
        }


def _location(path: str) -> str:
    if match := _ENTRY_PATH.match(path):
        part = _ENTRY_PARTS.get(match[2])
        return f"step {match[1]}: {part}" if part else f"step {match[1]}"
    return path


def paper_lines(traces: TraceSet) -> Iterator[bytes]:
    """Yield one line for each trace; `TraceError` for content that the format cannot hold."""
    if tuple(traces.columns) != (REWARD,):
        names = ", ".join(map(visible, traces.columns)) or "no rewards"
        raise TraceError(
            f"the paper's format holds rewards and no further columns, but these traces have "
            f"{names}: write jsonl or parquet instead"
        )
    spellings = [_spelling(label) for label in traces.labels]
    for columns in values_by_episode(traces, spellings):
        actions, rewards = columns[ACTION], columns[REWARD]
        actions.append(actions[-1])
        rewards.append(rewards[-1])
        heads = zip(columns[LABEL], columns[OBSERVATION], strict=True)
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
