"""Decide whether recorded labels are noisy, and replace them by those that observations imply.

The recorded and the denoised labels are compared by the likelihood of the outputs of the same
steps. Labels that are a function of observations may be denoised, but not if observations are
wrong, or if an event depends on something unobserved.

Input: a corpus. Output: the `DenoisedLabels`, or None; and the corpus with them.
"""

from dataclasses import replace
from typing import Final

from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.label_choice import WEIGHING
from resolvent.inference.refinement import SAMPLE_STEPS, refine
from resolvent.machines import Machines
from resolvent.noise.label_evidence import CLEARLY, are_likelier, explain_more, log_evidence
from resolvent.noise.labels import (
    WITHOUT_LABELS,
    DenoisedLabels,
    LabelTally,
    denoise_labels,
    labels_are_independent,
    labels_follow_exactly,
)
from resolvent.noise.model import Noise
from resolvent.preprocess.reduction import trivial_codes
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay import Corpus
from resolvent.traces import TraceSet
from resolvent.traces.source import InMemorySource

GLIMPSE: Final = 10_000
"""Number of steps that show whether labels may be wrong at all."""

SELDOM: Final = 20
"""Least number of steps for each label from which labels may be found wrong."""

MANY_STATES: Final = 12
"""Number of states above which machines lose to a likelier reading; with fewer, labels are not
tested."""

LITTLE: Final = 0.1
"""Share of the log likelihood of outputs below which labels are uninformative: they only count
steps."""


def true_labels(
    context: InferenceContext, corpus: Corpus, *, contradict: bool = False, doubted: bool = False
) -> DenoisedLabels | None:
    """Return the labels that observations and actions imply, if those recorded are clearly noisy.

    Machines are learned from some of the traces with recorded and with denoised labels. Noisy
    labels may contradict nothing, and still cost many states; but nothing is tested if few states
    explain some steps, unless machines for all are `doubted`. `contradict`: all traces are known
    to contradict each other. Return `WITHOUT_LABELS` if recorded labels are uninformative.
    """
    timing, noise = context.options.timing, context.options.noise
    is_stated = isinstance(noise, Noise)
    share = noise.label_share if isinstance(noise, Noise) else None
    if not context.senses.labelling.is_given or (is_stated and contradict):
        return None  # there is nothing to denoise, or it was tried at first
    if not is_stated and corpus.steps < SELDOM * len(corpus.alphabets.labels):
        return None  # labels that are hardly ever read cannot be found wrong
    sample = corpus.fetch(corpus.sample(GLIMPSE))
    if labels_follow_exactly(sample, timing) or _are_determined(
        LabelTally.of(sample, timing), share
    ):
        return None
    recorded = corpus.fetch(corpus.sample(SAMPLE_STEPS))
    tally = LabelTally.of(recorded, timing)
    denoised = denoise_labels(tally, share=share)
    if denoised is None and not labels_are_independent(tally):
        return None  # they depend on something unobserved, or follow exactly from the action
    must_win = not contradict and not is_stated
    if must_win and not doubted:
        machines = _explaining(context, corpus, sample)
        if machines and _most_states(machines) <= MANY_STATES:
            return None
    machines = _explaining(context, corpus, recorded) if must_win else None
    states = _most_states(machines) if machines else 0
    if denoised is None:
        if machines is None or states <= MANY_STATES:
            return None
        return WITHOUT_LABELS if _are_uninformative(context, corpus, machines) else None
    corrected = denoised.labelling.on(recorded)
    after = None if machines is None else _explaining(context, corpus, corrected)
    if machines is not None and after is not None:
        wins = are_likelier(log_evidence(after, corrected), log_evidence(machines, recorded))
    else:
        may_win = machines is None or states > MANY_STATES
        wins = may_win and _explains_more(context, corpus, corrected, recorded, CLEARLY)
    if not wins:
        return None
    tallies = [LabelTally.of(shard, timing) for shard in corpus.shards]
    return denoise_labels(LabelTally.joined(tallies), share=share)


def with_labels(
    context: InferenceContext, corpus: Corpus, denoised: DenoisedLabels
) -> tuple[InferenceContext, Corpus]:
    """Return an inference and its corpus with denoised labels instead of those recorded."""
    preprocessor = replace(context.senses, labelling=denoised.labelling)
    shards = Preprocessor(denoised.labelling).on_shards(corpus.shards)
    relabeled = Corpus(shards, corpus.rounding, workers=corpus.workers)
    return replace(context, senses=preprocessor), relabeled


def _are_determined(tally: LabelTally, share: float | None) -> bool:
    """Return whether labels follow exactly from the step, or depend on something unobserved."""
    return denoise_labels(tally, share=share) is None and not labels_are_independent(tally)


def _most_states(machines: Machines) -> int:
    return max(machine.states for machine in machines.values())


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
        options = replace(options, strategy=WEIGHING)
    trial = replace(context, options=options, trace_numbers=None)
    result = refine(trial, Corpus(InMemorySource([some]), corpus.rounding))
    return None if isinstance(result, Conflict) else result.machines


def _are_uninformative(context: InferenceContext, corpus: Corpus, machines: Machines) -> bool:
    """Return whether recorded labels, which follow from nothing, explain hardly anything."""
    some = corpus.fetch(corpus.sample(SAMPLE_STEPS))
    silent = WITHOUT_LABELS.labelling.on(some)
    if log_evidence(machines, silent) <= log_evidence(machines, some):
        return False
    sample = corpus.fetch(corpus.sample(SAMPLE_STEPS // 5))
    silent = WITHOUT_LABELS.labelling.on(sample)
    return not _explains_more(context, corpus, sample, silent, LITTLE)


def _explains_more(
    context: InferenceContext, corpus: Corpus, traces: TraceSet, baseline: TraceSet, part: float
) -> bool:
    """Return whether the labels of traces make noisy outputs much likelier than a baseline."""
    return explain_more(
        traces,
        baseline,
        outputs_of(context.options, corpus.alphabets),
        timing=context.options.timing,
        rounding=corpus.rounding,
        part=part,
        seed=context.options.seed,
        time_left=context.time_left,
    )
