"""Traces without labels → columns: what is read at each step, and what is answered then."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.samples import NONE
from resolvent.traces import TraceSet
from resolvent.traces.labelling import Labelling
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.vocabulary import Codes

Table = NDArray[np.int64]
"""Where each source leads from each state: entry [source, state]."""


TimeLeft: TypeAlias = Callable[[], float | None]
"""Says how many seconds are left; None if there is no limit."""


def is_over(time_left: TimeLeft) -> bool:
    """Say whether there is no time left."""
    left = time_left()
    return left is not None and left <= 0


@dataclass(frozen=True, eq=False)
class EventSteps:
    """Steps that read a source, which may be an event, and then answer a question.

    `source` and `answer` are codes, `NONE` where nothing is read, or where the question
    has one answer throughout and says nothing. `query_of` gives each answer's question.
    Of the `sources` the second half stands for those that an episode begins with: they
    may act otherwise than when a step leads to them.
    """

    source: Codes
    answer: Codes
    offsets: NDArray[np.int64]
    question_of: NDArray[np.int64]
    sources: int

    @property
    def answers(self) -> int:
        """How many different answers there are to all questions that have more than one."""
        return len(self.question_of)

    @cached_property
    def telling(self) -> NDArray[np.int64]:
        """The steps whose answers say something."""
        return np.flatnonzero(self.answer != NONE)

    def states(self, table: Table) -> Codes:
        """Walk all traces, each from state 0, and return the state at each step."""
        moves = np.ascontiguousarray(table.T, np.int32).ravel()
        return _core.walk_states(moves, self.sources, self.source, self.offsets)

    def told(self, table: Table) -> NDArray[np.int64]:
        """Count how often each state gives each answer: entry [state, answer]."""
        states = table.shape[1]
        counts = _core.answers_told(
            self.source,
            self.answer,
            self.offsets,
            table=table.astype(np.int32).ravel(),
            states=states,
            answers=self.answers,
        )
        return counts.reshape(states, self.answers)

    def entered(self, table: Table) -> NDArray[np.bool_]:
        """Say of each state whether it is ever entered; all traces begin in state 0."""
        entered = np.bincount(self.states(table), minlength=table.shape[1]) > 0
        entered[0] = True
        return entered

    def rooted(self, table: Table) -> Table | None:
        """Let the state that all beginnings lead to be state 0; None if there is no other such."""
        begins = self.source[self.offsets[:-1]]
        led = np.unique(table[begins, 0]) if (begins != NONE).all() else np.zeros(1, np.int64)
        if len(led) > 1 or led[0] == 0:
            return None
        number = np.arange(table.shape[1])
        number[[0, led[0]]] = number[[led[0], 0]]
        rooted = number[table[:, number]]
        rooted[self.sources // 2 :] = np.arange(table.shape[1])
        return rooted

    def readings(self, table: Table) -> NDArray[np.int64]:
        """Count how often each source was read in each state: entry [source, state]."""
        count = table.shape[1]
        before = np.zeros(len(self.source), np.int64)
        before[1:] = self.states(table)[:-1]
        before[self.offsets[:-1]] = 0
        read = self.source != NONE
        place = self.source[read] * np.int64(count) + before[read]
        return np.bincount(place, minlength=self.sources * count).reshape(self.sources, count)

    def read_as(self, classes: NDArray[np.int64]) -> "EventSteps":
        """Return steps that read the class of what they read, given for half of the sources.

        A class that is `NONE` is not read, and beginnings are sources of their own again.
        """
        count = int(classes.max(initial=-1)) + 1
        begun = np.where(classes == NONE, NONE, classes + count)
        codes = np.concatenate([classes, begun, [NONE]]).astype(np.int32)
        return replace(self, source=codes[self.source], sources=2 * count)

    def first(self, most: int) -> "EventSteps":
        """Return the steps of the first traces, of which there are about so many."""
        traces = max(1, int(np.searchsorted(self.offsets, most, side="right")) - 1)
        end = int(self.offsets[traces])
        return replace(
            self,
            source=self.source[:end],
            answer=self.answer[:end],
            offsets=self.offsets[: traces + 1],
        )

    def surprises(self, table: Table) -> int:
        """Count the answers that are not the most frequent of their question and state."""
        told = self.told(table)
        questions = int(self.question_of.max(initial=-1)) + 1
        most = np.zeros((len(told), questions), np.int64)
        for state, counts in enumerate(told):
            np.maximum.at(most[state], self.question_of, counts)
        return int(told.sum() - most.sum())


def event_steps(
    traces: TraceSet, labelling: Labelling, predicts: str, observed: Codes | None = None
) -> EventSteps:
    """Return the steps of traces as the search for events of one output sees them.

    `observed`, if given, stands for the observation at each step.
    """
    names, place = labelling.sources(traces)
    source = traces.at_step(place).astype(np.int32)
    begins = traces.offsets[:-1]
    source[begins] = np.where(source[begins] == NONE, NONE, source[begins] + len(names))
    if observed is None:
        observed = traces.at_step(traces.observation_codes)
    if predicts == OBSERVATION:
        output = traces.after_step(traces.observation_codes)
    else:
        output = traces.column(predicts).codes
    question = observed.astype(np.int64) * len(traces.actions) + traces.action_codes
    answer, question_of = _telling(question, output.astype(np.int64))
    return EventSteps(source, answer, traces.offsets, question_of, 2 * len(names))


def _telling(
    question: NDArray[np.int64], output: NDArray[np.int64]
) -> tuple[Codes, NDArray[np.int64]]:
    """Number the answers of questions that have more than one, and say which question each has."""
    width = int(output.max(initial=0)) + 1
    pairs, place = np.unique(question * width + output, return_inverse=True)
    _, asked, answers = np.unique(pairs // width, return_inverse=True, return_counts=True)
    tells = answers[asked] > 1
    code = np.where(tells, np.cumsum(tells) - 1, NONE).astype(np.int32)
    _, question_of = np.unique(asked[tells], return_inverse=True)
    return code[place], question_of.astype(np.int64)


def distinct_traces(traces: TraceSet) -> TraceSet:
    """Return each different trace once, in an order that depends on nothing but their contents.

    The first traces are a fair sample of all, so that a search may begin with them. Labels
    make no difference.

    >>> from resolvent.traces import Trace
    >>> one, other = Trace([0, 1], [None] * 2, "a"), Trace([0, 2], [None] * 2, "a")
    >>> found = distinct_traces(TraceSet([one, other, one]))
    >>> len(found), found == distinct_traces(TraceSet([other, one]))
    (2, True)
    """
    columns = [column.codes for column in traces.columns.values()]
    first: dict[bytes, int] = {}
    for number in range(len(traces)):
        begin, end = int(traces.offsets[number]), int(traces.offsets[number + 1])
        digest = hashlib.sha256(
            traces.observation_codes[begin + number : end + number + 1].tobytes()
        )
        digest.update(traces.action_codes[begin:end].tobytes())
        for codes in columns:
            digest.update(codes[begin:end].tobytes())
        digest.update(b"%d" % traces.terminated[number])
        first.setdefault(digest.digest(), number)
    return traces.take([first[key] for key in sorted(first)])
