"""Select the noise model: exact machines first, then the model that makes traces likeliest.

The candidates, in the order of the attempts:

0. Noisy labels that are a function of observations (`label_denoising`): denoised, if they
   clearly are noisy.
1. Machines without noise. If they explain all traces exactly, they stay; if another option
   would (labels read at another time, rewards rounded), the user has to choose it.
2. A few outliers: left out, if machines without noise explain all other traces.
3. If traces contradict each other, or machines that fit them list accidents (`noise_screening`):
   the most likely machines, whose outputs have distributions, without outliers.
4. Latent readings of the traces (`noise.hidden`): labels corrected, initial states distinguished.
   The most likely machines are found for each, and the likeliest reading wins.

Noise in numbers, such as rewards that vary around their values, is removed before by
preprocessing.

Input: a corpus and the allowed noise. Output: an `InferenceResult` with warnings that give the
reasons, or the `Conflict` that the allowed noise does not explain.
"""

from dataclasses import replace
from math import floor, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent.evaluation.diagnosis.findings import Finding
from resolvent.evaluation.diagnosis.inference_warnings import (
    DAMAGED_FILES,
    damaged_files,
    rare_transitions,
)
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.fit import OriginalTraces
from resolvent.inference.label_denoising import true_labels, with_labels
from resolvent.inference.noise_messages import (
    BROKEN,
    LYING,
    NOISE,
    broken_warning,
    corrected_labels,
    noise_warnings,
    stated_in_vain,
    too_many_broken,
)
from resolvent.inference.noise_screening import (
    is_chance,
    lists_accidents,
    needs_memory,
    would_contradict,
)
from resolvent.inference.refinement import fit_noisy, refine, refine_further
from resolvent.inference.result import InferenceResult
from resolvent.noise.hidden import LatentReading, deviations_persist, infer_latent
from resolvent.noise.label_evidence import machine_log_evidence
from resolvent.noise.labels import DenoisedLabels
from resolvent.noise.model import Noise, allowed_noise
from resolvent.noise.outliers import score_outliers, unexplained_traces
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.replay import Corpus
from resolvent.traces import TraceSet
from resolvent.traces.schema import OBSERVATION, REWARD
from resolvent.traces.source import InMemorySource

LATENT: Final = ("labels", "starts")
"""Latent readings, as `Noise` names them, in the order in which they are tried."""

_STEPS_PER_LABEL: Final = 50
"""Least number of steps for each label from which latent states are inferred unasked."""

_TRAINING_SHARE: Final = 0.75
"""Share of the steps from which machines are learned that are to predict the others."""

LEAST_NATS: Final = log(100)
"""Log odds of outliers against rare noise from which traces are left out."""

FEWEST_TRACES: Final = 20
"""Number of traces below which none is an outlier: one of them is too large a share."""


def select_noise_model(context: InferenceContext, corpus: Corpus) -> InferenceResult | Conflict:
    """Infer machines from all traces of a corpus, with as little noise as explains them."""
    damaged = list(damaged_files(corpus))
    result = _select(context, corpus)
    if isinstance(result, Conflict):
        return result
    return _with_warnings(result, [*damaged, *stated_in_vain(result)])


def _select(context: InferenceContext, corpus: Corpus) -> InferenceResult | Conflict:
    noise = _allowed(context)
    if noise.labels and (denoised := true_labels(context, corpus)):
        return _with_denoised_labels(context, corpus, denoised)
    is_stated = isinstance(context.options.noise, Noise)
    if is_stated and noise.outcomes:
        return _with_noise(context, corpus, None)
    if context.senses.rewards is not None:  # some are assigned to the wrong level
        return _with_noise(context, corpus, None)
    exact = refine(context, corpus)
    if isinstance(exact, Conflict):
        return _resolve(context, corpus, exact)
    if is_stated and noise.has_latent_states:
        likely = _with_noise(context, corpus, None)
        if isinstance(likely, Conflict) or likely.machines.doubt:
            return likely
    return _better_than_exact(context, exact)


