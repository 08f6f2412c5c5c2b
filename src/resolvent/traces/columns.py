"""Columns of traces: values as files hold them ↔ codes as a `TraceSet` holds them."""

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from resolvent.errors import TooLarge, TraceError, locating
from resolvent.traces.column_names import (
    ACTION,
    LABEL,
    OBSERVATION,
    REWARD,
    SEEN,
    check_same_columns,
    column_text,
)
from resolvent.traces.given_columns import check_labels
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner

_PLAIN = frozenset({bool, int, float, str})


class LabelCodes(dict[Any, int]):
    """Labels as a file spells them → codes; two spellings of one label share a code.

    Files list propositions in any order, and a list is a tuple here, to be looked up.

    >>> codes = LabelCodes()
    >>> codes[None], codes["key"], codes["key",], codes["key", "door"], codes["door", "key"]
    (0, 1, 1, 2, 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self.sets: Interner[Label] = Interner()

    def __missing__(self, spelling: Any) -> int:
        if type(spelling) is tuple and len(spelling) == 1 and type(spelling[0]) is str:
            label = as_label(spelling[0])  # as most are; there may be very many
        else:
            label = as_label(list(spelling) if type(spelling) is tuple else spelling)
        code = self[spelling] = self.sets[label]
        return code


class ColumnCoder:
    """Codes columns as a reader meets them, without a Python loop over steps.

    Which step columns there are, the first episode says.

    >>> coder = ColumnCoder()
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

    def code(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Codes]:
        """Return the codes of an episode's columns; a `TraceError` names column and step."""
        return {name: self._code(name, values) for name, values in columns.items()}

    def _code(self, name: str, values: Sequence[Any]) -> Codes:
        interner = self._interners.setdefault(name, Interner())
        with locating(column_text(name)):
            if name == LABEL:
                return self._code_labels(values)
            if name == REWARD:
                _check_finite(values)
                return interner.encode(values)
            return code_symbols(interner, values)

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
            each_step(as_label, labels)
            raise

    def values(self) -> dict[str, list[Any]]:
        """Return the values behind the codes of each column."""
        return {
            name: interner.values_in_order()
            if name == LABEL
            else list(map(as_symbol, interner.values_in_order()))
            for name, interner in self._interners.items()
        }


_TOGETHER = 4096
"""So many episodes are joined at a time: an array for each takes more room than short ones hold."""


class CodedEpisodes:
    """Grows the columns of a trace set, one coded episode at a time.

    >>> coder, episodes = ColumnCoder(), CodedEpisodes()
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
        """Add the codes of an episode's columns; all episodes have to have the same."""
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
        if len(self._lengths) % _TOGETHER == 0:
            self._join()

    def trace_set(self, values: Mapping[str, list[Any]]) -> TraceSet:
        """Return the episodes, given the values behind the codes of each column."""
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
    """Raise `TraceError` unless the columns of an episode are as long as they should be."""
    lengths = {name: len(column) for name, column in columns.items()}
    check_lengths(
        lengths.pop(OBSERVATION), lengths.pop(LABEL), lengths.pop(ACTION), step_columns=lengths
    )


def code_symbols(interner: Interner[Symbol], values: Sequence[Any]) -> Codes:
    """Code observations or actions as a file holds them."""
    types = set(map(type, values))
    if types <= _PLAIN:
        return interner.encode(values, types)
    return interner.encode(each_step(as_symbol, values))


def each_step(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Apply a function to the value of each step; a `TraceError` names the step."""
    results = []
    for step, value in enumerate(values):
        try:
            results.append(function(value))
        except TraceError as error:
            raise TraceError(f"step {step}: {error}") from error
    return results


def _check_finite(rewards: Sequence[float]) -> None:
    # One NaN or infinity spoils the sum; a sum that overflows by itself does no harm.
    if not math.isfinite(sum(rewards)):
        for step, reward in enumerate(rewards):
            if not math.isfinite(reward):
                raise TraceError(f"step {step}: the reward is {reward}; rewards must be finite")


def episodes(traces: TraceSet, label_values: Sequence[Any]) -> Iterator[dict[str, list[Any]]]:
    """Yield each trace's columns by name; labels are taken from `label_values` by code."""
    columns = [
        (name, list(label_values if name == LABEL else values).__getitem__, codes)
        for name, (values, codes) in traces.all_columns.items()
    ]
    for number in range(len(traces)):
        acted = slice(traces.offsets[number], traces.offsets[number + 1])
        seen = slice(acted.start + number, acted.stop + number + 1)
        yield {
            name: list(map(value_of, codes[seen if name in SEEN else acted].tolist()))
            for name, value_of, codes in columns
        }
