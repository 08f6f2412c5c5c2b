"""Guesses for the unseen transitions and outputs of a machine, by a vote of similar states.

Input: a machine, or its tables. Output: the same with a guess for each −1. States with equal
outputs mostly agree in other respects as well, so each state votes with a weight that grows with
the share of its equal outputs. docs/decisions/machines.md has measurements.
"""

from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.machine import Machine
from resolvent.traces.vocabulary import Codes

M = TypeVar("M", bound=Machine)
Votes = NDArray[np.float64]

STEEPNESS: Final = 4
"""Power of the share of equal outputs in the weight of a vote: a state with half of them equal
has a sixteenth of the weight of one with all equal."""


def guessing(machine: M) -> M:
    """Return a machine with a transition and an output wherever other states have one.

    Observed entries and the numbers of states stay as they are.
    """
    queries, column = np.unique(machine.output_question, return_inverse=True)
    outputs = np.full((machine.states, len(queries)), -1, np.int32)
    outputs[machine.output_state, column] = machine.output_value
    transitions, outputs = with_guesses(machine.transitions, outputs)
    state, column = np.nonzero(outputs >= 0)
    return replace(
        machine,
        transitions=transitions,
        output_state=state.astype(np.int32),
        output_question=queries[column],
        output_value=outputs[state, column],
        support=None,
        decisions=None,
    )


def with_guesses(moves: Codes, answers: Codes) -> tuple[Codes, Codes]:
    """Return tables [state, label] and [state, query] with a guess for every −1.

    Queries without an output in any state keep −1. A label that loops in other states is
    assumed to loop, a label with another target to lead there. Ties prefer the loop, then the
    lowest code.

    >>> transitions = np.array([[1, 0], [-1, 1], [2, 2]], np.int32)
    >>> outputs = np.array([[0, 1], [0, 1], [1, -1]], np.int32)
    >>> [table.tolist() for table in with_guesses(transitions, outputs)]
    [[[1, 0], [1, 1], [2, 2]], [[0, 1], [0, 1], [1, 1]]]
    """
    all_transitions, all_outputs = moves.copy(), answers.copy()
    for state in np.flatnonzero((moves < 0).any(1) | (answers < 0).any(1)).tolist():
        votes = _votes(answers, state)
        all_transitions[state] = _row(moves, state, votes, is_transition=True)
        all_outputs[state] = _row(answers, state, votes, is_transition=False)
    return all_transitions, all_outputs


def _votes(outputs: Codes, state: int) -> Votes:
    """Return the weight of each state's vote for a state, by their common outputs."""
    both = (outputs >= 0) & (outputs[state] >= 0)
    same = (both & (outputs == outputs[state])).sum(1)
    votes = ((same + 0.5) / (both.sum(1) + 1)) ** STEEPNESS
    votes[state] = 0
    return np.asarray(votes)


def _row(table: Codes, state: int, votes: Votes, *, is_transition: bool) -> Codes:
    """Return a row of the table with the most voted entry for each −1."""
    row: Codes = table[state].copy()
    unknown = np.flatnonzero(row < 0)
    voter, column = np.nonzero(table[:, unknown] >= 0)
    choice = table[voter, unknown[column]]
    preferred = -1
    if is_transition:
        choice = np.where(choice == voter, state, choice)
        row[unknown] = preferred = state
    width = int(choice.max(initial=0)) + 1
    pairs, group = np.unique(column * width + choice, return_inverse=True)
    total = np.bincount(group, votes[voter])
    column, choice = np.divmod(pairs, width)
    order = np.lexsort((choice, choice != preferred, -total, column))
    voted_on, first = np.unique(column[order], return_index=True)
    row[unknown[voted_on]] = choice[order][first]
    return row
