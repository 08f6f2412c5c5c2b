"""Decide whether recorded labels are noisy, and replace them by those that observations imply.

The recorded and the denoised labels are compared by the likelihood of the outputs of the same
steps. Labels that are a function of observations may be denoised, but not if observations are
wrong, or if an event depends on something unobserved.

Input: a corpus. Output: the `DenoisedLabels`, or why there are none; and the corpus with them.
"""

from dataclasses import replace
from typing import Final

from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.refinement import SAMPLE_STEPS, refine
from resolvent.inference.strategy import EDSM
from resolvent.machines import Machines
from resolvent.noise.labels import (
    WITHOUT_LABELS,
    DenoisedLabels,
    LabelCounts,
    LabelDependence,
    denoise_labels,
)
from resolvent.noise.model import Noise
from resolvent.noise.outputs import (
    COMPARISON,
    MIN_RELATIVE_GAIN,
    are_likelier,
    explain_more,
    log_evidence,
)
from resolvent.preprocess.reduction import trivial_codes
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay import Corpus
from resolvent.traces import TraceSet

SCREENED_STEPS: Final = 10_000
"""Number of steps that show whether labels may be wrong at all."""

MIN_STEPS_PER_LABEL: Final = 20
"""Minimum number of steps for each label to test labels."""

MAX_STATES: Final = 12
"""Number of states of machines up to which labels are not tested."""

MIN_RELATIVE_GAIN_OF_LABELS: Final = 0.1
"""Share of the log likelihood of outputs below which labels are uninformative."""

_FEW_STATES: Final = "few states explain the traces with the recorded labels"


def denoise_recorded_labels(
    context: InferenceContext, corpus: Corpus, *, contradict: bool = False, doubtful: bool = False
) -> DenoisedLabels | str:
    """Return the labels that observations and actions imply, if those recorded are clearly noisy.

    Otherwise return the reason for the recorded labels; if these are uninformative,
    `WITHOUT_LABELS`. Machines are learned from some of the traces with recorded and with denoised
    labels, unless few states explain some steps, and machines for all steps are not `doubtful`.
    `contradict`: all traces are known to contradict each other.
    """
    timing, noise = context.options.timing, context.options.noise
    is_stated = isinstance(noise, Noise)
    share = noise.label_share if isinstance(noise, Noise) else None
    if not is_stated and corpus.steps < MIN_STEPS_PER_LABEL * len(corpus.alphabets.labels):
        return "labels are read too rarely"
    sample = corpus.fetch(corpus.sample(SCREENED_STEPS))
    screened = denoise_labels(sample, timing=timing, share=share)
    if screened in (LabelDependence.EXACT, LabelDependence.LATENT, LabelDependence.UNKNOWN):
        return str(screened)
    recorded = corpus.fetch(corpus.sample(SAMPLE_STEPS))
    denoised = denoise_labels(recorded, timing=timing, share=share)
    if isinstance(denoised, LabelDependence) and denoised is not LabelDependence.INDEPENDENT:
        return str(denoised)
    machines = None  # those that explain traces with the recorded labels
    if not contradict and not is_stated:
        if not doubtful and _has_few_states(_explaining(context, corpus, sample)):
            return _FEW_STATES
        machines = _explaining(context, corpus, recorded)
    if isinstance(denoised, LabelDependence):
        if machines is None or _has_few_states(machines):
            return str(denoised)
        if _are_uninformative(context, corpus, machines):
            return WITHOUT_LABELS
        return "labels predict outputs although they are independent of observations"
    corrected = denoised.labeling.transform(recorded)
    after = None if machines is None else _explaining(context, corpus, corrected)
    if machines is not None and after is not None:
        is_likelier = are_likelier(log_evidence(after, corrected), log_evidence(machines, recorded))
    elif _has_few_states(machines):
        return _FEW_STATES
    else:
        is_likelier = _explains_more(context, corpus, corrected, recorded, MIN_RELATIVE_GAIN)
    if not is_likelier:
        return "outputs are not clearly likelier with denoised labels"
    all_denoised = denoise_labels(LabelCounts.of(corpus, timing), share=share)
    return str(all_denoised) if isinstance(all_denoised, LabelDependence) else all_denoised


def with_labels(
    context: InferenceContext, corpus: Corpus, denoised: DenoisedLabels
) -> tuple[InferenceContext, Corpus]:
    """Return an inference and its corpus with denoised labels instead of those recorded."""
    preprocessor = replace(context.preprocessor, labeling=denoised.labeling)
    shards = Preprocessor(denoised.labeling).transform_source(corpus.shards)
    relabeled = Corpus(shards, corpus.rounding, workers=corpus.workers, cache=corpus.cache)
    return replace(context, preprocessor=preprocessor), relabeled


def _has_few_states(machines: Machines | None) -> bool:
    return machines is not None and all(
        machine.states <= MAX_STATES for machine in machines.values()
    )


def _explaining(context: InferenceContext, corpus: Corpus, some: TraceSet) -> Machines | None:
    """Return machines without noise that explain some of the traces; None if there are none."""
    options = context.options
    if options.trivial != "auto" and options.remove_trivial:
        # Labels are named by those that occur among these.
        named = (label for label in corpus.alphabets.labels if label in some.labels)
        codes = trivial_codes(corpus.alphabets.labels, options.trivial)
        trivial = {corpus.alphabets.labels[code] for code in codes}
        options = replace(options, trivial=tuple(label for label in named if label in trivial))
    if options.strategy.searches:  # too long for a machine that is only compared
        options = replace(options, strategy=EDSM)
    trial = replace(context, options=options, trace_numbers=None)
    result = refine(trial, corpus.with_traces(some))
    return None if isinstance(result, Conflict) else result.machines


def _are_uninformative(context: InferenceContext, corpus: Corpus, machines: Machines) -> bool:
    """Return whether recorded labels, which follow from nothing, explain hardly anything."""
    some = corpus.fetch(corpus.sample(SAMPLE_STEPS))
    silent = WITHOUT_LABELS.labeling.transform(some)
    if log_evidence(machines, silent) <= log_evidence(machines, some):
        return False
    sample = corpus.fetch(corpus.sample(SAMPLE_STEPS // 5))
    silent = WITHOUT_LABELS.labeling.transform(sample)
    return not _explains_more(context, corpus, sample, silent, MIN_RELATIVE_GAIN_OF_LABELS)


def _explains_more(
    context: InferenceContext, corpus: Corpus, traces: TraceSet, baseline: TraceSet, part: float
) -> bool:
    """Return whether the labels of traces make noisy outputs much likelier than a baseline."""
    options = context.options
    return explain_more(
        traces,
        baseline,
        outputs_of(options, corpus.alphabets),
        options.timing,
        rounding=corpus.rounding,
        part=part,
        limits=lambda: replace(COMPARISON, seed=options.seed, time_limit=context.time_left()),
    )
