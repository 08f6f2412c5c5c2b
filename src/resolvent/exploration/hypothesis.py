"""The machines that explain all steps, repaired after a wrong prediction.

Input: all steps. Output: transition tables that explain them, or a `Conflict`.

Repair removes, among the labels before both steps of a conflict, the transition that costs the
fewest steps and leaves no conflict. A label without a transition then leads to the state that
confirms most outputs afterwards, and to a new state only if none explains them. Machines are
inferred from scratch when the number of steps has doubled, and if repair adds a state.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from resolvent import _core
from resolvent.exploration.buffer import Buffer
from resolvent.exploration.tables import (
    ITSELF,
    Condition,
    Conflicts,
    Flags,
    QueriedSteps,
    TransitionTables,
)
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import outputs_of
from resolvent.inference.infer import try_infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import TERMINATED
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

FIRST_THOROUGH: Final = 64  # number of steps before the first thorough inference
MORE_STEPS: Final = 1.25  # growth of steps until growing machines are inferred thoroughly again
EFFORT, QUICK_EFFORT = 0.03, 0.005  # shares of the effort of `infer`: thorough, and soon after that
MANY_STEPS: Final = (3_000, 10_000)  # numbers of steps above which the effort is halved each time
MANY_STATES: Final = 20  # number of states above which the effort shrinks by the square


@dataclass
class Hypothesis:
    """The present machines, and when they are inferred again.

    `thorough_at` is the number of steps at which they are inferred thoroughly; `may_time` says
    that the label timing may change.
    """

    options: InferenceOptions
    buffer: Buffer
    tables: TransitionTables | None = None
    thorough_at: int = FIRST_THOROUGH
    may_time: bool = True

    def repair(self) -> Conflict | None:
        """Explain all steps again, near the present machines; return a conflict if that fails."""
        present, n_steps = self.present_tables(), self.buffer.steps
        if present is None or n_steps >= max(FIRST_THOROUGH, self.thorough_at):
            return self.relearn()
        trivial = self.buffer.labels.codes.get(NO_EVENT) if self.options.remove_trivial else None
        tables = repaired(present, self._steps(present), trivial)
        if tables is None:
            return self.relearn()
        self.tables = tables
        if sum(tables.sizes) <= sum(present.sizes):
            return None
        is_soon = 2 * n_steps < MORE_STEPS * self.thorough_at
        return self._infer(QUICK_EFFORT) if is_soon else self.relearn()

    def relearn(self, *, last: bool = False) -> Conflict | None:
        """Infer machines from all steps, from scratch and thoroughly; return a conflict if any.

        The `last` time, a machine that predicts termination is added if the others do not
        determine it.
        """
        self.thorough_at = 2 * self.buffer.steps
        return self._infer(EFFORT, last)

    def present_tables(self) -> TransitionTables | None:
        """Return the tables with a column for each label up to now."""
        return None if self.tables is None else self.tables.for_labels(len(self.buffer.labels))

    def _steps(self, tables: TransitionTables) -> QueriedSteps:
        return QueriedSteps(self.buffer.columns(), tables)

    def _predicts_endings(self, tables: TransitionTables) -> bool:
        return predicts_endings(tables, self._steps(tables))

    def _infer(self, effort: float, last: bool = False) -> Conflict | None:
        """Infer machines from all steps; keep the present ones if they are no larger.

        Larger machines are taken if only they predict the end of episodes.
        """
        present, traces = self.present_tables(), self.buffer.traces()
        if effort > QUICK_EFFORT:
            effort *= 0.5 ** sum(traces.steps >= limit for limit in MANY_STEPS)
        result: InferenceResult | Conflict | None = None
        if present is not None:
            effort *= min(1.0, MANY_STATES / sum(present.sizes)) ** 2
            if TERMINATED in present.names or (last and not self._predicts_endings(present)):
                outputs = *outputs_of(self.options, traces), TERMINATED
                result = self._smallest_result(traces, effort, outputs)
        if result is None or isinstance(result, Conflict):  # a conflict if termination is random
            result = self._smallest_result(traces, effort, self.options.outputs)
        if isinstance(result, Conflict):
            return result
        tables = TransitionTables.of(result.machines, self.buffer)
        if present is not None and self._stays(present, tables):
            self.options = replace(self.options, timing=present.timing)
        else:
            self.tables = tables
        return None

    def _stays(self, present: TransitionTables, inferred: TransitionTables) -> bool:
        """Return whether the present machines are no worse than those inferred."""
        if present.names != inferred.names or _cost(present) > _cost(inferred):
            return False
        is_no_worse = self._predicts_endings(present) or not self._predicts_endings(inferred)
        return is_no_worse and explains(present, self._steps(present))

    def _smallest_result(
        self, traces: TraceSet, effort: float, outputs: tuple[str, ...] | None
    ) -> InferenceResult | Conflict:
        """Infer machines, with and without first labels if either may be; return the smaller ones.

        The first label may matter, such as the cue of a T-maze, or be without meaning. If no
        machines explain the traces, return the first conflict.
        """
        options = replace(self.options, effort=effort, outputs=outputs)
        timings: list[Any] = [options.timing]
        columns = self.buffer.columns()
        if self.may_time and len(np.unique(columns.labels[columns.starts])) > 1:
            timings = [LabelTiming.CURRENT, LabelTiming.CURRENT_WITH_INITIAL]
        attempts = [try_infer(replace(options, timing=timing), traces) for timing in timings]
        results = [result for result in attempts if not isinstance(result, Conflict)]
        if not results and self.options.remove_trivial:  # steps without an event may matter
            result = try_infer(replace(options, remove_trivial=False), traces)
            if not isinstance(result, Conflict):
                self.options, results = replace(self.options, remove_trivial=False), [result]
        if not results:
            return attempts[0]
        best = min(results, key=count_states)
        self.options = replace(self.options, timing=best.options.timing)
        return best


def count_states(result: InferenceResult) -> int:
    """Return the number of states of all machines."""
    return sum(machine.states for machine in result.machines.values())


def _cost(tables: TransitionTables) -> tuple[int, bool]:
    """Return the number of states, and then whether first labels are needed."""
    return sum(tables.sizes), tables.timing is not LabelTiming.CURRENT


LABELS_BACK: Final = 12  # maximum number of labels before a conflict that are suspected
MAX_STEPS_BACK: Final = 600  # maximum number of steps before a conflict that are searched for them
MAX_CHANGES: Final = 60  # maximum number of changes; machines are inferred from scratch after that
MAX_STEPS_WALKED: Final = 10_000_000  # maximum number of steps replayed in trials
MAX_STATES: Final = 200
Transition = tuple[int, int]  # a state and a label read in it


def explains(tables: TransitionTables, steps: QueriedSteps) -> bool:
    """Return whether the tables have a state at every step and contradict none."""
    for machine, table in enumerate(tables.transitions):
        condition = steps.condition(tables.transitions[0]) if machine else ITSELF
        conflicts = steps.conflicts(machine, table, condition, enough=1)
        if conflicts.count or conflicts.lost:
            return False
    return True


def predicts_endings(tables: TransitionTables, steps: QueriedSteps) -> bool:
    """Return whether the states of all machines determine which steps end an episode."""
    first, number = _core.numbered(steps.walk_all(tables)[1])
    return bool((steps.terminated[first][number] == steps.terminated).all())


def repaired(
    tables: TransitionTables, steps: QueriedSteps, trivial: int | None = None
) -> TransitionTables | None:
    """Return tables near the given ones that explain all steps; None if none were found.

    The trivial label changes no state.
    """
    repaired_tables = list[Codes]()
    for machine, transitions in enumerate(tables.transitions):
        condition = steps.condition(repaired_tables[0]) if machine else ITSELF
        table = _Repair(machine, steps, condition, trivial).repaired(transitions.copy())
        if table is None:
            return None
        repaired_tables.append(table)
    return replace(tables, transitions=tuple(repaired_tables))


@dataclass
class _Repair:
    """Repairs a machine; for another than the Transition Machine, by the states of that one."""

    machine: int
    steps: QueriedSteps
    condition: Condition
    trivial: int | None

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
        return self.steps.conflicts(self.machine, table, self.condition, enough)

    def _culprit(self, table: Codes, states: Codes, step: int, witness: int) -> Transition | None:
        """Return the transition whose removal leaves no conflict and costs the fewest steps."""
        culprit, least = None, (len(states), 0)
        for suspect in dict.fromkeys([*self._before(states, step), *self._before(states, witness)]):
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
            before, label = 0 if is_first else int(states[here - 1]), int(steps.label[here])
            is_read = min(before, label) >= 0 and label != self.trivial
            if is_read and (before, label) not in transitions:
                transitions.append((before, label))
            if is_first or len(transitions) == LABELS_BACK:
                break
        return transitions

    def _most_needed(self, table: Codes, states: Codes) -> Transition | None:
        """Return the missing transition that most traces need next."""
        before = self.steps.states_before(states)
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
        for target in sorted(range(len(table)), key=lambda target: target != state):
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

    def _agreement(self, states: Codes, was_known: Flags) -> int:
        """Return the number of confirmed queries among those with several outputs."""
        key, has_state = states.astype(np.int64), states >= 0
        transition_states, n_states = self.condition
        if len(transition_states):
            key = key * n_states + transition_states
            has_state &= transition_states >= 0
        key = key * self.steps.n_queries + self.steps.query
        confirmed = np.zeros(int(key.max(initial=0)) + 1, bool)
        confirmed[key[has_state & was_known]] = True
        fresh = has_state & ~was_known & self._varies[self.steps.query]
        return int(confirmed[np.unique(key[fresh])].sum())

    @cached_property
    def _varies(self) -> Flags:
        """Whether each query had more than one output."""
        query, output = self.steps.query, self.steps.outputs[self.machine]
        first = np.empty(self.steps.n_queries, output.dtype)
        first[query[::-1]] = output[::-1]
        varies = np.zeros(self.steps.n_queries, bool)
        varies[query[first[query] != output]] = True
        return varies
