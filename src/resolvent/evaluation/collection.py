"""Machines + traces → an `Evidence`: the support for machines, and its gaps.

One pass counts all that evidence and reports need, shard by shard.
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
from resolvent.evaluation.experiments import ExperimentDesigner
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
    VaryingOutputs,
    separate,
    weigh_pairs,
    weigh_transitions,
    weighable,
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


def _notable_traces(shard: CodedShard, states: Mapping[str, Codes]) -> dict[str, tuple[int, ...]]:
    """Return the traces of a shard that are worth looking at, each by the reason.

    A trace is a tuple of sort keys that ends with its number: the minimum over all shards is that
    of all traces.
    """
    lengths, visited = shard.length, _visited_states(shard.traces, states)
    shortest, longest = int(np.argmin(lengths)), int(np.argmax(lengths))
    most = int(np.lexsort((lengths, -visited))[0])
    return {
        "visits most states": (-int(visited[most]), int(lengths[most]), most + shard.first),
        "the shortest": (int(lengths[shortest]), shortest + shard.first),
        "the longest": (-int(lengths[longest]), longest + shard.first),
    }


def _visited_states(traces: TraceSet, states: Mapping[str, Codes]) -> Numbers:
    """Return the number of distinct joint states that each trace visits."""
    joint, size = np.zeros(traces.steps, np.int32), 1
    for column in states.values():
        width = int(column.max(initial=-1)) + 2  # one more, for an unknown state
        pairs, joint = distinct_pairs(joint, column + np.int32(1), size, width)
        size = len(pairs)
    # Sorting is faster than the hash table of `np.unique` for millions of numbers.
    keys = np.sort(traces.trace_of_step * size + joint)
    is_new = np.diff(keys, prepend=-1) > 0
    return np.bincount(keys[is_new] // size, minlength=len(traces))


@dataclass(frozen=True, eq=False)
class EvidenceCounts:
    """The replay of traces, and the other counts of the same pass.

    Attributes:
        replay: The replay, with the earliest location of everything.
        steps: The distinct steps of the traces, without states.
        starts: The distinct starts of traces.
        failures: The number of traces, and of those with a prediction error.
        sequences: By machine, the label sequences that reach each state and transition.
        notable: The traces worth looking at, by the reason; see `_notable_traces`.
        is_known: Whether any machine knows any step.
    """

    replay: ReplayCounts
    steps: CountTable
    starts: CountTable
    failures: FailureCounts
    sequences: Mapping[str, SequenceCounts]
    notable: Mapping[str, tuple[int, ...]]
    is_known: bool

    def __add__(self, other: "EvidenceCounts") -> "EvidenceCounts":
        return EvidenceCounts(
            self.replay + other.replay,
            self.steps + other.steps,
            self.starts + other.starts,
            self.failures + other.failures,
            {name: counts + other.sequences[name] for name, counts in self.sequences.items()},
            {why: min(trace, other.notable[why]) for why, trace in self.notable.items()},
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
            _notable_traces(shard, replay.states),
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
        notable = counts.notable if corpus.traces > 1 else {"the only one": (0,)}
        for why, (*_, number) in notable.items():
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

    Traces that are new to the machines are themselves the hold-out. Otherwise `infer`, which must
    infer machines as these were, is called with a share of them, and the rest is held out;
    without it nothing is. Label sequences, transitions under noise and the hold-out need single
    traces; of those in files a sample is examined.
    """
    if isinstance(traces, TraceSet):
        traces = scan_corpus(machines, traces, Threads())
    _begin(progress, "replaying the traces")
    evidence_pass = EvidencePass(machines, MachineTables.of(machines, traces.alphabets))
    if traces.in_memory:
        (shard,) = traces.coded()
        examined, sample = shard.traces, None
        counts, queries = evidence_pass.count(shard)
    else:
        counts = run_pass(traces, evidence_pass, progress)
        counts = replace(counts, replay=replace(counts.replay, alphabets=traces.alphabets))
        examined, sample = sample_traces(traces)
        queries = step_queries(machines, examined, states_at_steps(machines, examined))
    if not counts.is_known:
        raise ModelError(
            "the machines know no step of these traces: they were inferred from another environment"
        )
    by_machine = {
        name: _machine_evidence(steps, examined.offsets, counts, sample, machines, progress)
        for name, steps in queries.items()
    }
    is_training_set = are_training_traces(machines, traces)
    holdout = None
    _begin(progress, "testing on held-out traces")
    if not is_training_set:
        holdout = counts.failures.holdout(delta)
        if any(machine.is_noisy for machine in machines.values()):
            holdout = replace(holdout, calibration=calibration_of(machines, counts.replay))
    elif infer is not None:
        holdout = split(machines, examined, infer, delta)
        if holdout is not None:
            holdout = replace(holdout, part=sample)
    examples = NotableExamples.of(machines, counts, traces)
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
    return provenance.traces_sha256 == corpus.digest


def _begin(progress: Listener | None, stage: str) -> CoreListener | None:
    """Report the begin of a stage; return a listener for the compiled core."""
    if progress is None:
        return None
    progress(stage, Progress(0, 0, 0, 0))
    return lambda *numbers: progress(stage, Progress(*numbers))


def _machine_evidence(
    steps: StepQueries,
    offsets: Numbers,
    counts: EvidenceCounts,
    sample: SampledSteps | None,
    machines: Machines,
    progress: Listener | None,
) -> MachineEvidence:
    """Return the evidence for one machine; `steps` are of the examined traces."""
    machine, replay = steps.machine, counts.replay

    def begin(stage: str) -> CoreListener | None:
        return _begin(progress, f"{short(machine.name)} machine: {stage}")

    begin("counting outputs")
    outputs, transitions = observed_outputs(machine, replay), observed_transitions(machine, replay)
    varying = VaryingOutputs(machine, outputs)
    listener = begin("distinguishing states")
    unknown = _unknown_labels(machine, replay)
    alternatives = None
    if machine.is_noisy:
        columns, queries = weighable(steps)
        separations = weigh_pairs(columns, queries, outputs)
        begin("weighing transitions")
        alternatives = weigh_transitions(columns, offsets)
        completeness = weigh_completeness(machine, transitions, alternatives, unknown)
    else:
        separations = separate(varying, listener)
        listener = begin("checking label sequences")
        completeness = check_completeness(steps, offsets, transitions, varying, unknown, listener)
    completeness = replace(completeness, part=sample)
    transition = machines.transition if "transition" in machines else None
    designer = ExperimentDesigner(completeness, varying, separations, transition, steps, offsets)
    return MachineEvidence(
        machine,
        outputs,
        transitions,
        separations,
        completeness,
        designer.experiments(),
        alternatives,
        weakness_of(machine, counts.sequences[machine.name]),
    )


def _unknown_labels(machine: Machine, replay: ReplayCounts) -> list[tuple[int, Label]]:
    """Return the labels unknown to the machine, each with the state that reads it."""
    missing, labels = replay.machines[machine.name].missing, replay.alphabets.labels
    rows = zip(missing["state"].tolist(), missing["label"].tolist(), strict=True)
    return [(state, labels[code]) for state, code in rows if labels[code] not in machine.labels]
