"""Moves that a step has shown to be wrong → moves that explain everything again.

Of the labels on the way to the clash, and on the way to the step that it clashes with, the
one is taken back whose loss costs least and after which nothing clashes. A label that leads
nowhere is then led to the state that explains most of what followed it, and to a new one
only where none explains it.
"""

from typing import Final

import numpy as np

from resolvent.exploring.log import Columns
from resolvent.exploring.tables import Steps, Tables
from resolvent.traces.vocabulary import Codes

LOOK_BACK: Final = 12
"""So many labels before a clash may be to blame for it."""

MOST_CHANGES: Final = 60
"""After so many changes it is given up: then machines are inferred from scratch."""

MOST_STATES: Final = 200


def explains(tables: Tables, columns: Columns) -> bool:
    """Whether moves explain all steps, and lead somewhere at each."""
    steps = Steps(columns, tables.timing, tables.kinds)
    states = [steps.walk(one) for one in tables.moves]
    return all(
        int(one.min()) >= 0
        and not len(steps.clashes(place, one, None if place == 0 else states[0], tables.sizes[0])[0])
        for place, one in enumerate(states)
    )


def mended(tables: Tables, steps: Steps) -> Tables | None:
    """Return moves that explain all steps, near the ones given; None if none were found."""
    moves = list(tables.moves)
    beside, size = None, 1
    for place in range(len(moves)):
        one = _mended(place, moves[place].copy(), steps, beside, size)
        if one is None:
            return None
        moves[place] = one
        if place == 0:
            beside, size = steps.walk(one), len(one)
    return Tables(tables.kinds, tuple(moves), tables.timing)


def _mended(
    place: int, moves: Codes, steps: Steps, beside: Codes | None, size: int
) -> Codes | None:
    for _ in range(MOST_CHANGES):
        states = steps.walk(moves)
        bad, witness = steps.clashes(place, states, beside, size)
        if len(bad):
            culprit = _culprit(place, moves, states, steps, beside, size, bad, witness)
            if culprit is None:
                return None
            moves[culprit] = -1
            continue
        lost = _unread(moves, states, steps)
        if lost is None:
            return moves
        moves = _led(place, moves, lost, states, steps, beside, size)
        if len(moves) > MOST_STATES:
            return None
    return None


def _culprit(
    place: int,
    moves: Codes,
    states: Codes,
    steps: Steps,
    beside: Codes | None,
    size: int,
    bad: Codes,
    witness: Codes,
) -> tuple[int, int] | None:
    """Return the move to take back: nothing clashes without it, and few steps are lost."""
    blamed: dict[tuple[int, int], None] = {}
    for step in (int(bad[0]), int(witness[0])):
        for move in _moves_before(states, steps, step):
            blamed[move] = None
    best, least = None, None
    for move in blamed:
        kept = moves[move]
        moves[move] = -1
        trial = steps.walk(moves)
        moves[move] = kept
        left = len(steps.clashes(place, trial, beside, size)[0])
        score = (left, int((trial < 0).sum()))
        if least is None or score < least:
            best, least = move, score
    return best


def _moves_before(states: Codes, steps: Steps, step: int) -> list[tuple[int, int]]:
    """Return the last labels that were read before a step, each with the state it was read in."""
    found, here = [], step
    while len(found) < LOOK_BACK:
        label = int(steps.read[here])
        begins = bool(steps.first[here])
        if label >= 0:
            before = 0 if begins else int(states[here - 1])
            if before >= 0:
                move = before, label
                if move not in found:
                    found.append(move)
        if begins:
            break
        here -= 1
        # Labels that are read over and over in one state are looked at once.
        if step - here > 50 * LOOK_BACK:
            break
    return found


def _unread(moves: Codes, states: Codes, steps: Steps) -> tuple[int, int] | None:
    """Return the move that most steps wait for."""
    before = np.empty_like(states)
    before[1:] = states[:-1]
    before[steps.first] = 0
    waiting = (states < 0) & (before >= 0) & (steps.read >= 0)
    if not waiting.any():
        return None
    width = moves.shape[1]
    keys, times = np.unique(
        before[waiting].astype(np.int64) * width + steps.read[waiting], return_counts=True
    )
    return divmod(int(keys[times.argmax()]), width)


def _led(
    place: int,
    moves: Codes,
    lost: tuple[int, int],
    states: Codes,
    steps: Steps,
    beside: Codes | None,
    size: int,
) -> Codes:
    """Lead an unread label to the state that explains most of what follows, or to a new one."""
    state, label = lost
    best, most = None, -1
    known = states >= 0
    for target in [state, *(one for one in range(len(moves)) if one != state)]:
        moves[state, label] = target
        trial = steps.walk(moves)
        if len(steps.clashes(place, trial, beside, size)[0]):
            continue
        agreeing = _agreeing(place, trial, known, steps, beside, size)
        if agreeing > most:
            best, most = target, agreeing
    if best is None:
        best = len(moves)
        moves = np.vstack([moves, np.full((1, moves.shape[1]), -1, np.int32)])
    moves[state, label] = best
    return moves


def _agreeing(
    place: int, trial: Codes, known: Codes, steps: Steps, beside: Codes | None, size: int
) -> int:
    """Return how many questions that some state answers otherwise are answered alike again."""
    key = steps.keys(trial, beside, size)
    fresh = (trial >= 0) & ~known
    before = np.zeros(int(key.max(initial=0)) + 1, bool)
    before[key[known & (trial >= 0)]] = True
    varies = _varying(place, steps)
    asked = np.unique(key[fresh & varies[steps.question]])
    return int(before[asked].sum())


def _varying(place: int, steps: Steps) -> Codes:
    """Return which questions were answered in more than one way."""
    kept = getattr(steps, "varying", None)
    if kept is None:
        kept = {}
        steps.varying = kept  # type: ignore[attr-defined]
    if place not in kept:
        answer = steps.answers[place]
        first = np.empty(steps.questions, answer.dtype)
        first[steps.question[::-1]] = answer[::-1]
        varies = np.zeros(steps.questions, bool)
        varies[steps.question[first[steps.question] != answer]] = True
        kept[place] = varies
    return kept[place]  # type: ignore[no-any-return]
