"""Traces whose labels may lie → those that what is seen stands for, where they explain more.

Labels as recorded and as corrected are to explain what came of the same steps, so those under
which that is likelier are the true ones. Labels that follow from what is seen may be
corrected, but not where observations lie, or where an event depends on what cannot be seen.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from resolvent import _core
from resolvent.errors import ContradictoryTraces
from resolvent.learning import WEIGHING
from resolvent.machines import Machine, Machines
from resolvent.noise import (
    WITHOUT_LABELS,
    Corrected,
    LabelTally,
    Noise,
    follow_exactly,
    follow_nothing,
    most_likely,
    truthful,
    weigh,
)
from resolvent.reduction import trivial_codes
from resolvent.replay import Corpus
from resolvent.running import SAMPLE_STEPS, Run, outputs_of
from resolvent.samples import Histories, LabelTiming, ObservationColumn, output_samples
from resolvent.senses import Senses
from resolvent.supplement import supplement
from resolvent.traces import TraceSet
from resolvent.traces.column_names import OBSERVATION
from resolvent.traces.shards import ShardsInMemory
from resolvent.traces.vocabulary import Codes

GLIMPSE: Final = 10_000
"""Steps that tell whether there is anything to ask."""

SELDOM: Final = 20
"""Steps for each label, at least, before labels are asked whether they lie."""

MANY_STATES: Final = 12
"""Machines of more than so many states are not believed, if another reading is likelier; those of
fewer make nobody ask whether labels lie."""

LITTLE: Final = 0.1
"""Labels that explain no more than this part of the answers tell nothing: they only count steps."""

NATS: Final = 10.0
CLEARLY: Final = 0.01
"""By so many nats, and such a part of their sum, answers have to be likelier with other labels."""

_EFFORT, _MOST_STATES = 0.3, 12
"""Of the search for machines that are only compared. Wrong labels want many states."""


def true_labels(
    run: Run, corpus: Corpus, *, contradict: bool = False, doubted: bool = False
) -> Corrected | None:
    """Return the labels that what is seen and done stands for, if those recorded clearly lie.

    Machines are learned from some of the traces with labels as recorded and as corrected.
    Labels that lie may contradict nothing, and yet take a hundred states for seven; but
    nothing is tried where few states explain some steps, unless machines for all are `doubted`.
    `contradict` says that all traces are known to contradict each other. `WITHOUT_LABELS` if
    those recorded tell nothing at all.
    """
    timing = run.options.timing
    stated = isinstance(run.options.noise, Noise)
    if not run.senses.labelling.is_given or (stated and contradict):
        return None  # there is nothing to correct, or it was tried at first
    if not stated and corpus.steps < SELDOM * len(corpus.alphabets.labels):
        return None  # labels that are hardly ever read cannot be seen to lie
    few = corpus.fetch(corpus.sample(GLIMPSE))
    if follow_exactly(few, timing) or _have_reasons(run, LabelTally.of(few, timing)):
        return None
    recorded = corpus.fetch(corpus.sample(SAMPLE_STEPS))
    tally = LabelTally.of(recorded, timing)
    found = _followed(run, tally)
    if _have_reasons(run, tally):
        return None
    if found is None and not follow_nothing(tally):
        return None  # they depend on what is not seen, or follow exactly from what is done
    asking = not contradict and not stated
    if (
        asking
        and not doubted
        and (seen := _explaining(run, corpus, few))
        and _most_states(seen) <= MANY_STATES
    ):
        return None
    machines = _explaining(run, corpus, recorded) if asking else None
    states = _most_states(machines) if machines else 0
    if found is None:
        useless = machines is not None and states > MANY_STATES
        return WITHOUT_LABELS if useless and _tell_nothing(run, corpus, machines) else None
    corrected = found.labelling.on(recorded)
    after = None if machines is None else _explaining(run, corpus, corrected)
    if machines is not None and after is not None:
        likely = log_evidence(after, corrected), log_evidence(machines, recorded)
        wins = are_likelier(*likely)
    else:
        wins = (machines is None or states > MANY_STATES) and _win(
            run, corpus, corrected, recorded, CLEARLY
        )
    if not wins:
        return None
    return _followed(run, LabelTally.joined([LabelTally.of(one, timing) for one in corpus.shards]))


def relabelled(run: Run, corpus: Corpus, true: Corrected) -> tuple[Run, Corpus]:
    """Return an inference, and what it is about, with true labels instead of those recorded."""
    senses = replace(run.senses, labelling=true.labelling)
    shards = Senses(true.labelling).on_shards(corpus.shards)
    again = Run(run.options, run.progress, senses, run.started, run.given)
    return again, Corpus(shards, corpus.rounding, workers=corpus.workers)


def _followed(run: Run, tally: LabelTally) -> Corrected | None:
    noise = run.options.noise
    share = noise.labels if isinstance(noise, Noise) else True
    return truthful(tally, share=None if isinstance(share, bool) else share)


def _have_reasons(run: Run, tally: LabelTally) -> bool:
    """Whether labels follow exactly from what is seen and done, or depend on what is not seen."""
    return _followed(run, tally) is None and not follow_nothing(tally)


def _most_states(machines: Machines) -> int:
    return max(one.states for one in machines.values())


def _explaining(run: Run, corpus: Corpus, some: TraceSet) -> Machines | None:
    """Return machines that explain some of the traces without noise; None if there are none."""
    options = run.options
    if options.trivial != "auto" and options.remove_trivial:
        # Of the labels named, those that occur among these.
        named = (label for label in corpus.alphabets.labels if label in some.labels)
        known = trivial_codes(corpus.alphabets.labels, options.trivial)
        trivial = {corpus.alphabets.labels[code] for code in known}
        options = replace(options, trivial=tuple(one for one in named if one in trivial))
    if options.strategy.searches:  # that would take long, for a machine that is only compared
        options = replace(options, strategy=WEIGHING)
    trial = Run(options, run.progress, run.senses, run.started)
    try:
        return trial.exact(Corpus(ShardsInMemory([some]), corpus.rounding)).machines
    except ContradictoryTraces:
        return None


def _tell_nothing(run: Run, corpus: Corpus, machines: Machines | None) -> bool:
    """Whether hardly anything is explained by labels as recorded, which follow from nothing."""
    some = corpus.fetch(corpus.sample(SAMPLE_STEPS))
    silent = WITHOUT_LABELS.labelling.on(some)
    if machines and log_evidence(machines, silent) <= log_evidence(machines, some):
        return False
    few = corpus.fetch(corpus.sample(SAMPLE_STEPS // 5))
    return not _win(run, corpus, few, WITHOUT_LABELS.labelling.on(few), LITTLE)


def _win(run: Run, corpus: Corpus, these: TraceSet, others: TraceSet, part: float) -> bool:
    """Whether the labels of some traces make noisy answers much likelier than others do."""
    return explain_more(
        these,
        others,
        outputs_of(run.options, corpus.alphabets),
        timing=run.options.timing,
        rounding=corpus.rounding,
        part=part,
        seed=run.options.seed,
        time_left=run.time_left,
    )


def are_likelier(these: float, others: float, part: float = CLEARLY) -> bool:
    """Whether these labels make answers so much likelier than others that there is no doubt.

    >>> are_likelier(-100.0, -105.0), are_likelier(-100.0, -200.0), are_likelier(-9950.0, -1e4)
    (False, True, False)
    """
    return these - others > max(NATS, part * -others)


def explain_more(
    labelled: TraceSet,
    otherwise: TraceSet,
    outputs: Sequence[str],
    *,
    timing: LabelTiming,
    rounding: Mapping[str, int],
    part: float = CLEARLY,
    seed: int = 0,
    time_left: Callable[[], float | None] = lambda: None,
) -> bool:
    """Whether the most likely machines explain noisy answers much better with these labels.

    The traces differ in labels alone. For both, machines are learned for one output after the
    other, until there is a difference.

    >>> from resolvent.environments import House
    >>> from resolvent.traces.live.collecting import collect
    >>> told = collect(House(), episodes=100, seed=0)
    >>> untold = WITHOUT_LABELS.labelling.on(told)
    >>> options = {"timing": LabelTiming.CURRENT, "rounding": {}}
    >>> explain_more(told, untold, ["observation"], **options)
    True
    >>> explain_more(untold, told, ["observation"], **options)
    False
    """
    for predicts in outputs:
        found = []
        for traces in (labelled, otherwise):
            samples = output_samples(
                traces,
                Histories.of(traces, timing),
                predicts,
                digits=rounding.get(predicts),
            )
            likely = most_likely(
                samples,
                seed=seed,
                effort=_EFFORT,
                most_states=_MOST_STATES,
                time_limit=time_left(),
            )
            found.append(likely.log_evidence)
        these, others = found
        if are_likelier(these, others, part):
            return True
        if are_likelier(others, these, part):
            return False
    return False


def log_evidence(machines: Machines, traces: TraceSet) -> float:
    """Return the logarithm of how likely the answers of traces are, if machines gave them.

    The machines move on the labels that the traces have, and stay where they were never shown
    the label. What each state answers is learned from the traces themselves, so that machines
    are compared by their moves alone.

    >>> from resolvent.environments import House
    >>> from resolvent.traces.labelling import Labelling
    >>> from resolvent.traces.live.collecting import collect
    >>> traces, machines = collect(House(), episodes=50, seed=0), House().machines()
    >>> unlabelled = Labelling("observation", {}).on(traces)
    >>> log_evidence(machines, traces) > log_evidence(machines, unlabelled)
    True
    """
    histories = Histories.of(traces, machines.timing)
    observed: ObservationColumn | None = None
    total = 0.0
    for machine in machines.values():
        moves = _moves(machine, traces)
        samples = output_samples(
            traces,
            histories,
            machine.predicts,
            observed=observed if machine.supplemented else None,
            digits=machine.digits,
        )
        total += weigh(samples, moves).log_evidence
        if machine.predicts == OBSERVATION:
            states = _core.walk_states(
                moves.ravel(), moves.shape[1], histories.beta, histories.offsets
            )
            observed = supplement(traces, states)
    return total


def _moves(machine: Machine, traces: TraceSet) -> Codes:
    """Return where the labels of traces lead, as [state, label]; unknown ones lead nowhere."""
    stays = np.arange(machine.states, dtype=np.int32)
    moves = np.repeat(stays[:, None], max(len(traces.labels), 1), axis=1)
    for code, label in enumerate(traces.labels):
        if (known := machine.labels.get(label)) is not None:
            column = machine.transitions[:, known]
            moves[:, code] = np.where(column < 0, stays, column)
    return np.ascontiguousarray(moves)
