"""Machines + traces → the report's file, whole or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

from resolvent._util.files import atomic_write
from resolvent._util.parallel import Workers
from resolvent._util.text import amount
from resolvent._util.validation import check_arguments
from resolvent.display.report.contents import contents
from resolvent.display.report.gallery import DrawOf, Gallery
from resolvent.display.report.page import page
from resolvent.errors import ModelError, OptionError
from resolvent.evaluation.evidence import Evidence
from resolvent.inference.evidence import evidence as gathered
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.machines import Machines
from resolvent.replay import Corpus
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan
    from resolvent.planning.plan_io import PlanFile
    from resolvent.rl.q_table import QTable


def report(
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceDataset | Corpus,
    path: str | Path,
    *,
    evidence: Evidence | None = None,
    policy: "QTable | Plan | PlanFile | None" = None,
    returns: list[float] | None = None,
    draw_of: DrawOf | None = None,
    on: str | Workers = "threads",
) -> None:
    """Write one HTML page about machines and traces, which any browser shows without a network.

    The machines drawn, traces replayed step by step, and the evidence, which is gathered
    unless it is given. `policy` adds what was learned or planned, `returns` what each
    episode of learning paid (those of a learned policy if none are given). Of a scanned place
    all traces count, as `evidence` says, and the few that are shown are read from it, by those
    that `on` names, as for `infer`.

    Observations that are arrays of H×W, H×W×1 or H×W×3 numbers are shown as small pictures.
    `draw_of` draws them instead: it is given an observation as the traces hold it and
    returns an array of H×W×3 numbers from 0 to 255, or None for no picture.

    >>> import tempfile, gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> machines = rs.infer(house[:150]).machines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(machines, house[150:], f"{folder}/house.html")
    ...     Path(f"{folder}/house.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'

    Raises:
        ModelError: when the evidence is about other machines or traces, or the machines know
            nothing of these traces.
        OptionError: when `draw_of` fails, or gives no picture.
    """
    from resolvent.display.report import learning
    from resolvent.planning.plan import Plan
    from resolvent.planning.plan_io import PlanFile
    from resolvent.rl.q_table import QTable

    check_arguments(report, locals(), leaving=["machines", "traces", "draw_of"])
    if not isinstance(policy, QTable | Plan | PlanFile | None):
        raise OptionError(
            f"policy is a {type(policy).__name__}: give what rs.plan or rs.q_learning returned"
        )
    gallery = Gallery(draw_of)
    result = machines if isinstance(machines, InferenceResult) else None
    shown = machines_of_result(machines)
    given = traces if isinstance(traces, Corpus) else as_traces(traces)
    if evidence is None:
        evidence = gathered(machines, given, on=on)
    _check_about(evidence, shown, given)
    said = contents(shown, evidence, gallery)
    if result is not None:
        said["summary"]["sentences"] += [f"Noise: {line}." for line in result.noise_text()]
        said["summary"]["sentences"].append(f"Inference took {result.seconds['total']:.3g} s.")
    if returns is None and isinstance(policy, QTable):
        returns = policy.curve.returns.tolist()
    said["curve"] = learning.curve(returns) if returns else None
    said["policy"] = None if policy is None else learning.policy(policy, gallery)
    said["pictures"] = gallery.pictures()
    said["summary"]["sentences"] += gallery.missing(said["pictures"])
    text = page("Resolvent report", said, shown.values())
    with atomic_write(path) as file:
        file.write(text.encode())


def _check_about(
    evidence: Evidence, machines: Machines, traces: TraceSet | TraceDataset | Corpus
) -> None:
    if {kind: one.machine for kind, one in evidence.items()} != dict(machines):
        raise ModelError("the evidence is about other machines: gather it with those of the report")
    if not isinstance(traces, TraceSet):
        return  # how many they are, only another pass would tell
    if (evidence.traces, evidence.steps) != (len(traces), traces.steps):
        raise ModelError(
            f"the evidence was gathered from {amount(evidence.traces, 'trace')} of "
            f"{amount(evidence.steps, 'step')} in all, not from those of the report: gather it anew"
        )
