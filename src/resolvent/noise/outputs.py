"""Fit machines whose outputs are noisy, by marginal likelihood.

Input: samples. Output: the transitions of the most likely machine and of the best of each size,
and the likelihood of transitions. Labels are compared by the likelihood of the same outputs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log
from resolvent._util.parallel import Progress
from resolvent.errors import OptionError
from resolvent.machines import Machine, Machines
from resolvent.machines.build import Vocabularies, machine_of_tables, with_sample_counts
from resolvent.machines.compare import Alternative
from resolvent.machines.memory import shortest_paths
from resolvent.machines.tables import AlternativeTransitions, no_codes, no_numbers
from resolvent.preprocess.samples import (
    Histories,
    ObservationColumn,
    SampleSet,
    output_samples,
    supplement,
)
from resolvent.traces import TraceSet
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

SUBSAMPLE_ROWS = 200_000
"""Number of rows that machines are grown on; the best one is then fitted to all rows."""

MIN_GAIN: Final = 10.0
MIN_RELATIVE_GAIN: Final = 0.01
"""Minimum gain in log likelihood, in nats and as a share of it, that decides between labels."""


@dataclass(frozen=True, eq=False)
class LikelyMachine:
    """The most likely machine found, and the likelihood of others.

    `transitions` is [state, label], −1 for a label never read in a state; states are numbered in
    the order of their first visit. `log_evidence` is the log marginal likelihood of all outputs
    and of the machine, and `noise` the share of outputs other than the main one of their state and
    query. `sizes` and `by_size` hold the best evidence and transitions of each number of states,
    and `price` is the prior cost of one. `finished` is False if the time limit ended the search.
    """

    transitions: Codes
    log_evidence: float
    sizes: Mapping[int, float]
    noise: float
    finished: bool = True
    by_size: Mapping[int, Codes] = field(default_factory=dict)
    price: float = 0.0

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.transitions)

    @property
    def log_odds(self) -> dict[int, float]:
        """Log odds of the best machine of each size against this one, with the price of states."""
        return {
            states: log_evidence - self.log_evidence - self.price * (states - self.states)
            for states, log_evidence in self.sizes.items()
        }


@dataclass(frozen=True)
class SearchLimits:
    """The limits of a search for the most likely machine.

    More `effort` grows more machines; 1 is the default. After `time_limit` seconds the best machine
    so far is returned.
    """

    seed: int = 0
    effort: float = 1.0
    time_limit: float | None = None
    most_states: int = 40

    def __post_init__(self) -> None:
        if not self.effort > 0:
            raise OptionError(f"effort is {self.effort}: choose a number above 0")


UNLIMITED = SearchLimits()
COMPARISON = SearchLimits(effort=0.3, most_states=12)
"""Limits of the search for machines that are only compared: wrong labels need many states."""


def columns_of(samples: SampleSet) -> tuple[Codes, Codes, Codes, NDArray[np.int64]]:
    """Return samples as the compiled core reads them."""
    return samples.alpha, samples.output, samples.beta, samples.offsets


def fit_likely_machine(
    samples: SampleSet,
    limits: SearchLimits = UNLIMITED,
    listener: Callable[[Progress], object] | None = None,
) -> LikelyMachine:
    """Return the most likely machine that a search finds for samples with noisy outputs.

    A machine grows from one state by splitting and is merged back; machines are compared by the
    marginal likelihood of all outputs. The order of traces makes no difference.
    """
    labels = len(samples.labels)
    # "No event" changes no state until the evidence says otherwise. The search needs a label.
    quiet = np.zeros(max(labels, 1), np.int32)
    if (silence := samples.labels.get(NO_EVENT)) is not None:
        quiet[silence] = 1
    grown = _core.grow_noisy_machine(
        *columns_of(samples),
        quiet=quiet,
        seed=limits.seed,
        effort=limits.effort,
        most_states=limits.most_states,
        part=SUBSAMPLE_ROWS,
        time_limit=limits.time_limit or 0.0,
        progress=None if listener is None else lambda *numbers: listener(Progress(*numbers)),
    )

    def as_table(transitions: Codes) -> Codes:
        return transitions.reshape(-1, len(quiet))[:, :labels]

    return LikelyMachine(
        transitions=as_table(grown["transitions"]),
        log_evidence=grown["log_evidence"],
        sizes=dict(sorted(grown["sizes"].items())),
        noise=grown["noise"],
        finished=grown["finished"],
        by_size={states: as_table(table) for states, table in sorted(grown["by_size"].items())},
        price=grown["price"],
    )


@dataclass(frozen=True)
class NoisyEvidence:
    """The likelihood of outputs given transitions, and the noise at which it is largest.

    `noise` is the share of all outputs that are not the most frequent one of their state and query;
    `strength` and `share` are the parameters of the model in docs/decisions/noise.md.
    """

    log_evidence: float
    noise: float
    strength: float
    share: float


def marginal_likelihood(samples: SampleSet, transitions: Codes) -> NoisyEvidence:
    """Return the log marginal likelihood of samples under a machine, with its log prior.

    `transitions` is [state, label], −1 where a label is never read.
    """
    table = np.ascontiguousarray(transitions, np.int32).ravel()
    labels = len(samples.labels)
    figures = _core.noisy_machine_evidence(*columns_of(samples), transitions=table, labels=labels)
    return NoisyEvidence(*figures)


def machine_log_evidence(machine: Machine, samples: SampleSet) -> float:
    """Return the log likelihood of samples under one machine, which has their codes."""
    transitions = machine.transitions.copy()
    transitions[:, list(machine.trivial)] = np.arange(machine.states, dtype=np.int32)[:, None]
    return marginal_likelihood(samples, transitions).log_evidence


def log_evidence(machines: Machines, traces: TraceSet) -> float:
    """Return the log likelihood of the outputs of traces under the transitions of machines.

    Unknown labels change no state. The outputs of each state are estimated from the traces
    themselves, so that machines are compared by their transitions alone.
    """
    histories = Histories.of(traces, machines.timing)
    observed: ObservationColumn | None = None
    total = 0.0
    for machine in machines.values():
        transitions = machine.transitions_for(traces.labels, unseen="stay")
        samples = output_samples(
            traces,
            histories,
            machine.predicts,
            observed=observed if machine.supplemented else None,
            digits=machine.digits,
        )
        total += marginal_likelihood(samples, transitions).log_evidence
        if machine.predicts == OBSERVATION:
            states = _core.walk_states(
                transitions.ravel(), transitions.shape[1], histories.beta, histories.offsets
            )
            observed = supplement(traces, states)
    return total


def are_likelier(log_evidence: float, baseline: float, part: float = MIN_RELATIVE_GAIN) -> bool:
    """Return whether labels make outputs significantly likelier than the baseline does.

    >>> are_likelier(-100.0, -105.0), are_likelier(-100.0, -200.0), are_likelier(-9950.0, -1e4)
    (False, True, False)
    """
    return log_evidence - baseline > max(MIN_GAIN, part * -baseline)


# --- Alternatives ---------------------------------------------------------------------------------

OPEN_LOG_ODDS: Final = log(100)
"""Log odds of 100 to 1; a transition with less is reported as open."""

MAX_OPEN_TRANSITIONS: Final = 10
"""Maximum number of alternative machines with one other transition: the likeliest ones.

