"""Select the explanation of traces that needs least noise, and of those the likeliest.

Machines without noise stay if they explain all traces; if another option would (labels read at
another time, rewards rounded), the user has to choose it. If traces contradict each other, or if
machines that fit them overfit, the most likely machines are found, for the recorded labels and for
latent ones. Rewards that vary around levels are replaced before, by preprocessing. `CANDIDATES`
lists the explanations: functions of a `Selection`, which make cheap tests first.

Input: a corpus and the allowed noise. Output: an `InferenceResult` with the reasons, as warnings
and for each candidate, or the `Conflict` that the allowed noise does not explain.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from resolvent.evaluation.diagnosis.diagnose import DAMAGED_FILES, damaged_files
from resolvent.evaluation.diagnosis.findings import Finding
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.fit import OriginalTraces
from resolvent.inference.noise_fits import (
    Inliers,
    denoise_recorded_labels,
    evidence_of,
    exclude_outliers,
    is_likelier,
    may_overfit,
    with_labels,
    would_contradict,
)
from resolvent.inference.refinement import fit_noisy, refine, refine_further
from resolvent.inference.result import InferenceResult
from resolvent.inference.summary import (
    LABEL_NOISE,
    NOISE,
    OUTLIERS,
    denoised_labels_warning,
    noise_not_found,
    noise_warnings,
)
from resolvent.noise.labels import DenoisedLabels
from resolvent.noise.latent import infer_latent
from resolvent.noise.model import Noise, NoiseCandidate, allowed_noise
from resolvent.noise.outliers import score_outliers
from resolvent.noise.outputs import SearchLimits
from resolvent.noise.screening import deviations_persist, query_noise
from resolvent.replay.corpus import Corpus
from resolvent.traces import TraceSet
from resolvent.traces.schema import OBSERVATION, REWARD

NO_NOISE: Final = "no noise"
DENOISED_LABELS: Final = "denoised labels"
NOISY_OUTPUTS: Final = "noisy outputs"

MIN_TRACES: Final = 20
"""Number of traces below which none is an outlier: one of them is too large a share."""

_STEPS_PER_LABEL: Final = 50
"""Minimum number of steps for each label to infer latent states that the user does not state."""

_EXACT: Final = "machines without noise explain all traces"


class Explanation(NamedTuple):
    """Machines that explain traces by one candidate, and their evidence: infinite without noise."""

    name: str
    result: InferenceResult
    log_evidence: float


@dataclass
class Selection:
    """The selection of an explanation for traces, of which `before` has explained the first.

    `explanations` are those found so far, the last with noise being the best, and `rejected` has
    the reason against each other candidate, by name. Only the loop adds to them.
    """

    context: InferenceContext
    corpus: Corpus
    before: InferenceResult | None = None
    explanations: dict[str, Explanation] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        noise = "none" if self.context.without_noise else self.context.options.noise
        self.allowed = allowed_noise(noise)
        self.is_stated = isinstance(noise, Noise)  # by the user

    @property
    def requires_noise(self) -> str:
        """Why machines without noise are out of the question; empty if they are not."""
        if self.before is not None:
            return "earlier traces are noisy" if self.before.is_noisy else ""
        if self.is_stated and self.allowed.outcomes:
            return "outcomes are stated to be noisy"
        if self.context.preprocessor.rewards is not None:
            return "rewards vary around levels, and some are assigned to the wrong one"
        return ""

    @cached_property
    def without_noise(self) -> InferenceResult | Conflict | None:
        """Machines without noise, or the conflict between traces; None if noise is required."""
        if self.requires_noise:
            return None
        if self.before is not None:
            return refine_further(self.context, self.before.inference_state, self.corpus)
        return refine(self.context, self.corpus)

    @property
    def exact(self) -> InferenceResult | None:
        """Machines without noise, if they explain all traces."""
        return self.without_noise if isinstance(self.without_noise, InferenceResult) else None

    @property
    def conflict(self) -> Conflict | None:
        """The conflict between traces, if no machines without noise explain them."""
        return self.without_noise if isinstance(self.without_noise, Conflict) else None

    @property
    def forbidden_noise(self) -> str:
        """Why noise in outputs must not explain the conflict; empty if it may."""
        if self.conflict is None or self.allowed.may_vary(self.conflict.output):
            return ""
        return f"noise in {self.conflict.output} is not allowed for"

    @cached_property
    def is_doubtful(self) -> bool:
        """Whether machines without noise may overfit; with few traces, exact ones look alike."""
        exact = self.exact
        if exact is None or self.before is not None or not self.allowed or exact.unfinished:
            return False
        return may_overfit(exact.inference_state.counts)

    @property
    def expects_latent_states(self) -> bool:
        """Whether the user states that states are latent, though machines without noise exist."""
        is_open = self.exact is not None and self.before is None
        return is_open and self.is_stated and self.allowed.has_latent_states

    @property
    def reason_for_no_noise(self) -> str:
        """Why no noise is considered; empty if it is."""
        if self.exact is not None:
            return "" if self.is_doubtful or self.expects_latent_states else _EXACT
        if self.conflict is None:
            return ""
        if self.conflict.exact_remedy:
            return "another option explains all traces without noise"
        is_allowed = self.allowed.outliers or self.allowed.has_latent_states
        return "" if is_allowed else self.forbidden_noise

    @cached_property
    def looks_random(self) -> bool:
        """Whether the outputs of machines without noise seem to vary by chance."""
        if self.exact is None or not self.allowed.outcomes:
            return False
        noise = query_noise(self.exact.inference_state.counts, by_state=False)
        return noise.is_homogeneous and not would_contradict(self.exact)

    def fit_with_noise(self, corpus: Corpus) -> InferenceResult | Conflict:
        """Fit machines with noise in as few outputs as possible.

        Noise in observations also blurs the state, so it makes every output noisy.
        """
        outputs = outputs_of(self.context.options, corpus.alphabets)
        has_levels = self.context.preprocessor.rewards is not None
        noisy = {REWARD} if has_levels else {*outputs}
        noisy = noisy if self.conflict is None else {self.conflict.output}
        while True:
            if OBSERVATION in noisy:
                noisy = {*outputs}
            result = fit_noisy(self.context, corpus, noisy)
            if isinstance(result, InferenceResult):
                return result
            if has_levels and not self.allowed.may_vary(result.output):
                return result
            noisy |= {result.output}

    @cached_property
    def most_likely(self) -> InferenceResult | Conflict:
        """The most likely machines for all traces as recorded."""
        return self.fit_with_noise(self.corpus)

    @cached_property
    def untested_outliers(self) -> str:
        """Why traces are not tested for outliers; empty if they are."""
        if not self.allowed.outliers:
            return "excluding traces is not allowed for"
        if not self.corpus.in_memory:
            return "traces in files are not tested"
        if self.corpus.traces < MIN_TRACES:
            return f"there are fewer than {MIN_TRACES} traces"
        if self.exact is None or not self.is_doubtful or self.is_stated:
            return ""
        # Machines that explain all traces may have states for the outliers alone.
        counts = self.exact.inference_state.counts
        if not query_noise(counts, by_state=False).may_need_memory(self.allowed.outliers):
            traces = self.corpus.as_traces()
            if score_outliers(self.exact.machines, traces, by_state=False).are_outliers.any():
                return ""
        return "no trace stands out"

    @cached_property
    def inliers(self) -> Inliers | Conflict:
        """The machines for all traces but the outliers, if traces are tested for these."""
        if isinstance(self.most_likely, Conflict):
            return self.most_likely
        if self.untested_outliers:
            return Inliers(self.most_likely)
        share = self.allowed.outliers
        return exclude_outliers(self.context, self.most_likely, share, self.fit_with_noise)

    @property
    def best_with_noise(self) -> Explanation | None:
        """The best explanation with noise so far."""
        noisy = (fit for fit in reversed(self.explanations.values()) if fit.name != NO_NOISE)
        return next(noisy, None)


def no_noise(selection: Selection) -> Explanation | str:
    """Return machines without noise, if traces do not contradict each other."""
    if selection.requires_noise:
        return selection.requires_noise
    if selection.conflict is not None:
        first, second = selection.conflict.locations
        return f"{first} and {second} contradict each other"
    return _EXACT if selection.exact is None else Explanation(NO_NOISE, selection.exact, inf)


def denoised_labels(selection: Selection) -> DenoisedLabels | str:
    """Return labels that follow from observations, if outputs are clearly likelier with them.

    They are tried before anything else, and again if machines without noise give reason to.
    """
    if not selection.allowed.labels:
        return "noise in labels is not allowed for"
    if not selection.context.preprocessor.labeling.is_given:
        return "labels are derived from observations and actions"
    earlier_reason = selection.rejected.get(DENOISED_LABELS)
    if earlier_reason is None:
        if selection.before is not None:
            return "labels were tested before"
        return denoise_recorded_labels(selection.context, selection.corpus)
    if selection.reason_for_no_noise:
        return selection.reason_for_no_noise
    contradict, doubtful = selection.conflict is not None, selection.is_doubtful
    if selection.is_stated or not (contradict or doubtful):
        return earlier_reason
    return denoise_recorded_labels(
        selection.context, selection.corpus, contradict=contradict, doubtful=doubtful
    )


def noisy_outputs(selection: Selection) -> Explanation | Conflict | str:
    """Return the most likely machines; `reason_against_noise` compares them with exact ones."""
    if selection.reason_for_no_noise:
        return selection.reason_for_no_noise
    is_needed = selection.expects_latent_states or not selection.untested_outliers
    if selection.is_doubtful and not is_needed and not selection.looks_random:
        return "outputs do not vary as by chance"
    likely = selection.most_likely
    if isinstance(likely, Conflict):
        return likely
    return selection.forbidden_noise or Explanation(NOISY_OUTPUTS, likely, evidence_of(likely))


def outliers(selection: Selection) -> Explanation | Conflict | str:
    """Return machines for all traces but a few outliers, without noise if possible."""
    if reason := selection.reason_for_no_noise or selection.untested_outliers:
        return reason
    inliers = selection.inliers
    if isinstance(inliers, Conflict):
        return inliers
    result = inliers.result
    if not result.outliers:
        return "too many traces stand out" if inliers.findings else "no trace is an outlier"
    if result.is_noisy and selection.forbidden_noise:
        return "the other traces contradict each other"
    return Explanation(OUTLIERS, result, evidence_of(result))


def latent_states(selection: Selection, kind: Literal["labels", "starts"]) -> Explanation | str:
    """Return machines for latent true labels or initial states, if outputs are likelier so."""
    likely, context = _with_doubtful_states(selection, kind), selection.context
    if isinstance(likely, str):
        return likely
    options, corpus = context.options, likely.inference_state.corpus
    latent = infer_latent(
        corpus.as_traces(),
        options.timing,
        [machine.predicts for machine in likely.inference_state.fit.machines.values()],
        SearchLimits(options.seed, options.effort, context.time_left()),
        labels=kind == "labels",
        starts=kind == "starts",
        digits=options.reward_digits,
    )
    if latent is None:
        return f"machines with latent {kind} are no likelier"
    corrected = corpus.with_traces(latent.traces)
    context = replace(context, options=replace(options, timing=latent.timing))
    result = fit_noisy(context, corrected, outputs_of(options, corrected.alphabets))
    if isinstance(result, Conflict):
        return f"traces with latent {kind} contradict each other"
    log_evidence = evidence_of(result) + latent.log_evidence
    least = selection.best_with_noise.log_evidence if selection.best_with_noise else -inf
    if log_evidence <= least:
        return f"outputs are less likely, by {least - log_evidence:.1f} nats"
    original = OriginalTraces(corpus, options.timing)
    result = replace(
        result,
        traces=likely.traces,
        steps=likely.steps,
        outliers=likely.outliers,
        machines=result.machines.replacing(state_uncertainty=latent.state_uncertainty),
        noise_rates=latent.noise_shares,
        inference_state=replace(result.inference_state, original=original),
    )
    return Explanation(f"latent {kind}", result, log_evidence)


def _with_doubtful_states(selection: Selection, kind: str) -> InferenceResult | str:
    """Return the most likely machines so far, if their states may be wrong, or why they are not."""
    if selection.reason_for_no_noise:
        return selection.reason_for_no_noise
    if not getattr(selection.allowed, kind):
        return f"noise in {kind} is not allowed for"
    if not selection.corpus.in_memory:
        return "traces in files are not tested"
    inliers = selection.inliers
    if isinstance(inliers, Conflict) or not inliers.result.is_noisy:
        return "the other traces are explained without noise"
    likely, state, context = inliers.result, inliers.result.inference_state, selection.context
    if selection.is_doubtful and not selection.expects_latent_states and not likely.outliers:
        return _EXACT
    if selection.is_stated:
        return likely
    if kind == "labels" and not context.preprocessor.labeling.is_given:
        return "labels are derived from observations and actions"
    traces = state.corpus.as_traces()
    if traces.steps < _STEPS_PER_LABEL * len(traces.labels):
        return "labels are read too rarely"
    if not deviations_persist(traces, state.fit.machines, context.options.timing):
        return "deviating outputs do not depend on the past"
    return likely


Outcome: TypeAlias = Explanation | DenoisedLabels | Conflict | str
"""An explanation beats the one before it; with denoised labels, everything is selected once more; a
conflict is one that the noise allowed for does not explain; a text is why the candidate lost."""

CANDIDATES: Final[tuple[tuple[str, Callable[[Selection], Outcome]], ...]] = (
    (DENOISED_LABELS, denoised_labels),
    (NO_NOISE, no_noise),
    (DENOISED_LABELS, denoised_labels),
    (NOISY_OUTPUTS, noisy_outputs),
    (OUTLIERS, outliers),
    ("latent labels", partial(latent_states, kind="labels")),
    ("latent starts", partial(latent_states, kind="starts")),
)
"""All candidates by name, in the order of the attempts."""


def reason_against_noise(selection: Selection, noisy: Explanation) -> str:
    """Return why machines without noise are better than an explanation with noise; or nothing."""
    exact, result = selection.exact, noisy.result
    if exact is None or result.machines.state_uncertainty:
        return ""
    if not selection.is_doubtful:
        return _EXACT
    if result.outliers:
        is_allowed = selection.allowed.outcomes or not result.is_noisy
        return "" if is_allowed else "noise in outputs is not allowed for"
    if not selection.looks_random:
        return "outputs do not vary as by chance"
    if not query_noise(result.inference_state.counts, by_state=True).is_homogeneous:
        return "outputs in the same state do not vary as by chance"
    return "" if is_likelier(result, exact) else "machines without noise are likelier"


def select_noise_model(context: InferenceContext, corpus: Corpus) -> InferenceResult | Conflict:
    """Infer machines from all traces of a corpus, with as little noise as explains them."""
    damaged = list(damaged_files(corpus))  # an error if no trace is left
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
    total, recorded = before.traces + len(traces), before.inference_state.original
    if before.outliers:  # traces keep the numbers that the user gave them
        numbers = np.setdiff1d(np.arange(total), before.outliers)
        context = replace(context, trace_numbers=numbers)
    if recorded is None:
        corpus, noise_rates = before.inference_state.corpus, before.noise_rates
        result = _select(Selection(context, corpus.extended(traces), before))
    else:
        context = replace(context, options=replace(context.options, timing=recorded.timing))
        result, noise_rates = _select(Selection(context, recorded.corpus.extended(traces))), {}
    if isinstance(result, Conflict):
        return result
    warnings = [*result.warnings]
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
    return _with_warnings(result, [denoised_labels_warning(result)])


def _result_of(selection: Selection, chosen: Explanation) -> InferenceResult:
    """Return the result of the chosen explanation, with the reasons for and against each."""
    names = dict.fromkeys(name for name, _ in CANDIDATES)
    candidates = tuple(_noise_candidate(selection, chosen, name) for name in names)
    result = replace(chosen.result, noise_candidates=candidates)
    if chosen.name == NO_NOISE:
        return result
    findings = noise_warnings(result, selection.conflict) if result.is_noisy else []
    if selection.exact is None or result.outliers or result.machines.state_uncertainty:
        findings += getattr(selection.inliers, "findings", ())
    return _with_warnings(result, findings)


def _noise_candidate(selection: Selection, chosen: Explanation, name: str) -> NoiseCandidate:
    """Return why one candidate was chosen or rejected."""
    explanation = selection.explanations.get(name)
    evidence = explanation.log_evidence if explanation and explanation.result.is_noisy else None
    reason = selection.rejected.get(name, f"{chosen.name} explain the traces better")
    if explanation is chosen:
        reason = "it explains all traces" if name == NO_NOISE else "it explains the traces best"
    elif name == NO_NOISE and name not in selection.rejected and selection.is_doubtful:
        reason = "many transitions were seen once or twice, as if the machines memorized noise"
    return NoiseCandidate(name, reason, explanation is chosen, evidence)


def _with_warnings(result: InferenceResult, warnings: Iterable[Finding]) -> InferenceResult:
    return replace(result, warnings=(*warnings, *result.warnings))
