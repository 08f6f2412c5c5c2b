"""Traces → their diagnosis: all findings, the gravest first."""

from collections.abc import Iterable
from pathlib import Path

from resolvent.diagnosis.chance import chance
from resolvent.diagnosis.coverage import coverage
from resolvent.diagnosis.findings import Diagnosis, Finding, Severity
from resolvent.diagnosis.labels import labels as label_findings
from resolvent.diagnosis.randomness import randomness
from resolvent.diagnosis.repetition import repetition
from resolvent.diagnosis.rewards import rewards
from resolvent.diagnosis.steps import Steps
from resolvent.errors import TraceError
from resolvent.options import Options
from resolvent.samples import LabelTiming
from resolvent.traces import Trace, TraceFolder, TraceSet
from resolvent.traces.column_names import ALWAYS_READ, default_outputs
from resolvent.traces.given import as_traces
from resolvent.traces.labelling import Labelling, as_labelling

MOST_STEPS = 5_000_000
"""Steps of a folder's files that are looked at: they are in memory together."""

_GRAVEST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def diagnose(
    traces: TraceSet | TraceFolder | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | Labelling = "given",
    timing: LabelTiming | str | None = None,
) -> Diagnosis:
    """Say what traces are like, and what stands in the way of inferring machines from them.

    It looks for observations that hardly repeat, outcomes that labels do not tell apart, by
    chance or for want of a label,
    rewards that say nothing, labels that are no events, and traces that are too few or too
    much alike. Each finding says how much of it there is and what to do.

    Args:
        traces: What the agent saw; or a folder of it (`scan_traces`), of which as many files
            are looked at, from the first on, as have 5,000,000 steps together; or single
            traces, or the path of a file of traces, which is read as by `read_traces`.
        outputs: What machines should predict, as for `infer`: by default the next observation
            and, if the traces have it, the reward; of a log, all its outputs.
        labels: What machines read as labels, as for `infer`. For "auto" as much is told apart
            as labels can ever tell, by "action+observation".
        timing: Which labels are read before a step is answered, as for `infer`.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> diagnose(house).warnings
    ()
    >>> days = [rs.Trace(["hall", end], [None, None], ["up"], [0]) for end in ("attic", "hall")]
    >>> [finding.kind for finding in diagnose(rs.TraceSet(days)).findings][0]
    'random-start'
    """
    is_auto = isinstance(labels, str) and labels == "auto"
    widest = "action+observation" if is_auto else labels
    options = Options(outputs=outputs, labels=widest, timing=timing)  # type: ignore[arg-type]  # they are checked
    labelling = as_labelling(options.labels)
    named = (name for name in options.outputs or () if name not in ALWAYS_READ)
    given = as_traces(traces, named)
    looked_at, unread = (given, []) if isinstance(given, TraceSet) else _first_files(given)
    if len(looked_at) == 0:
        raise TraceError("there are no traces to diagnose: collect or read at least one")
    by_default = default_outputs(looked_at.columns, observations=len(looked_at.observations))
    steps = Steps(labelling.on(looked_at), options.timing, options.outputs or by_default)
    found = [
        *unread,
        *randomness(steps),
        *chance(steps),
        *repetition(steps),
        *rewards(steps),
        *(label_findings(steps) if labelling.is_given else ()),
        *coverage(steps),
    ]
    found.sort(key=lambda finding: _GRAVEST_FIRST.index(finding.severity))
    return Diagnosis(len(looked_at), looked_at.steps, tuple(found))


def _first_files(folder: TraceFolder) -> tuple[TraceSet, list[Finding]]:
    """Return the traces of a folder's first files, and a note if there are more."""
    sets: list[TraceSet] = []
    for traces in folder:
        sets.append(traces)
        if sum(one.steps for one in sets) >= MOST_STEPS:
            break
    notes = []
    if len(sets) < len(folder):
        notes.append(
            Finding(
                "part-of-folder",
                Severity.NOTE,
                f"Only the first {len(sets):,} of {len(folder):,} pieces were looked at.",
                {"files": len(folder), "looked_at": len(sets)},
            )
        )
    return TraceSet.concatenate(sets), notes
