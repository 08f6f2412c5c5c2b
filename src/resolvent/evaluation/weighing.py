"""Weigh the states and transitions of a noisy machine by likelihood.

Input: a noisy machine and its steps. Output: log odds of each transition and pair of states.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.text import odds_text
from resolvent.evaluation.observed import Numbers, ObservedOutputs, query_of
from resolvent.evaluation.separation import Answer, Separation, Separations
from resolvent.machines import Machine
from resolvent.noise import AlternativeTransitions
from resolvent.noise.alternatives import OPEN_LOG_ODDS
from resolvent.noise.outputs import SUBSAMPLE_ROWS
from resolvent.replay import StepQueries
from resolvent.traces import NO_EVENT, Codes, Label, label_text


@dataclass(frozen=True)
class OpenTransition:
    """A transition that might lead to `other` instead of `target`.

    `log_odds` is the log-likelihood ratio of `other` to `target`, given all other transitions.
    """

    state: int
    label: Label
    target: int
    other: int
    log_odds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {**vars(self), "label": sorted(self.label)}

    def __str__(self) -> str:
        read = f"state {self.state} reads {label_text(self.label)} → {self.target}"
        return f"{read}, or {self.other} ({odds_text(self.log_odds)})"


@dataclass(frozen=True, eq=False)
class WeighableSteps:
    """The queries and outputs of steps as columns for the core; −1 where they are unknown.

    `question` is an index into `questions`, the machine's numbers of the queries.
    """

    machine: Machine
    questions: Numbers
    question: Codes
    output: Codes
    label: Codes
    state: Codes
    offsets: Numbers

    @classmethod
    def of(cls, steps: StepQueries, offsets: Numbers) -> "WeighableSteps":
        """Return the columns for a machine's queries in traces that begin at `offsets`."""
        machine = steps.machine
        is_known = (steps.states >= 0) & (steps.questions >= 0)
        is_known &= steps.outputs < len(machine.outputs)
        queries, index = np.unique(steps.questions, return_inverse=True)
        return cls(
            machine,
            queries,
            np.where(is_known, index, -1).astype(np.int32),
            np.where(is_known, steps.outputs, -1).astype(np.int32),
            # A label read in an unknown state is no transition.
            np.where(steps.states >= 0, steps.labels, -1).astype(np.int32),
            np.ascontiguousarray(steps.states, np.int32),
            offsets,
        )

    def compare_transitions(self) -> AlternativeTransitions:
        """Weigh each transition against other targets, as `resolvent.noise.alternatives` does."""
        shape = self.machine.transitions.shape
        if shape[1] == 0:
            return AlternativeTransitions(np.full(shape, -1, np.int32), np.zeros(shape))
        target, log_odds = _core.rival_moves(
            self.question,
            self.output,
            self.label,
            self.offsets,
            transitions=np.ascontiguousarray(self.machine.transitions).ravel(),
            labels=shape[1],
            part=SUBSAMPLE_ROWS,
        )
        target = target.reshape(shape)
        if (no_event := self.machine.labels.get(NO_EVENT)) is not None:
            target[:, no_event] = -1
        return AlternativeTransitions(target, log_odds.reshape(shape))

    def pairs(self) -> dict[str, NDArray[Any]]:
        """Weigh each pair of states against one state with the outputs of both."""
        return _core.weigh_state_pairs(
            self.question, self.output, self.state, states=self.machine.states
        )


def open_transitions(
    machine: Machine, alternatives: AlternativeTransitions
) -> Iterator[OpenTransition]:
    """Yield the transitions less than 100 times as likely as their rivals, least certain first."""
    is_open = (alternatives.target >= 0) & (alternatives.log_odds < OPEN_LOG_ODDS)
    cells = np.argwhere(is_open).tolist()
    for state, code in sorted(cells, key=lambda cell: alternatives.log_odds[*cell]):
        yield OpenTransition(
            state,
            machine.labels[code],
            int(machine.transitions[state, code]),
            int(alternatives.target[state, code]),
            -float(alternatives.log_odds[state, code]),
        )


class WeighedSeparations(Separations):
    """The odds that each pair of states of a noisy machine is two states, with the queries.

    Two states are separated if the outputs of both are at least 100 times as likely given two
    states as given one, or if the same labels lead from them to two such states. `log_odds` are
    the log-likelihood ratios, of the states that the labels lead to.
    """

    def __init__(self, steps: WeighableSteps, outputs: ObservedOutputs) -> None:
        self.machine, self.observed = steps.machine, outputs
        self._states = steps.machine.states
        pairs = steps.pairs()
        self._query = np.where(
            pairs["question"] >= 0, steps.questions[pairs["question"]], np.int64(-1)
        )
        self.log_odds: NDArray[np.float64] = pairs["log_odds"]
        self.depth = np.where(self.log_odds >= OPEN_LOG_ODDS, 0, -1).astype(np.int32)
        self._label = np.full(len(self.depth), -1, np.int32)
        self.questions, self.support = pairs["questions"].astype(np.int64), pairs["asked"]
        self._propagate()
        self._indices = range(len(self.depth))

    def _propagate(self) -> None:
        """Give pairs with labels that lead to separated states the figures of those states."""
        transitions = self.machine.transitions
        labels = np.setdiff1d(np.arange(transitions.shape[1]), self.machine.trivial).tolist()
        has_changed = True
        while has_changed:
            before, has_changed = self.depth.copy(), False
            for pair in np.flatnonzero(before < 0).tolist():
                first, second = self.states(pair)
                for code in labels:
                    targets = int(transitions[first, code]), int(transitions[second, code])
                    if min(targets) < 0 or targets[0] == targets[1]:
                        continue
                    after = self.number(*targets)
                    if before[after] < 0:
                        continue
                    self.depth[pair], self._label[pair] = before[after] + 1, code
                    for column in (self.log_odds, self.questions, self.support, self._query):
                        column[pair] = column[after]
                    has_changed = True
                    break

    def weakest(self, most: int) -> list[Separation]:
        """Return at most `most` pairs, those that are least surely two states first."""
        order = np.argsort(self.log_odds, kind="stable")
        return [self._element(pair) for pair in order[:most].tolist()]

    def _element(self, index: int) -> Separation:
        first, second = self.states(index)
        log_odds, query = float(self.log_odds[index]), int(self._query[index])
        path = self.suffix(first, second)
        if path is None or query < 0:
            return Separation(first, second, log_odds=log_odds)
        labels, *states = path
        outputs = (self._most_frequent(states[0], query), self._most_frequent(states[1], query))
        return Separation(
            first,
            second,
            labels,
            int(self.questions[index]),
            int(self.support[index]),
            query_of(self.machine, query),
            outputs,
            log_odds,
        )

    def _most_frequent(self, state: int, query: int) -> Answer:
        """Return the most frequent output of a state to a query."""
        outputs = self.observed
        start, stop = np.searchsorted(outputs.state, [state, state + 1])
        rows = start + np.flatnonzero(outputs.question[start:stop] == query)
        row = int(rows[np.argmax(outputs.count[rows])])
        return self._answer(row, int(outputs.count[rows].sum()))
