"""Machines + traces → evidence, with a bar for those who wait."""

from resolvent.display.progress import ProgressBar
from resolvent.machines import MachinePair
from resolvent.merging import Progress
from resolvent.pipeline import inferring_like
from resolvent.traces import TraceSet
from resolvent.trust import Evidence, gather


def gathered(pair: MachinePair, traces: TraceSet, bar: ProgressBar) -> Evidence:
    """Gather evidence; only machines that were inferred from these traces are inferred again."""

    def show(machine: str, now: Progress) -> None:
        text = f"inferring without held-out traces: {machine} machine"
        bar.show(text, now.settled / max(now.nodes, 1))

    known = pair.provenance is not None and pair.provenance.traces_sha256 == traces.digest
    infer = inferring_like(pair, show) if known else None
    return gather(pair, traces, infer=infer, progress=bar.show)
