"""Diagnose traces before anything is inferred: all findings, the most severe first."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from resolvent.errors import TraceError
from resolvent.evaluation.diagnosis.coverage import coverage, repetition
from resolvent.evaluation.diagnosis.findings import Diagnosis, Finding, Severity
from resolvent.evaluation.diagnosis.labels import labels as label_findings
from resolvent.evaluation.diagnosis.memory import memory
from resolvent.evaluation.diagnosis.randomness import randomness
from resolvent.evaluation.diagnosis.rewards import rewards
from resolvent.evaluation.diagnosis.steps import Steps
from resolvent.preprocess.labeling import LabelingFunction, as_labeling_function
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceDataset, TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import DEFAULT_COLUMNS, default_outputs

MAX_STEPS: Final = 5_000_000
"""Maximum number of steps of a folder's files to examine: they are in memory together."""

_BY_SEVERITY: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def diagnose(
    traces: TraceSet | TraceDataset | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | LabelingFunction = "given",
    timing: LabelTiming | str | None = None,
) -> Diagnosis:
    """Describe traces, and find what prevents machines from being inferred from them.

    Findings are about observations that hardly repeat, outputs that labels do not determine,
    because of noise or a missing label, rewards without information, labels that are no events,
    and traces that are too few or too similar. Each finding has figures and advice.

    Args:
        traces: The traces; or a folder of them (`scan_traces`), of which the first files with
            about 5,000,000 steps are examined; or single traces, or the path of a file of
            traces, which is read as by `read_traces`.
        outputs: The columns that machines should predict, as for `infer`: by default the next
            observation and, if the traces have it, the reward; of a log, all its outputs.
        labels: The labels that machines read, as for `infer`. For "auto", the finest labels that
            could be found are examined: "action+observation".
        timing: Which labels are read before a step is predicted, as for `infer`.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> diagnose(house).warnings
    ()
    >>> days = [rs.Trace(["hall", end], [None, None], ["up"], [0]) for end in ("attic", "hall")]
    >>> [finding.kind for finding in diagnose(rs.TraceSet(days)).findings][0]
    'random-start'
    """
    # The options of `infer`, a package above, check the arguments.
    from resolvent.inference.options import InferenceOptions

    is_auto = isinstance(labels, str) and labels == "auto"
    finest = "action+observation" if is_auto else labels
    options = InferenceOptions(outputs=outputs, labels=finest, timing=timing)  # type: ignore[arg-type]  # they are checked
    labeling = as_labeling_function(options.labels)
    names = (name for name in options.outputs or () if name not in DEFAULT_COLUMNS)
    source = as_traces(traces, names)
    examined, notes = (source, []) if isinstance(source, TraceSet) else _first_files(source)
    if len(examined) == 0:
        raise TraceError("there are no traces to diagnose: collect or read at least one")
    by_default = default_outputs(examined.columns, observations=len(examined.observations))
    steps = Steps(labeling.on(examined), options.timing, options.outputs or by_default)
    findings = [
        *notes,
        *randomness(steps),
        *memory(steps),
        *repetition(steps),
        *rewards(steps),
        *(label_findings(steps) if labeling.is_given else ()),
        *coverage(steps),
    ]
    findings.sort(key=lambda finding: _BY_SEVERITY.index(finding.severity))
    return Diagnosis(len(examined), examined.steps, tuple(findings))


def _first_files(folder: TraceDataset) -> tuple[TraceSet, list[Finding]]:
    """Return the traces of a folder's first files, and a note if there are more."""
    sets: list[TraceSet] = []
    for traces in folder:
        sets.append(traces)
        if sum(traces.steps for traces in sets) >= MAX_STEPS:
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
