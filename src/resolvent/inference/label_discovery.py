"""Discover labels: machines for traces whose labels have to be chosen (`labels="auto"`).

Input: a context, and traces in shards. Output: an `InferenceResult` whose preprocessor derives the
labels, or the `Conflict` that remains whatever the labels.

The candidates come from `preprocess.event_discovery`, in groups; the first group that has machines
for all traces decides, and of its machines the shortest description.
"""

import time
from dataclasses import replace
from typing import Final

import msgspec

from resolvent._util.math import log2
from resolvent._util.progress import Progress
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.noise_selection import select_noise_model
from resolvent.inference.preprocessing import first_traces
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import STRATEGIES
from resolvent.preprocess.event_discovery import LabelCandidate, label_candidates
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.source import InMemorySource, TraceSource

DISCOVERING_LABELS: Final = "finding events"
"""Name of the activity of which a listener hears while labels are discovered."""


def infer_with_discovered_labels(
    context: InferenceContext, source: TraceSource
) -> InferenceResult | Conflict:
    """Infer machines with the labels there are, if these suffice, or with discovered ones.

    Events that explain all traces are better than noise, so noise comes last.
    """
    options = context.options
    shards = context.preprocessor.transform_source(source)
    context = replace(context, started=time.perf_counter())
    if options.noise != "auto":
        return _infer_events(context, shards)
    result = _infer_events(replace(context, options=replace(options, noise="none")), shards)
    if isinstance(result, Conflict):
        return _infer_events(context, shards)
    # The user allowed for noise, though none was needed.
    options = replace(result.options, noise=options.noise)
    provenance = result.machines.provenance
    if provenance is not None:
        provenance = msgspec.structs.replace(provenance, options=options.as_dict())
    machines = result.machines.replacing(provenance=provenance)
    return replace(result, options=options, machines=machines)


def _infer_events(context: InferenceContext, shards: TraceSource) -> InferenceResult | Conflict:
    """Infer machines with recorded labels, or with the first candidates that explain all traces."""
    options = context.options
    traces = first_traces(shards)
    are_derived = len(traces.labels) >= len(traces.observations) > 1  # one for each observation
    if len(traces.labels) > 1 and not are_derived:
        for timing in dict.fromkeys((options.timing, LabelTiming.CURRENT_WITH_INITIAL)):
            result = _infer_labeled(context, shards, timing)
            if isinstance(result, InferenceResult):
                return result
    if context.progress is not None:
        context.progress(DISCOVERING_LABELS, Progress(0, 0, 0, 0))
    groups = label_candidates(
        traces,
        outputs_of(options, traces),
        seed=options.seed,
        effort=options.effort,
        time_left=context.time_left,
    )
    conflicts: list[Conflict] = []
    for group in groups:
        fitting: list[tuple[LabelCandidate, InferenceResult]] = []
        for candidate in group:
            labeled = InMemorySource([candidate.labeling.transform(traces)])
            result = _infer_labeled(context, labeled, candidate.timing)
            if isinstance(result, Conflict):
                conflicts.append(result)
            else:
                fitting.append((candidate, result))
        if fitting:
            chosen, result = min(fitting, key=lambda fit: _description_length(fit[1]))
            return _with_labels(context, shards, chosen, result)
    return conflicts[-1]


def _with_labels(
    context: InferenceContext, shards: TraceSource, labels: LabelCandidate, result: InferenceResult
) -> InferenceResult | Conflict:
    """Return machines for all shards, from labels that explain the first one."""
    preprocessor = replace(context.preprocessor, labeling=labels.labeling)
    if len(shards) > 1:
        context = replace(context, preprocessor=preprocessor)
        return _infer_labeled(context, preprocessor.transform_source(shards), labels.timing)
    if context.options.strategy.merges and any(
        machine.states > labels.states.get(machine.predicts, machine.states)
        for machine in result.machines.values()
    ):  # merging has missed a smaller machine, which is known to exist
        labeled = InMemorySource([labels.labeling.transform(first_traces(shards))])
        search = replace(context, options=replace(context.options, strategy=STRATEGIES["search"]))
        searched = _infer_labeled(search, labeled, labels.timing)
        if isinstance(searched, Conflict):
            return searched
        result = min(result, searched, key=_description_length)
    return replace(result, machines=result.machines.replacing(preprocessor=preprocessor))


def _infer_labeled(
    context: InferenceContext, shards: TraceSource, timing: LabelTiming
) -> InferenceResult | Conflict:
    """Infer machines from shards that have their final labels."""
    context = replace(context, options=replace(context.options, timing=timing))
    return select_noise_model(context, context.corpus_of(shards))


def _description_length(result: InferenceResult) -> float:
    """Return about the number of bits of the transitions and outputs of machines."""
    return sum(
        machine.states * (len(machine.labels) - len(machine.trivial)) * log2(machine.states)
        + len(machine.output_value) * log2(max(len(machine.outputs), 2))
        for machine in result.machines.values()
    )
