"""Select the explanation of traces that needs least noise, and of those the likeliest.

Machines without noise stay if they explain all traces; if another option would (labels read at
another time, rewards rounded), the user has to choose it. If traces contradict each other, or if
machines that fit them overfit, the most likely machines are found, for the recorded labels and for
latent ones. Rewards that vary around levels are replaced before, by preprocessing.

Input: a corpus and the allowed noise. Output: an `InferenceResult` with the reasons, as warnings
and for each candidate, or the `Conflict` that the allowed noise does not explain.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from resolvent.evaluation.diagnosis.diagnose import DAMAGED_FILES, damaged_files
from resolvent.evaluation.diagnosis.findings import Finding
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext
from resolvent.inference.noise_candidates import (
    CANDIDATES,
    DENOISED_LABELS,
    NO_NOISE,
    Explanation,
    Selection,
    reason_against_noise,
)
from resolvent.inference.noise_fits import with_labels
from resolvent.inference.noise_messages import (
    LABEL_NOISE,
    NOISE,
    OUTLIERS,
    denoised_labels,
    noise_not_found,
    noise_warnings,
)
from resolvent.inference.result import InferenceResult
from resolvent.noise.labels import DenoisedLabels
from resolvent.noise.model import NoiseCandidate
from resolvent.replay import Corpus
from resolvent.traces import TraceSet


def select_noise_model(context: InferenceContext, corpus: Corpus) -> InferenceResult | Conflict:
    """Infer machines from all traces of a corpus, with as little noise as explains them."""
    damaged = list(damaged_files(corpus))
    result = _select(Selection(context, corpus))
    if isinstance(result, Conflict):
        return result
    return _with_warnings(result, [*damaged, *noise_not_found(result)])


def extend_result(
    context: InferenceContext, before: InferenceResult, traces: TraceSet
) -> InferenceResult | Conflict:
    """Infer machines from the traces of a result and more, from its machines if they hold.

    Traces that were not learned from as recorded are all read again.
    """
    total = before.traces + len(traces)
    numbers = None
    if before.outliers:  # traces keep the numbers that the user gave them
        numbers = np.setdiff1d(np.arange(total), before.outliers)
    context = replace(context, trace_numbers=numbers)
    noise_rates = before.noise_rates
    if (recorded := before.inference_state.original) is not None:
        options = replace(context.options, timing=recorded.timing)
        corpus = recorded.corpus.extended(traces)
        result, noise_rates = _select(Selection(replace(context, options=options), corpus)), {}
    else:
        corpus = before.inference_state.corpus.extended(traces)
        result = _select(Selection(context, corpus, before))
    if isinstance(result, Conflict):
        return result
    warnings = list(result.warnings)
    reasons = [warning for warning in before.warnings if warning.kind == NOISE]
    if reasons and recorded is None and before.is_noisy and result.is_noisy:
        warnings = [*reasons, *(warning for warning in warnings if warning.kind != NOISE)]
    repeated = {warning.kind for warning in warnings} & {LABEL_NOISE}
    lasting = {OUTLIERS, LABEL_NOISE, DAMAGED_FILES} - repeated
    earlier = [warning for warning in before.warnings if warning.kind in lasting]
    result = replace(
        result,
        noise_rates={**noise_rates, **result.noise_rates},
        traces=total,
        steps=before.steps + traces.steps,
        outliers=tuple(sorted((*before.outliers, *result.outliers))),
        warnings=tuple(warnings),
    )
    return _with_warnings(result, [*noise_not_found(result), *earlier])


def _select(selection: Selection) -> InferenceResult | Conflict:
    """Try all candidates in turn, and keep the best explanation."""
    for name, candidate in CANDIDATES:
        outcome = candidate(selection)
        if isinstance(outcome, Conflict):
            return outcome
        if isinstance(outcome, DenoisedLabels):
            return _select_denoised(selection, outcome)
        if isinstance(outcome, Explanation):
            selection.explanations[name] = outcome
        else:
            selection.rejected[name] = outcome
    chosen, noisy = selection.explanations.get(NO_NOISE), selection.best_with_noise
    if noisy is not None:
        if reason := reason_against_noise(selection, noisy):
            selection.rejected[noisy.name] = reason
        else:
            chosen = noisy
    if chosen is not None:
        return _result_of(selection, chosen)
    if selection.conflict is None:
        raise AssertionError("nothing explains traces that do not contradict each other")
    return selection.conflict


def _select_denoised(selection: Selection, denoised: DenoisedLabels) -> InferenceResult | Conflict:
    """Select once more, for labels that are derived from observations and actions."""
    result = _select(Selection(*with_labels(selection.context, selection.corpus, denoised)))
    if isinstance(result, Conflict):
        return result
    shares = {} if denoised.noise is None else denoised.noise.shares()
    reason = "outputs are clearly likelier with them"
    _, *others = result.noise_candidates  # the first is about denoised labels
    result = replace(
        result,
        noise_rates={**result.noise_rates, **shares},
        noise_candidates=(NoiseCandidate(DENOISED_LABELS, reason, is_chosen=True), *others),
    )
    return _with_warnings(result, [denoised_labels(result)])


def _result_of(selection: Selection, chosen: Explanation) -> InferenceResult:
    """Return the result of the chosen explanation, with the reasons for and against each."""
    names = dict.fromkeys(name for name, _ in CANDIDATES)
    candidates = tuple(_noise_candidate(selection, chosen, name) for name in names)
    result = replace(chosen.result, noise_candidates=candidates)
    if chosen.name == NO_NOISE:
        return result
    findings: list[Finding] = []
    if result.is_noisy:
        findings += noise_warnings(result, selection.conflict)
    is_plain = not result.outliers and not result.machines.state_uncertainty
    if selection.exact is None or not is_plain:
        findings += getattr(selection.inliers, "findings", ())
    return _with_warnings(result, findings)


def _noise_candidate(selection: Selection, chosen: Explanation, name: str) -> NoiseCandidate:
    """Return why one candidate was chosen or rejected."""
    explanation = selection.explanations.get(name)
    is_chosen = explanation is chosen
    evidence = None
    if explanation is not None and explanation.result.is_noisy:
        evidence = explanation.log_evidence
    if is_chosen:
        best = "it explains all traces" if name == NO_NOISE else "it explains the traces best"
        return NoiseCandidate(name, best, is_chosen, evidence)
    reason = selection.rejected.get(name, f"{chosen.name} explain the traces better")
    if name == NO_NOISE and name not in selection.rejected and selection.is_doubtful:
        reason = "many transitions were seen once or twice, as if the machines memorized noise"
    return NoiseCandidate(name, reason, is_chosen, evidence)


def _with_warnings(result: InferenceResult, warnings: Iterable[Finding]) -> InferenceResult:
    return replace(result, warnings=(*warnings, *result.warnings))
