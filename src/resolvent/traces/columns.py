"""Episodes with plain Python values, one after another → `TraceSet`, and back.

Used for sources that deliver episodes: files of JSON lines, Minari datasets and
environments. Sources with tables go through `io.table` instead.
"""

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import TooLarge, TraceError, locating
from resolvent.traces.column_arrays import check_labels
from resolvent.traces.schema import (
    ACTION,
    LABEL,
    OBSERVATION,
    OBSERVED_COLUMNS,
    REWARD,
    check_same_columns,
    column_text,
)
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet, row_slices
from resolvent.traces.vocabulary import Codes, Interner

_PLAIN = frozenset({bool, int, float, str})

_JOINED_TOGETHER = 4096
"""Number of episodes joined at a time: many short arrays need more memory than their content."""


class LabelCodes(dict[Any, int]):
    """Codes of labels by their spelling; two spellings of one label share a code.

    Files list propositions in any order, as tuples here, to be looked up.

    >>> codes = LabelCodes()
    >>> codes[None], codes["key"], codes["key",], codes["key", "door"], codes["door", "key"]
    (0, 1, 1, 2, 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self.sets: Interner[Label] = Interner()

    def __missing__(self, spelling: Any) -> int:
        if type(spelling) is tuple and len(spelling) == 1 and type(spelling[0]) is str:
            label = as_label(spelling[0])  # the common case; there may be very many
        else:
            label = as_label(list(spelling) if type(spelling) is tuple else spelling)
        code = self[spelling] = self.sets[label]
        return code


class ColumnEncoder:
    """Encodes the columns of one episode after another, without a Python loop over steps.

    >>> coder = ColumnEncoder()
    >>> columns = {"observation": ["hall", "attic"], "label": [None, "key"], "action": ["up"]}
    >>> for name, codes in coder.code({**columns, "reward": [1.0], "cost": [7]}).items():
    ...     print(name, codes)
    observation [0 1]
    label [0 1]
    action [0]
    reward [0]
    cost [0]
    """

    def __init__(self) -> None:
        self.labels = LabelCodes()
        self._labels_checked = 0
        self._interners: dict[str, Interner[Any]] = {LABEL: self.labels.sets}
        self._array_rows: dict[Any, dict[bytes, int]] = {}

    def code(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Codes]:
        """Return the codes of an episode's columns; a `TraceError` names column and step."""
        return {name: self.code_column(name, values) for name, values in columns.items()}

    def code_column(self, name: str, values: Any) -> Codes:
        """Return the codes of one column: a sequence of values, or an array of rows."""
        interner = self._interners.setdefault(name, Interner())
        with locating(column_text(name)):
            if name == LABEL:
                return self._code_labels(values)
            if name == REWARD:
                _check_finite(values)
                return interner.encode(values)
            if isinstance(values, np.ndarray):
                return self._code_array(name, values)
            return _code_symbols(interner, values)

    def _code_labels(self, labels: Sequence[Any]) -> Codes:
        try:
            codes = np.fromiter(map(self.labels.__getitem__, labels), np.int32, len(labels))
            if len(self.labels.sets) > self._labels_checked:
                self._labels_checked = len(self.labels.sets)
                check_labels(self._labels_checked)
            return codes
        except TooLarge:
            raise
        except TraceError:
            _each_step(as_label, labels)
            raise

    def _code_array(self, name: str, values: NDArray[Any]) -> Codes:
        """Encode an array by converting each distinct row once, over all episodes."""
        interner = self._interners[name]
        if values.ndim == 1 or values.dtype.kind not in "biuf":
            return _code_symbols(interner, values.tolist())
        codes = self._array_rows.setdefault((name, values.dtype, values.shape[1:]), {})
        rows = row_bytes(values)
        for step, row in enumerate(rows):
            if row not in codes:
                with locating(f"step {step}"):
                    symbol = as_symbol(values[step])
                codes[row] = int(interner.encode([symbol])[0])
        return np.fromiter(map(codes.__getitem__, rows), np.int32, len(rows))

    def values(self) -> dict[str, list[Any]]:
        """Return the values of each column by code."""
        return {name: self.values_of(name) for name in self._interners}

    def values_of(self, name: str) -> list[Any]:
        """Return the values of one column by code."""
        values = self._interners[name].values_in_order()
        return values if name == LABEL else list(map(as_symbol, values))


