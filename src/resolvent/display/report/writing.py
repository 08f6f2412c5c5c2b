"""Machines + traces → the report's file, whole or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

from resolvent.atomic_file import atomic_write
from resolvent.display.report.contents import contents
from resolvent.display.report.page import page
from resolvent.machines import Machines
from resolvent.pipeline import evidence as gathered
from resolvent.result import InferenceResult
from resolvent.traces import TraceSet
from resolvent.trust import Evidence

if TYPE_CHECKING:
    from resolvent.control import Learned, Plan
    from resolvent.control.planning.plan_files import PlanFile


def report(
    machines: Machines | InferenceResult,
    traces: TraceSet,
    path: str | Path,
    *,
    evidence: Evidence | None = None,
    policy: "Learned | Plan | PlanFile | None" = None,
    returns: list[float] | None = None,
) -> None:
    """Write one HTML page about machines and traces, which any browser shows without a network.

    The machines drawn, traces replayed step by step, and the evidence, which is gathered
    unless it is given. `policy` adds what was learned or planned, `returns` what each
    episode of learning paid (those of a learned policy if none are given).
    """
    from resolvent.control import Learned
    from resolvent.display.report import learning

    result = machines if isinstance(machines, InferenceResult) else None
    shown = machines.machines if isinstance(machines, InferenceResult) else machines
    said = contents(shown, traces, evidence or gathered(machines, traces))
    if result is not None:
        said["summary"]["sentences"].append(f"Inference took {result.seconds['total']:.3g} s.")
    if returns is None and isinstance(policy, Learned):
        returns = policy.curve.returns.tolist()
    said["curve"] = learning.curve(returns) if returns else None
    said["policy"] = None if policy is None else learning.policy(policy)
    text = page("Resolvent report", said, shown)
    with atomic_write(path) as file:
        file.write(text.encode())