With hundreds of labels there may be hundreds, which `Machine.confidence` lists."""

MAX_CHANGES = 50
"""Maximum number of single transitions that `improve_transitions` changes."""


def compare_transitions(samples: SampleSet, transitions: Codes) -> AlternativeTransitions:
    """Compare each transition of a machine with other targets, all other transitions fixed.

    Traces that read the transition are replayed with another target: staying, and the three that
    outputs up to the next label favor most; all are compared by `marginal_likelihood`. Of more
    than 200,000 rows a part of the traces is used, which understates certainty.
    """
    states, labels = transitions.shape
    if labels == 0:
        return AlternativeTransitions(np.full((states, 0), -1, np.int32), np.zeros((states, 0)))
    target, log_odds = _core.transition_alternatives(
        *columns_of(samples),
        transitions=np.ascontiguousarray(transitions, np.int32).ravel(),
        labels=labels,
        part=SUBSAMPLE_ROWS,
    )
    target = target.reshape(states, labels)
    # The evidence alone does not decide whether "no event" changes a state.
    if (silence := samples.labels.get(NO_EVENT)) is not None:
        target[:, silence] = -1
    return AlternativeTransitions(target, log_odds.reshape(states, labels))


def improve_transitions(samples: SampleSet, likely: LikelyMachine) -> LikelyMachine:
    """Change single transitions of a machine while that makes all outputs likelier.

    The search uses an approximate score, and may leave a transition whose alternative has better
    odds. States that a change makes unreachable are dropped, which saves their price.
    """
    transitions, best = _total(likely.transitions), likely.log_evidence
    refused: set[tuple[int, int]] = set()
    for _ in range(MAX_CHANGES):
        better = _with_one_change(samples, transitions, best, likely.price, refused)
        if better is None:
            break
        if len(better[0]) < len(transitions):  # entries have other numbers now
            refused = set()
        transitions, best = better
    if best == likely.log_evidence:
        return likely
    transitions = _read_transitions(samples, transitions)
    return replace(
        likely,
        transitions=transitions,
        log_evidence=best,
        sizes={**likely.sizes, len(transitions): best},
        by_size={**likely.by_size, len(transitions): transitions},
        noise=marginal_likelihood(samples, transitions).noise,
    )


def _with_one_change(
    samples: SampleSet,
    transitions: Codes,
    best: float,
    price: float,
    refused: set[tuple[int, int]],
) -> tuple[Codes, float] | None:
    """Return likelier transitions that differ in one entry, with their evidence; or None.

    Each state costs its `price`. Changes that do not improve the evidence on all samples are added
    to `refused`; those with the worst odds of the present target are tried first.
    """
    comparison = compare_transitions(samples, transitions)
    log_odds = np.where(comparison.target < 0, np.inf, comparison.log_odds).ravel()
    for entry in np.argsort(log_odds, kind="stable").tolist():
        if log_odds[entry] >= 0:
            break
        target = int(comparison.target.flat[entry])
        if (entry, target) in refused:
            continue
        changed = transitions.copy()
        changed.flat[entry] = target
        changed = _reachable(samples, changed)
        log_evidence = marginal_likelihood(samples, changed).log_evidence
        if log_evidence + price * (len(transitions) - len(changed)) > best:
            return changed, log_evidence
        refused.add((entry, target))
    return None


def _reachable(samples: SampleSet, transitions: Codes) -> Codes:
    """Return the transitions of the states that samples reach, with new numbers."""
    reached = sorted(shortest_paths(_read_transitions(samples, transitions)))
    number = np.full(len(transitions), -1, np.int32)
    number[reached] = np.arange(len(reached), dtype=np.int32)
    return _total(number[transitions[reached]])


def with_exact_odds(
    samples: SampleSet,
    likely: LikelyMachine,
    transitions: Codes,
    comparison: AlternativeTransitions,
) -> AlternativeTransitions:
    """Compute the odds anew where a comparison favors another target of `transitions`.

    Comparisons keep the noise as fitted and may use a part of the samples. No change that makes all
    samples likelier is left, so that exact odds are at least even.
    """
    log_odds = comparison.log_odds.copy()
    present = marginal_likelihood(samples, _total(transitions)).log_evidence
    for state, code in np.argwhere((comparison.target >= 0) & (log_odds < 0)).tolist():
        changed = _total(transitions)
        changed[state, code] = comparison.target[state, code]
        changed = _reachable(samples, changed)
        saved = likely.price * (len(transitions) - len(changed))
        exact = present - marginal_likelihood(samples, changed).log_evidence - saved
        log_odds[state, code] = max(exact, 0.0)
    return replace(comparison, log_odds=log_odds)


def _read_transitions(samples: SampleSet, transitions: Codes) -> Codes:
    """Return the transitions that samples read, −1 for all others."""
    beta, offsets = samples.beta, samples.offsets
    table = np.ascontiguousarray(transitions.ravel())
    before = np.roll(_core.walk_states(table, transitions.shape[1], beta, offsets), 1)
    before[offsets[:-1][np.diff(offsets) > 0]] = 0
    entries = before[beta >= 0], beta[beta >= 0]
    read = np.full(transitions.shape, -1, np.int32)
    read[entries] = transitions[entries]
    return read


def alternatives(
    machine: Machine, samples: SampleSet, likely: LikelyMachine, comparison: AlternativeTransitions
) -> tuple[Alternative, ...]:
    """Return the machines that are less than 100 times less likely, likeliest first.

    They are the best machine of each other number of states, and the same machine with one of the
    ten least certain transitions changed.
    """
    machines = [
        Alternative(_with_transitions(machine, samples, likely.by_size[states]), log_odds)
        for states, log_odds in likely.log_odds.items()
        if states != likely.states and log_odds > -OPEN_LOG_ODDS
    ]
    is_open = (comparison.target >= 0) & (comparison.log_odds < OPEN_LOG_ODDS)
    least_certain = np.argsort(comparison.log_odds[is_open], kind="stable")[:MAX_OPEN_TRANSITIONS]
    for state, code in np.argwhere(is_open)[least_certain].tolist():
        transitions, target = machine.transitions.copy(), int(comparison.target[state, code])
        transitions[state, code] = target
        changed = _with_transitions(machine, samples, _total(transitions))
        change = (state, machine.labels[code], target)
        machines.append(Alternative(changed, -float(comparison.log_odds[state, code]), change))
    return tuple(sorted(machines, key=lambda alternative: -alternative.log_odds))


def _with_transitions(machine: Machine, samples: SampleSet, transitions: Codes) -> Machine:
    """Return a machine of the same type with other transitions, and their outputs."""
    loops = np.arange(len(transitions), dtype=np.int32)[:, None]
    trivial = np.flatnonzero((_total(transitions) == loops).all(0))
    changed, _ = machine_of_tables(
        type(machine),
        Vocabularies(samples.labels, samples.observations, samples.actions, samples.outputs),
        transitions,
        (no_numbers(), no_numbers(), no_codes()),
        trivial=tuple(trivial.tolist()),
        predicts=machine.predicts,
        supplemented=machine.supplemented,
        digits=machine.digits,
    )
    return with_sample_counts(changed, samples)


def _total(transitions: Codes) -> Codes:
    """Return the transitions with self-loops for the unknown ones."""
    loops = np.arange(len(transitions), dtype=np.int32)[:, None]
    return np.where(transitions < 0, loops, transitions)
