"""In which order noise is thought of: what is exact first, then what makes the traces likeliest.

0. Labels that lie, but follow from what is seen (`correction`): corrected, if they clearly do.
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

from resolvent.arithmetic import log
from resolvent.correction import relabelled, true_labels
from resolvent.diagnosis import Finding
from resolvent.diagnosis.after_inference import rare_moves
from resolvent.diagnosis.left_out import LEFT_OUT, left_out
from resolvent.doubts import hidden_labels, hidden_starts
from resolvent.errors import ContradictoryTraces
from resolvent.learning import log_evidence
from resolvent.noise import DenoisedLabels as Corrected
from resolvent.noise import Noise
from resolvent.noise.outliers import score_outliers as oddness
from resolvent.noise.outliers import unexplained_traces as failing
from resolvent.readings import Hypothesis, Reading
from resolvent.replay import Corpus
from resolvent.result import InferenceResult, Recorded
from resolvent.running import Run, outputs_of
from resolvent.samples import Histories, output_samples
from resolvent.suspicion import (
    BROKEN,
    LYING,
    NOISE,
    allowed,
    broken_warning,
    corrected_labels,
    is_chance,
    lists_accidents,
    may_vary,
    needs_memory,
    noise_warnings,
    stated_in_vain,
    too_many_broken,
    would_contradict,
)
from resolvent.traces import TraceSet
from resolvent.traces.column_names import OBSERVATION, REWARD
from resolvent.traces.shards import ShardsInMemory

READINGS: Final[tuple[tuple[str, Hypothesis], ...]] = (
    ("labels", hidden_labels),
    ("starts", hidden_starts),
)
"""Other readings, with the field of `Noise` that allows for them, in the order they are tried."""

_LEARNED_FROM: Final = 0.75
"""The share of the steps from which machines are learned that are to foretell the others."""

LEAST_NATS: Final = log(100)
"""Broken traces have to be a hundred times as likely as rare noise."""

FEWEST_TRACES: Final = 20
"""With fewer traces none is taken to be broken: one of them is too large a share."""


def inferred(run: Run, corpus: Corpus) -> InferenceResult:
    """Infer machines from all traces of a corpus, with as little noise as explains them.

    Raises:
        ContradictoryTraces: when the noise that is allowed for does not explain the traces.
    """
    damaged = list(left_out(corpus))
    found = _inferred(run, corpus)
    return _warned(found, [*damaged, *stated_in_vain(found)])


def _inferred(run: Run, corpus: Corpus) -> InferenceResult:
    noise = allowed(run.options)
    if noise.labels and (true := true_labels(run, corpus)):
        return _truly_labelled(run, corpus, true)
    stated = isinstance(run.options.noise, Noise)
    if stated and noise.outcomes:
        return _with_noise(run, corpus, None)  # that there is some, the user knows
    if run.senses.rewards is not None:  # some are taken for the wrong level
        return _with_noise(run, corpus, None)
    try:
        exact = run.exact(corpus)
    except ContradictoryTraces as contradiction:
        return _contradicted(run, corpus, contradiction)
    if stated and _readings(noise) and (found := _with_noise(run, corpus, None)).machines.doubt:
        return found
    return _believed(run, exact)


def extended(run: Run, before: InferenceResult, traces: TraceSet) -> InferenceResult:
    """Infer machines from the traces of a result and more: go on from it as far as it holds.

    Traces that were not read as they are recorded are all read anew.
    """
    given = before.traces + len(traces)
    numbers = None
    if before.broken:  # traces keep the numbers with which they were given
        numbers = np.setdiff1d(np.arange(given), before.broken)
    more_noise = before.more_noise
    if (recorded := before.standing.recorded) is not None:
        options = replace(run.options, timing=recorded.timing)
        anew = Run(options, run.progress, run.senses, run.started, numbers)
        found, more_noise = _inferred(anew, recorded.corpus.extended(traces)), {}
    else:
        run.given = numbers
        found = _extended(run, before, before.standing.corpus.extended(traces))
    found = replace(
        found,
        more_noise={**more_noise, **found.more_noise},
        traces=given,
        steps=before.steps + traces.steps,
        broken=tuple(sorted((*before.broken, *found.broken))),
    )
    again = {one.kind for one in found.warnings} & {LYING}
    kept = [one for one in before.warnings if one.kind in {BROKEN, LYING, LEFT_OUT} - again]
    return _warned(found, [*stated_in_vain(found), *kept])


def _extended(run: Run, before: InferenceResult, corpus: Corpus) -> InferenceResult:
    """Infer machines from a corpus that has more traces; why there is noise was said before."""
    if before.is_noisy:
        found = _with_noise(run, corpus, None)
        said = [one for one in before.warnings if one.kind == NOISE]
        if found.is_noisy and said:
            others = [one for one in found.warnings if one.kind != NOISE]
            return _warned(replace(found, warnings=tuple(others)), said)
        return found
    try:
        return run.extended(before.standing, corpus)
    except ContradictoryTraces as contradiction:
        return _contradicted(run, corpus, contradiction)


def _contradicted(run: Run, corpus: Corpus, contradiction: ContradictoryTraces) -> InferenceResult:
    """Infer machines from traces that contradict each other, unless that must not be noise."""
    noise = allowed(run.options)
    thinkable = may_vary(contradiction.output, noise) or noise.broken or _readings(noise)
    if not thinkable or contradiction.exact_remedy:
        raise contradiction
    if noise.labels and (true := true_labels(run, corpus, contradict=True)):
        return _truly_labelled(run, corpus, true)
    return _with_noise(run, corpus, contradiction)


def _truly_labelled(run: Run, corpus: Corpus, true: Corrected) -> InferenceResult:
    """Infer machines that make labels of what is seen and done, and do without those recorded."""
    found = _inferred(*relabelled(run, corpus, true))
    shares = {} if true.noise is None else true.noise.shares()
    found = replace(found, more_noise={**found.more_noise, **shares})
    return _warned(found, [corrected_labels(found)])


def _believed(run: Run, exact: InferenceResult) -> InferenceResult:
    """Return machines without noise, or better ones where these mostly list accidents."""
    noise, corpus = allowed(run.options), exact.standing.corpus
    if not noise or exact.unfinished or not lists_accidents(exact.standing.shown):
        return exact
    if noise.labels and (true := true_labels(run, corpus, doubted=True)):
        return _truly_labelled(run, corpus, true)
    if _may_hold_broken(corpus, noise):
        stated = isinstance(run.options.noise, Noise)  # then it is worth a longer look
        if stated or _some_stand_out(exact, noise.broken):
            found = _with_noise(run, corpus, None)
            if found.broken and (noise.outcomes or not found.is_noisy):
                return found
    chance = noise.outcomes and is_chance(exact.standing.shown, by_state=False)
    if not chance or would_contradict(exact):
        return exact
    likely = _most_likely(run, corpus, None)
    if is_chance(likely.standing.shown, by_state=True) and _is_likelier(likely, exact):
        return _warned(likely, noise_warnings(likely, None))
    return exact


def _some_stand_out(exact: InferenceResult, share: float) -> bool:
    """Whether traces stand out as broken ones do, up to a `share` of all, without any memory.

    Machines that explain all traces may have states for the broken ones alone.
    """
    standing = exact.standing
    if needs_memory(standing.shown, often=share):
        return False
    odd = oddness(exact.machines, standing.corpus.together(), by_state=False)
    return bool(odd.are_outliers.any())


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
        likely, warnings = _without_broken(run, corpus, likely, contradiction)
        if not likely.is_noisy:
            return _warned(likely, warnings)
    holds = contradiction is None or may_vary(contradiction.output, noise)
    best = _best_reading(run, likely, holds)
    if contradiction is not None and best is likely and not holds:
        raise contradiction
    likely = best
    return _warned(likely, [*noise_warnings(likely, contradiction), *warnings])


def _without_broken(
    run: Run,
    corpus: Corpus,
    likely: InferenceResult,
    contradiction: ContradictoryTraces | None,
) -> tuple[InferenceResult, list[Finding]]:
    """Leave out traces that are broken beyond doubt, if they are few, and say which.

    What is left is explained without noise if it can be, and otherwise by machines that are
    the most likely ones for it; these may show that more are broken.
    """
    share = allowed(run.options).broken
    aside = np.empty(0, np.int64)
    odd, asked = np.zeros((2, corpus.traces), np.int64)
    warnings: list[Finding] = []
    while not warnings:
        kept = np.setdiff1d(corpus.all, aside)
        now = oddness(likely.machines, corpus.fetch(kept))
        suspicion = np.full(corpus.traces, np.inf)
        suspicion[kept], odd[kept], asked[kept] = now.surprise, now.odd, now.asked
        if (exact := _but_for(run, corpus, suspicion, share)) is not None:
            return exact
        more = kept[now.are_outliers]
        if not len(more):
            break
        if len(aside) + len(more) > share * corpus.traces:
            warnings.append(too_many_broken(len(aside) + len(more), corpus.traces, share))
        else:
            aside = np.union1d(aside, more)
            rest = _only(corpus, np.setdiff1d(corpus.all, aside))
            likely = _without(run, _most_likely(run, rest, contradiction), corpus, aside)
    if len(aside):
        warnings.insert(0, broken_warning(likely, odd[aside], asked[aside]))
    return likely, warnings


def _most_likely(
    run: Run, corpus: Corpus, contradiction: ContradictoryTraces | None
) -> InferenceResult:
    """Infer machines with noise in no more outputs than need it, but in all if observations do."""
    outputs = outputs_of(run.options, corpus.alphabets)
    noisy = {contradiction.output} if contradiction is not None else set(outputs)
    if run.senses.rewards is not None and contradiction is None:
        noisy = {REWARD}  # what is known to vary
    while True:
        if OBSERVATION in noisy:
            noisy = set(outputs)
        try:
            return run.most_likely(corpus, noisy)
        except ContradictoryTraces as another:
            if run.senses.rewards is not None and not may_vary(
                another.output, allowed(run.options)
            ):
                raise
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
        reading = hypothesis(traces, run.options, run.senses, found, run.time_left())
        if reading is None:
            continue
        options = replace(run.options, timing=reading.timing or run.options.timing)
        other = Run(options, run.progress, reading.senses, run.started)
        read = Corpus(ShardsInMemory([reading.traces]), corpus.rounding)
        result = other.most_likely(read, outputs_of(run.options, read.alphabets))
        result = replace(result, traces=likely.traces, steps=likely.steps, broken=likely.broken)
        evidence = _evidence(result) + reading.log_evidence
        if evidence > most:
            best, most = _doubted(result, reading, Recorded(corpus, run.options.timing)), evidence
    return best


def _doubted(result: InferenceResult, reading: Reading, recorded: Recorded) -> InferenceResult:
    """Return machines that were learned from another reading of traces, with all that says so."""
    return replace(
        result,
        machines=result.machines.replacing(doubt=reading.doubt),
        more_noise=dict(reading.noise),
        standing=replace(result.standing, recorded=recorded),
    )


def _evidence(likely: InferenceResult) -> float:
    found = likely.standing.found
    return sum(
        found.log_evidence[kind][machine.states] for kind, machine in likely.machines.items()
    )


def _may_hold_broken(corpus: Corpus, noise: Noise) -> bool:
    return noise.broken > 0 and corpus.in_memory and corpus.traces >= FEWEST_TRACES


def _but_for(
    run: Run, corpus: Corpus, suspicion: NDArray[np.float64], share: float
) -> tuple[InferenceResult, list[Finding]] | None:
    """Return machines without noise that explain all traces but a few, which are broken.

    The most suspicious traces are left out; what is learned from the others says which of
    them it explains after all. None where traces still contradict each other, where any of the
    machines lists accidents or does not foretell traces it was not learned from, and where rare
    noise is the better explanation.
    """
    most = floor(share * corpus.traces)
    order = np.argsort(-suspicion, kind="stable")
    aside = np.sort(order[: min(most, np.count_nonzero(suspicion > 0))])
    while 0 < len(aside) <= most:
        kept = np.setdiff1d(corpus.all, aside)
        try:
            found = run.exact(_only(corpus, kept))
        except ContradictoryTraces as contradiction:
            pair = kept[[place.trace for place in contradiction.places]]
            aside = np.union1d(aside, pair[np.argmax(suspicion[pair])])
            continue
        if found.unfinished:
            return None
        failed = failing(found.machines, corpus.together())
        if any(rare_moves(found.standing.shown)) or failed.nats < LEAST_NATS:
            return None
        if np.array_equal(failed.numbers, aside):
            if not _foretells(run, found.standing.corpus, share):
                return None
            found = _without(run, found, corpus, aside)
            return found, [
                broken_warning(found, failed.wrong, failed.asked, failed.first, failed.nats)
            ]
        if len(np.setdiff1d(failed.numbers, aside)):
            return None
        aside = failed.numbers
    return None


def _foretells(run: Run, corpus: Corpus, share: float) -> bool:
    """Whether machines learned from most traces explain the others, but for so many of them.

    Machines that know by heart what happened explain any traces they were learned from. Those
    that list accidents when they know a few traces less had too little to go by: that tells
    nothing.
    """
    some = corpus.sample(floor(_LEARNED_FROM * corpus.steps))
    others = np.setdiff1d(corpus.distinct(), some)
    found = run.exact(_only(corpus, some))
    if any(rare_moves(found.standing.shown)):
        return True
    return len(failing(found.machines, corpus.fetch(others)).numbers) <= share * len(others)


def _only(corpus: Corpus, numbers: NDArray[np.int64]) -> Corpus:
    return Corpus(ShardsInMemory([corpus.fetch(numbers)]), corpus.rounding)


def _without(
    run: Run, found: InferenceResult, corpus: Corpus, broken: NDArray[np.int64]
) -> InferenceResult:
    """Return what was found from the other traces as found from all, with some left out."""
    numbers = broken if run.given is None else run.given[broken]
    return replace(found, traces=corpus.traces, steps=corpus.steps, broken=tuple(numbers.tolist()))


def _warned(found: InferenceResult, warnings: list[Finding]) -> InferenceResult:
    return replace(found, warnings=(*warnings, *found.warnings))
