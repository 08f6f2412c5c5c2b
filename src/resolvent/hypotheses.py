"""In which order noise is thought of: what is exact first, then what makes the traces likeliest.

1. Machines without noise. Whatever explains all traces exactly stays; where another option
   would (labels read at another time, rewards rounded), that is for the user to choose.
2. A few broken traces: left out, if machines without noise explain all others.
3. Where traces contradict each other, or machines that fit them list accidents (`suspicion`):
   the most likely machines, whose states answer with a distribution; broken traces left out.
4. Other readings of the traces (`READINGS`): labels corrected, starts told apart. The most
   likely machines are found for each, and the reading under which all that was recorded
   is the likeliest wins.

Noise in numbers, such as rewards that vary around their values, is taken out before all that,
as a part of the senses.
"""

from dataclasses import replace
from math import floor, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.broken import Failing, failing, oddness, strangeness
from resolvent.diagnosis import Finding
from resolvent.doubts import hidden_labels, hidden_starts
from resolvent.errors import ContradictoryTraces
from resolvent.learning import log_evidence
from resolvent.noise import Noise
from resolvent.readings import Hypothesis
from resolvent.replay import Corpus
from resolvent.result import InferenceResult
from resolvent.running import Run, outputs_of
from resolvent.samples import Histories, output_samples
from resolvent.suspicion import (
    allowed,
    broken_warning,
    has_exact_remedy,
    is_chance,
    lists_accidents,
    may_vary,
    noise_warnings,
    too_many_broken,
)
from resolvent.traces import TraceSet
from resolvent.traces.column_names import OBSERVATION
from resolvent.traces.shards import ShardsInMemory

READINGS: Final[tuple[tuple[str, Hypothesis], ...]] = (
    ("labels", hidden_labels),
    ("starts", hidden_starts),
)
"""Other readings, with the field of `Noise` that allows for them, in the order they are tried."""

FEWEST_TRACES: Final = 20
"""With fewer traces none is taken to be broken: one of them is too large a share."""


def inferred(run: Run, corpus: Corpus) -> InferenceResult:
    """Infer machines from all traces of a corpus, with as little noise as explains them.

    Raises:
        ContradictoryTraces: when the noise that is allowed for does not explain the traces.
    """
    noise = allowed(run.options)
    if isinstance(run.options.noise, Noise) and (noise.outcomes or noise.labels or noise.starts):
        return _with_noise(run, corpus, None)  # that there is some, the user knows
    try:
        exact = run.exact(corpus)
    except ContradictoryTraces as contradiction:
        return _contradicted(run, corpus, contradiction)
    return _believed(run, exact)


def extended(run: Run, before: InferenceResult, traces: TraceSet) -> InferenceResult:
    """Infer machines from the traces of a result and more: go on from it as far as it holds."""
    corpus = before.standing.corpus.extended(traces)
    if before.is_noisy:
        found = _with_noise(run, corpus, None)
    else:
        try:
            found = run.extended(before.standing, corpus)
        except ContradictoryTraces as contradiction:
            found = _contradicted(run, corpus, contradiction)
    if not before.broken:
        return found
    # Traces have the numbers with which they were given, also behind those left out.
    given = before.traces + len(traces)
    kept = np.setdiff1d(np.arange(given), before.broken)
    broken = sorted([*before.broken, *kept[list(found.broken)].tolist()])
    return replace(found, traces=given, broken=tuple(broken))


def _contradicted(run: Run, corpus: Corpus, contradiction: ContradictoryTraces) -> InferenceResult:
    """Infer machines from traces that contradict each other, unless that must not be noise."""
    noise = allowed(run.options)
    thinkable = may_vary(contradiction.output, noise) or noise.broken or _readings(noise)
    if not thinkable or has_exact_remedy(contradiction, run.options):
        raise contradiction
    return _with_noise(run, corpus, contradiction)


def _believed(run: Run, exact: InferenceResult) -> InferenceResult:
    """Return machines without noise, or better ones where these mostly list accidents."""
    noise, corpus = allowed(run.options), exact.standing.corpus
    if not noise or not lists_accidents(exact.standing.shown):
        return exact
    if _may_hold_broken(corpus, noise):
        suspects = strangeness(exact.machines, corpus.together())
        found = _but_for(run, corpus, suspects, noise.broken)
        if found is not None:
            return found
    if not noise.outcomes or not is_chance(exact.standing.shown, by_state=False):
        return exact
    likely = run.most_likely(corpus, outputs_of(run.options, corpus.alphabets))
    if is_chance(likely.standing.shown, by_state=True) and _is_likelier(likely, exact):
        return _warned(likely, noise_warnings(likely, None))
    return exact


def _is_likelier(likely: InferenceResult, exact: InferenceResult) -> bool:
    """Whether the first machine explains the traces it was learned from better with noise."""
    kind, machine = next(iter(exact.machines.items()))
    standing = likely.standing
    traces = standing.corpus.fetch(standing.chosen)
    histories = Histories.of(traces, exact.options.timing)
    samples = output_samples(traces, histories, machine.predicts)
    if machine.labels != samples.labels:
        return False
    found = standing.found.log_evidence[kind][likely.machines[kind].states]
    return found > log_evidence(machine, samples)


