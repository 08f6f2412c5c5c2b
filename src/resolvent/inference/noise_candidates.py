"""Candidates of noise selection: explanations of traces, with and without noise.

Input: a `Selection`, which computes the facts that candidates share. Output of each candidate: an
`Explanation`, or why there is none that beats those before it. Cheap tests come first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from resolvent import _core
from resolvent.evaluation.diagnosis.diagnose import rare_transitions
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.fit import OriginalTraces
from resolvent.inference.noise_fits import Inliers, denoise_recorded_labels, exclude_outliers
from resolvent.inference.refinement import fit_noisy, refine, refine_further
from resolvent.inference.result import InferenceResult
from resolvent.noise.labels import DenoisedLabels
from resolvent.noise.latent import infer_latent
from resolvent.noise.model import Noise, allowed_noise
from resolvent.noise.outliers import score_outliers
from resolvent.noise.outputs import SearchLimits, machine_log_evidence
from resolvent.noise.screening import deviations_persist, query_noise
from resolvent.preprocess.samples import Histories, SampleSet, output_samples
from resolvent.replay import Corpus, ReplayCounts
from resolvent.traces.schema import OBSERVATION, REWARD

NO_NOISE: Final = "no noise"
DENOISED_LABELS: Final = "denoised labels"
NOISY_OUTPUTS: Final = "noisy outputs"
OUTLIERS: Final = "outliers"

MIN_TRACES: Final = 20
"""Number of traces below which none is an outlier: one of them is too large a share."""

MIN_CONTRADICTIONS: Final = 10.0
"""Expected number of contradictions from which their absence excludes random outputs."""

_STEPS_PER_LABEL: Final = 50
"""Minimum number of steps for each label to infer latent states that the user does not state."""

_EXACT: Final = "machines without noise explain all traces"


class Explanation(NamedTuple):
    """Machines that explain traces by one candidate, and their evidence: infinite without noise."""

    name: str
    result: InferenceResult
    log_evidence: float

    @classmethod
    def of(cls, name: str, result: InferenceResult) -> "Explanation":
        """Compute the evidence of a result."""
        return cls(name, result, evidence_of(result) if result.is_noisy else inf)


@dataclass
class Selection:
    """The selection of an explanation for traces, of which `before` has explained the first.

    `explanations` are those found so far, the last with noise being the best, and `rejected` has
    the reason against each other candidate, by name. Only the loop of `noise_selection` adds to
    them.
    """

    context: InferenceContext
    corpus: Corpus
    before: InferenceResult | None = None
    explanations: dict[str, Explanation] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)

    @property
    def allowed(self) -> Noise:
        """The noise that the user allows for."""
        return allowed_noise(self.context.options.noise)

    @property
    def is_stated(self) -> bool:
        """Whether the user states what is noisy."""
        return isinstance(self.context.options.noise, Noise)

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

    @cached_property
    def most_likely(self) -> InferenceResult | Conflict:
        """The most likely machines for all traces as recorded."""
        return fit_noisy_outputs(self, self.corpus)

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
        return exclude_outliers(
            self.context,
            self.most_likely,
            self.allowed.outliers,
            lambda rest: fit_noisy_outputs(self, rest),
        )

    @property
    def best_with_noise(self) -> Explanation | None:
        """The best explanation with noise so far."""
        names = [name for name in self.explanations if name != NO_NOISE]
        return self.explanations[names[-1]] if names else None


def no_noise(selection: Selection) -> Explanation | str:
    """Return machines without noise, if traces do not contradict each other."""
    if selection.requires_noise:
        return selection.requires_noise
    if selection.conflict is not None:
        first, second = selection.conflict.locations
        return f"{first} and {second} contradict each other"
    return _EXACT if selection.exact is None else Explanation.of(NO_NOISE, selection.exact)


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
    return selection.forbidden_noise or Explanation.of(NOISY_OUTPUTS, likely)


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
    return Explanation.of(OUTLIERS, result)


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
    context = replace(context, options=replace(options, timing=latent.timing), trace_numbers=None)
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
    likely, context = inliers.result, selection.context
    needs_reason = selection.is_doubtful and not selection.expects_latent_states
    if needs_reason and not likely.outliers:
        return _EXACT
    if selection.is_stated:
        return likely
    if kind == "labels" and not context.preprocessor.labeling.is_given:
        return "labels are derived from observations and actions"
    state = likely.inference_state
    traces = state.corpus.as_traces()
    if traces.steps < _STEPS_PER_LABEL * len(traces.labels):
        return "labels are read too rarely"
    if not deviations_persist(traces, state.fit.machines, context.options.timing):
        return "deviating outputs do not depend on the past"
    return likely


Outcome: TypeAlias = Explanation | DenoisedLabels | Conflict | str
"""The outcome of a candidate.

