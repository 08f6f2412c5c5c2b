"""What machines are believed to be behind all that was seen, mended where they fail.

A step that was not foreseen is mended at once, near the machines there are. Now and then, when
there are twice as many steps as before, machines are inferred from scratch: what few steps
led to must not stay for ever.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from resolvent.errors import ContradictoryTraces
from resolvent.exploring.log import Columns, Episode, Log
from resolvent.exploring.mending import explains, mended
from resolvent.exploring.tables import Steps, Tables
from resolvent.options import Options
from resolvent.pipeline import infer_with
from resolvent.result import InferenceResult
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.symbols import NO_EVENT

FIRST_THOROUGH: Final = 64
"""After so many steps machines are inferred from scratch again."""

EFFORT: Final = 0.03
"""How long smaller machines are looked for, beside what `infer` takes by default."""


@dataclass
class Beliefs:
    """The machines that explain everything, as far as exploring must know them.

    `result` is what was inferred from scratch last, from all there was then.
    """

    options: Options
    log: Log
    tables: Tables | None = None
    result: InferenceResult | None = None
    thorough_at: int = FIRST_THOROUGH
    repairs: int = 0
    may_time: bool = True

    def repair(self, under_way: Iterable[Episode]) -> Tables:
        """Explain everything again, near what was believed if that can be."""
        self.repairs += 1
        under_way = list(under_way)
        columns = self.log.columns(0, under_way)
        if self.tables is not None and columns.steps < self.thorough_at:
            wide = self.tables.for_labels(len(self.log.labels))
            trivial = self.log.labels.codes.get(NO_EVENT) if self.options.remove_trivial else None
            found = mended(wide, Steps(columns, wide.timing, wide.kinds), trivial)
            grown = found is not None and sum(found.sizes) > sum(self.tables.sizes)
            self.tables = found or self.tables
            if found is not None and not grown:
                return found
        return self.rethink(under_way)

    def _first_labels_differ(self, columns: Columns) -> bool:
        """Whether reading them or not may make a difference."""
        begins = columns.offsets[:-1] + np.arange(len(columns.offsets) - 1)
        return self.may_time and len(np.unique(columns.labels[begins])) > 1

    def rethink(self, under_way: Iterable[Episode]) -> Tables:
        """Infer machines from everything, from scratch and thoroughly.

        Machines with more states than those believed in so far are not taken: those explain
        everything, too.
        """
        under_way = list(under_way)
        columns, traces = self.log.columns(0, under_way), self.log.traces(0, under_way)
        self.thorough_at = max(FIRST_THOROUGH, 2 * traces.steps)
        believed = self.tables
        self.result = self._inferred(traces, self._first_labels_differ(columns))
        found = Tables.of(self.result.machines, self.log)
        if (
            believed is not None
            and explains(believed.for_labels(len(self.log.labels)), columns)
            and believed.kinds == found.kinds
            and _cost(believed) <= _cost(found)
        ):
            self.options = replace(self.options, timing=believed.timing)
            return believed
        self.tables = found
        return found

    def _inferred(self, traces: TraceSet, either: bool) -> InferenceResult:
        """Infer machines; if it may be either, with and without first labels, the smaller ones.

        The first label may say what matters, as the cue of a T-maze does, or stand for something
        that had not happened yet.
        """
        timings: list[Any] = [self.options.timing]
        if either:
            timings = [LabelTiming.CURRENT, LabelTiming.CURRENT_WITH_INITIAL]
        found: list[InferenceResult] = []
        contradictions: list[ContradictoryTraces] = []
        for timing in timings:
            try:
                found.append(
                    infer_with(replace(self.options, timing=timing, effort=EFFORT), traces)
                )
            except ContradictoryTraces as error:
                contradictions.append(error)
        if not found:
            if not self.options.remove_trivial:
                raise contradictions[0]
            # It may matter how often nothing happens.
            kept = replace(self.options, remove_trivial=False)
            with suppress(ContradictoryTraces):
                found.append(infer_with(kept, traces))
            if not found:
                raise contradictions[0]
            self.options = kept
        best = min(found, key=_states)
        self.options = replace(self.options, timing=best.options.timing)
        return best


def _cost(tables: Tables) -> tuple[int, bool]:
    """Fewer states are better, and of as many those that need no first label."""
    return sum(tables.sizes), tables.timing is not LabelTiming.CURRENT


def _states(result: InferenceResult) -> int:
    return sum(machine.states for machine in result.machines.values())
