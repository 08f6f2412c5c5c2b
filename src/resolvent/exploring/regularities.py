"""What actions led to → what they would lead to elsewhere, if they do as they mostly do.

Where one action mostly undoes another, as left undoes right, it is taken to do so wherever the
other came from. Where two actions mostly lead to the same place in either order, as up and left
do, a corner that was gone round on one side is closed on the other. Nothing is assumed of the
actions themselves: without such a rule in what was seen, nothing is added.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import Codes

LEAST_TIMES: Final = 20
"""A rule has held so often at least."""

MOSTLY: Final = 0.9
"""It has held in that share of the cases in which it could be seen."""


def with_regularities(outcomes: Codes) -> Codes:
    """Return the outcomes of each action, with one more where a rule tells of another.

    By what was seen, action, and number of the outcome; −1 stands for none.

    >>> row = np.array([[[1], [-1]]] + [[[n + 1], [n - 1]] for n in range(1, 30)] + [[[-1], [29]]])
    >>> more = with_regularities(row.astype(np.int32))  # a corridor: to the right, and to the left
    >>> more.shape, row[30, 0].tolist(), more[0, 1].tolist()
    ((31, 2, 2), [-1], [-1, -1])
    >>> row[7, 1] = -1  # nobody went to the left there
    >>> with_regularities(row.astype(np.int32))[7, 1].tolist()
    [6, -1]
    """
    observations, actions, _ = outcomes.shape
    moves = _moves(outcomes)
    guess = np.full_like(moves, -1)
    _add_ways_back(moves, guess)
    _close_corners(np.where(moves < 0, guess, moves), guess)
    guess[(outcomes == guess[:, :, None]).any(axis=2)] = -1
    wide = np.concatenate([outcomes, np.full((observations, actions, 1), -1, np.int32)], axis=2)
    seen, action = np.nonzero(guess >= 0)
    place = (outcomes[seen, action] >= 0).sum(axis=1)
    wide[seen, action, place] = guess[seen, action]
    return wide


def _moves(outcomes: Codes) -> Codes:
    """Return where each action leads if it leads elsewhere; −1 where to nowhere, or to several."""
    elsewhere = (outcomes >= 0) & (outcomes != np.arange(len(outcomes))[:, None, None])
    moves: Codes = np.where(elsewhere, outcomes, -1).max(axis=2).astype(np.int32)
    moves[elsewhere.sum(axis=2) > 1] = -1
    return moves


def _add_ways_back(moves: Codes, guess: Codes) -> None:
    """Guess that an action undoes another wherever it was not seen to, if it mostly does."""
    for action in range(moves.shape[1]):
        came = np.flatnonzero(moves[:, action] >= 0)
        led = moves[came, action]
        after = moves[led]  # by every action
        undone, moved = after == came[:, None], after >= 0
        times, cases = undone.sum(axis=0), moved.sum(axis=0)
        undoing = int((times / np.maximum(cases, 1)).argmax())
        if _is_rule(int(times[undoing]), int(cases[undoing])):
            lacking = ~moved[:, undoing]
            guess[led[lacking], undoing] = came[lacking]


def _close_corners(moves: Codes, guess: Codes) -> None:
    """Guess that two actions lead to the same place in either order, if they mostly do."""
    for first in range(moves.shape[1]):
        for second in range(first):
            cornered = np.flatnonzero((moves[:, first] >= 0) & (moves[:, second] >= 0))
            one, other = moves[cornered, first], moves[cornered, second]
            by_one, by_other = moves[one, second], moves[other, first]
            both = (by_one >= 0) & (by_other >= 0)
            if _is_rule(int((by_one == by_other)[both].sum()), int(both.sum())):
                _fill(guess, one, second, by_one, by_other)
                _fill(guess, other, first, by_other, by_one)


def _fill(guess: Codes, place: Codes, action: int, known: Codes, told: Codes) -> None:
    lacking: NDArray[np.bool_] = (known < 0) & (told >= 0) & (told != place)
    guess[place[lacking], action] = told[lacking]


def _is_rule(times: int, cases: int) -> bool:
    return times >= LEAST_TIMES and times >= MOSTLY * cases
