"""Machines + traces → evidence, with a bar for those who wait."""

from resolvent.display.progress import ProgressBar
from resolvent.machines import Machines
from resolvent.pipeline import evidence
from resolvent.traces import TraceFolder, TraceSet
from resolvent.trust import Evidence


def gathered(machines: Machines, traces: TraceSet | TraceFolder, bar: ProgressBar) -> Evidence:
    """Gather evidence; only machines that were inferred from these traces are inferred again."""
    return evidence(machines, traces, progress=lambda stage, now: bar.show(stage, now.fraction))
