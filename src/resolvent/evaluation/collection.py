"""Machines + traces → an `Evidence`: the support for machines, and its gaps.

One pass over the traces, shard by shard, counts all that evidence and reports need; a sample of
traces in files is examined once more, trace by trace.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from resolvent._util.parallel import Threads
from resolvent._util.progress import Listener, Progress
from resolvent._util.text import short
from resolvent.errors import ModelError
from resolvent.evaluation.completeness import check_completeness, weigh_completeness
from resolvent.evaluation.evidence import Evidence, MachineEvidence
from resolvent.evaluation.experiment_design import ExperimentDesigner, ObservationsAfterLabel
from resolvent.evaluation.holdout import FailureCounts, calibration_of, split
from resolvent.evaluation.observed import (
    Numbers,
    SampledSteps,
    observed_outputs,
    observed_transitions,
    sample_traces,
)
from resolvent.evaluation.separation import (
    CoreListener,
    Separations,
    VaryingOutputs,
    WeighableSteps,
    separate,
    weigh_pairs,
    weigh_transitions,
)
from resolvent.evaluation.weakness import SequenceCounts, weakness_of
from resolvent.machines import Machine, Machines
from resolvent.replay import (
    CodedShard,
    Corpus,
    CountTable,
    MachineTables,
    ReplayCounts,
    StepQueries,
    replay_shard,
    run_pass,
    scan_corpus,
    score_of,
    states_at_steps,
    step_queries,
)
from resolvent.replay.replaying import WITHOUT_ALPHABETS
from resolvent.replay.steps import count_starts, count_steps
from resolvent.traces import Codes, Label, TraceSet
from resolvent.traces.vocabulary import distinct_pairs

# --- Counts of all traces ------------------------------------------------------------------------


@dataclass(frozen=True)
class NotableTraces:
    """The shortest trace, the longest one, and the one that visits most states.

    Each is a tuple of sort keys that ends with the number of the trace: the minimum over all
    shards is that of all traces.
    """

    most_states: tuple[int, ...]
    shortest: tuple[int, ...]
    longest: tuple[int, ...]

    @classmethod
    def of(cls, shard: CodedShard, states: Mapping[str, Codes]) -> "NotableTraces":
        """Choose from the traces of a shard, which has at least one."""
        lengths, visited = shard.length, _visited_states(shard.traces, states)
        shortest, longest = int(np.argmin(lengths)), int(np.argmax(lengths))
        most = int(np.lexsort((lengths, -visited))[0])
        return cls(
            (-int(visited[most]), int(lengths[most]), most + shard.first),
            (int(lengths[shortest]), shortest + shard.first),
            (-int(lengths[longest]), longest + shard.first),
        )

    def __add__(self, other: "NotableTraces") -> "NotableTraces":
        return NotableTraces(
            min(self.most_states, other.most_states),
            min(self.shortest, other.shortest),
            min(self.longest, other.longest),
        )

    def reasons(self) -> list[tuple[int, str]]:
        """Return the number of each trace and the reason it is notable."""
        return [
            (self.most_states[-1], "visits most states"),
            (self.shortest[-1], "the shortest"),
            (self.longest[-1], "the longest"),
        ]


def _visited_states(traces: TraceSet, states: Mapping[str, Codes]) -> Numbers:
    """Return the number of distinct joint states that each trace visits."""
    joint, size = np.zeros(traces.steps, np.int32), 1
    for column in states.values():
        width = int(column.max(initial=-1)) + 2  # one more, for an unknown state
        pairs, joint = distinct_pairs(joint, column + np.int32(1), size, width)
        size = len(pairs)
    # Sorting is faster than the hash table of `np.unique` for millions of numbers.
    keys = np.sort(np.repeat(np.arange(len(traces)), np.diff(traces.offsets)) * size + joint)
    is_new = np.diff(keys, prepend=-1) > 0
    return np.bincount(keys[is_new] // size, minlength=len(traces))


@dataclass(frozen=True, eq=False)
class EvidenceCounts:
    """The replay of traces, and the other counts of the same pass.

    Attributes:
        replay: The replay, with the earliest location of everything.
        steps: The distinct steps of the traces, whatever the states.
        starts: The distinct starts of traces.
        failures: The number of traces that the machines predict without an error.
        sequences: By machine, the label sequences that reach each state and transition.
        notable: The traces worth looking at.
        is_known: Whether any machine knows any step.
    """

    replay: ReplayCounts
    steps: CountTable
    starts: CountTable
    failures: FailureCounts
    sequences: Mapping[str, SequenceCounts]
    notable: NotableTraces
    is_known: bool

    def __add__(self, other: "EvidenceCounts") -> "EvidenceCounts":
        return EvidenceCounts(
            self.replay + other.replay,
            self.steps + other.steps,
            self.starts + other.starts,
            self.failures + other.failures,
            {name: counts + other.sequences[name] for name, counts in self.sequences.items()},
            self.notable + other.notable,
            self.is_known or other.is_known,
        )


@dataclass(frozen=True, eq=False)
class EvidencePass:
    """The pass over one shard, as a function that a worker can run."""

    machines: Machines
    tables: MachineTables

    def __call__(self, shard: CodedShard) -> EvidenceCounts:
        """Return the counts of one shard, without the alphabets, which the caller has."""
        counts, _ = self.count(shard)
        return replace(counts, replay=replace(counts.replay, alphabets=WITHOUT_ALPHABETS))

    def count(self, shard: CodedShard) -> tuple[EvidenceCounts, dict[str, StepQueries]]:
        """Return the counts of one shard, and the queries of each machine at its steps."""
        replay = replay_shard(
            self.tables, shard, shortest=False, unknown_states=True, earliest=True, states=True
        )
        traces, queries = shard.traces, step_queries(self.machines, shard.traces, replay.states)
        counts = EvidenceCounts(
            replace(replay, states={}),
            count_steps(shard, {}),
            count_starts(shard, {}),
            FailureCounts.of(queries.values(), traces),
            {name: SequenceCounts.of(steps, traces.offsets) for name, steps in queries.items()},
            NotableTraces.of(shard, replay.states),
            any(np.any((steps.states >= 0) & (steps.queries >= 0)) for steps in queries.values()),
        )
        return counts, queries


@dataclass(frozen=True, eq=False)
class NotableExamples:
    """Notable traces: `why` gives the reason for each by its number."""

    why: dict[int, str]
    traces: TraceSet

    @classmethod
    def of(cls, machines: Machines, counts: EvidenceCounts, corpus: Corpus) -> "NotableExamples":
        """Read the notable traces, among them the one with the first mismatch."""
        reasons: dict[int, list[str]] = {}
        mismatch = score_of(machines, counts.replay).first_mismatch
        if mismatch is not None:
            reasons[mismatch.trace] = ["has the first mismatch"]
        notable = counts.notable.reasons() if corpus.traces > 1 else [(0, "the only one")]
        for number, why in notable:
            reasons.setdefault(number, []).append(why)
        traces = corpus.fetch(np.array(sorted(reasons)))
        return cls({number: ", ".join(why) for number, why in reasons.items()}, traces)

    def trace(self, number: int) -> TraceSet:
        """Return the trace with this number, as a set of one."""
        return self.traces.take([sorted(self.why).index(number)])


# --- Evidence ------------------------------------------------------------------------------------


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

    Traces in files are read once. Label sequences, transitions under noise and the hold-out
    need single traces, and are then based on a sample of them.
    """
    if isinstance(traces, TraceSet):
        if len(traces) == 0:
            raise ModelError("there are no traces to collect evidence from")
        traces = scan_corpus(machines, traces, Threads())
    reporter = ProgressReporter(progress)
    scan = _scan(machines, traces, reporter)
    by_machine = {
        name: _machine_evidence(steps, scan, machines, reporter.of(f"{short(name)} machine"))
        for name, steps in scan.steps.items()
    }
    is_training_set = are_training_traces(machines, traces)
    holdout = None
    reporter.begin("testing on held-out traces")
    if not is_training_set:
        holdout = scan.counts.failures.holdout(delta)
        if any(machine.is_noisy for machine in machines.values()):
            holdout = replace(holdout, calibration=calibration_of(machines, scan.counts.replay))
    elif infer is not None:
        holdout = split(machines, scan.traces, infer, delta)
        if holdout is not None:
            holdout = replace(holdout, part=scan.sample)
    return Evidence(
        traces.traces,
        traces.steps,
        by_machine,
        holdout,
        scan.counts,
        NotableExamples.of(machines, scan.counts, traces),
        is_training_set,
    )


