"""Find the evidence in the traces that distinguishes each pair of states of a machine.

Input: a machine and its observed outputs; with noise, its steps. Output: for each pair of states a
suffix and a query with different outputs, or none; with noise, the odds that they are two states.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.records import to_builtins
from resolvent._util.text import odds_text
from resolvent._util.validation import check_table
from resolvent.errors import TooLarge
from resolvent.evaluation.observed import (
    LazySequence,
    Location,
    Numbers,
    Query,
    location,
    most_frequent,
    query_of,
)
from resolvent.machines import Machine
from resolvent.machines.tables import AlternativeTransitions, look_up
from resolvent.noise.outputs import OPEN_LOG_ODDS, SUBSAMPLE_ROWS
from resolvent.replay.counts import CountTable
from resolvent.replay.steps import StepQueries
from resolvent.traces import NO_EVENT, Codes, Label, label_text, symbol_text

CoreListener = Callable[[int, int, int, int], object]
"""Receives the four numbers of a `Progress` from the compiled core."""

_PAIR_BYTES: Final = 36  # bytes of memory that each pair of states takes meanwhile


@dataclass(frozen=True)
class OutputSupport:
    """An output observed in a state, its count, and its first location.

    In a noisy machine `total` is the number of times the query was observed in that state.
    """

    state: int
    query: Query
    output: Any
    count: int
    location: Location
    total: int | None = None

    @classmethod
    def of(cls, machine: Machine, outputs: CountTable, row: int) -> "OutputSupport":
        """Return the output of a row."""
        state, query, output = (int(column[row]) for column in outputs.columns.values())
        count, where, total = int(outputs.count[row]), location(outputs, row), None
        if machine.is_noisy:
            same = slice(*np.searchsorted(outputs["state"], [state, state + 1]))
            total = int(outputs.count[same][outputs["query"][same] == query].sum())
        return cls(state, query_of(machine, query), machine.outputs[output], count, where, total)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return to_builtins(self, optional=["total"])

    @property
    def text(self) -> str:
        """The output with its location, and its share of all outputs to the query if it varies."""
        share = "" if self.total is None else f", {self.count:,} of {self.total:,} times"
        trace, step = self.location
        return f"{symbol_text(self.output)}{share} (trace {trace}, step {step})"

    def __str__(self) -> str:
        count = "" if self.total is not None else f", observed {times(self.count)}"
        return f"state {self.state}, {self.query}: {self.text}{count}"


def times(count: int) -> str:
    """Write how often something was observed."""
    return "once" if count == 1 else f"{count:,} times"


@dataclass(frozen=True)
class Separation:
    """The evidence that two states differ: their outputs to the same query after `suffix`.

    `queries` is the number of queries with different outputs after that suffix, `support` the
    number of steps with these queries; `outputs` are the two outputs to one of them. They are None
    or 0 if nothing distinguishes the states. In a noisy machine `log_odds` is the log-likelihood
    ratio of two states to one, given all outputs of both.
    """

    first: int
    second: int
    suffix: tuple[Label, ...] | None = None
    queries: int = 0
    support: int = 0
    outputs: tuple[OutputSupport, OutputSupport] | None = None
    log_odds: float | None = None

    @property
    def query(self) -> Query | None:
        """The query that distinguishes the states after the suffix."""
        return None if self.outputs is None else self.outputs[0].query

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        columns = ("suffix", "queries", "support", "outputs", "log_odds")
        return {
            "states": [self.first, self.second],
            **to_builtins(self, columns, optional=["log_odds"]),
        }

    def __str__(self) -> str:
        states = f"states {self.first} and {self.second}"
        if self.suffix is None or self.outputs is None:
            odds = "" if self.log_odds is None else f"; one state: {odds_text(-self.log_odds)}"
            return f"{states}: nothing distinguishes them{odds}"
        first, second = self.outputs
        after = f"after {', '.join(map(label_text, self.suffix))} " if self.suffix else ""
        plural = "query" if self.queries == 1 else "queries"
        if self.log_odds is not None:
            states += f", as one {odds_text(-self.log_odds)}"
        return (
            f"{states}: {after}{self.queries:,} {plural} observed {times(self.support)}, such as "
            f"{self.query}: {first.text} against {second.text}"
        )


class VaryingOutputs:
    """The observed outputs of queries whose output varies: entries, by state and query.

    An entry is a `row` of the observed outputs; `column` is the index of its query in `queries`.
    With noise, it is the most frequent output of a state to the query, of equals the first.
    """

    def __init__(self, machine: Machine, outputs: CountTable) -> None:
        self.machine, self.outputs = machine, outputs
        queries, inverse = np.unique(outputs["query"], return_inverse=True)
        index: Codes = inverse.astype(np.int32)
        varies = _core.tally_outputs(index, outputs["output"], len(queries))[2].astype(bool)
        self.queries: Numbers = queries[varies]
        self.row, _ = most_frequent(outputs, np.flatnonzero(varies[index]))
        self.state: Codes = outputs["state"][self.row]
        self.column: Codes = (np.cumsum(varies, dtype=np.int32) - 1)[index[self.row]]
        self.output: Codes = outputs["output"][self.row]

    def entries(self, state: int) -> slice:
        """Return the range of the entries of a state."""
        return slice(*np.searchsorted(self.state, [state, state + 1]))

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

    Each `Separation` is built on access from columns over all pairs: `depth` and `label`, the
    length and the first label of the suffix (−1 where nothing distinguishes the two), `queries`,
    `support`, `lower` and `higher`, the rows of the observed outputs to one query of the lower and
    of the higher state that the suffix leads to, and for noisy machines `log_odds`. If the pairs
    take more memory than the limit allows, there are none, and `skipped` is the reason.
    """

    def __init__(
        self,
        machine: Machine,
        outputs: CountTable,
        columns: dict[str, NDArray[Any]],
        skipped: str | None = None,
    ) -> None:
        self.machine, self.observed, self.skipped = machine, outputs, skipped
        self._columns, self._states = columns, machine.states
        self.depth, self.queries, self.support = (
            columns.get(name, np.empty(0, np.int64)) for name in ("depth", "queries", "support")
        )
        self.log_odds = columns.get("log_odds")
        super().__init__(len(self.depth), self._separation)

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces distinguishes."""
        return tuple(map(self._separation, np.flatnonzero(self.depth < 0).tolist()))

    def weakest(self, most: int) -> list[Separation]:
        """Return at most `most` pairs, those with the least support or the lowest odds first."""
        support = self.support if self.log_odds is None else self.log_odds
        order = np.argsort(support, kind="stable")
        return [self._separation(pair) for pair in order[:most].tolist()]

    def suffix(self, first: int, second: int) -> tuple[tuple[Label, ...], int, int] | None:
        """Return the labels to read and the states they lead to; None if nothing is known.

        These are the shortest labels that lead to states which a query distinguishes, and of
        those the first in label order.
        """
        if self.skipped:
            return None
        labels = []
        while (depth := int(self.depth[(pair := self.number(first, second))])) > 0:
            code = int(self._columns["label"][pair])
            labels.append(self.machine.labels[code])
            first, second = self.machine.transitions[[first, second], code].tolist()
        return None if depth < 0 else (tuple(labels), first, second)

    def number(self, first: int, second: int) -> int:
        """Return the index of a pair of states, in either order."""
        lower, higher = (first, second) if first < second else (second, first)
        return lower * (2 * self._states - lower - 1) // 2 + higher - lower - 1

    def states(self, pair: int) -> tuple[int, int]:
        """Return the two states of a pair by its index."""
        from_last = len(self.depth) - 1 - pair
        above = (isqrt(8 * from_last + 1) - 1) // 2
        first = self._states - 2 - above
        return first, self._states - 1 - (from_last - above * (above + 1) // 2)

    def _separation(self, pair: int) -> Separation:
        first, second = self.states(pair)
        log_odds = None if self.log_odds is None else float(self.log_odds[pair])
        path = self.suffix(first, second)
        if path is None:
            return Separation(first, second, log_odds=log_odds)
        labels, first_after, second_after = path
        rows = [int(self._columns[name][pair]) for name in ("lower", "higher")]
        if first_after > second_after:
            rows.reverse()
        ours, theirs = (OutputSupport.of(self.machine, self.observed, row) for row in rows)
        queries, support = int(self.queries[pair]), int(self.support[pair])
        return Separation(first, second, labels, queries, support, (ours, theirs), log_odds)


def separate(varying: VaryingOutputs, progress: CoreListener | None = None) -> Separations:
    """Find the shortest suffix and the queries that distinguish each pair of states."""
    machine, outputs = varying.machine, varying.outputs
    halves = max(machine.states - 1, 0), -(-machine.states // 2)
    try:
        check_table(*halves, _PAIR_BYTES, "pairs of states to distinguish")
    except TooLarge as error:
        return Separations(machine, outputs, {}, skipped=str(error))
    rows = varying.row[varying.by_query]
    columns = _core.separate(
        varying.column[varying.by_query],
        varying.state[varying.by_query],
        varying.output[varying.by_query],
        count=outputs.count[rows],
        step=outputs.locations[1][rows],
        transitions=nontrivial_transitions(machine),
        states=machine.states,
        labels=len(machine.labels),
        progress=progress,
    )
    witness_rows = np.append(rows, -1).astype(np.int32)  # the last entry is for no witness
    for name in ("lower", "higher"):
        columns[name][:] = witness_rows[columns[name]]
    return Separations(machine, outputs, columns)


def nontrivial_transitions(machine: Machine) -> Codes:
    """Return the transitions as one column, −1 for trivial labels."""
    targets = machine.transitions.copy()
    targets[:, list(machine.trivial)] = -1
    return targets.ravel()


# --- With noise ----------------------------------------------------------------------------------


def weighable(steps: StepQueries) -> tuple[StepQueries, Numbers]:
    """Return steps as columns for the core, with −1 for everything unknown, and the queries.

    `queries` of the steps are then indices into these numbers of queries.
    """
    is_known = (steps.states >= 0) & (steps.queries >= 0)
    is_known &= steps.outputs < len(steps.machine.outputs)
    queries, index = np.unique(steps.queries, return_inverse=True)
    columns = replace(
        steps,
        # A label read in an unknown state is no transition.
        labels=np.where(steps.states >= 0, steps.labels, -1).astype(np.int32),
        states=np.ascontiguousarray(steps.states, np.int32),
        queries=np.where(is_known, index, -1),
        outputs=np.where(is_known, steps.outputs, -1).astype(np.int32),
    )
    return columns, queries


def weigh_pairs(steps: StepQueries, queries: Numbers, outputs: CountTable) -> Separations:
    """Weigh each pair of states of a noisy machine against one state with the outputs of both.

    Two states are separated if the outputs of both are at least 100 times as likely given two
    states as given one, or if the same labels lead from them to two such states. Such a pair has
    the figures of the states that the labels lead to. Steps and queries are those of `weighable`.
    """
    states, index = steps.machine.states, steps.queries.astype(np.int32)
    weighed = _core.compare_state_pairs(index, steps.outputs, steps.states, states=states)
    log_odds, number = weighed["log_odds"], weighed["query"]
    query = np.where(number >= 0, queries[number], -1)
    rows, _ = most_frequent(outputs, np.arange(len(outputs)))
    width = int(outputs["query"].max(initial=0)) + 1
    keys = outputs["state"][rows].astype(np.int64) * width + outputs["query"][rows]
    lower, higher = (
        look_up(keys, rows.astype(np.int32), np.where(query < 0, -1, state * width + query))
        for state in np.triu_indices(states, 1)
    )
    columns: dict[str, NDArray[Any]] = {
        "depth": np.where((log_odds >= OPEN_LOG_ODDS) & (query >= 0), 0, -1).astype(np.int32),
        "label": np.full(len(log_odds), -1, np.int32),
        "queries": weighed["queries"].astype(np.int64),
        "support": weighed["total"],
        "lower": lower,
        "higher": higher,
        "log_odds": log_odds,
    }
    separations = Separations(steps.machine, outputs, columns)
    _propagate(separations, columns)
    return separations


def _propagate(separations: Separations, columns: dict[str, NDArray[Any]]) -> None:
    """Give pairs with labels that lead to separated states the figures of those states."""
    machine, depth = separations.machine, columns["depth"]
    labels = np.setdiff1d(np.arange(machine.transitions.shape[1]), machine.trivial).tolist()
    figures = [column for name, column in columns.items() if name not in ("depth", "label")]
    has_changed = True
    while has_changed:
        before, has_changed = depth.copy(), False
        for pair in np.flatnonzero(before < 0).tolist():
            for code in labels:
                first, second = machine.transitions[list(separations.states(pair)), code].tolist()
                if min(first, second) < 0 or first == second:
                    continue
                after = separations.number(first, second)
                if before[after] >= 0:
                    depth[pair], columns["label"][pair] = before[after] + 1, code
                    for column in figures:
                        column[pair] = column[after]
                    has_changed = True
                    break


def weigh_transitions(steps: StepQueries, offsets: Numbers) -> AlternativeTransitions:
    """Weigh each transition against other targets, as `resolvent.noise.outputs` does.

    Steps are those of `weighable`, in traces that begin at `offsets`.
    """
    machine = steps.machine
    shape = machine.transitions.shape
    if shape[1] == 0:
        return AlternativeTransitions(np.full(shape, -1, np.int32), np.zeros(shape))
    target, log_odds = _core.transition_alternatives(
        steps.queries.astype(np.int32),
        steps.outputs,
        steps.labels,
        offsets,
        transitions=np.ascontiguousarray(machine.transitions).ravel(),
        labels=shape[1],
        part=SUBSAMPLE_ROWS,
    )
    target = target.reshape(shape)
    if (no_event := machine.labels.get(NO_EVENT)) is not None:
        target[:, no_event] = -1
    return AlternativeTransitions(target, log_odds.reshape(shape))