def _with_noise(
    run: Run, corpus: Corpus, contradiction: ContradictoryTraces | None
) -> InferenceResult:
    """Infer the most likely machines, without traces that are broken, in the likeliest reading."""
    noise = allowed(run.options)
    likely = _most_likely(run, corpus, contradiction)
    warnings: list[Finding] = []
    if _may_hold_broken(corpus, noise):
        odd = oddness(likely.machines, corpus.together())
        found = _but_for(run, corpus, odd.nats, noise.broken)
        if found is not None:
            return found
        sure = np.flatnonzero(odd.broken)
        if len(sure) > noise.broken * corpus.traces:
            warnings.append(too_many_broken(len(sure), corpus.traces, noise.broken))
        elif len(sure):
            rest = np.setdiff1d(corpus.all, sure)
            without = _most_likely(run, _only(corpus, rest), contradiction)
            likely = _without(without, corpus, sure)
            warnings.append(broken_warning(likely, odd.odd[sure], odd.asked[sure]))
    holds = contradiction is None or may_vary(contradiction.output, noise)
    best = _best_reading(run, likely, holds)
    if contradiction is not None and best is likely and not holds:
        raise contradiction
    likely = best
    return _warned(likely, [*noise_warnings(likely, contradiction), *warnings])


def _most_likely(
    run: Run, corpus: Corpus, contradiction: ContradictoryTraces | None
) -> InferenceResult:
    """Infer machines with noise in no more outputs than need it, but in all if observations do."""
    outputs = outputs_of(run.options, corpus.alphabets)
    noisy = {contradiction.output} if contradiction is not None else set(outputs)
    while True:
        if OBSERVATION in noisy:
            noisy = set(outputs)
        try:
            return run.most_likely(corpus, noisy)
        except ContradictoryTraces as another:
            noisy.add(another.output)


def _readings(noise: Noise) -> list[Hypothesis]:
    return [one for kind, one in READINGS if getattr(noise, kind)]


def _best_reading(run: Run, likely: InferenceResult, holds: bool) -> InferenceResult:
    """Return the machines for the reading under which what was recorded is the likeliest.

    The machines for traces as they are recorded are among them only if these may hold.
    """
    corpus = likely.standing.corpus
    best, most = likely, _evidence(likely) if holds else -inf
    for hypothesis in _readings(allowed(run.options)) if corpus.in_memory else ():
        traces, found = corpus.together(), likely.standing.found
        reading = hypothesis(traces, run.options, run.senses, found)
        if reading is None:
            continue
        options = replace(run.options, timing=reading.timing or run.options.timing)
        other = Run(options, run.progress, reading.senses, run.started)
        read = Corpus(ShardsInMemory([reading.traces]), corpus.rounding)
        result = other.most_likely(read, outputs_of(run.options, read.alphabets))
        evidence = _evidence(result) + reading.log_evidence
        if evidence > most:
            machines = result.machines.replacing(doubt=reading.doubt)
            best, most = (
                replace(result, machines=machines, more_noise=dict(reading.noise)),
                evidence,
            )
    return best


def _evidence(likely: InferenceResult) -> float:
    found = likely.standing.found
    return sum(
        found.log_evidence[kind][machine.states] for kind, machine in likely.machines.items()
    )


def _may_hold_broken(corpus: Corpus, noise: Noise) -> bool:
    return noise.broken > 0 and corpus.in_memory and corpus.traces >= FEWEST_TRACES


def _but_for(
    run: Run, corpus: Corpus, suspicion: NDArray[np.float64], share: float
) -> InferenceResult | None:
    """Return machines without noise that explain all traces but a few, which are broken.

    The most suspicious traces are left out; what is learned from the others says which of
    them it explains after all. None where traces still contradict each other, or machines
    list accidents, or rare noise is the better explanation.
    """
    most = floor(share * corpus.traces)
    if not most:
        return None
    aside = np.sort(np.argsort(-suspicion, kind="stable")[:most])
    while True:
        found = _exact(run, _only(corpus, np.setdiff1d(corpus.all, aside)))
        if found is None or lists_accidents(found.standing.shown):
            return None
        failed = failing(found.machines, corpus.together())
        if not 0 < len(failed.numbers) <= most or failed.nats <= 0:
            return None
        if not len(back := np.setdiff1d(aside, failed.numbers)):
            return _named(_without(found, corpus, failed.numbers), failed)
        aside = np.setdiff1d(aside, back)


def _exact(run: Run, corpus: Corpus) -> InferenceResult | None:
    try:
        return run.exact(corpus)
    except ContradictoryTraces:
        return None


def _only(corpus: Corpus, numbers: NDArray[np.int64]) -> Corpus:
    return Corpus(ShardsInMemory([corpus.fetch(numbers)]), corpus.rounding)


def _without(found: InferenceResult, corpus: Corpus, broken: NDArray[np.int64]) -> InferenceResult:
    """Return what was found from the other traces as found from all, with some left out."""
    return replace(found, traces=corpus.traces, steps=corpus.steps, broken=tuple(broken.tolist()))


def _named(found: InferenceResult, failed: Failing) -> InferenceResult:
    return _warned(
        found, [broken_warning(found, failed.wrong, failed.asked, failed.first, failed.nats)]
    )


def _warned(found: InferenceResult, warnings: list[Finding]) -> InferenceResult:
    return replace(found, warnings=(*warnings, *found.warnings))
