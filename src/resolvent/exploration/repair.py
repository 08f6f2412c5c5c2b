"""Moves that a step has shown to be wrong → moves that explain everything again.

Of the labels on the way to the clash, and on the way to the step that it clashes with, the
one is taken back whose loss costs least and after which nothing clashes. A label that leads
nowhere is then led to the state that explains most of what followed it, and to a new one
only where none explains it.
"""

from functools import cached_property
from typing import Final

import numpy as np

from resolvent import _core
from resolvent.exploration.tables import Conflicts, Flags, QueriedSteps, TransitionTables
from resolvent.traces.vocabulary import Codes

LOOK_BACK: Final = 12
"""So many labels before a clash may be to blame for it."""

FARTHEST_BACK: Final = 600
"""They are looked for in so many steps before it."""

MOST_CHANGES: Final = 60
"""After so many changes it is given up: then machines are inferred from scratch."""

MOST_WALKED: Final = 10_000_000
"""Likewise after so many steps were walked through in trials: some hundredths of a second."""

MOST_STATES: Final = 200

Move = tuple[int, int]
"""A state and a label that is read in it."""


def explains(tables: TransitionTables, steps: QueriedSteps) -> bool:
    """Whether moves explain all steps, and lead somewhere at each."""
    beside, size = None, 1
    for place, moves in enumerate(tables.moves):
        found = steps.clashes(place, moves, beside, size, enough=1)
        if found.count or found.lost:
            return False
        if place == 0:
            beside, size = steps.walk(moves), len(moves)
    return True


def predicts_endings(tables: TransitionTables, steps: QueriedSteps) -> bool:
    """Whether the states of all machines tell which steps end an episode."""
    together = np.zeros(len(steps.question), np.int64)
    for moves in tables.moves:
        together = together * len(moves) + steps.walk(moves)
    first, number = _core.numbered(together * steps.questions + steps.question)
    return bool((steps.ended[first][number] == steps.ended).all())


def repaired(
    tables: TransitionTables, steps: QueriedSteps, trivial: int | None = None
) -> TransitionTables | None:
    """Return moves that explain all steps, near the ones given; None if none were found.

    The label that is trivial changes no state.
    """
    moves = list(tables.moves)
    beside, size = None, 1
    for place in range(len(moves)):
        one = _Mending(place, steps, beside, size, trivial).repaired(moves[place].copy())
        if one is None:
            return None
        moves[place] = one
        if place == 0:
            beside, size = steps.walk(one), len(one)
    return TransitionTables(tables.kinds, tuple(moves), tables.timing)


class _Mending:
    """Mends one machine; `beside` are the states of the Transition Machine, if it is another."""

    def __init__(
        self, place: int, steps: QueriedSteps, beside: Codes | None, size: int, trivial: int | None
    ) -> None:
        self.place, self.steps, self.beside, self.size = place, steps, beside, size
        self.trivial = trivial

    def repaired(self, moves: Codes) -> Codes | None:
        self._loop(moves)
        for _ in range(MOST_CHANGES):
            if self.steps.trials * len(self.steps.question) > MOST_WALKED:
                return None
            states, found = self.steps.walk(moves), self._clashes(moves)
            if found.count:
                culprit = self._culprit(moves, states, found.bad, found.witness)
                if culprit is None:
                    return None  # no label was read before either
                moves[culprit] = -1
                continue
            lost = self._waited_for(moves, states)
            if lost is None:
                return moves
            moves = self._led(moves, lost, states >= 0)
            if len(moves) > MOST_STATES:
                return None
        return None

    def _loop(self, moves: Codes) -> None:
        if self.trivial is not None:
            moves[:, self.trivial] = np.arange(len(moves), dtype=np.int32)

    def _clashes(self, moves: Codes, enough: int | None = None) -> Conflicts:
        return self.steps.clashes(self.place, moves, self.beside, self.size, enough)

    def _culprit(self, moves: Codes, states: Codes, bad: int, witness: int) -> Move | None:
        """Return the move to take back: nothing clashes without it, and few steps are lost."""
        blamed = dict.fromkeys([*self._before(states, bad), *self._before(states, witness)])
        culprit, least = None, (len(states), 0)
        for move in blamed:
            kept = moves[move]
            moves[move] = -1
            found = self._clashes(moves, enough=least[0] + 1)
            moves[move] = kept
            if culprit is None or (found.count, found.lost) < least:
                culprit, least = move, (found.count, found.lost)
        return culprit

    def _before(self, states: Codes, step: int) -> list[Move]:
        """Return the last labels that were read before a step, with the state of each."""
        steps, found = self.steps, list[Move]()
        for here in range(step, max(step - FARTHEST_BACK, -1), -1):
            begins = bool(steps.first[here])
            before = 0 if begins else int(states[here - 1])
            move = before, int(steps.read[here])
            if min(move) >= 0 and move[1] != self.trivial and move not in found:
                found.append(move)
            if begins or len(found) == LOOK_BACK:
                break
        return found

    def _waited_for(self, moves: Codes, states: Codes) -> Move | None:
        """Return the move that leads nowhere yet and that most traces wait for."""
        before = np.roll(states, 1)
        before[self.steps.first] = 0
        waiting = (states < 0) & (before >= 0) & (self.steps.read >= 0)
        if not waiting.any():
            return None
        keys = before[waiting].astype(np.int64) * moves.shape[1] + self.steps.read[waiting]
        distinct, times = np.unique(keys, return_counts=True)
        state, label = divmod(int(distinct[times.argmax()]), moves.shape[1])
        return state, label

    def _led(self, moves: Codes, lost: Move, known: Flags) -> Codes:
        """Lead a label to the state that explains most of what follows, or to a new one."""
        state, best, most = lost[0], len(moves), -1
        for target in [state, *(one for one in range(len(moves)) if one != state)]:
            moves[lost] = target
            if not self._clashes(moves, enough=1).count:
                agreeing = self._agreeing(self.steps.walk(moves), known)
                if agreeing > most:
                    best, most = target, agreeing
        if best == len(moves):
            moves = np.vstack([moves, np.full((1, moves.shape[1]), -1, np.int32)])
            self._loop(moves)
        moves[lost] = best
        return moves

    def _agreeing(self, trial: Codes, known: Flags) -> int:
        """Return how many questions that some state answers otherwise are answered alike again."""
        key = self.steps.keys(trial, self.beside, self.size)
        fresh = (trial >= 0) & ~known
        if self.beside is not None:
            fresh &= self.beside >= 0
            known = known & (self.beside >= 0)
        before = np.zeros(int(key.max(initial=0)) + 1, bool)
        before[key[known & (trial >= 0)]] = True
        asked = np.unique(key[fresh & self._varies[self.steps.question]])
        return int(before[asked].sum())

    @cached_property
    def _varies(self) -> Flags:
        """Which questions were answered in more than one way."""
        question, answer = self.steps.question, self.steps.answers[self.place]
        first = np.empty(self.steps.questions, answer.dtype)
        first[question[::-1]] = answer[::-1]
        varies = np.zeros(self.steps.questions, bool)
        varies[question[first[question] != answer]] = True
        return varies
