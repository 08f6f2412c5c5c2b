"""Traces → how often each label was recorded with what was done and seen."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.samples import LabelTiming
from resolvent.traces.symbols import Label, Symbol, label_order, symbol_order
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary, codes_of

Counts = NDArray[np.int64]
V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True, eq=False)
class LabelTally:
    """How often a label was recorded at an observation that an action led to.

    One row for each triple that occurs: `action` is −1 where an episode begins. Tallies of
    shards add up.

    >>> from resolvent.traces import Trace
    >>> traces = TraceSet([Trace([0, 1, 1], [None, "x", "x"], ["go", "go"])] * 2)
    >>> tally = LabelTally.of(traces, LabelTiming.CURRENT)
    >>> tally.action.tolist(), tally.observation.tolist(), tally.count.tolist()
    ([0], [1], [4])
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    labels: Vocabulary[Label]
    action: Codes
    observation: Codes
    label: Codes
    count: Counts

    @classmethod
    def of(cls, traces: TraceSet, timing: LabelTiming) -> "LabelTally":
        """Count the labels of traces that are read under a timing."""
        done = np.full(len(traces.observation_codes), -1, np.int32)
        later = np.ones(len(done), bool)
        later[traces.offsets[:-1] + np.arange(len(traces))] = False
        done[later] = traces.action_codes
        kept = later if timing.first else slice(None)
        columns = done[kept], traces.observation_codes[kept], traces.label_codes[kept]
        values = traces.observations, traces.actions, traces.labels
        return cls._of_distinct(columns, values, np.ones(len(columns[0]), np.int64))

    @classmethod
    def joined(cls, tallies: Sequence["LabelTally"]) -> "LabelTally":
        """Add up tallies, each of which has vocabularies of its own."""
        if len(tallies) == 1:
            return tallies[0]
        observations = _together([one.observations for one in tallies], symbol_order)
        actions = _together([one.actions for one in tallies], symbol_order)
        labels = _together([one.labels for one in tallies], label_order)
        columns = (
            np.concatenate(
                [np.append(codes_of(one.actions, actions, -1), -1)[one.action] for one in tallies]
            ),
            np.concatenate(
                [codes_of(one.observations, observations, -1)[one.observation] for one in tallies]
            ),
            np.concatenate([codes_of(one.labels, labels, -1)[one.label] for one in tallies]),
        )
        values = observations, actions, labels
        count = np.concatenate([one.count for one in tallies])
        return cls._of_distinct(columns, values, count)

    @classmethod
    def _of_distinct(
        cls,
        columns: tuple[Codes, Codes, Codes],
        values: tuple[Vocabulary[Symbol], Vocabulary[Symbol], Vocabulary[Label]],
        count: Counts,
    ) -> "LabelTally":
        """Keep each triple of action, observation and label once, with its counts added up."""
        action, observation, label = columns
        seen, marks = len(values[0]), len(values[2])
        key = ((action.astype(np.int64) + 1) * seen + observation) * marks + label
        kept, places = np.unique(key, return_inverse=True)
        pairs, labels = np.divmod(kept, marks)
        actions, observations = np.divmod(pairs, seen)
        return cls(
            *values,
            (actions - 1).astype(np.int32),
            observations.astype(np.int32),
            labels.astype(np.int32),
            np.bincount(places, count, len(kept)).astype(np.int64),
        )


def _together(vocabularies: Sequence[Vocabulary[V]], order: Callable[[V], Any]) -> Vocabulary[V]:
    return Vocabulary(sorted(set().union(*vocabularies), key=order))
