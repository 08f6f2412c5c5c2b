"""Find the evidence in the traces that distinguishes each pair of states of a machine.

Input: a machine and its observed outputs. Output: for each pair of states a suffix and a query
with different outputs, or none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, Final

import numpy as np

from resolvent import _core
from resolvent._util.text import odds_text
from resolvent._util.validation import check_table
from resolvent.errors import TooLarge
from resolvent.evaluation.observed import (
    LazySequence,
    Location,
    Numbers,
    ObservedOutputs,
    Query,
    query_of,
)
from resolvent.machines import Machine
from resolvent.traces import Codes, Label, label_text, symbol_text

CoreListener = Callable[[int, int, int, int], object]
"""Receives the four numbers of a `Progress` from the compiled core."""

_PAIR_BYTES: Final = 36
"""Bytes of memory that each pair of states takes while the pairs are separated."""


@dataclass(frozen=True)
class Answer:
    """An output observed in a state, its count, and its first location.

    `total` is the number of times the query was observed there, if it has other outputs as well.
    """

    output: Any
    count: int
    place: Location
    total: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "output": self.output,
            "count": self.count,
            **({} if self.total is None else {"asked": self.total}),
            "trace": self.place[0],
            "step": self.place[1],
        }

    def __str__(self) -> str:
        of = "" if self.total is None else f" {self.count:,} of {self.total:,} times"
        return f"{symbol_text(self.output)}{of} (trace {self.place[0]}, step {self.place[1]})"


@dataclass(frozen=True)
class Separation:
    """The evidence that two states differ: their outputs to `question` after `suffix`.

    `questions` is the number of queries with different outputs after that suffix, `support` the
    number of steps with these queries. They are None or 0 if nothing distinguishes the states.
    In a noisy machine no single output does: `log_odds` is the log-likelihood ratio of two
    states to one, given all outputs of both.
    """

    first: int
    second: int
    suffix: tuple[Label, ...] | None = None
    questions: int = 0
    support: int = 0
    question: Query | None = None
    answers: tuple[Answer, Answer] | None = None
    log_odds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "states": [self.first, self.second],
            "suffix": None if self.suffix is None else [sorted(label) for label in self.suffix],
            "questions": self.questions,
            "support": self.support,
            "question": None if self.question is None else self.question._asdict(),
            "answers": [answer.as_dict() for answer in self.answers or ()] or None,
            **({} if self.log_odds is None else {"log_odds": self.log_odds}),
        }

    def __str__(self) -> str:
        states = f"states {self.first} and {self.second}"
        if self.suffix is None or self.question is None or self.answers is None:
            odds = "" if self.log_odds is None else f"; one state: {odds_text(-self.log_odds)}"
            return f"{states}: nothing tells them apart{odds}"
        first, second = self.answers
        after = f"after {', '.join(map(label_text, self.suffix))} " if self.suffix else ""
        plural = "" if self.questions == 1 else "s"
        if self.log_odds is not None:
            states += f", as one {odds_text(-self.log_odds)}"
        return (
            f"{states}: {after}{self.questions:,} question{plural} asked {self.support:,} times, "
            f"such as {self.question}: {first} against {second}"
        )


class VaryingOutputs:
    """The observed outputs of queries whose output varies: entries, by state and query.

    An entry is a `row` of the observed outputs; `column` is the index of its query in `queries`.
    If a state has several outputs to one query, which only noise allows, the entry is the most
    frequent one, of equals the first.
    """

    def __init__(self, machine: Machine, outputs: ObservedOutputs) -> None:
        self.machine, self.outputs = machine, outputs
        queries, inverse = np.unique(outputs.question, return_inverse=True)
        index: Codes = inverse.astype(np.int32)
        varies = _core.tally_outputs(index, outputs.output, len(queries))[2].astype(bool)
        self.queries: Numbers = queries[varies]
        rows = np.flatnonzero(varies[index])
        rows = rows[np.lexsort((-outputs.count[rows], index[rows], outputs.state[rows]))]
        is_first = np.ones(len(rows), bool)
        is_first[1:] = np.diff(outputs.state[rows]) | np.diff(index[rows])
        self.row = rows[is_first]
        self.state: Codes = outputs.state[self.row]
        self.column: Codes = (np.cumsum(varies, dtype=np.int32) - 1)[index[self.row]]
        self.output: Codes = outputs.output[self.row]

    def entries(self, state: int) -> slice:
        """Return the range of the entries of a state."""
        start, stop = np.searchsorted(self.state, [state, state + 1])
        return slice(start, stop)

    def distinguishing(self, first: int, second: int) -> Codes:
        """Return the columns of the queries to which two states have different outputs."""
        ours, theirs = self.entries(first), self.entries(second)
        common, at_first, at_second = np.intersect1d(
            self.column[ours], self.column[theirs], assume_unique=True, return_indices=True
        )
        columns: Codes = common[self.output[ours][at_first] != self.output[theirs][at_second]]
        return columns

    @cached_property
    def by_query(self) -> Numbers:
        """The entries by query, then by state."""
        return np.argsort(self.column, kind="stable")


class Separations(LazySequence[Separation]):
    """The evidence for each pair of states, in the order (0, 1), (0, 2), … (1, 2) and so on.

    Each `Separation` is built on access; there are columns over all pairs: `depth`, the length
    of the suffix (−1 where nothing distinguishes the two), `questions` and `support`. If the
    pairs take more memory than the limit allows, there are none, and `left_out` says so.
    """

    left_out: str | None = None

    def __init__(self, varying: VaryingOutputs, progress: CoreListener | None = None) -> None:
        machine, outputs = varying.machine, varying.outputs
        self.machine, self.observed = machine, outputs
        self._rows = varying.row[varying.by_query]
        self._states = machine.states
        halves = max(machine.states - 1, 0), -(-machine.states // 2)
        try:
            check_table(*halves, _PAIR_BYTES, "pairs of states that are told apart")
        except TooLarge as error:
            self.left_out = str(error)
            self.depth = np.empty(0, np.int32)
            self.questions = self.support = np.empty(0, np.int64)
            super().__init__(0)
            return
        columns = _core.separate(
            varying.column[varying.by_query],
            varying.state[varying.by_query],
            varying.output[varying.by_query],
            count=outputs.count[self._rows],
            step=outputs.step[self._rows],
            transitions=nontrivial_transitions(machine),
            states=machine.states,
            labels=len(machine.labels),
            progress=progress,
        )
        self.depth, self.questions, self.support = (
            columns[name] for name in ("depth", "questions", "support")
        )
        self._label, self._witness = columns["label"], (columns["lower"], columns["higher"])
        super().__init__(len(self.depth))

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces distinguishes."""
        return tuple(map(self._element, np.flatnonzero(self.depth < 0).tolist()))

    def weakest(self, most: int) -> list[Separation]:
        """Return at most `most` pairs, those with the least support first."""
        order = np.argsort(self.support, kind="stable")
        return [self._element(pair) for pair in order[:most].tolist()]

    def number(self, first: int, second: int) -> int:
        """Return the index of a pair of states, in either order."""
        lower, higher = (first, second) if first < second else (second, first)
        return lower * (2 * self._states - lower - 1) // 2 + higher - lower - 1

    def suffix(self, first: int, second: int) -> tuple[tuple[Label, ...], int, int] | None:
        """Return the labels to read and the states they lead to; None if nothing is known.

        These are the shortest labels that lead to states which a query distinguishes, and of
        those the first in label order.
        """
        if self.left_out:
            return None
        labels = []
        while (depth := int(self.depth[(pair := self.number(first, second))])) > 0:
            code = int(self._label[pair])
            labels.append(self.machine.labels[code])
            first, second = (
                int(self.machine.transitions[state, code]) for state in (first, second)
            )
        return None if depth < 0 else (tuple(labels), first, second)

    def states(self, pair: int) -> tuple[int, int]:
        """Return the two states of a pair by its index."""
        from_last = len(self.depth) - 1 - pair
        above = (isqrt(8 * from_last + 1) - 1) // 2
        first = self._states - 2 - above
        return first, self._states - 1 - (from_last - above * (above + 1) // 2)

    def _element(self, index: int) -> Separation:
        first, second = self.states(index)
        path = self.suffix(first, second)
        if path is None:
            return Separation(first, second)
        labels, first_after, second_after = path
        rows = [int(self._rows[column[index]]) for column in self._witness]
        if first_after > second_after:
            rows.reverse()
        return Separation(
            first,
            second,
            labels,
            int(self.questions[index]),
            int(self.support[index]),
            query_of(self.machine, int(self.observed.question[rows[0]])),
            (self._answer(rows[0]), self._answer(rows[1])),
        )

    def _answer(self, row: int, total: int | None = None) -> Answer:
        outputs = self.observed
        output = self.machine.outputs[int(outputs.output[row])]
        return Answer(output, int(outputs.count[row]), outputs.location(row), total)


def nontrivial_transitions(machine: Machine) -> Codes:
    """Return the transitions as one column, −1 for trivial labels."""
    targets = machine.transitions.copy()
    targets[:, list(machine.trivial)] = -1
    return targets.ravel()
