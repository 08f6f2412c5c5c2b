"""A machine → the same machine, which guesses where it was never shown anything.

States that answer alike are mostly alike in other things as well. So a state that was never
shown what a label does, or what it is to answer, does as the other states do: each has a vote,
and the more often it gives the same answers the more that vote counts. docs/decisions/machines.md
says what that is worth.
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
"""The power that the share of equal answers is raised to: one that answers half of all questions
alike has a sixteenth of the vote of one that answers all of them alike."""


def guessing(machine: M) -> M:
    """Return a machine with a move for each label in each state, and an answer to each question.

    What was shown stays as it is, and so do the numbers of the states. A question that no state
    was asked has no answer.
    """
    asked, column = np.unique(machine.output_question, return_inverse=True)
    answers = np.full((machine.states, len(asked)), -1, np.int32)
    answers[machine.output_state, column] = machine.output_value
    moves, answers = with_guesses(machine.transitions, answers)
    state, column = np.nonzero(answers >= 0)
    return replace(
        machine,
        transitions=moves,
        output_state=state.astype(np.int32),
        output_question=asked[column],
        output_value=answers[state, column],
        support=None,
        decisions=None,
    )


def with_guesses(moves: Codes, answers: Codes) -> tuple[Codes, Codes]:
    """Return tables [state, label] and [state, question] in which every −1 is a guess.

    Only a question that no state was asked keeps it.

    A label that does nothing in other states is taken to do nothing, one that leads them
    somewhere to lead there. Of equals staying is preferred, then what comes first.

    >>> moves = np.array([[1, 0], [-1, 1], [2, 2]], np.int32)
    >>> answers = np.array([[0, 1], [0, 1], [1, -1]], np.int32)
    >>> [table.tolist() for table in with_guesses(moves, answers)]
    [[[1, 0], [1, 1], [2, 2]], [[0, 1], [0, 1], [1, 1]]]
    """
    all_moves, all_answers = moves.copy(), answers.copy()
    for state in np.flatnonzero((moves < 0).any(1) | (answers < 0).any(1)).tolist():
        votes = _votes(answers, state)
        all_moves[state] = _moves(moves, state, votes)
        all_answers[state] = _answers(answers, state, votes)
    return all_moves, all_answers


def _votes(answers: Codes, state: int) -> Votes:
    """Return how much each state has to say about another: by the answers that both give."""
    both = (answers >= 0) & (answers[state] >= 0)
    same = (both & (answers == answers[state])).sum(1)
    votes = ((same + 0.5) / (both.sum(1) + 1)) ** STEEPNESS
    votes[state] = 0
    return np.asarray(votes)


def _moves(table: Codes, state: int, votes: Votes) -> Codes:
    """Return where labels lead from a state, those that it was never shown by the others' votes."""
    moves: Codes = table[state].copy()
    unknown = np.flatnonzero(moves < 0)
    other, label = np.nonzero(table[:, unknown] >= 0)
    target = table[other, unknown[label]]
    target = np.where(target == other, state, target)
    moves[unknown] = state
    voted_on, elected = _elected(label, target, votes[other], state)
    moves[unknown[voted_on]] = elected
    return moves


def _answers(answers: Codes, state: int, votes: Votes) -> Codes:
    """Return what a state answers, to what it was never asked by the others' votes."""
    told: Codes = answers[state].copy()
    unknown = np.flatnonzero(told < 0)
    other, question = np.nonzero(answers[:, unknown] >= 0)
    given = answers[other, unknown[question]]
    voted_on, elected = _elected(question, given, votes[other])
    told[unknown[voted_on]] = elected
    return told


def _elected(
    voted_on: NDArray[np.int64], choice: Codes, votes: Votes, preferred: int = -1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what was voted on, each once, and the choice with most votes.

    Of equals the preferred one is elected, or else the first.
    """
    width = int(choice.max(initial=0)) + 1
    pairs, place = np.unique(voted_on * width + choice, return_inverse=True)
    total = np.bincount(place, votes)
    on, chosen = np.divmod(pairs, width)
    order = np.lexsort((chosen, chosen != preferred, -total, on))
    once, first = np.unique(on[order], return_index=True)
    return once, chosen[order][first]
