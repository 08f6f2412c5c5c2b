"""Compare labels by how likely they make the outputs of the same steps.

Input: traces that differ in labels alone, or machines. Output: log likelihoods of the outputs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from resolvent import _core
from resolvent.machines import Machine, Machines
from resolvent.noise.outputs import fit_likely_machine, marginal_likelihood
from resolvent.preprocess.samples import Histories, ObservationColumn, SampleSet, output_samples
from resolvent.preprocess.supplement import supplement
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.schema import OBSERVATION
from resolvent.traces.vocabulary import Codes

NATS: Final = 10.0
CLEARLY: Final = 0.01
"""Smallest gain in log likelihood, in nats and as a share of it, that decides between labels."""

_EFFORT, _MOST_STATES = 0.3, 12
"""Limits of the search for machines that are only compared: wrong labels need many states."""


def are_likelier(log_evidence: float, baseline: float, part: float = CLEARLY) -> bool:
    """Return whether labels make outputs likelier than the baseline does, beyond doubt.

    >>> are_likelier(-100.0, -105.0), are_likelier(-100.0, -200.0), are_likelier(-9950.0, -1e4)
    (False, True, False)
    """
    return log_evidence - baseline > max(NATS, part * -baseline)


def explain_more(
    traces: TraceSet,
    baseline: TraceSet,
    outputs: Sequence[str],
    *,
    timing: LabelTiming,
    rounding: Mapping[str, int],
    part: float = CLEARLY,
    seed: int = 0,
    time_left: Callable[[], float | None] = lambda: None,
) -> bool:
    """Return whether the most likely machines explain noisy outputs much better with these labels.

    The baseline differs in labels alone. Machines are fitted to both for one output after the
    other, until they differ.

    >>> from resolvent.worlds import House
    >>> from resolvent.preprocess.labeling import LabelingFunction
    >>> from resolvent.rl.collect import collect
    >>> traces = collect(House(), episodes=100, seed=0)
    >>> unlabeled = LabelingFunction("observation", {}).on(traces)
    >>> options = {"timing": LabelTiming.CURRENT, "rounding": {}}
    >>> explain_more(traces, unlabeled, ["observation"], **options)
    True
    >>> explain_more(unlabeled, traces, ["observation"], **options)
    False
    """
    for predicts in outputs:
        fits = [
            fit_likely_machine(
                output_samples(
                    labeled, Histories.of(labeled, timing), predicts, digits=rounding.get(predicts)
                ),
                seed=seed,
                effort=_EFFORT,
                most_states=_MOST_STATES,
                time_limit=time_left(),
            ).log_evidence
            for labeled in (traces, baseline)
        ]
        if are_likelier(fits[0], fits[1], part):
            return True
        if are_likelier(fits[1], fits[0], part):
            return False
    return False


def log_evidence(machines: Machines, traces: TraceSet) -> float:
    """Return the log likelihood of the outputs of traces under the transitions of machines.

    The machines read the labels of the traces, and stay where they have not seen a label. The
    outputs of each state are estimated from the traces themselves, so that machines are compared
    by their transitions alone.

    >>> from resolvent.worlds import House
    >>> from resolvent.preprocess.labeling import LabelingFunction
    >>> from resolvent.rl.collect import collect
    >>> traces, machines = collect(House(), episodes=50, seed=0), House().machines()
    >>> unlabeled = LabelingFunction("observation", {}).on(traces)
    >>> log_evidence(machines, traces) > log_evidence(machines, unlabeled)
    True
    """
    histories = Histories.of(traces, machines.timing)
    observed: ObservationColumn | None = None
    total = 0.0
    for machine in machines.values():
        transitions = _for_labels_of(machine, traces)
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


def machine_log_evidence(machine: Machine, samples: SampleSet) -> float:
    """Return the log likelihood of samples under one machine, which has their codes."""
    transitions = machine.transitions.copy()
    transitions[:, list(machine.trivial)] = np.arange(machine.states, dtype=np.int32)[:, None]
    return marginal_likelihood(samples, transitions).log_evidence


def _for_labels_of(machine: Machine, traces: TraceSet) -> Codes:
    """Return the transitions as [state, label] for the labels of traces; unknown labels loop."""
    stays = np.arange(machine.states, dtype=np.int32)
    transitions = np.repeat(stays[:, None], max(len(traces.labels), 1), axis=1)
    for code, label in enumerate(traces.labels):
        if (machine_code := machine.labels.get(label)) is not None:
            column = machine.transitions[:, machine_code]
            transitions[:, code] = np.where(column < 0, stays, column)
    return np.ascontiguousarray(transitions)
