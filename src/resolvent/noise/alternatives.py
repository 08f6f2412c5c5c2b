"""Alternatives to the most likely machine that the traces hardly distinguish from it.

Input: samples and transitions. Output: for each transition the likeliest other target, and
machines with one transition or another number of states.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from resolvent import _core
from resolvent._util.math import log
from resolvent.machines.build import Vocabularies, machine_of_tables, with_sample_counts
from resolvent.machines.compare import Alternative
from resolvent.machines.machine import Machine
from resolvent.machines.memory import shortest_paths
from resolvent.machines.tables import AlternativeTransitions
from resolvent.noise.outputs import SUBSAMPLE_ROWS, LikelyMachine, marginal_likelihood
from resolvent.preprocess.samples import SampleSet
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes

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
    target, log_odds = _core.rival_moves(
        samples.alpha,
        samples.output,
        samples.beta,
        samples.offsets,
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
    odds. A transition that makes a state reachable stays.
    """
    transitions = _total(likely.transitions)
    best = likely.log_evidence
    refused: set[tuple[int, int]] = set()
    for _ in range(MAX_CHANGES):
        better = _with_one_change(samples, transitions, best, refused)
        if better is None:
            break
        transitions, best = better
    if best == likely.log_evidence:
        return likely
    transitions = _read_transitions(samples, transitions)
    return replace(
        likely,
        transitions=transitions,
        log_evidence=best,
        sizes={**likely.sizes, likely.states: best},
        by_size={**likely.by_size, likely.states: transitions},
        noise=marginal_likelihood(samples, transitions).noise,
    )


def _with_one_change(
    samples: SampleSet, transitions: Codes, best: float, refused: set[tuple[int, int]]
) -> tuple[Codes, float] | None:
    """Return likelier transitions that differ in one entry, with their evidence; or None.

    Changes that leave a state unreachable or do not improve the evidence on all samples are added
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
        if len(shortest_paths(_read_transitions(samples, changed))) == len(changed):
            log_evidence = marginal_likelihood(samples, changed).log_evidence
            if log_evidence > best:
                return changed, log_evidence
        refused.add((entry, target))
    return None


def _read_transitions(samples: SampleSet, transitions: Codes) -> Codes:
    """Return the transitions that samples read, −1 for all others."""
    table = np.ascontiguousarray(transitions.ravel())
    states = _core.walk_states(table, transitions.shape[1], samples.beta, samples.offsets)
    before = np.roll(states, 1)
    before[samples.offsets[:-1][np.diff(samples.offsets) > 0]] = 0
    rows = np.flatnonzero(samples.beta >= 0)
    read = np.full(transitions.shape, -1, np.int32)
    entries = before[rows], samples.beta[rows]
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
    empty = np.empty(0, np.int64)
    loops = np.arange(len(transitions), dtype=np.int32)[:, None]
    is_trivial = (_total(transitions) == loops).all(0)
    changed, _ = machine_of_tables(
        type(machine),
        Vocabularies(samples.labels, samples.observations, samples.actions, samples.outputs),
        transitions,
        (empty, empty, np.empty(0, np.int32)),
        trivial=tuple(np.flatnonzero(is_trivial).tolist()),
        predicts=machine.predicts,
        supplemented=machine.supplemented,
        digits=machine.digits,
    )
    return with_sample_counts(changed, samples)


def _total(transitions: Codes) -> Codes:
    """Return the transitions with self-loops for the unknown ones."""
    loops = np.arange(len(transitions), dtype=np.int32)[:, None]
    return np.where(transitions < 0, loops, transitions)
