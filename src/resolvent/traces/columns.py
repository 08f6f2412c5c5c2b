"""Columns of traces: values as files hold them ↔ codes as a `TraceSet` holds them."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from resolvent.errors import TraceError, locating
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol
from resolvent.traces.trace import check_lengths
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Interner

_PLAIN = frozenset({bool, int, float, str})


class LabelCodes(dict[Any, int]):
    """Labels as a file spells them → codes; two spellings of one label share a code.

    >>> codes = LabelCodes()
    >>> codes[None], codes["key"], codes["key",], codes["key", "door"], codes["door", "key"]
    (0, 1, 1, 2, 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self.sets: Interner[Label] = Interner()

    def __missing__(self, spelling: Any) -> int:
        code = self[spelling] = self.sets[as_label(spelling)]
        return code


class ColumnCoder:
    """Codes the four columns as a reader meets them, without a Python loop over steps.

    >>> coder = ColumnCoder()
    >>> for codes in coder.code(["hall", "attic"], [None, "key"], ["up"], [1.0]):
    ...     print(codes)
    [0 1]
    [0 1]
    [0]
    [0]
    """

    def __init__(self) -> None:
        self.observations: Interner[Symbol] = Interner()
        self.labels = LabelCodes()
        self.actions: Interner[Symbol] = Interner()
        self.rewards: Interner[float] = Interner()

    def code(
        self,
        observations: Sequence[Any],
        labels: Sequence[Any],
        actions: Sequence[Any],
        rewards: Sequence[float],
    ) -> tuple[Codes, Codes, Codes, Codes]:
        """Return the codes of the four columns; a `TraceError` names column and step."""
        with locating("observations"):
            observation_codes = code_symbols(self.observations, observations)
        with locating("labels"):
            label_codes = self._code_labels(labels)
        with locating("actions"):
            action_codes = code_symbols(self.actions, actions)
        with locating("rewards"):
            _check_finite(rewards)
            reward_codes = self.rewards.encode(rewards)
        return observation_codes, label_codes, action_codes, reward_codes

    def _code_labels(self, labels: Sequence[Any]) -> Codes:
        try:
            return np.fromiter(map(self.labels.__getitem__, labels), np.int32, len(labels))
        except TraceError:
            each_step(as_label, labels)
            raise

    def values(self) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Return the values behind the codes of each column."""
        return (
            list(map(as_symbol, self.observations.values_in_order())),
            self.labels.sets.values_in_order(),
            list(map(as_symbol, self.actions.values_in_order())),
            [reward + 0.0 for reward in self.rewards.values_in_order()],  # one zero, not two
        )


class CodedEpisodes:
    """Grows the columns of a trace set, one coded episode at a time.

    >>> coder, episodes = ColumnCoder(), CodedEpisodes()
    >>> episodes.add(*coder.code([0, 1], [None, "key"], ["up"], [1.0]), terminated=True)
    >>> episodes.trace_set(coder.values())
    TraceSet(1 traces, 1 steps, 2 observations, 2 labels, 1 actions, 1 rewards)
    """

    def __init__(self) -> None:
        self._parts: tuple[list[Codes], ...] = ([], [], [], [])
        self._terminated: list[bool] = []
        self._truncated: list[bool] = []

    def add(self, *codes: Codes, terminated: bool = False, truncated: bool = False) -> None:
        """Add the codes of an episode's observations, labels, actions and rewards."""
        check_lengths(*map(len, codes))
        for part, column in zip(self._parts, codes, strict=True):
            part.append(column)
        self._terminated.append(terminated)
        self._truncated.append(truncated)

    def trace_set(self, values: tuple[list[Any], list[Any], list[Any], list[Any]]) -> TraceSet:
        """Return the episodes, given the values behind the codes of each column."""
        columns = (
            (column, np.concatenate(parts))
            for column, parts in zip(values, self._parts, strict=True)
        )
        return TraceSet.from_columns(
            *columns,
            offsets=np.cumsum([0, *map(len, self._parts[2])]),
            terminated=self._terminated,
            truncated=self._truncated,
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


def episodes(
    traces: TraceSet, label_values: Sequence[Any]
) -> Iterator[tuple[list[Any], list[Any], list[Any], list[Any]]]:
    """Yield each trace's columns as lists; labels are taken from `label_values` by code."""
    observation_of = list(traces.observations).__getitem__
    label_of = list(label_values).__getitem__
    action_of = list(traces.actions).__getitem__
    reward_of = list(traces.rewards).__getitem__
    for number in range(len(traces)):
        acted = slice(traces.offsets[number], traces.offsets[number + 1])
        seen = slice(acted.start + number, acted.stop + number + 1)
        yield (
            list(map(observation_of, traces.observation_codes[seen].tolist())),
            list(map(label_of, traces.label_codes[seen].tolist())),
            list(map(action_of, traces.action_codes[acted].tolist())),
            list(map(reward_of, traces.reward_codes[acted].tolist())),
        )
