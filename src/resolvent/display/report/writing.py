"""Machines + traces → the report's file, whole or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

from resolvent.atomic_file import atomic_write
from resolvent.display.report.contents import contents
from resolvent.display.report.page import page
from resolvent.machines import MachinePair
from resolvent.traces import TraceSet
from resolvent.trust import Evidence

if TYPE_CHECKING:
    from resolvent.control import Learned, Plan
    from resolvent.control.plan_files import PlanFile
    from resolvent.result import InferenceResult


def write_report(
    path: str | Path,
    pair: MachinePair,
    traces: TraceSet,
    evidence: Evidence,
    *,
    returns: list[float] | None = None,
    policy: "Learned | Plan | PlanFile | None" = None,
    seconds: float | None = None,
) -> None:
    """Write a page about machines and traces, which any browser shows without a network.

    `policy` adds what was learned or planned, `returns` what each episode of learning
    paid (those of a learned policy if none are given), `seconds` how long inference took.
    """
    from resolvent.control import Learned
    from resolvent.display.report import learning

    said = contents(pair, traces, evidence)
    if seconds is not None:
        said["summary"]["sentences"].append(f"Inference took {seconds:.3g} s.")
    if returns is None and isinstance(policy, Learned):
        returns = policy.curve.returns.tolist()
    said["curve"] = learning.curve(returns) if returns else None
    said["policy"] = None if policy is None else learning.policy(policy)
    machines = {"transition": pair.transition, "reward": pair.reward}
    text = page("Resolvent report", said, machines)
    with atomic_write(path) as file:
        file.write(text.encode())


def write_report_of_result(
    result: "InferenceResult",
    path: str | Path,
    traces: TraceSet,
    policy: "Learned | Plan | PlanFile | None",
) -> None:
    """Write a page about what `infer` found and the traces it came from."""
    seconds = result.seconds["total"]
    write_report(path, result.machines, traces, result.evidence, policy=policy, seconds=seconds)
