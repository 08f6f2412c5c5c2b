"""Traces → as they most likely were, where labels lie or starts are hidden: states are inferred.

The general case of both: nothing is taken to follow from what is seen. Labels that do follow
from it are corrected before, without any belief about states.
"""

from math import sqrt
from typing import Final

import numpy as np

from resolvent.machines import Machine
from resolvent.noise import Noise
from resolvent.noise.hidden import infer_latent as unmask
from resolvent.options import Options
from resolvent.readings import Reading
from resolvent.result import Found
from resolvent.samples import Histories, output_samples
from resolvent.senses import Senses
from resolvent.traces import TraceSet

_READINGS: Final = 50
"""So many steps there must be for each label: with fewer, hidden states are told by nothing."""

_APART: Final = 3
"""Odd answers so many steps apart have nothing to do with each other, if they come by chance: an
observation that was read wrongly spoils two steps in a row."""

_PERSISTS: Final = 1.5
"""Odd answers depend on the past if one follows another so much more often than any answer, """

_DEVIATIONS: Final = 5.0
"""and by so many standard deviations more often."""


def hidden_labels(
    traces: TraceSet, options: Options, senses: Senses, found: Found, seconds: float | None
) -> Reading | None:
    """Read traces with the labels that most likely were true, inferred from what came later.

    Unless the user says that labels lie, this is tried only where odd answers depend on the past.
    """
    return _reading("labels", traces, options, senses, found, seconds)


def hidden_starts(
    traces: TraceSet, options: Options, senses: Senses, found: Found, seconds: float | None
) -> Reading | None:
    """Read traces with a label at each beginning that says in which hidden way it began."""
    return _reading("starts", traces, options, senses, found, seconds)


def _reading(
    kind: str,
    traces: TraceSet,
    options: Options,
    senses: Senses,
    found: Found,
    seconds: float | None,
) -> Reading | None:
    if not isinstance(options.noise, Noise) and not (
        _is_thinkable(kind, traces, senses) and oddness_persists(traces, options, found)
    ):
        return None
    unmasked = unmask(
        traces,
        options.timing,
        [machine.predicts for machine in found.machines.values()],
        labels=kind == "labels",
        starts=kind == "starts",
        digits=options.reward_digits,
        seed=options.seed,
        effort=options.effort,
        time_limit=seconds,
    )
    if unmasked is None:
        return None
    lies = unmasked.doubt.label_noise
    shares = {} if lies is None else lies.shares()
    if unmasked.doubt.starts:
        shares["other starts"] = 1 - max(unmasked.doubt.starts.values())
    return Reading(
        kind,
        unmasked.traces,
        senses,
        unmasked.log_evidence,
        shares,
        timing=unmasked.timing,
        doubt=unmasked.doubt,
    )


def _is_thinkable(kind: str, traces: TraceSet, senses: Senses) -> bool:
    """Whether it is worth the time to look for what is hidden, if nobody says that it is there.

    Labels that are made of what is seen do not lie by themselves.
    """
    if kind == "labels" and not senses.labelling.is_given:
        return False
    return traces.steps >= _READINGS * len(traces.labels)


def oddness_persists(traces: TraceSet, options: Options, found: Found) -> bool:
    """Whether answers of a machine are odd many times in a row, as if its state was wrong.

    An answer is odd if it is not the most frequent one to its question in its state. By chance,
    an odd answer is followed by another one no more often than any answer is. The first machine
    that has odd answers is asked: what is wrong there goes on in those that are told its states.
    """
    histories = Histories.of(traces, options.timing)
    verdicts = (_oddness_persists(traces, histories, one) for one in found.machines.values())
    return next((one for one in verdicts if one is not None), False)


def _oddness_persists(traces: TraceSet, histories: Histories, machine: Machine) -> bool | None:
    """Whether the odd answers of one machine come in a row; None if there are none."""
    samples = output_samples(traces, histories, machine.predicts, digits=machine.digits)
    states = machine.replay(samples.beta, samples.offsets)
    outputs = max(len(samples.outputs), 1)
    asked = samples.alpha.astype(np.int64) * machine.states + states
    answers, place, count = np.unique(
        asked * outputs + samples.output, return_inverse=True, return_counts=True
    )
    _, row = np.unique(answers // outputs, return_inverse=True)
    most = np.zeros(row.max() + 1, np.int64)
    np.maximum.at(most, row, count)
    is_odd = (count < most[row])[place]
    if not is_odd.any():
        return None
    several = (
        np.bincount(np.unique(samples.alpha.astype(np.int64) * outputs + samples.output) // outputs)
        > 1
    )
    tells = np.flatnonzero(several[samples.alpha] & (states >= 0))
    trace = np.searchsorted(samples.offsets, tells, side="right")
    later = np.searchsorted(tells, tells + _APART)
    pair = np.flatnonzero(later < len(tells))
    pair = pair[trace[later[pair]] == trace[pair]]
    before, after = is_odd[tells[pair]], is_odd[tells[later[pair]]]
    if not before.any() or not after.any():
        return False
    both, share = int((before & after).sum()), float(after.mean())
    by_chance = float(before.sum()) * share
    deviation = sqrt(by_chance * (1 - share))
    return both > max(_PERSISTS * by_chance, by_chance + _DEVIATIONS * deviation)