def extend_result(
    context: InferenceContext, before: InferenceResult, traces: TraceSet
) -> InferenceResult | Conflict:
    """Infer machines from the traces of a result and more, from its machines if they hold.

    Traces that were not read as recorded are all read again.
    """
    total = before.traces + len(traces)
    numbers = None
    if before.broken:  # traces keep the numbers that the user gave them
        numbers = np.setdiff1d(np.arange(total), before.broken)
    context = replace(context, trace_numbers=numbers)
    more_noise = before.more_noise
    if (recorded := before.standing.recorded) is not None:
        options = replace(context.options, timing=recorded.timing)
        corpus = recorded.corpus.extended(traces)
        result, more_noise = _select(replace(context, options=options), corpus), {}
    else:
        result = _extended(context, before, before.standing.corpus.extended(traces))
    if isinstance(result, Conflict):
        return result
    result = replace(
        result,
        more_noise={**more_noise, **result.more_noise},
        traces=total,
        steps=before.steps + traces.steps,
        broken=tuple(sorted((*before.broken, *result.broken))),
    )
    repeated = {warning.kind for warning in result.warnings} & {LYING}
    lasting = {BROKEN, LYING, DAMAGED_FILES} - repeated
    earlier = [warning for warning in before.warnings if warning.kind in lasting]
    return _with_warnings(result, [*stated_in_vain(result), *earlier])


def _extended(
    context: InferenceContext, before: InferenceResult, corpus: Corpus
) -> InferenceResult | Conflict:
    """Infer machines from a corpus with more traces; the reason for noise stays as it was."""
    if before.is_noisy:
        result = _with_noise(context, corpus, None)
        reasons = [warning for warning in before.warnings if warning.kind == NOISE]
        if isinstance(result, InferenceResult) and result.is_noisy and reasons:
            warnings = [warning for warning in result.warnings if warning.kind != NOISE]
            return _with_warnings(replace(result, warnings=tuple(warnings)), reasons)
        return result
    result = refine_further(context, before.standing, corpus)
    return _resolve(context, corpus, result) if isinstance(result, Conflict) else result


def _resolve(
    context: InferenceContext, corpus: Corpus, conflict: Conflict
) -> InferenceResult | Conflict:
    """Explain traces that contradict each other by noise, if the noise allowed may do so."""
    noise = _allowed(context)
    may_be_noise = noise.may_vary(conflict.output) or noise.broken or noise.has_latent_states
    if not may_be_noise or conflict.exact_remedy:
        return conflict
    if noise.labels and (denoised := true_labels(context, corpus, contradict=True)):
        return _with_denoised_labels(context, corpus, denoised)
    return _with_noise(context, corpus, conflict)


def _with_denoised_labels(
    context: InferenceContext, corpus: Corpus, denoised: DenoisedLabels
) -> InferenceResult | Conflict:
    """Infer machines whose labels are derived from observations and actions."""
    result = _select(*with_labels(context, corpus, denoised))
    if isinstance(result, Conflict):
        return result
    shares = {} if denoised.noise is None else denoised.noise.shares()
    result = replace(result, more_noise={**result.more_noise, **shares})
    return _with_warnings(result, [corrected_labels(result)])


def _better_than_exact(
    context: InferenceContext, exact: InferenceResult
) -> InferenceResult | Conflict:
    """Return machines without noise, or better ones if these mostly list accidents."""
    noise, corpus = _allowed(context), exact.standing.corpus
    if not noise or exact.unfinished or not lists_accidents(exact.standing.shown):
        return exact
    if noise.labels and (denoised := true_labels(context, corpus, doubted=True)):
        return _with_denoised_labels(context, corpus, denoised)
    if _may_have_outliers(corpus, noise):
        is_stated = isinstance(context.options.noise, Noise)  # then it is worth a longer look
        if is_stated or _some_stand_out(exact, noise.broken):
            result = _with_noise(context, corpus, None)
            if isinstance(result, Conflict):
                return result
            if result.broken and (noise.outcomes or not result.is_noisy):
                return result
    by_chance = noise.outcomes and is_chance(exact.standing.shown, by_state=False)
    if not by_chance or would_contradict(exact):
        return exact
    likely = _fit_noisy_outputs(context, corpus, None)
    if isinstance(likely, Conflict):
        return likely
    if is_chance(likely.standing.shown, by_state=True) and _is_likelier(likely, exact):
        return _with_warnings(likely, noise_warnings(likely, None))
    return exact


def _some_stand_out(exact: InferenceResult, share: float) -> bool:
    """Return whether traces stand out as outliers do, up to a `share` of all, without memory.

    Machines that explain all traces may have states for the outliers alone.
    """
    state = exact.standing
    if needs_memory(state.shown, share):
        return False
    scores = score_outliers(exact.machines, state.corpus.together(), by_state=False)
    return bool(scores.are_outliers.any())


def _is_likelier(likely: InferenceResult, exact: InferenceResult) -> bool:
    """Return whether the first machine explains the traces better with noise."""
    kind, machine = next(iter(exact.machines.items()))
    state = likely.standing
    traces = state.corpus.fetch(state.chosen)
    histories = Histories.of(traces, exact.options.timing)
    samples = output_samples(traces, histories, machine.predicts)
    if machine.labels != samples.labels:
        return False
    evidence = state.found.log_evidence[kind][likely.machines[kind].states]
    return evidence > machine_log_evidence(machine, samples)


