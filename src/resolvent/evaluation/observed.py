"""Express the replay of traces in a machine's own codes, with a count and a first location.

Input: a replay or a corpus. Output: columns of observed outputs and transitions, queries,
and a sample of the traces where all of them are too many.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from resolvent._util.records import ByValue
from resolvent.errors import ModelError
from resolvent.machines import Machine
from resolvent.replay import Corpus, ReplayCounts, to_machine_codes
from resolvent.replay.corpus import POOL_STEPS
from resolvent.replay.counts import Rows
from resolvent.traces import Symbol, TraceSet, symbol_text
from resolvent.traces.vocabulary import Codes, codes_of

V = TypeVar("V")

Numbers = NDArray[np.int64]

Location = tuple[int, int]
"""Trace and step, both counted from 0."""


class Query(NamedTuple):
    """An observation and an action; of a supplemented machine also the Transition Machine's state.

    >>> print(Query("hall", "up")), print(Query("hall", "up", 1))
    (hall, up)
    (hall, up) in TM state 1
    (None, None)
    """

    observation: Symbol
    action: Symbol
    transition_state: int | None = None

    def __str__(self) -> str:
        text = f"({symbol_text(self.observation)}, {symbol_text(self.action)})"
        state = self.transition_state
        return text if state is None else f"{text} in TM state {state}"


def query_of(machine: Machine, number: int) -> Query:
    """Return the query that a number stands for in a machine."""
    observation, action = machine.question(number)
    if machine.supplemented:
        if not isinstance(observation, tuple) or len(observation) != 2:
            raise ModelError(
                f"the supplemented {machine.kind} machine has an observation without a TM state"
            )
        return Query(observation[0], action, int(observation[1]))
    return Query(observation, action)


@dataclass(frozen=True, eq=False)
class ObservedOutputs(ByValue):
    """One row per observed (state, query, output), sorted by these.

    The location is the one with the fewest steps before it, then the first trace.
    """

    state: Codes
    question: Numbers
    output: Codes
    count: Numbers
    trace: Numbers
    step: Numbers

    @classmethod
    def of(cls, machine: Machine, replay: ReplayCounts) -> "ObservedOutputs":
        """Return the outputs of a replay with a known state, query and output."""
        rows = replay.machines[machine.kind].answers
        states = replay.sizes.get("transition", 1)
        coded = to_machine_codes(machine, rows, replay.alphabets, states)
        is_known = (rows["state"] >= 0) & (coded.question >= 0) & (coded.output >= 0)
        rows, query, output = rows[is_known], coded.question[is_known], coded.output[is_known]
        order = np.lexsort((output, query, rows["state"]))
        rows = rows[order]
        return cls(rows["state"].copy(), query[order], output[order], *_count_and_location(rows))

    def location(self, row: int) -> Location:
        """Return where the output of a row was first observed."""
        return int(self.trace[row]), int(self.step[row])


@dataclass(frozen=True, eq=False)
class ObservedTransitions(ByValue):
    """One row per observed (state, label, target), sorted by these."""

    state: Codes
    label: Codes
    target: Codes
    count: Numbers
    trace: Numbers
    step: Numbers

    @classmethod
    def of(cls, machine: Machine, replay: ReplayCounts) -> "ObservedTransitions":
        """Return the transitions of a replay with a known label and target."""
        rows = replay.machines[machine.kind].moves
        label = codes_of(replay.alphabets.labels, machine.labels, -1)[rows["label"]]
        is_known = (label >= 0) & (rows["output"] >= 0)
        rows, label = rows[is_known], label[is_known]
        order = np.lexsort((label, rows["state"]))
        rows = rows[order]
        columns = rows["state"].copy(), label[order], rows["output"].copy()
        return cls(*columns, *_count_and_location(rows))

    def location(self, row: int) -> Location:
        """Return where the transition of a row was first observed."""
        return int(self.trace[row]), int(self.step[row])


def _count_and_location(rows: Rows) -> tuple[Numbers, Numbers, Numbers]:
    return rows["count"].copy(), rows["early_trace"].copy(), rows["early_step"].astype(np.int64)


class SampledSteps(NamedTuple):
    """Number of steps that a figure is based on, and number of all steps.

    >>> print(SampledSteps(1_000_211, 12_000_000))
    from 1,000,211 of 12,000,000 steps
    """

    steps: int
    of: int

    def as_dict(self) -> dict[str, int]:
        """Return the record as JSON values."""
        return self._asdict()

    def __str__(self) -> str:
        return f"from {self.steps:,} of {self.of:,} steps"


def sample_traces(corpus: Corpus) -> tuple[TraceSet, SampledSteps | None]:
    """Return traces to examine one by one: all in memory, or a sample of those in files.

    Files with more than `POOL_STEPS` steps are sampled by content, so that order and repetitions
    make no difference. The second value is None if all traces are returned.
    """
    if corpus.in_memory:
        return corpus.together(), None
    if corpus.steps <= POOL_STEPS:
        return corpus.fetch(corpus.all), None
    sample = corpus.fetch(corpus.sample(POOL_STEPS))
    return sample, SampledSteps(sample.steps, corpus.steps)


class LazySequence(Sequence[V], ABC, Generic[V]):
    """A sequence with a known length whose elements `_element` builds on access.

    >>> class Squares(LazySequence[int]):
    ...     def _element(self, index):
    ...         return index * index
    >>> squares = Squares(5)
    >>> squares[-1], squares[1:3], list(squares), squares == (0, 1, 4, 9, 16)
    (16, (1, 4), [0, 1, 4, 9, 16], True)
    """

    def __init__(self, length: int) -> None:
        self._indices = range(length)

    @abstractmethod
    def _element(self, index: int) -> V:
        """Build the element at an index, counted from 0."""

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[V, ...]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(map(self._element, self._indices[index]))
        return self._element(self._indices[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazySequence | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} × {type(self[0]).__name__}>" if self else "<nothing>"
