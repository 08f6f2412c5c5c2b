"""What machines are believed to be behind all that was seen, mended where they fail.

A step that was not foreseen is mended at once, near the machines there are. Now and then, when
there are twice as many steps as before, machines are inferred from scratch: what few steps
led to must not stay for ever. So they are where mending takes another state; thoroughly only
when there are some more steps than the last time, since that may be so after every few steps.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from resolvent.errors import ContradictoryTraces
from resolvent.exploration.buffer import Columns, Episode, Buffer
from resolvent.exploration.repair import explains, repaired, predicts_endings
from resolvent.exploration.tables import QueriedSteps, TransitionTables
from resolvent.options import Options
from resolvent.pipeline import infer_with
from resolvent.result import InferenceResult
from resolvent.running import outputs_of
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.column_names import TERMINATED
from resolvent.traces.symbols import NO_EVENT

FIRST_THOROUGH: Final = 64
"""After so many steps machines are inferred from scratch again."""

MORE_STEPS: Final = 1.25
"""Machines that grow are inferred thoroughly again when there are so many times as many steps."""

EFFORT, IN_PASSING = 0.03, 0.005
"""How long smaller machines are looked for, beside what `infer` takes by default: thoroughly, and
where they grow soon after that."""

MANY_STEPS: Final = (3_000, 10_000)
"""From so many steps on, half of that each: the same effort takes longer then, and finds less."""

MANY_STATES: Final = 20
"""With more states than these, smaller machines are looked for less: twice as many, a quarter."""


@dataclass
class Hypothesis:
    """The machines that explain everything, as far as exploring must know them.

    `result` is what was inferred from scratch last, from all there was then.
    """

    options: Options
    log: Buffer
    tables: TransitionTables | None = None
    result: InferenceResult | None = None
    thorough_at: int = FIRST_THOROUGH
    repairs: int = 0
    may_time: bool = True

    def repair(self, under_way: Iterable[Episode]) -> TransitionTables:
        """Explain everything again, near what was believed if that can be."""
        self.repairs += 1
        under_way = list(under_way)
        columns = self.log.columns(0, under_way)
        if self.tables is not None and columns.steps < max(FIRST_THOROUGH, self.thorough_at):
            wide = self.tables.for_labels(len(self.log.labels))
            trivial = self.log.labels.codes.get(NO_EVENT) if self.options.remove_trivial else None
            found = repaired(wide, QueriedSteps.of_columns(wide, columns), trivial)
            grown = found is not None and sum(found.sizes) > sum(self.tables.sizes)
            self.tables = found or self.tables
            if found is not None and not grown:
                return found
            if found is not None and 2 * columns.steps < MORE_STEPS * self.thorough_at:
                return self._thought_of(under_way, IN_PASSING)
        return self.rethink(under_way)

    def _first_labels_differ(self, columns: Columns) -> bool:
        """Whether reading them or not may make a difference."""
        begins = columns.offsets[:-1] + np.arange(len(columns.offsets) - 1)
        return self.may_time and len(np.unique(columns.labels[begins])) > 1

    def rethink(self, under_way: Iterable[Episode], *, last: bool = False) -> TransitionTables:
        """Infer machines from everything, from scratch and thoroughly.

        If it is the last time, with one that tells when episodes end, where the others do not.
        """
        under_way = list(under_way)
        self.thorough_at = 2 * (self.log.steps + sum(map(len, under_way)))
        return self._thought_of(under_way, EFFORT, last)

    def _thought_of(
        self, under_way: list[Episode], effort: float, last: bool = False
    ) -> TransitionTables:
        """Infer machines from everything, from scratch.

        Machines with more states than those believed in so far are not taken: those explain
        everything, too. They are where they alone tell when episodes end.
        """
        columns, traces = self.log.columns(0, under_way), self.log.traces(0, under_way)
        believed, either = self.tables, self._first_labels_differ(columns)
        if effort > IN_PASSING:
            effort *= 0.5 ** sum(columns.steps >= many for many in MANY_STEPS)
        if believed is not None:
            effort *= min(1.0, MANY_STATES / sum(believed.sizes)) ** 2
        self.result = None
        if believed is not None and self._needs_ending(believed, columns, last):
            outputs = *outputs_of(self.options, traces), TERMINATED
            with suppress(ContradictoryTraces):  # by chance, then
                self.result = self._inferred(traces, either, effort, outputs)
        self.result = self.result or self._inferred(traces, either, effort, self.options.outputs)
        found = TransitionTables.of(self.result.machines, self.log)
        if believed is not None and self._holds(believed, found, columns):
            self.options = replace(self.options, timing=believed.timing)
            return believed
        self.tables = found
        return found

    def _needs_ending(self, believed: TransitionTables, columns: Columns, last: bool) -> bool:
        """Whether a machine has to tell when episodes end; once there is one, it stays."""
        if TERMINATED in believed.kinds or not last:
            return TERMINATED in believed.kinds
        wide = believed.for_labels(len(self.log.labels))
        return not predicts_endings(wide, QueriedSteps.of_columns(wide, columns))

    def _holds(self, believed: TransitionTables, found: TransitionTables, columns: Columns) -> bool:
        """Whether what is believed is no worse than what was found."""
        if believed.kinds != found.kinds or _cost(believed) > _cost(found):
            return False
        wide = believed.for_labels(len(self.log.labels))
        mine, theirs = (
            QueriedSteps.of_columns(wide, columns),
            QueriedSteps.of_columns(found, columns),
        )
        tells = predicts_endings(wide, mine) or not predicts_endings(found, theirs)
        return tells and explains(wide, mine)

    def _inferred(
        self, traces: TraceSet, either: bool, effort: float, outputs: tuple[str, ...] | None
    ) -> InferenceResult:
        """Infer machines; if it may be either, with and without first labels, the smaller ones.

        The first label may say what matters, as the cue of a T-maze does, or stand for something
        that had not happened yet.
        """
        options = replace(self.options, effort=effort, outputs=outputs)
        timings: list[Any] = [options.timing]
        if either:
            timings = [LabelTiming.CURRENT, LabelTiming.CURRENT_WITH_INITIAL]
        found: list[InferenceResult] = []
        contradictions: list[ContradictoryTraces] = []
        for timing in timings:
            try:
                found.append(infer_with(replace(options, timing=timing), traces))
            except ContradictoryTraces as error:
                contradictions.append(error)
        if not found:
            if not self.options.remove_trivial:
                raise contradictions[0]
            # It may matter how often nothing happens.
            with suppress(ContradictoryTraces):
                found.append(infer_with(replace(options, remove_trivial=False), traces))
            if not found:
                raise contradictions[0]
            self.options = replace(self.options, remove_trivial=False)
        best = min(found, key=_states)
        self.options = replace(self.options, timing=best.options.timing)
        return best


def _cost(tables: TransitionTables) -> tuple[int, bool]:
    """Fewer states are better, and of as many those that need no first label."""
    return sum(tables.sizes), tables.timing is not LabelTiming.CURRENT


def _states(result: InferenceResult) -> int:
    return sum(machine.states for machine in result.machines.values())