def _with_noise(
    context: InferenceContext, corpus: Corpus, conflict: Conflict | None
) -> InferenceResult | Conflict:
    """Infer the most likely machines, without outliers, for the likeliest reading of traces."""
    noise = _allowed(context)
    likely = _fit_noisy_outputs(context, corpus, conflict)
    if isinstance(likely, Conflict):
        return likely
    warnings: list[Finding] = []
    if _may_have_outliers(corpus, noise):
        without = _without_outliers(context, corpus, likely, conflict)
        if isinstance(without, Conflict):
            return without
        likely, warnings = without
        if not likely.is_noisy:
            return _with_warnings(likely, warnings)
    may_stay = conflict is None or noise.may_vary(conflict.output)
    best = _best_reading(context, likely, may_stay)
    if conflict is not None and best is likely and not may_stay:
        return conflict
    return _with_warnings(best, [*noise_warnings(best, conflict), *warnings])


def _fit_noisy_outputs(
    context: InferenceContext, corpus: Corpus, conflict: Conflict | None
) -> InferenceResult | Conflict:
    """Fit machines with noise in as few outputs as possible.

    Noise in observations also blurs the state, so it makes every output noisy.
    """
    outputs = outputs_of(context.options, corpus.alphabets)
    noisy = {conflict.output} if conflict is not None else set(outputs)
    has_levels = context.senses.rewards is not None
    if has_levels and conflict is None:
        noisy = {REWARD}
    while True:
        if OBSERVATION in noisy:
            noisy = set(outputs)
        result = fit_noisy(context, corpus, noisy)
        if isinstance(result, InferenceResult):
            return result
        if has_levels and not _allowed(context).may_vary(result.output):
            return result
        noisy = noisy | {result.output}


def _without_outliers(
    context: InferenceContext, corpus: Corpus, likely: InferenceResult, conflict: Conflict | None
) -> tuple[InferenceResult, list[Finding]] | Conflict:
    """Leave out traces that are outliers beyond doubt, if they are few, and report them.

    The other traces are explained without noise if possible, and otherwise by the most likely
    machines for them; these may reveal more outliers.
    """
    share = _allowed(context).broken
    outliers = np.empty(0, np.int64)
    odd, answered = np.zeros((2, corpus.traces), np.int64)
    warnings: list[Finding] = []
    while not warnings:
        remaining = np.setdiff1d(corpus.all, outliers)
        scores = score_outliers(likely.machines, corpus.fetch(remaining))
        surprise = np.full(corpus.traces, np.inf)
        surprise[remaining], odd[remaining], answered[remaining] = (
            scores.surprise,
            scores.odd,
            scores.asked,
        )
        if (exact := _exact_without_some(context, corpus, surprise, share)) is not None:
            return exact
        more = remaining[scores.are_outliers]
        if not len(more):
            break
        if len(outliers) + len(more) > share * corpus.traces:
            warnings.append(too_many_broken(len(outliers) + len(more), corpus.traces, share))
        else:
            outliers = np.union1d(outliers, more)
            rest = _only(corpus, np.setdiff1d(corpus.all, outliers))
            result = _fit_noisy_outputs(context, rest, conflict)
            if isinstance(result, Conflict):
                return result
            likely = _as_from_all(context, result, corpus, outliers)
    if len(outliers):
        warnings.insert(0, broken_warning(likely, odd[outliers], answered[outliers]))
    return likely, warnings


def _exact_without_some(
    context: InferenceContext, corpus: Corpus, surprise: NDArray[np.float64], share: float
) -> tuple[InferenceResult, list[Finding]] | None:
    """Return machines without noise that explain all traces but a few outliers.

    The most surprising traces are left out, and taken back if machines learned from the others
    explain them. Return None if traces still contradict each other, if a machine lists accidents
    or does not predict held-out traces, or if rare noise is the better explanation.
    """
    most = floor(share * corpus.traces)
    order = np.argsort(-surprise, kind="stable")
    outliers = np.sort(order[: min(most, np.count_nonzero(surprise > 0))])
    while 0 < len(outliers) <= most:
        remaining = np.setdiff1d(corpus.all, outliers)
        result = refine(context, _only(corpus, remaining))
        if isinstance(result, Conflict):
            pair = remaining[[place.trace for place in result.places]]
            outliers = np.union1d(outliers, pair[np.argmax(surprise[pair])])
            continue
        if result.unfinished:
            return None
        failed = unexplained_traces(result.machines, corpus.together())
        if any(rare_transitions(result.standing.shown)) or failed.nats < LEAST_NATS:
            return None
        if np.array_equal(failed.numbers, outliers):
            if not predicts_held_out(context, result.standing.corpus, share):
                return None
            result = _as_from_all(context, result, corpus, outliers)
            return result, [
                broken_warning(result, failed.wrong, failed.asked, failed.first, failed.nats)
            ]
        if len(np.setdiff1d(failed.numbers, outliers)):
            return None
        outliers = failed.numbers
    return None


