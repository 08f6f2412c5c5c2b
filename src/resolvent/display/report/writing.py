"""Machines + traces → the report's file, whole or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

from resolvent.atomic_file import atomic_write
from resolvent.display.report.contents import contents
from resolvent.display.report.page import page
from resolvent.evidence import Evidence
from resolvent.machines import MachinePair
from resolvent.traces import TraceSet

if TYPE_CHECKING:
    from resolvent.control import Learned
    from resolvent.result import InferenceResult


def write_report(
    path: str | Path,
    pair: MachinePair,
    traces: TraceSet,
    evidence: Evidence,
    *,
    returns: list[float] | None = None,
    learned: "Learned | None" = None,
    seconds: float | None = None,
) -> None:
    """Write a page about machines and traces, which any browser shows without a network.

    `returns` and `learned` add what each episode of learning paid, and what was
    learned; `seconds` how long inference took.
    """
    from resolvent.display.report.learning import curve, policy

    said = contents(pair, traces, evidence)
    if seconds is not None:
        said["summary"]["sentences"].append(f"Inference took {seconds:.3g} s.")
    said["curve"] = None if returns is None else curve(returns)
    said["policy"] = None if learned is None else policy(learned)
    machines = {"transition": pair.transition, "reward": pair.reward}
    text = page("Resolvent report", said, machines)
    with atomic_write(path) as file:
        file.write(text.encode())


def write_report_of_result(result: "InferenceResult", path: str | Path, traces: TraceSet) -> None:
    """Write a page about what `infer` found and the traces it came from."""
    write_report(path, result.machines, traces, result.evidence, seconds=result.seconds["total"])