An explanation beats the one before it; with denoised labels, everything is selected once more; a
conflict is one that the noise allowed for does not explain; a text is why the candidate lost.
"""

CANDIDATES: Final[tuple[tuple[str, Callable[[Selection], Outcome]], ...]] = (
    (DENOISED_LABELS, denoised_labels),
    (NO_NOISE, no_noise),
    (DENOISED_LABELS, denoised_labels),
    (NOISY_OUTPUTS, noisy_outputs),
    (OUTLIERS, outliers),
    ("latent labels", partial(latent_states, kind="labels")),
    ("latent starts", partial(latent_states, kind="starts")),
)
"""All candidates by name, in the order of the attempts; each makes its cheap tests first."""


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
    return "" if _is_likelier(result, exact) else "machines without noise are likelier"


def fit_noisy_outputs(selection: Selection, corpus: Corpus) -> InferenceResult | Conflict:
    """Fit machines with noise in as few outputs as possible.

    Noise in observations also blurs the state, so it makes every output noisy.
    """
    context, conflict = selection.context, selection.conflict
    outputs = outputs_of(context.options, corpus.alphabets)
    has_levels = context.preprocessor.rewards is not None
    noisy = {REWARD} if has_levels else set(outputs)
    if conflict is not None:
        noisy = {conflict.output}
    while True:
        if OBSERVATION in noisy:
            noisy = set(outputs)
        result = fit_noisy(context, corpus, noisy)
        if isinstance(result, InferenceResult):
            return result
        if has_levels and not selection.allowed.may_vary(result.output):
            return result
        noisy = noisy | {result.output}


def may_overfit(counts: ReplayCounts) -> bool:
    """Return whether the first machine has many rare transitions, as if it memorized noise."""
    first = next(iter(counts.machines))
    return any(finding.figures["machine"] == first for finding in rare_transitions(counts))


def would_contradict(result: InferenceResult) -> bool:
    """Return whether outputs that vary by chance would have contradicted each other.

    They would if so many queries were repeated after the same labels that some of their outputs
    had to differ.
    """
    histories, samples = _first_samples(result)
    node = _core.history_columns(histories.tree)[0].astype(np.int64)
    queries = node * len(samples.alpha_keys) + samples.alpha
    repeated = len(queries) - len(np.unique(queries))
    noise = query_noise(result.inference_state.counts, by_state=False)
    return repeated * noise.share * noise.rate > MIN_CONTRADICTIONS


def evidence_of(likely: InferenceResult) -> float:
    """Return the log likelihood of the outputs under the most likely machines."""
    fit = likely.inference_state.fit
    return sum(fit[name].log_evidence[machine.states] for name, machine in likely.machines.items())


def _is_likelier(likely: InferenceResult, exact: InferenceResult) -> bool:
    """Return whether the first machine explains the traces better with noise."""
    name, machine = next(iter(exact.machines.items()))
    _, samples = _first_samples(likely)
    if machine.labels != samples.labels:
        return False
    evidence = likely.inference_state.fit[name].log_evidence[likely.machines[name].states]
    return evidence > machine_log_evidence(machine, samples)


def _first_samples(result: InferenceResult) -> tuple[Histories, SampleSet]:
    """Return the samples that the first machine of a result was learned from."""
    state = result.inference_state
    traces = state.corpus.fetch(state.chosen)
    histories = Histories.of(traces, result.options.timing)
    predicts = next(iter(result.machines.values())).predicts
    return histories, output_samples(traces, histories, predicts)
