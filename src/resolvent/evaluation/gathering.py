"""Machines + traces → an `Evidence`: the support for machines, and its gaps."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from resolvent._util.parallel import Threads
from resolvent._util.progress import Listener, Progress
from resolvent._util.text import short
from resolvent.errors import ModelError
from resolvent.evaluation.completeness import check_completeness, weigh_completeness
from resolvent.evaluation.evidence import Evidence, MachineEvidence
from resolvent.evaluation.evidence_pass import EvidenceCounts, EvidencePass, NotableExamples
from resolvent.evaluation.experiments import NextExperiments, ObservationsAfterLabel
from resolvent.evaluation.holdout import calibration_of, split
from resolvent.evaluation.observed import (
    ObservedOutputs,
    ObservedTransitions,
    SampledSteps,
    sample_traces,
)
from resolvent.evaluation.separation import CoreListener, Separations, VaryingOutputs
from resolvent.evaluation.weakness import weakness_of
from resolvent.evaluation.weighing import WeighableSteps, WeighedSeparations
from resolvent.machines import Machine, Machines
from resolvent.replay import (
    Corpus,
    MachineTables,
    ReplayCounts,
    StepQueries,
    run_pass,
    scan_corpus,
    score_of,
    states_at_steps,
    step_queries,
)
from resolvent.traces import Label, TraceSet


def collect_evidence(
    machines: Machines,
    traces: TraceSet | Corpus,
    *,
    infer: Callable[[TraceSet], Machines] | None = None,
    delta: float = 0.05,
    progress: Listener | None = None,
) -> Evidence:
    """Collect the evidence of traces for machines, and what they leave open.

    Traces that the machines were not inferred from are themselves the hold-out. Otherwise
    `infer`, which must infer machines as these were, is called with a share of them, and the
    rest is held out; without it nothing is. `progress` receives each stage and its progress.

    Traces in files are read once. Label histories, transitions under noise and the hold-out
    need single traces, and are then based on a sample of them.
    """
    if isinstance(traces, TraceSet):
        if len(traces) == 0:
            raise ModelError("there are no traces to gather evidence from")
        traces = scan_corpus(machines, traces, Threads())
    reporter = ProgressReporter(progress)
    scan = _scan(machines, traces, reporter)
    counts = scan.counts
    by_machine = {
        kind: _machine_evidence(steps, scan, machines, reporter.of(f"{short(kind)} machine"))
        for kind, steps in scan.steps.items()
    }
    is_training_set = are_training_traces(machines, traces)
    holdout = None
    reporter.begin("testing on held-out traces")
    if not is_training_set:
        holdout = counts.failures.holdout(delta)
        if any(machine.is_noisy for machine in machines.values()):
            holdout = replace(holdout, foretold=calibration_of(machines, counts.shown))
    elif infer is not None:
        holdout = split(machines, scan.traces, infer, delta)
        if holdout is not None:
            holdout = replace(holdout, part=scan.sample)
    examples = _examples(machines, counts, traces)
    return Evidence(
        traces.traces, traces.steps, by_machine, holdout, counts, examples, is_training_set
    )


def are_training_traces(machines: Machines, corpus: Corpus) -> bool:
    """Return whether machines were inferred from exactly these traces."""
    provenance = machines.provenance
    if provenance is None:
        return False
    if (provenance.traces, provenance.steps) != (corpus.traces, corpus.steps):
        return False  # without reading the traces
    digest = provenance.traces_sha256
    return digest == corpus.digest or digest == corpus.digest_in_sequence


class ProgressReporter:
    """Reports the progress of each stage to a listener, if there is one."""

    def __init__(self, listener: Listener | None, prefix: str = "") -> None:
        self.listener, self._prefix = listener, prefix

    def of(self, subject: str) -> "ProgressReporter":
        """Return a reporter that names a subject before each stage."""
        return ProgressReporter(self.listener, f"{subject}: ")

    def begin(self, stage: str) -> CoreListener | None:
        """Report the begin of a stage; return a listener for the compiled core."""
        listener, text = self.listener, self._prefix + stage
        if listener is None:
            return None
        listener(text, Progress(0, 0, 0, 0))
        return lambda *numbers: listener(text, Progress(*numbers))


@dataclass(frozen=True, eq=False)
class _Scan:
    """The counts of all traces; traces to examine one by one and each machine's queries there."""

    counts: EvidenceCounts
    traces: TraceSet
    steps: dict[str, StepQueries]
    sample: SampledSteps | None


