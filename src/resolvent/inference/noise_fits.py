"""Fit machines to traces with denoised labels or without outliers, and compare such fits.

Recorded and denoised labels are compared by the likelihood of the outputs of the same steps. Labels
that are a function of observations may be denoised, but not if observations are wrong, or if an
event depends on something unobserved.

Input: a corpus and the most likely machines for it. Output: the outliers and machines for the other
traces, or the `DenoisedLabels` and the corpus with them, or why there are none.
"""

from collections.abc import Callable
from dataclasses import replace
from math import floor, inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log
from resolvent.evaluation.diagnosis.diagnose import rare_transitions
from resolvent.evaluation.diagnosis.findings import Finding
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.refinement import SAMPLE_STEPS, refine
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import EDSM
from resolvent.inference.summary import outliers_warning, too_many_outliers
from resolvent.machines import Machines
from resolvent.noise.labels import (
    WITHOUT_LABELS,
    DenoisedLabels,
    LabelCounts,
    LabelDependence,
    denoise_labels,
)
from resolvent.noise.model import Noise, allowed_noise
from resolvent.noise.outliers import score_outliers, unexplained_traces
from resolvent.noise.outputs import (
    COMPARISON,
    MIN_RELATIVE_GAIN,
    are_likelier,
    fit_likely_machine,
    log_evidence,
    machine_log_evidence,
)
from resolvent.noise.screening import query_noise
from resolvent.preprocess.reduction import trivial_codes
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay.corpus import Corpus
from resolvent.replay.counts import ReplayCounts
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
    is_stated, share = isinstance(noise, Noise), allowed_noise(noise).label_share
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
    return machines is not None and all(fit.states <= MAX_STATES for fit in machines.values())


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
    result = refine(replace(context, options=options), corpus.with_traces(some))
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
    """Return whether the labels of traces make noisy outputs much likelier than a baseline.

    The most likely machines are fitted to both, output by output, until they differ.
    """
    options = context.options

    def evidence(traces: TraceSet, predicts: str) -> float:
        histories = Histories.of(traces, options.timing)
        digits = corpus.rounding.get(predicts)
        samples = output_samples(traces, histories, predicts, digits=digits)
        limits = replace(COMPARISON, seed=options.seed, time_limit=context.time_left())
        return fit_likely_machine(samples, limits).log_evidence

    for predicts in outputs_of(options, corpus.alphabets):
        more, less = (evidence(labeled, predicts) for labeled in (traces, baseline))
        if are_likelier(more, less, part) or are_likelier(less, more, part):
            return more > less
    return False


# --- Outliers -------------------------------------------------------------------------------------

MIN_LOG_ODDS: Final = log(100)
"""Log odds of outliers against rare noise from which traces are excluded."""

_TRAINING_SHARE: Final = 0.75
"""Share of the steps from which machines are learned that are to predict the others."""

Numbers = NDArray[np.int64]


class Inliers(NamedTuple):
    """Machines for all traces but the outliers, if there are any, and the findings about these."""

    result: InferenceResult
    findings: tuple[Finding, ...] = ()


def exclude_outliers(
    context: InferenceContext,
    likely: InferenceResult,
    share: float,
    fit: Callable[[Corpus], InferenceResult | Conflict],
) -> Inliers | Conflict:
    """Exclude at most a share of the traces that machines were inferred from.

    The other traces are explained without noise if possible, and otherwise by the most likely
    machines for them, which `fit` returns; these may reveal more outliers.
    """
    corpus = likely.inference_state.corpus
    outliers = np.empty(0, np.int64)
    deviating, outputs = np.zeros((2, corpus.traces), np.int64)
    while True:
        remaining = np.setdiff1d(corpus.all, outliers)
        scores = score_outliers(likely.machines, corpus.fetch(remaining))
        surprise = np.full(corpus.traces, np.inf)
        surprise[remaining] = scores.surprise
        deviating[remaining], outputs[remaining] = scores.deviating, scores.outputs
        if (exact := _exact_without_some(context, corpus, surprise, share)) is not None:
            return exact
        more = remaining[scores.are_outliers]
        if not len(more) or len(outliers) + len(more) > share * corpus.traces:
            break
        outliers = np.union1d(outliers, more)
        result = fit(corpus.with_traces(corpus.fetch(np.setdiff1d(corpus.all, outliers))))
        if isinstance(result, Conflict):
            return result
        likely = _as_from_all(context, result, corpus, outliers)
    findings = []
    if len(outliers):
        findings.append(outliers_warning(likely, deviating[outliers], outputs[outliers]))
    if len(more):
        findings.append(too_many_outliers(len(outliers) + len(more), corpus.traces, share))
    return Inliers(likely, tuple(findings))


