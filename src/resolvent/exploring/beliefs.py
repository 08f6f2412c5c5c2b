"""What machines are believed to be behind all that was seen, mended where they fail.

A step that was not foreseen is mended at once, near the machines there are. Now and then, when
there are twice as many steps as before, machines are inferred from scratch: what few steps
led to must not stay for ever.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from resolvent.errors import ContradictoryTraces
from resolvent.exploring.log import Episode, Log
from resolvent.exploring.mending import explains, mended
from resolvent.exploring.tables import Steps, Tables
from resolvent.options import Options
from resolvent.pipeline import infer_with
from resolvent.result import InferenceResult
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet

FIRST_THOROUGH: Final = 64
"""After so many steps machines are inferred from scratch again."""


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
            found = mended(wide, Steps(columns, wide.timing, wide.kinds))
            if found is not None:
                self.tables = found
                return found
        return self.rethink(under_way)

    def rethink(self, under_way: Iterable[Episode]) -> Tables:
        """Infer machines from everything, from scratch and thoroughly.

        Machines with more states than those believed in so far are not taken: those explain
        everything, too.
        """
        under_way = list(under_way)
        columns, traces = self.log.columns(0, under_way), self.log.traces(0, under_way)
        self.thorough_at = max(FIRST_THOROUGH, 2 * traces.steps)
        believed = self.tables
        self.result = self._inferred(traces)
        found = Tables.of(self.result.machines, self.log)
        if (
            believed is not None
            and explains(believed.for_labels(len(self.log.labels)), columns)
            and (believed.kinds, believed.timing) == (found.kinds, found.timing)
            and sum(believed.sizes) <= sum(found.sizes)
        ):
            return believed
        self.tables = found
        return found

    def _inferred(self, traces: TraceSet) -> InferenceResult:
        """Infer; where first labels differ, with and without reading them, and take the smaller.

        The first label may say what matters, as the cue of a T-maze does, or stand for something
        that had not happened yet.
        """
        begins = traces.offsets[:-1] + np.arange(len(traces))
        timings: list[Any] = [self.options.timing]
        if self.may_time and len(np.unique(traces.label_codes[begins])) > 1:
            timings = [LabelTiming.CURRENT, LabelTiming.CURRENT_WITH_INITIAL]
        found: list[InferenceResult] = []
        contradictions: list[ContradictoryTraces] = []
        for timing in timings:
            try:
                found.append(infer_with(replace(self.options, timing=timing), traces))
            except ContradictoryTraces as error:
                contradictions.append(error)
        if not found:
            raise contradictions[0]
        best = min(found, key=_states)
        self.options = replace(self.options, timing=best.options.timing)
        return best


def _states(result: InferenceResult) -> int:
    return sum(machine.states for machine in result.machines.values())
