"""Machines + traces → evidence, with a bar for those who wait."""

from resolvent._util.progress import Listener, Progress
from resolvent._util.text import amount
from resolvent.evaluation.evidence import Evidence
from resolvent.inference.evidence import evidence
from resolvent.machines import Machines
from resolvent.replay.corpus import READING
from resolvent.replay.replaying import REPLAYING
from resolvent.traces import TraceDataset, TraceSet
from resolvent.viz.terminal import Amount, ProgressBar


def gathered(
    machines: Machines, traces: TraceSet | TraceDataset, on: str, bar: ProgressBar
) -> Evidence:
    """Gather evidence; only machines that were inferred from these traces are inferred again."""
    return evidence(machines, traces, on=on, progress=shown_by(bar))


def shown_by(bar: ProgressBar) -> Listener:
    """Return what shows on a bar how far a stage is, and of pieces of files how many are done."""

    def show(stage: str, now: Progress) -> None:
        if stage not in (READING, REPLAYING):
            bar.show(stage, now.fraction)
            return
        text = f"{stage}: {now.done:,} of {amount(now.total, 'piece')}"
        bar.show(text, now.fraction, of=Amount(now.steps, "steps"), stage=stage)

    return show
