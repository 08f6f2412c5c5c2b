"""Collect the evidence of traces for machines: the support for them, and its gaps.

Input: machines and traces. Output: `Evidence`, which reads as text, JSON and in notebooks. One pass
counts all that evidence and reports need, shard by shard.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from resolvent._util import html as notebook
from resolvent._util.parallel import Listener, Progress, Threads
from resolvent._util.records import ByMachine, builtin
from resolvent._util.text import amount, short, visible
from resolvent.errors import ModelError
from resolvent.evaluation.completeness import (
    Completeness,
    TransitionSupport,
    check_completeness,
    supports_of,
    weigh_completeness,
)
from resolvent.evaluation.experiments import Experiments
from resolvent.evaluation.holdout import Holdout, calibration_of, split
from resolvent.evaluation.observed import (
    Numbers,
    SampledSteps,
    most_frequent,
    observed_outputs,
    observed_transitions,
    sample_traces,
)
from resolvent.evaluation.separation import (
    CoreListener,
    OutputSupport,
    Separation,
    Separations,
    VaryingOutputs,
    separate,
    weigh_pairs,
    weigh_transitions,
    weighable,
)
from resolvent.evaluation.weakness import SequenceCounts, Weakness, weakness_of
from resolvent.machines import Machine, Machines
from resolvent.machines.tables import AlternativeTransitions
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.corpus import Corpus, run_pass, scan_corpus
from resolvent.replay.counts import CountTable, ReplayCounts
from resolvent.replay.replaying import (
    WITHOUT_ALPHABETS,
    MachineTables,
    replay_shard,
    states_at_steps,
)
from resolvent.replay.score import score_of
from resolvent.replay.steps import StepQueries, count_starts, count_steps, step_queries
from resolvent.traces import Codes, TraceSet
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
    """The replay of traces, with first locations, and the other counts of the same pass.

    `steps` and `starts` are the distinct ones, without states; `failures` counts the traces with a
    prediction error, `sequences` the label sequences that reach each state and transition.
    `notable` are traces by reason (`_notable_traces`); `is_known` is whether any step is.
    """

    replay: ReplayCounts
    steps: CountTable
    starts: CountTable
    failures: Holdout
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


def _count(
    machines: Machines, tables: MachineTables, shard: CodedShard
) -> tuple[EvidenceCounts, dict[str, StepQueries]]:
    """Return the counts of one shard, without alphabets, and the queries of each machine."""
    replay = replay_shard(
        tables, shard, shortest=False, unknown_states=True, earliest=True, states=True
    )
    traces, queries = shard.traces, step_queries(machines, shard.traces, replay.states)
    counts = EvidenceCounts(
        replace(replay, states={}, alphabets=WITHOUT_ALPHABETS),
        count_steps(shard, {}),
        count_starts(shard, {}),
        Holdout.of(queries.values(), traces),
        {name: SequenceCounts.of(steps, traces.offsets) for name, steps in queries.items()},
        _notable_traces(shard, replay.states),
        any(np.any((steps.states >= 0) & (steps.queries >= 0)) for steps in queries.values()),
    )
    return counts, queries


def _counts_alone(machines: Machines, tables: MachineTables, shard: CodedShard) -> EvidenceCounts:
    return _count(machines, tables, shard)[0]


class Example(NamedTuple):
    """A trace worth looking at, as a set of one, and the reason."""

    number: int
    why: str
    trace: TraceSet


def _examples(machines: Machines, counts: EvidenceCounts, corpus: Corpus) -> tuple[Example, ...]:
    """Read the notable traces, first the one with the first mismatch."""
    reasons: dict[int, list[str]] = {}
    mismatch = score_of(machines, counts.replay).first_mismatch
    if mismatch is not None:
        reasons[mismatch.trace] = ["has the first mismatch"]
    notable = counts.notable if corpus.traces > 1 else {"the only one": (0,)}
    for why, (*_, number) in notable.items():
        reasons.setdefault(number, []).append(why)
    traces = corpus.fetch(np.array(sorted(reasons)))
    rank = {number: at for at, number in enumerate(sorted(reasons))}
    return tuple(
        Example(number, ", ".join(why), traces.take([rank[number]]))
        for number, why in reasons.items()
    )


# --- Records --------------------------------------------------------------------------------------

_MAX_WEAK_STATES: Final = 1_000  # maximum number of weak states in JSON
_SEPARATIONS_SHOWN: Final = 3  # number of pairs of states that the text lists


@dataclass(frozen=True)
class MachineEvidence:
    """The evidence of some traces for one machine; its other figures follow from those compared.

    `observed_outputs` and `observed_transitions` have a row for each output and transition of the
    traces, with its count and first location. `alternatives` are None without noise.
    """

    machine: Machine = field(repr=False)
    observed_outputs: CountTable = field(repr=False, hash=False)
    observed_transitions: CountTable = field(repr=False, hash=False)
    separations: Separations = field(compare=False)
    completeness: Completeness
    experiments: Experiments = field(compare=False)
    alternatives: AlternativeTransitions | None = field(repr=False, compare=False)
    weakness: Weakness = field(repr=False, compare=False)

    @property
    def inseparable(self) -> tuple[Separation, ...]:
        """The pairs of states that nothing in the traces distinguishes."""
        return self.separations.inseparable

    @property
    def generalized(self) -> int:
        """The number of generalized outputs: those that the traces never show in that state."""
        machine, outputs = self.machine, self.observed_outputs
        is_constant = np.isin(outputs["query"], machine.constant_query)
        cells = np.stack([outputs["state"], outputs["query"]])[:, is_constant]
        observed = len(np.unique(cells, axis=1).T)
        return machine.states * len(machine.constant_query) - observed

    def transitions(self, most: int | None = None) -> list[TransitionSupport]:
        """Return the nontrivial transitions of the traces, the least supported first.

        For a noisy machine, the least certain ones come first.
        """
        table, alternatives = self.observed_transitions, self.alternatives
        rows = np.flatnonzero(~np.isin(table["label"], self.machine.trivial))
        rows = rows[np.argsort(table.count[rows], kind="stable")]
        if alternatives is not None:
            cells = table["state"][rows], table["label"][rows]
            rows = rows[np.lexsort((alternatives.log_odds[cells], alternatives.target[cells] < 0))]
        return supports_of(self.machine, table, rows[:most], alternatives)

    def outputs(self, most: int | None = None) -> list[OutputSupport]:
        """Return the outputs of the traces that depend on the state, the least supported first.

        For a noisy machine these are the most frequent outputs, those with the smallest lead
        over the next frequent one first.
        """
        table = self.observed_outputs
        rows = np.flatnonzero(~np.isin(table["query"], self.machine.constant_query))
        support = table.count[rows]
        if self.machine.is_noisy:
            rows, support = most_frequent(table, rows)
        rows = rows[np.argsort(support, kind="stable")[:most]]
        return [OutputSupport.of(self.machine, table, row) for row in rows.tolist()]

    def as_dict(self, most: int = 20) -> dict[str, Any]:
        """Return JSON values with at most `most` of the least supported outputs."""
        figures = {
            "states": self.machine.states,
            "separations": list(self.separations),
            "separations_skipped": self.separations.skipped,
            "completeness": self.completeness,
            "generalized_outputs": self.generalized,
            "transitions": self.transitions(),
            "least_supported_outputs": self.outputs(most),
            "weak": list(self.weakness.weak[:_MAX_WEAK_STATES]),
            "next": list(self.experiments),
        }
        return {name: builtin(figure) for name, figure in figures.items()}

    def __str__(self) -> str:
        separations = self.separations
        separation_lines = [*map(str, separations.weakest(_SEPARATIONS_SHOWN))]
        if separations.skipped:
            separation_lines = [f"pairs of states were skipped: {separations.skipped}"]
        if (more := len(separations) - _SEPARATIONS_SHOWN) > 0:
            support = "more support" if separations.log_odds is None else "higher odds"
            separation_lines.append(f"and {amount(more, 'pair')} of states with {support}")
        lines = [
            f"{visible(self.machine.name)} machine: {amount(self.machine.states, 'state')}",
            *separation_lines,
            *str(self.completeness).splitlines(),
            *(f"least support: {least}" for least in (*self.transitions(1), *self.outputs(1))),
            *(f"next: {experiment}" for experiment in self.experiments[:1]),
        ]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Evidence(ByMachine[MachineEvidence]):
    """The evidence of some traces for machines, by name; also as `transition` and `reward`.

    `holdout` is None if nothing could be held out. `counts` are those of all traces, `examples`
    are notable traces, and `is_training_set` is whether the machines were inferred from exactly
    these traces.
    """

    traces: int
    steps: int
    machines: dict[str, MachineEvidence]
    holdout: Holdout | None
    counts: EvidenceCounts = field(repr=False, compare=False)
    examples: tuple[Example, ...] = field(repr=False, compare=False)
    is_training_set: bool = field(repr=False, compare=False)

    @property
    def _by_name(self) -> dict[str, MachineEvidence]:
        return self.machines

    @property
    def replay(self) -> ReplayCounts:
        """The replay of the traces."""
        return self.counts.replay

    def as_dict(self) -> dict[str, Any]:
        """Return the evidence as JSON values."""
        figures: dict[str, Any] = builtin({**self.machines, "holdout": self.holdout})
        return figures

    def __repr__(self) -> str:
        states = ", ".join(f"{name} {evidence.machine.states}" for name, evidence in self.items())
        held = "nothing held out"
        if self.holdout is not None:
            held = f"{self.holdout.failures} of {self.holdout.traces} held-out traces fail"
            if self.holdout.calibration is not None:
                held = "right within noise" if self.holdout.within_noise else "not within noise"
        return short(f"Evidence({self._size}; states: {states}; {held})", 250)

    def _repr_html_(self) -> str:
        """Show a table with a row for each machine, and the details as text."""
        header = ["machine", "states", "distinguished", "converging", "structure complete"]
        rows = (
            [
                name,
                evidence.machine.states,
                "no" if evidence.inseparable else "yes",
                evidence.completeness.convergence,
                "yes" if evidence.completeness.structure_complete else "no",
            ]
            for name, evidence in self.items()
        )
        return notebook.panel(
            "the evidence for the machines",
            notebook.table(header, rows, len(self)),
            notebook.lines(str(self)),
        )

    def __str__(self) -> str:
        bound = "no traces could be held out" if self.holdout is None else str(self.holdout)
        return "\n".join([self._size, *map(str, self.machines.values()), f"hold-out: {bound}"])

    @property
    def _size(self) -> str:
        return f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"


# --- Collection -----------------------------------------------------------------------------------


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
    tables = MachineTables.of(machines, traces.alphabets)
    if traces.in_memory:
        (shard,) = traces.coded()
        examined, sample = shard.traces, None
        counts, queries = _count(machines, tables, shard)
    else:
        counts = run_pass(traces, partial(_counts_alone, machines, tables), progress)
        examined, sample = sample_traces(traces)
        queries = step_queries(machines, examined, states_at_steps(machines, examined))
    counts = replace(counts, replay=replace(counts.replay, alphabets=traces.alphabets))
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
        calibration = calibration_of(machines, counts.replay)
        holdout = replace(counts.failures, delta=delta, calibration=calibration)
    elif infer is not None and (holdout := split(machines, examined, infer, delta)) is not None:
        holdout = replace(holdout, part=sample)
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
    missing, labels = replay.machines[machine.name].missing, replay.alphabets.labels
    rows = zip(missing["state"].tolist(), missing["label"].tolist(), strict=True)
    unknown = [(state, labels[code]) for state, code in rows if labels[code] not in machine.labels]
    listener = begin("distinguishing states")
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
    return MachineEvidence(
        machine,
        outputs,
        transitions,
        separations,
        completeness,
        Experiments(completeness, varying, separations, transition, steps, offsets),
        alternatives,
        weakness_of(machine, counts.sequences[machine.name]),
    )
