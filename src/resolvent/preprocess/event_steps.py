"""Steps for the discovery of events, and the length of their description.

Input: traces without labels. Output: columns of sources, which may be events, and of outputs.
A *table* holds the next state for each source and state; the shorter the description of the
table and of all outputs given it, the better it explains the steps.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import NONE
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

Table: TypeAlias = NDArray[np.int64]  # the next state by [source, state]
Counts: TypeAlias = NDArray[np.int64]

_PRIOR_COUNT: Final = 0.1  # count of each output before the first step: outputs seldom vary


@dataclass(frozen=True, eq=False)
class EventSteps:
    """Steps that read a source, which may be an event, and then answer a query.

    `source` and `output` are codes, `NONE` if nothing is read, or if the query has one output.
    `query_of` is the query of each output. The second half of the sources are those of starts.
    """

    source: Codes
    output: Codes
    offsets: NDArray[np.int64]
    query_of: NDArray[np.int64]
    n_sources: int

    @property
    def n_outputs(self) -> int:
        """Number of outputs of all queries that have more than one."""
        return len(self.query_of)

    @cached_property
    def informative(self) -> NDArray[np.int64]:
        """The steps whose queries have more than one output."""
        return np.flatnonzero(self.output != NONE)

    def states(self, table: Table) -> Codes:
        """Return the state at each step; each trace starts in state 0."""
        moves = np.ascontiguousarray(table.T, np.int32).ravel()
        return _core.walk_states(moves, self.n_sources, self.source, self.offsets)

    def output_counts(self, table: Table) -> Counts:
        """Return the number of steps by [state, output]."""
        states = table.shape[1]
        moves = table.astype(np.int32).ravel()
        columns = self.source, self.output, self.offsets
        counts = _core.output_counts(*columns, table=moves, states=states, outputs=self.n_outputs)
        return counts.reshape(states, self.n_outputs)

    def counts_after(self, states: Codes, state: int) -> Counts:
        """Return the number of steps in a state by [last source read in it, output]."""
        columns = self.source, self.output, self.offsets, states
        counts = _core.output_counts_after(
            *columns, state=state, sources=self.n_sources, outputs=self.n_outputs
        )
        return counts.reshape(self.n_sources, self.n_outputs)

    def is_entered(self, table: Table) -> NDArray[np.bool_]:
        """Return for each state whether some step is in it; state 0 always counts."""
        is_entered = np.bincount(self.states(table), minlength=table.shape[1]) > 0
        is_entered[0] = True
        return is_entered

    def rooted(self, table: Table) -> Table | None:
        """Return the table with the state after all starts as state 0; None if it is already."""
        starts = self.source[self.offsets[:-1]]
        after_start = np.unique(table[starts, 0]) if (starts != NONE).all() else np.zeros(1, int)
        if len(after_start) > 1 or after_start[0] == 0:
            return None
        number = np.arange(table.shape[1])
        number[[0, after_start[0]]] = number[[after_start[0], 0]]
        rooted = number[table[:, number]]
        rooted[self.n_sources // 2 :] = np.arange(table.shape[1])
        return rooted

    def read_counts(self, table: Table) -> Counts:
        """Return the number of times each source is read in each state, by [source, state]."""
        n_states = table.shape[1]
        before = np.zeros(len(self.source), np.int64)
        before[1:] = self.states(table)[:-1]
        before[self.offsets[:-1]] = 0
        is_read = self.source != NONE
        pairs = self.source[is_read] * np.int64(n_states) + before[is_read]
        counts = np.bincount(pairs, minlength=self.n_sources * n_states)
        return counts.reshape(self.n_sources, n_states)

    def read_as(self, classes: NDArray[np.int64]) -> "EventSteps":
        """Return steps that read the class of each source; starts have separate classes.

        `classes` has the class of each source after a step; a source of class `NONE` is not read.
        """
        n_classes = int(classes.max(initial=-1)) + 1
        of_starts = np.where(classes == NONE, NONE, classes + n_classes)
        codes = np.concatenate([classes, of_starts, [NONE]]).astype(np.int32)
        return replace(self, source=codes[self.source], n_sources=2 * n_classes)

    def first(self, n_steps: int) -> "EventSteps":
        """Return the steps of the first traces that have at most this number of steps."""
        traces = max(1, int(np.searchsorted(self.offsets, n_steps, side="right")) - 1)
        end = int(self.offsets[traces])
        source, output, offsets = self.source[:end], self.output[:end], self.offsets[: traces + 1]
        return replace(self, source=source, output=output, offsets=offsets)

    def count_unexplained(self, table: Table) -> int:
        """Return the number of outputs that are not the most frequent of query and state."""
        counts = self.output_counts(table)
        n_queries = int(self.query_of.max(initial=-1)) + 1
        largest = np.zeros((len(counts), n_queries), np.int64)
        for state, row in enumerate(counts):
            np.maximum.at(largest[state], self.query_of, row)
        return int(counts.sum() - largest.sum())


def event_steps(
    traces: TraceSet, labeling: LabelingFunction, predicts: str, observed: Codes | None = None
) -> EventSteps:
    """Return the steps for events that explain one output; `observed` replaces observations."""
    sources, codes = labeling.sources(traces)
    source = traces.at_step(codes).astype(np.int32)
    starts = traces.offsets[:-1]
    source[starts] = np.where(source[starts] == NONE, NONE, source[starts] + len(sources))
    if observed is None:
        observed = traces.at_step(traces.observation_codes)
    output = traces.column(predicts).codes
    query = observed.astype(np.int64) * len(traces.actions) + traces.action_codes
    codes_of_steps, query_of = _varying_outputs(query, output.astype(np.int64))
    return EventSteps(source, codes_of_steps, traces.offsets, query_of, 2 * len(sources))


def _varying_outputs(query: Counts, output: Counts) -> tuple[Codes, Counts]:
    """Number the outputs of queries that have more than one; return the query of each, too."""
    width = int(output.max(initial=0)) + 1
    pairs, pair_of_step = np.unique(query * width + output, return_inverse=True)
    _, queries, n_outputs = np.unique(pairs // width, return_inverse=True, return_counts=True)
    varies = n_outputs[queries] > 1
    code = np.where(varies, np.cumsum(varies) - 1, NONE).astype(np.int32)
    _, query_of = np.unique(queries[varies], return_inverse=True)
    return code[pair_of_step], query_of.astype(np.int64)


def unlabeled_distinct_traces(traces: TraceSet) -> TraceSet:
    """Return each different trace once, in an order that depends only on their contents.

    The first traces are a fair sample of all. Labels are ignored.
    """
    step_codes = [traces.action_codes, *(column.codes for column in traces.columns.values())]
    first: dict[bytes, int] = {}
    for number in range(len(traces)):
        steps, observed = traces.rows_of(number)
        digest = hashlib.sha256(traces.observation_codes[observed].tobytes())
        for codes in step_codes:
            digest.update(codes[steps].tobytes())
        digest.update(b"%d" % traces.terminated[number])
        first.setdefault(digest.digest(), number)
    return traces.take([first[key] for key in sorted(first)])


class DescriptionLength:
    """The length of a description of a table, and of all outputs given it, in nats.

    Outputs are coded in sequence, by the counts of earlier outputs of the same query and state.
    """

    def __init__(self, steps: EventSteps) -> None:
        self.steps = steps
        size = len(steps.informative) + 1
        self._of_output = _sums_of_logs(size, _PRIOR_COUNT)
        n_outputs = np.bincount(steps.query_of)
        self._order = np.argsort(steps.query_of, kind="stable")
        self._starts = np.flatnonzero(np.diff(steps.query_of[self._order], prepend=-1))
        self._by_n_outputs = [
            (np.flatnonzero(n_outputs == number), _sums_of_logs(size, number * _PRIOR_COUNT))
            for number in np.unique(n_outputs).tolist()
        ]

    def of(self, table: Table, counts: Counts) -> float:
        """Return the length for a table, given the counts of outputs by state."""
        return float(self.of_outputs(counts).sum()) + self.of_table(table)

    def of_outputs(self, counts: Counts) -> NDArray[np.float64]:
        """Return the length for outputs with these counts; the last axis is the output's."""
        query_counts = np.add.reduceat(counts[..., self._order], self._starts, axis=-1)
        length = -self._of_output[counts].sum(-1)
        for queries, sums in self._by_n_outputs:
            length += sums[query_counts[..., queries]].sum(-1)
        return np.asarray(length, np.float64)

    def of_table(self, table: Table) -> float:
        """Return the length of a table: names and classes of events, and transitions of classes."""
        states = np.arange(table.shape[1])
        events = (table != states).any(1)
        classes = np.unique(table[events], axis=0)
        of_names = events.sum() * (log(self.steps.n_sources) + log(1 + len(classes)))
        of_transitions = (classes != states).sum() * log(2 * len(states))
        return float(of_names + of_transitions + len(states))


def _sums_of_logs(size: int, first: float) -> NDArray[np.float64]:
    """Return log(first) + log(first + 1) + … of 0 to `size` summands."""
    return np.concatenate([[0.0], np.cumsum(log(np.arange(size) + first))])