def are_training_traces(machines: Machines, corpus: Corpus) -> bool:
    """Return whether machines were inferred from exactly these traces."""
    provenance = machines.provenance
    if provenance is None:
        return False
    if (provenance.traces, provenance.steps) != (corpus.traces, corpus.steps):
        return False  # without reading the traces
    return provenance.traces_sha256 == corpus.digest


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
        counts, steps = evidence_pass.count(shard)
        scan = _Scan(counts, shard.traces, steps, None)
    else:
        counts = run_pass(corpus, evidence_pass, reporter.listener)
        counts = replace(counts, replay=replace(counts.replay, alphabets=corpus.alphabets))
        traces, sample = sample_traces(corpus)
        steps = step_queries(machines, traces, states_at_steps(machines, traces))
        scan = _Scan(counts, traces, steps, sample)
    if not scan.counts.is_known:
        raise ModelError(
            "the machines know no step of these traces: they were inferred from another world"
        )
    return scan


def _machine_evidence(
    steps: StepQueries, scan: _Scan, machines: Machines, reporter: ProgressReporter
) -> MachineEvidence:
    reporter.begin("counting outputs")
    machine, replay, offsets = steps.machine, scan.counts.replay, scan.traces.offsets
    outputs, transitions = observed_outputs(machine, replay), observed_transitions(machine, replay)
    varying = VaryingOutputs(machine, outputs)
    listener = reporter.begin("distinguishing states")
    unknown = _unknown_labels(machine, replay)
    alternatives = None
    if machine.is_noisy:
        weighable = WeighableSteps.of(steps, offsets)
        separations = Separations(machine, outputs, weigh_pairs(weighable, outputs))
        reporter.begin("weighing transitions")
        alternatives = weigh_transitions(weighable)
        completeness = weigh_completeness(machine, transitions, alternatives, unknown)
    else:
        separations = Separations(machine, outputs, separate(varying, listener))
        listener = reporter.begin("checking label sequences")
        completeness = check_completeness(steps, offsets, transitions, varying, unknown, listener)
    completeness = replace(completeness, part=scan.sample)
    designer = ExperimentDesigner(
        completeness,
        varying,
        separations,
        machines.transition if "transition" in machines else None,
        ObservationsAfterLabel(steps, offsets),
    )
    return MachineEvidence(
        machine,
        outputs,
        transitions,
        separations,
        completeness,
        designer.experiments(),
        alternatives,
        weakness_of(machine, scan.counts.sequences[machine.name]),
    )


def _unknown_labels(machine: Machine, replay: ReplayCounts) -> list[tuple[int, Label]]:
    """Return the labels unknown to the machine, each with the state that reads it."""
    missing, labels = replay.machines[machine.name].missing, replay.alphabets.labels
    rows = zip(missing["state"].tolist(), missing["label"].tolist(), strict=True)
    return [(state, labels[code]) for state, code in rows if labels[code] not in machine.labels]