class TraceSetBuilder:
    """Collects encoded episodes into a trace set.

    >>> coder, episodes = ColumnEncoder(), TraceSetBuilder()
    >>> columns = {"observation": [0, 1], "label": [None, "key"], "action": ["up"]}
    >>> episodes.add(coder.code(columns), terminated=True)
    >>> episodes.trace_set(coder.values())
    TraceSet(1 traces, 1 steps, 2 observations, 2 labels, 1 actions)
    """

    def __init__(self) -> None:
        self._parts: dict[str, list[Codes]] = {}
        self._joined: dict[str, list[Codes]] = {}
        self._lengths = array("q")
        self._terminated = bytearray()
        self._truncated = bytearray()

    def add(
        self, codes: Mapping[str, Codes], *, terminated: bool = False, truncated: bool = False
    ) -> None:
        """Add the codes of an episode's columns, which must be those of the first episode."""
        if not self._parts:
            self._parts = {name: [] for name in codes}
            self._joined = {name: [] for name in codes}
        check_same_columns(codes, self._parts, "the first trace")
        check_column_lengths(codes)
        for name, column in codes.items():
            self._parts[name].append(column)
        self._lengths.append(len(codes[ACTION]))
        self._terminated.append(terminated)
        self._truncated.append(truncated)
        if len(self._lengths) % _JOINED_TOGETHER == 0:
            self._join()

    def trace_set(self, values: Mapping[str, list[Any]]) -> TraceSet:
        """Return the episodes, given the values of each column by code."""
        self._join()
        return TraceSet.taking_over(
            {name: (values[name], np.concatenate(parts)) for name, parts in self._joined.items()},
            offsets=np.append(0, np.cumsum(self._lengths, dtype=np.int64)),
            terminated=np.array(self._terminated, bool),
            truncated=np.array(self._truncated, bool),
        )

    def _join(self) -> None:
        for name, parts in self._parts.items():
            if parts:
                self._joined[name].append(np.concatenate(parts))
                parts.clear()


def check_column_lengths(columns: Mapping[str, Sequence[Any] | Codes]) -> None:
    """Raise `TraceError` unless the lengths of an episode's columns fit together."""
    lengths = {name: len(column) for name, column in columns.items()}
    check_lengths(
        lengths.pop(OBSERVATION), lengths.pop(LABEL), lengths.pop(ACTION), step_columns=lengths
    )


def row_bytes(array: NDArray[Any]) -> list[bytes]:
    """Return each row of an array as bytes, which are equal for equal rows.

    >>> [list(row) for row in row_bytes(np.array([[True, False], [True, True]]))]
    [[1, 0], [1, 1]]
    """
    if not array.size:
        return [b""] * len(array)
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    parts: list[bytes] = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    return parts


def _code_symbols(interner: Interner[Symbol], values: Sequence[Any]) -> Codes:
    types = set(map(type, values))
    if types <= _PLAIN:
        return interner.encode(values, types)
    return interner.encode(_each_step(as_symbol, values))


def _each_step(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Apply a function to the value of each step; a `TraceError` names the step."""
    results = []
    for step, value in enumerate(values):
        try:
            results.append(function(value))
        except TraceError as error:
            raise TraceError(f"step {step}: {error}") from error
    return results


def _check_finite(rewards: Sequence[float]) -> None:
    # The sum is finite if all rewards are; if it overflows, the loop finds nothing.
    if not math.isfinite(sum(rewards)):
        for step, reward in enumerate(rewards):
            if not math.isfinite(reward):
                raise TraceError(f"step {step}: the reward is {reward}; rewards must be finite")


def episodes(traces: TraceSet, label_values: Sequence[Any]) -> Iterator[dict[str, list[Any]]]:
    """Yield the columns of each trace by name, with labels from `label_values` by code."""
    columns = [
        (name, list(label_values if name == LABEL else values).__getitem__, codes)
        for name, (values, codes) in traces.all_columns.items()
    ]
    for number in range(len(traces)):
        acted, seen = row_slices(traces, number)
        yield {
            name: list(map(value_of, codes[seen if name in OBSERVED_COLUMNS else acted].tolist()))
            for name, value_of, codes in columns
        }
