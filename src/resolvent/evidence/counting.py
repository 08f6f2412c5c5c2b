"""Machine + traces → how often each of its answers and transitions was seen, and where first.

The one step of gathering evidence that goes over all steps of all traces;
everything else works on the columns it returns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.score import StepsAsked
from resolvent.traces.vocabulary import Codes, distinct_pairs


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One row per (state, question, output) that the traces show, sorted by those.

    The witness is the place with the fewest steps before it, then the first trace.
    """

    state: Codes
    question: NDArray[np.int64]
    output: Codes
    count: NDArray[np.int64]
    trace: NDArray[np.int64]
    step: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """One row per (state, label, target) that the traces show, sorted by those."""

    state: Codes
    label: Codes
    target: Codes
    count: NDArray[np.int64]
    trace: NDArray[np.int64]
    step: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the steps of some traces stand: one number per step, smaller for fewer steps before."""

    offsets: NDArray[np.int64]
    of_row: NDArray[np.int64]

    @classmethod
    def of(cls, offsets: NDArray[np.int64]) -> "Places":
        """Number the steps of traces that begin at these rows."""
        traces = len(offsets) - 1
        # Within a trace, each step adds the number of traces.
        first = np.arange(traces) - offsets[:-1] * traces
        of_row = np.arange(int(offsets[-1])) * traces
        of_row += np.repeat(first, np.diff(offsets))
        return cls(offsets, of_row)


def count_answers(asked: StepsAsked, places: Places) -> Answers:
    """Count the answers that the traces give, wherever state, question and output are known."""
    machine = asked.machine
    known = (asked.states >= 0) & (asked.questions >= 0) & (asked.outputs < len(machine.outputs))
    rows = np.flatnonzero(known)
    questions = len(machine.observations) * len(machine.actions)
    where, at = distinct_pairs(
        asked.states[rows], asked.questions[rows].astype(np.int32), machine.states, questions
    )
    triples, group = distinct_pairs(at, asked.outputs[rows], len(where), len(machine.outputs))
    pair, output = np.divmod(triples, max(len(machine.outputs), 1))
    state, question = np.divmod(where[pair], max(questions, 1))
    return Answers(
        state.astype(np.int32),
        question,
        output.astype(np.int32),
        *_tally(group, rows, places, len(triples)),
    )


def count_moves(asked: StepsAsked, places: Places) -> Moves:
    """Count the transitions that the traces take, wherever state, label and target are known."""
    machine = asked.machine
    before = np.empty_like(asked.states)
    before[1:] = asked.states[:-1]
    before[places.offsets[:-1]] = 0
    read = (asked.labels >= 0) & (asked.labels < len(machine.labels))
    rows = np.flatnonzero(read & (before >= 0) & (asked.states >= 0))
    edges, at = distinct_pairs(
        before[rows], asked.labels[rows], machine.states, len(machine.labels)
    )
    triples, group = distinct_pairs(at, asked.states[rows], len(edges), machine.states)
    edge, target = np.divmod(triples, machine.states)
    state, label = np.divmod(edges[edge], max(len(machine.labels), 1))
    return Moves(
        state.astype(np.int32),
        label.astype(np.int32),
        target.astype(np.int32),
        *_tally(group, rows, places, len(triples)),
    )


def _tally(
    group: Codes, rows: NDArray[np.int64], places: Places, groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return how many rows each group has, and the trace and step of its witness."""
    first = np.full(groups, np.iinfo(np.int64).max)
    np.minimum.at(first, group, places.of_row[rows])
    step, trace = np.divmod(first, max(len(places.offsets) - 1, 1))
    return np.bincount(group, minlength=groups), trace, step