def predicts_held_out(context: InferenceContext, corpus: Corpus, share: float) -> bool:
    """Return whether machines learned from most traces explain the others, up to a share of them.

    Machines that memorize traces explain any traces that they were learned from. If machines from
    slightly fewer traces list accidents, the evidence is too small, and the test is inconclusive.
    """
    some = corpus.sample(floor(_TRAINING_SHARE * corpus.steps))
    held_out = np.setdiff1d(corpus.distinct(), some)
    result = refine(context, _only(corpus, some))
    if isinstance(result, Conflict):
        return False
    if any(rare_transitions(result.standing.shown)):
        return True
    failed = unexplained_traces(result.machines, corpus.fetch(held_out))
    return len(failed.numbers) <= share * len(held_out)


def _best_reading(
    context: InferenceContext, likely: InferenceResult, may_stay: bool
) -> InferenceResult:
    """Return the machines for the likeliest reading of the traces.

    The machines for traces as recorded are among the candidates only if these may stay.
    """
    corpus, noise = likely.standing.corpus, _allowed(context)
    best, most = likely, _evidence(likely) if may_stay else -inf
    for kind in LATENT if corpus.in_memory else ():
        if not getattr(noise, kind):
            continue
        reading = _latent_reading(context, kind, likely)
        if reading is None:
            continue
        options = replace(context.options, timing=reading.timing)
        read = Corpus(InMemorySource([reading.traces]), corpus.rounding)
        result = fit_noisy(
            replace(context, options=options, trace_numbers=None),
            read,
            outputs_of(context.options, read.alphabets),
        )
        if isinstance(result, Conflict):
            continue
        evidence = _evidence(result) + reading.log_evidence
        if evidence > most:
            recorded = OriginalTraces(corpus, context.options.timing)
            most = evidence
            best = replace(
                result,
                traces=likely.traces,
                steps=likely.steps,
                broken=likely.broken,
                machines=result.machines.replacing(doubt=reading.doubt),
                more_noise=reading.noise_shares,
                standing=replace(result.standing, recorded=recorded),
            )
    return best


def _latent_reading(
    context: InferenceContext, kind: str, likely: InferenceResult
) -> LatentReading | None:
    """Return the traces with latent labels or starts inferred; None if nothing is latent.

    Unless the user states this noise, it is inferred only if deviations depend on the past.
    """
    options, corpus = context.options, likely.standing.corpus
    machines = likely.standing.found.machines
    traces = corpus.together()
    if not isinstance(options.noise, Noise):
        if kind == "labels" and not context.senses.labelling.is_given:
            return None  # labels that are derived from observations are not noisy by themselves
        if traces.steps < _STEPS_PER_LABEL * len(traces.labels):
            return None
        if not deviations_persist(traces, machines, options.timing):
            return None
    return infer_latent(
        traces,
        options.timing,
        [machine.predicts for machine in machines.values()],
        labels=kind == "labels",
        starts=kind == "starts",
        digits=options.reward_digits,
        seed=options.seed,
        effort=options.effort,
        time_limit=context.time_left(),
    )


def _allowed(context: InferenceContext) -> Noise:
    return allowed_noise(context.options.noise)


def _evidence(likely: InferenceResult) -> float:
    log_evidence = likely.standing.found.log_evidence
    return sum(log_evidence[kind][machine.states] for kind, machine in likely.machines.items())


def _may_have_outliers(corpus: Corpus, noise: Noise) -> bool:
    return noise.broken > 0 and corpus.in_memory and corpus.traces >= FEWEST_TRACES


def _only(corpus: Corpus, numbers: NDArray[np.int64]) -> Corpus:
    return Corpus(InMemorySource([corpus.fetch(numbers)]), corpus.rounding)


def _as_from_all(
    context: InferenceContext, result: InferenceResult, corpus: Corpus, outliers: NDArray[np.int64]
) -> InferenceResult:
    """Return a result for the other traces as one for all, with the outliers named."""
    numbers = outliers if context.trace_numbers is None else context.trace_numbers[outliers]
    return replace(result, traces=corpus.traces, steps=corpus.steps, broken=tuple(numbers.tolist()))


def _with_warnings(result: InferenceResult, warnings: list[Finding]) -> InferenceResult:
    return replace(result, warnings=(*warnings, *result.warnings))
