"""The paper's JSON lines ↔ `TraceSet`.

A line is one episode, `[[[label, observation], action, reward], …]`. The label
"None" is no event; any other string or int is one proposition. The last entry
repeats the last action and reward, and only its observation and label count.

The format does not store how an episode ended. The authors' generators run each
to its end, so all are read as terminated, and writing drops the flags.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import visible
from resolvent.errors import TraceError, locating
from resolvent.traces.columns import ColumnEncoder, episodes
from resolvent.traces.io.lines import Line, decode_line
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    OBSERVED_COLUMNS,
    REWARD,
    missing_column_error,
)
from resolvent.traces.symbols import NO_EVENT, Label, label_order, label_text, symbol_order
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary, canonical

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

_SORT_KEYS: dict[str, Callable[[Any], Any]] = {
    OBSERVATION: symbol_order,
    LABEL: label_order,
    ACTION: symbol_order,
    REWARD: float,
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
    entries = _Entries()
    parts = []
    for place, text in lines:
        with locating(place):
            if columns:
                raise missing_column_error(columns[0], ())
            rows = entries.rows_of(text)
            count = len(rows)
            check_lengths(count, count, max(count - 1, 0))
            parts.append(rows)
    ends = np.cumsum([len(rows) for rows in parts])
    seen = np.concatenate(parts)
    acted = np.delete(seen, ends - 1)
    return TraceSet.taking_over(
        {
            name: (vocabulary, codes[seen if name in OBSERVED_COLUMNS else acted])
            for name, (vocabulary, codes) in entries.columns().items()
        },
        offsets=np.concatenate([[0], ends - np.arange(1, len(parts) + 1)]),
        terminated=np.ones(len(parts), bool),
        truncated=np.zeros(len(parts), bool),
    )


class _Entries(dict[bytes, int]):
    """Rows of distinct entries in tables of column codes, by the text of the entry.

    Entries repeat a lot, so looking up the text of an entry is several times faster than
    decoding it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.coder = ColumnEncoder()
        self.coder.labels[_NO_EVENT_LABEL] = self.coder.labels[None]
        self._tables = {name: array("i") for name in _SORT_KEYS}
        self._count = 0
        self._new: list[bytes] = []

    def __missing__(self, text: bytes) -> int:
        row = self[text] = self._count + len(self._new)
        self._new.append(text)
        return row

    def rows_of(self, text: bytes) -> NDArray[np.int32]:
        """Return the table row of each entry of a line."""
        if len(self) < MAX_TEXTS and (rows := self._rows_by_text(text.strip())) is not None:
            return rows
        return self._add(decode_line(_EPISODE, text, _where, _SHAPE))

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

    def _add(self, entries: list[_Entry]) -> NDArray[np.int32]:
        """Add entries to the tables and return their rows."""
        first = self._count
        if entries:
            heads, actions, rewards = zip(*entries, strict=True)
            labels, observations = zip(*heads, strict=True)
            columns = {OBSERVATION: observations, LABEL: labels, ACTION: actions, REWARD: rewards}
            for name, codes in self.coder.code(columns).items():
                self._tables[name].frombytes(codes.tobytes())
            self._count += len(entries)
        return np.arange(first, self._count, dtype=np.int32)

    def columns(self) -> dict[str, tuple[Vocabulary[Any], Codes]]:
        """Return the vocabulary of each column and its codes by row."""
        # A `TraceSet` sorts its vocabularies. Sorting the few distinct entries here spares
        # it recoding the many steps.
        values = self.coder.values()
        return {
            name: canonical(values[name], np.frombuffer(self._tables[name], np.int32), order)
            for name, order in _SORT_KEYS.items()
        }


def _where(path: str) -> str:
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
    bad_codes = [code for code, spelling in enumerate(spellings) if spelling is None]
    if bad_codes:
        _refuse(traces, bad_codes)
    for columns in episodes(traces, spellings):
        actions, rewards = columns[ACTION], columns[REWARD]
        actions.append(actions[-1])
        rewards.append(rewards[-1])
        heads = zip(columns[LABEL], columns[OBSERVATION], strict=True)
        yield msgspec.json.encode(list(zip(heads, actions, rewards, strict=True))) + b"\n"


def _spelling(label: Label) -> str | None:
    """Return a label as the paper's files spell it; None if they cannot."""
    if label == NO_EVENT:
        return _NO_EVENT_LABEL
    (proposition, *rest) = label
    return None if rest or proposition == _NO_EVENT_LABEL else proposition


def _refuse(traces: TraceSet, bad_codes: list[int]) -> None:
    position = int(np.argmax(np.isin(traces.label_codes, bad_codes)))
    starts = traces.offsets + np.arange(len(traces.offsets))
    number = int(np.searchsorted(starts, position, side="right")) - 1
    label = traces.labels[traces.label_codes[position]]
    raise TraceError(
        f"trace {number}, step {position - starts[number]}: the paper's format holds one "
        f'proposition a label and keeps "{_NO_EVENT_LABEL}" for no event, so it cannot hold '
        f'"{label_text(label)}": write jsonl or parquet instead'
    )
