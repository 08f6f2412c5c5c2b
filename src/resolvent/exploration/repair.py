"""Repair transitions that a step contradicts.

Input: transition tables and all steps. Output: tables near them that explain all steps.

Among the labels read before both steps of a conflict, the transition is removed that costs the
fewest steps and leaves no conflict. A label without a transition then leads to the state that
confirms most outputs afterwards, and to a new state only if none explains them.
"""

from functools import cached_property
from typing import Final

import numpy as np

from resolvent import _core
from resolvent.exploration.tables import Conflicts, Flags, QueriedSteps, TransitionTables
from resolvent.traces.vocabulary import Codes

LOOK_BACK: Final = 12
"""Maximum number of labels before a conflict that are suspected."""

MAX_STEPS_BACK: Final = 600
"""Maximum number of steps before a conflict that are searched for them."""

MAX_CHANGES: Final = 60
"""Maximum number of changes; machines are inferred from scratch after that."""

MAX_STEPS_WALKED: Final = 10_000_000
"""Maximum number of steps replayed in trials: some hundredths of a second."""

MAX_STATES: Final = 200

Transition = tuple[int, int]
"""A state and a label read in it."""


def explains(tables: TransitionTables, steps: QueriedSteps) -> bool:
    """Return whether the tables have a state at every step and contradict none."""
    beside, size = None, 1
    for machine, transitions in enumerate(tables.transitions):
        conflicts = steps.conflicts(machine, transitions, beside, size, enough=1)
        if conflicts.count or conflicts.lost:
            return False
        if machine == 0:
            beside, size = steps.walk(transitions), len(transitions)
    return True


def predicts_endings(tables: TransitionTables, steps: QueriedSteps) -> bool:
    """Return whether the states of all machines determine which steps end an episode."""
    states = np.zeros(len(steps.query), np.int64)
    for transitions in tables.transitions:
        states = states * len(transitions) + steps.walk(transitions)
    first, number = _core.numbered(states * steps.n_queries + steps.query)
    return bool((steps.terminated[first][number] == steps.terminated).all())


def repaired(
    tables: TransitionTables, steps: QueriedSteps, trivial: int | None = None
) -> TransitionTables | None:
    """Return tables near the given ones that explain all steps; None if none were found.

    The trivial label changes no state.
    """
    repaired_tables = list(tables.transitions)
    beside, size = None, 1
    for machine, transitions in enumerate(tables.transitions):
        repair = _Repair(machine, steps, beside, size, trivial)
        table = repair.repaired(transitions.copy())
        if table is None:
            return None
        repaired_tables[machine] = table
        if machine == 0:
            beside, size = steps.walk(table), len(table)
    return TransitionTables(tables.names, tuple(repaired_tables), tables.timing)


class _Repair:
    """Repairs a machine; `beside` are the states of the Transition Machine, for another machine."""

    def __init__(
        self,
        machine: int,
        steps: QueriedSteps,
        beside: Codes | None,
        size: int,
        trivial: int | None,
    ) -> None:
        self.machine, self.steps, self.beside, self.size = machine, steps, beside, size
        self.trivial = trivial

    def repaired(self, table: Codes) -> Codes | None:
        self._add_loops(table)
        for _ in range(MAX_CHANGES):
            if self.steps.trials * len(self.steps.query) > MAX_STEPS_WALKED:
                return None
            states, conflicts = self.steps.walk(table), self._conflicts(table)
            if conflicts.count:
                culprit = self._culprit(table, states, conflicts.step, conflicts.witness)
                if culprit is None:
                    return None  # no label was read before either step
                table[culprit] = -1
                continue
            missing = self._most_needed(table, states)
            if missing is None:
                return table
            table = self._completed(table, missing, states >= 0)
            if len(table) > MAX_STATES:
                return None
        return None

    def _add_loops(self, table: Codes) -> None:
        if self.trivial is not None:
            table[:, self.trivial] = np.arange(len(table), dtype=np.int32)

    def _conflicts(self, table: Codes, enough: int | None = None) -> Conflicts:
        return self.steps.conflicts(self.machine, table, self.beside, self.size, enough)

    def _culprit(self, table: Codes, states: Codes, step: int, witness: int) -> Transition | None:
        """Return the transition whose removal leaves no conflict and costs the fewest steps."""
        suspects = dict.fromkeys([*self._before(states, step), *self._before(states, witness)])
        culprit, least = None, (len(states), 0)
        for suspect in suspects:
            target = table[suspect]
            table[suspect] = -1
            conflicts = self._conflicts(table, enough=least[0] + 1)
            table[suspect] = target
            if culprit is None or (conflicts.count, conflicts.lost) < least:
                culprit, least = suspect, (conflicts.count, conflicts.lost)
        return culprit

    def _before(self, states: Codes, step: int) -> list[Transition]:
        """Return the transitions of the last labels before a step."""
        steps, transitions = self.steps, list[Transition]()
        for here in range(step, max(step - MAX_STEPS_BACK, -1), -1):
            is_first = bool(steps.first[here])
            before = 0 if is_first else int(states[here - 1])
            transition = before, int(steps.label[here])
            if (
                min(transition) >= 0
                and transition[1] != self.trivial
                and transition not in transitions
            ):
                transitions.append(transition)
            if is_first or len(transitions) == LOOK_BACK:
                break
        return transitions

    def _most_needed(self, table: Codes, states: Codes) -> Transition | None:
        """Return the missing transition that most traces need next."""
        before = np.roll(states, 1)
        before[self.steps.first] = 0
        needed = (states < 0) & (before >= 0) & (self.steps.label >= 0)
        if not needed.any():
            return None
        keys = before[needed].astype(np.int64) * table.shape[1] + self.steps.label[needed]
        distinct, times = np.unique(keys, return_counts=True)
        state, label = divmod(int(distinct[times.argmax()]), table.shape[1])
        return state, label

    def _completed(self, table: Codes, missing: Transition, is_known: Flags) -> Codes:
        """Add a transition to the state that confirms most outputs afterwards, or to a new one."""
        state, best, most = missing[0], len(table), -1
        for target in [
            state,
            *(following for following in range(len(table)) if following != state),
        ]:
            table[missing] = target
            if not self._conflicts(table, enough=1).count:
                agreement = self._agreement(self.steps.walk(table), is_known)
                if agreement > most:
                    best, most = target, agreement
        if best == len(table):
            table = np.vstack([table, np.full((1, table.shape[1]), -1, np.int32)])
            self._add_loops(table)
        table[missing] = best
        return table

    def _agreement(self, states: Codes, is_known: Flags) -> int:
        """Return the number of confirmed queries among those with several outputs."""
        key = self.steps.keys(states, self.beside, self.size)
        fresh = (states >= 0) & ~is_known
        if self.beside is not None:
            fresh &= self.beside >= 0
            is_known = is_known & (self.beside >= 0)
        before = np.zeros(int(key.max(initial=0)) + 1, bool)
        before[key[is_known & (states >= 0)]] = True
        queries = np.unique(key[fresh & self._varies[self.steps.query]])
        return int(before[queries].sum())

    @cached_property
    def _varies(self) -> Flags:
        """Whether each query had more than one output."""
        query, output = self.steps.query, self.steps.outputs[self.machine]
        first = np.empty(self.steps.n_queries, output.dtype)
        first[query[::-1]] = output[::-1]
        varies = np.zeros(self.steps.n_queries, bool)
        varies[query[first[query] != output]] = True
        return varies
