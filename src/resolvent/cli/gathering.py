"""Machines + traces → evidence, with a bar for those who wait."""

from resolvent.display.progress import ProgressBar
from resolvent.evidence import Evidence, gather
from resolvent.machines import MachinePair
from resolvent.merging import STRATEGIES, Progress
from resolvent.pipeline import inferring_like
from resolvent.traces import TraceSet


def gathered(pair: MachinePair, traces: TraceSet, bar: ProgressBar) -> Evidence:
    """Gather evidence; only machines that were inferred from these traces are inferred again.

    Those found with a strategy of the user's own cannot be, and have no hold-out.
    """

    def show(machine: str, now: Progress) -> None:
        text = f"inferring without held-out traces: {machine} machine"
        bar.show(text, now.settled / max(now.nodes, 1))

    made = pair.provenance
    known = made is not None and made.traces_sha256 == traces.digest
    name = made.options.get("strategy") if made else None
    own = isinstance(name, str) and name not in STRATEGIES
    infer = inferring_like(pair, show) if known and not own else None
    return gather(pair, traces, infer=infer, progress=bar.show)
