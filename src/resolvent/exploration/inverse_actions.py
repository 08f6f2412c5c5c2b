"""What actions led to → what they would lead to elsewhere, if they undo what others did.

Where one action mostly undoes another, as left undoes right, it is taken to do so wherever the
other came from. Nothing is assumed of the actions themselves: without such a rule in what was
seen, nothing is added.
"""

from typing import Final

import numpy as np

from resolvent.traces.vocabulary import Codes

LEAST_TIMES: Final = 20
"""An action has undone the other so often at least."""

MOSTLY: Final = 0.9
"""It has done so in that share of the cases in which it led anywhere."""


def with_inverse_steps(outcomes: Codes) -> Codes:
    """Return the outcomes of each action, with one more where it would undo another.

    By what was seen, action, and number of the outcome; −1 stands for none.

    >>> row = np.array([[[1], [-1]]] + [[[n + 1], [n - 1]] for n in range(1, 30)] + [[[-1], [29]]])
    >>> more = with_ways_back(row.astype(np.int32))  # a corridor: to the right, and to the left
    >>> more.shape, row[30, 0].tolist(), more[0, 1].tolist()
    ((31, 2, 2), [-1], [-1, -1])
    >>> row[7, 1] = -1  # nobody went to the left there
    >>> with_ways_back(row.astype(np.int32))[7, 1].tolist()
    [6, -1]
    """
    observations, actions, _ = outcomes.shape
    guess = _ways_back(_moves(outcomes))
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


def _ways_back(moves: Codes) -> Codes:
    """Return what an action leads to that mostly undoes another, where it was not seen to."""
    back = np.full_like(moves, -1)
    for action in range(moves.shape[1]):
        came = np.flatnonzero(moves[:, action] >= 0)
        led = moves[came, action]
        after = moves[led]  # by every action
        undone, moved = after == came[:, None], after >= 0
        times, cases = undone.sum(axis=0), moved.sum(axis=0)
        undoing = int((times / np.maximum(cases, 1)).argmax())
        if times[undoing] >= max(LEAST_TIMES, MOSTLY * cases[undoing]):
            lacking = ~moved[:, undoing]
            back[led[lacking], undoing] = came[lacking]
    return back