def _exact_without_some(
    context: InferenceContext, corpus: Corpus, surprise: NDArray[np.float64], share: float
) -> Inliers | None:
    """Return machines without noise that explain all traces but a few outliers.

    The most surprising traces are excluded, and taken back if machines learned from the others
    explain them. Return None if traces still contradict each other, if a machine overfits or does
    not predict held-out traces, or if rare noise is the better explanation.
    """
    most = floor(share * corpus.traces)
    order = np.argsort(-surprise, kind="stable")
    outliers = np.sort(order[: min(most, np.count_nonzero(surprise > 0))])
    while 0 < len(outliers) <= most:
        remaining = np.setdiff1d(corpus.all, outliers)
        result = refine(context, corpus.with_traces(corpus.fetch(remaining)))
        if isinstance(result, Conflict):
            pair = remaining[list(result.traces)]
            outliers = np.union1d(outliers, pair[np.argmax(surprise[pair])])
            continue
        if result.unfinished:
            return None
        failed = unexplained_traces(result.machines, corpus.as_traces())
        if any(rare_transitions(result.inference_state.counts)) or failed.nats < MIN_LOG_ODDS:
            return None
        if np.array_equal(failed.numbers, outliers):
            if not predicts_held_out(context, result.inference_state.corpus, share):
                return None
            result = _as_from_all(context, result, corpus, outliers)
            return Inliers(
                result, (outliers_warning(result, failed.wrong, failed.outputs, failed),)
            )
        if len(np.setdiff1d(failed.numbers, outliers)):
            return None
        outliers = failed.numbers
    return None


def predicts_held_out(context: InferenceContext, corpus: Corpus, share: float) -> bool:
    """Return whether machines learned from most traces explain the others, up to a share of them.

    Machines that memorize traces explain any traces that they were learned from. If machines from
    slightly fewer traces overfit, the evidence is too small, and the test is inconclusive.
    """
    training = corpus.sample(floor(_TRAINING_SHARE * corpus.steps))
    held_out = np.setdiff1d(corpus.distinct(), training)
    result = refine(context, corpus.with_traces(corpus.fetch(training)))
    if isinstance(result, Conflict):
        return False
    if any(rare_transitions(result.inference_state.counts)):
        return True
    failed = unexplained_traces(result.machines, corpus.fetch(held_out))
    return len(failed.numbers) <= share * len(held_out)


def _as_from_all(
    context: InferenceContext, result: InferenceResult, corpus: Corpus, outliers: Numbers
) -> InferenceResult:
    """Return a result for the other traces as one for all, with the outliers named."""
    numbers = outliers if context.trace_numbers is None else context.trace_numbers[outliers]
    return replace(
        result, traces=corpus.traces, steps=corpus.steps, outliers=tuple(numbers.tolist())
    )


# --- Noise in results -----------------------------------------------------------------------------

MIN_CONTRADICTIONS: Final = 10.0
"""Expected number of contradictions from which their absence excludes random outputs."""


def may_overfit(counts: ReplayCounts) -> bool:
    """Return whether the first machine has many rare transitions, as if it memorized noise."""
    first = next(iter(counts.machines))
    return any(finding.figures["machine"] == first for finding in rare_transitions(counts))


def would_contradict(result: InferenceResult) -> bool:
    """Return whether outputs that vary by chance would have contradicted each other.

    They would if so many queries were repeated after the same labels that some of their outputs
    had to differ.
    """
    samples = _first_samples(result)
    node = _core.history_columns(samples.histories.tree)[0].astype(np.int64)
    queries = node * len(samples.alpha_keys) + samples.alpha
    repeated = len(queries) - len(np.unique(queries))
    noise = query_noise(result.inference_state.counts, by_state=False)
    return repeated * noise.share * noise.rate > MIN_CONTRADICTIONS


def evidence_of(likely: InferenceResult) -> float:
    """Return the log likelihood of the outputs under machines: infinite without noise."""
    if not likely.is_noisy:
        return inf
    fit = likely.inference_state.fit
    return sum(fit[name].log_evidence[machine.states] for name, machine in likely.machines.items())


def is_likelier(likely: InferenceResult, exact: InferenceResult) -> bool:
    """Return whether the first machine explains the traces better with noise."""
    name, machine = next(iter(exact.machines.items()))
    samples = _first_samples(likely)
    if machine.labels != samples.labels:
        return False
    evidence = likely.inference_state.fit[name].log_evidence[likely.machines[name].states]
    return evidence > machine_log_evidence(machine, samples)


def _first_samples(result: InferenceResult) -> SampleSet:
    """Return the samples that the first machine of a result was learned from."""
    state = result.inference_state
    traces = state.corpus.fetch(state.chosen)
    histories = Histories.of(traces, result.options.timing)
    return output_samples(traces, histories, next(iter(result.machines.values())).predicts)