def _scan(machines: Machines, corpus: Corpus, reporter: ProgressReporter) -> _Scan:
    """Count in all traces, and examine a sample of those in files once more."""
    reporter.begin("replaying the traces")
    evidence_pass = EvidencePass(machines, MachineTables.of(machines, corpus.alphabets))
    if corpus.in_memory:
        (shard,) = corpus.coded()
        replay, steps = evidence_pass.replay(shard)
        scan = _Scan(EvidenceCounts.of(shard, replay, steps), shard.traces, steps, None)
    else:
        counts = run_pass(corpus, evidence_pass, reporter.listener)
        counts = replace(counts, shown=replace(counts.shown, alphabets=corpus.alphabets))
        traces, sample = sample_traces(corpus)
        steps = step_queries(machines, traces, states_at_steps(machines, traces))
        scan = _Scan(counts, traces, steps, sample)
    if not scan.counts.is_known:
        raise ModelError(
            "the machines know no step of these traces: they were inferred from another world"
        )
    return scan


def _examples(machines: Machines, counts: EvidenceCounts, corpus: Corpus) -> NotableExamples:
    """Fetch the notable traces."""
    reasons: dict[int, list[str]] = {}
    mismatch = score_of(machines, counts.shown).first_mismatch
    if mismatch is not None:
        reasons.setdefault(mismatch.trace, []).append("has the first mismatch")
    notable = counts.notable.reasons() if corpus.traces > 1 else [(0, "the only one")]
    for number, why in notable:
        reasons.setdefault(number, []).append(why)
    traces = corpus.fetch(np.array(sorted(reasons)))
    return NotableExamples({number: ", ".join(why) for number, why in reasons.items()}, traces)


def _machine_evidence(
    steps: StepQueries, scan: _Scan, machines: Machines, reporter: ProgressReporter
) -> MachineEvidence:
    reporter.begin("counting answers")
    machine, replay, offsets = steps.machine, scan.counts.shown, scan.traces.offsets
    outputs = ObservedOutputs.of(machine, replay)
    transitions = ObservedTransitions.of(machine, replay)
    varying = VaryingOutputs(machine, outputs)
    listener = reporter.begin("telling states apart")
    unknown = _unknown_labels(machine, replay)
    separations: Separations
    alternatives = None
    if machine.is_noisy:
        weighable = WeighableSteps.of(steps, offsets)
        separations = WeighedSeparations(weighable, outputs)
        reporter.begin("weighing moves")
        alternatives = weighable.compare_transitions()
        completeness = weigh_completeness(machine, transitions, alternatives, unknown)
    else:
        separations = Separations(varying, listener)
        listener = reporter.begin("checking label histories")
        completeness = check_completeness(steps, offsets, transitions, varying, unknown, listener)
    completeness = replace(completeness, part=scan.sample)
    transition = machines.transition if "transition" in machines else None
    follows = ObservationsAfterLabel(steps, offsets)
    return MachineEvidence(
        machine,
        outputs,
        transitions,
        separations,
        completeness,
        NextExperiments(completeness, varying, separations, transition, follows),
        alternatives,
        weakness_of(machine, scan.counts.histories[machine.kind]),
    )


def _unknown_labels(machine: Machine, replay: ReplayCounts) -> list[tuple[int, Label]]:
    """Return the labels unknown to the machine, each with the state that reads it."""
    missing, labels = replay.machines[machine.kind].missing, replay.alphabets.labels
    rows = zip(missing["state"].tolist(), missing["label"].tolist(), strict=True)
    return [(state, labels[code]) for state, code in rows if labels[code] not in machine.labels]
