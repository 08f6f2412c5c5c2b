"""Exclude traces that are significantly outliers, if they are few.

Input: a corpus and the most likely machines for it. Output: machines for the other traces, exact
ones if possible, and the findings that name the outliers.
"""

from collections.abc import Callable
from dataclasses import replace
from math import floor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent.evaluation.diagnosis.diagnose import rare_transitions
from resolvent.evaluation.diagnosis.findings import Finding
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext
from resolvent.inference.noise_messages import outliers_warning, too_many_outliers
from resolvent.inference.refinement import refine
from resolvent.inference.result import InferenceResult
from resolvent.noise.outliers import score_outliers, unexplained_traces
from resolvent.replay import Corpus

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
            warning = outliers_warning(
                result, failed.wrong, failed.outputs, failed.first, failed.nats
            )
            return Inliers(result, (warning,))
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
