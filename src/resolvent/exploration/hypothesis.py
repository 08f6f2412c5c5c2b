"""The machines that explain all steps: repaired after a wrong prediction, relearned now and then.

After a wrong prediction the machines are repaired at once. They are inferred from scratch when the
number of steps has doubled, so that little data does not decide for ever, and if repair adds a
state, but then thoroughly only after some more steps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from resolvent.exploration.buffer import Buffer, Columns, Episode
from resolvent.exploration.repair import explains, predicts_endings, repaired
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import outputs_of
from resolvent.inference.infer import try_infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import TERMINATED
from resolvent.traces.symbols import NO_EVENT

FIRST_THOROUGH: Final = 64
"""Number of steps after which machines are inferred from scratch for the first time."""

MORE_STEPS: Final = 1.25
"""Factor by which steps have to grow until growing machines are inferred thoroughly again."""

EFFORT, QUICK_EFFORT = 0.03, 0.005
"""Effort of a search for smaller machines, as a share of the default of `infer`: thorough, and if
machines grow soon after that."""

MANY_STEPS: Final = (3_000, 10_000)
"""Numbers of steps above which the effort is halved each time."""

MANY_STATES: Final = 20
"""Number of states above which the effort shrinks by the square."""


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

    def repair(self, open_episodes: Iterable[Episode]) -> bool:
        """Explain all steps again, near the present machines; return whether from scratch."""
        open_episodes = list(open_episodes)
        columns = self.buffer.columns(0, open_episodes)
        if self.tables is not None and columns.steps < max(FIRST_THOROUGH, self.thorough_at):
            wide = self.tables.for_labels(len(self.buffer.labels))
            trivial = self.buffer.labels.codes.get(NO_EVENT)
            if not self.options.remove_trivial:
                trivial = None
            tables = repaired(wide, QueriedSteps.of_columns(wide, columns), trivial)
            if tables is not None:
                has_grown = sum(tables.sizes) > sum(self.tables.sizes)
                self.tables = tables
                if not has_grown:
                    return False
                if 2 * columns.steps < MORE_STEPS * self.thorough_at:
                    self._infer(open_episodes, QUICK_EFFORT)
                    return True
        self.relearn(open_episodes)
        return True

    def relearn(self, open_episodes: Iterable[Episode], *, last: bool = False) -> None:
        """Infer machines from all steps, from scratch and thoroughly.

        The `last` time, a machine that predicts termination is added if the others do not
        determine it.
        """
        open_episodes = list(open_episodes)
        self.thorough_at = 2 * (self.buffer.steps + sum(map(len, open_episodes)))
        self._infer(open_episodes, EFFORT, last)

    def _infer(self, open_episodes: list[Episode], effort: float, last: bool = False) -> None:
        """Infer machines from all steps; keep the present ones if they are no larger.

        Larger machines are taken if only they predict the end of episodes.
        """
        columns = self.buffer.columns(0, open_episodes)
        traces = self.buffer.traces(0, open_episodes)
        believed, any_timing = self.tables, self._first_labels_differ(columns)
        if effort > QUICK_EFFORT:
            effort *= 0.5 ** sum(columns.steps >= limit for limit in MANY_STEPS)
        if believed is not None:
            effort *= min(1.0, MANY_STATES / sum(believed.sizes)) ** 2
        result: InferenceResult | Conflict | None = None
        if believed is not None and self._needs_termination(believed, columns, last):
            outputs = *outputs_of(self.options, traces), TERMINATED
            result = self._smallest_result(traces, any_timing, effort, outputs)
        if result is None or isinstance(result, Conflict):  # episodes end at random, if it is one
            result = self._smallest_result(traces, any_timing, effort, self.options.outputs)
        if isinstance(result, Conflict):
            raise result.error()
        tables = TransitionTables.of(result.machines, self.buffer)
        if believed is not None and self._stays(believed, tables, columns):
            self.options = replace(self.options, timing=believed.timing)
        else:
            self.tables = tables

    def _first_labels_differ(self, columns: Columns) -> bool:
        """Return whether reading first labels may make a difference."""
        starts = columns.offsets[:-1] + np.arange(len(columns.offsets) - 1)
        return self.may_time and len(np.unique(columns.labels[starts])) > 1

    def _needs_termination(self, believed: TransitionTables, columns: Columns, last: bool) -> bool:
        """Return whether a machine has to predict the end of episodes; it stays once added."""
        if TERMINATED in believed.names or not last:
            return TERMINATED in believed.names
        wide = believed.for_labels(len(self.buffer.labels))
        return not predicts_endings(wide, QueriedSteps.of_columns(wide, columns))

    def _stays(
        self, believed: TransitionTables, inferred: TransitionTables, columns: Columns
    ) -> bool:
        """Return whether the present machines are no worse than those inferred."""
        if believed.names != inferred.names or _cost(believed) > _cost(inferred):
            return False
        wide = believed.for_labels(len(self.buffer.labels))
        steps = QueriedSteps.of_columns(wide, columns)
        inferred_steps = QueriedSteps.of_columns(inferred, columns)
        if not predicts_endings(wide, steps) and predicts_endings(inferred, inferred_steps):
            return False
        return explains(wide, steps)

    def _smallest_result(
        self, traces: TraceSet, any_timing: bool, effort: float, outputs: tuple[str, ...] | None
    ) -> InferenceResult | Conflict:
        """Infer machines, with and without first labels if either may be; return the smaller ones.

        The first label may matter, such as the cue of a T-maze, or be without meaning. If no
        machines explain the traces, return the first conflict.
        """
        options = replace(self.options, effort=effort, outputs=outputs)
        timings: list[Any] = [options.timing]
        if any_timing:
            timings = [LabelTiming.CURRENT, LabelTiming.CURRENT_WITH_INITIAL]
        attempts = [try_infer(replace(options, timing=timing), traces) for timing in timings]
        results = [result for result in attempts if not isinstance(result, Conflict)]
        if not results:
            if not self.options.remove_trivial:
                return attempts[0]
            # The number of steps without an event may matter.
            result = try_infer(replace(options, remove_trivial=False), traces)
            if isinstance(result, Conflict):
                return attempts[0]
            self.options = replace(self.options, remove_trivial=False)
            results = [result]
        best = min(results, key=_n_states)
        self.options = replace(self.options, timing=best.options.timing)
        return best


def _cost(tables: TransitionTables) -> tuple[int, bool]:
    """Return the number of states, and then whether first labels are needed."""
    return sum(tables.sizes), tables.timing is not LabelTiming.CURRENT


def _n_states(result: InferenceResult) -> int:
    return sum(machine.states for machine in result.machines.values())
