"""Machines + traces with labels, recorded or corrected → how likely the answers are with these.

Both say what came of the same steps, so the labels under which that is likelier are the true
ones. Labels that follow from what is seen may be corrected (`resolvent.noise.truthful`), but
not where observations lie, or where an event depends on what cannot be seen.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from resolvent import _core
from resolvent.machines import Machine, Machines
from resolvent.noise import most_likely, weigh
from resolvent.samples import Histories, LabelTiming, ObservationColumn, output_samples
from resolvent.supplement import supplement
from resolvent.traces import TraceSet
from resolvent.traces.column_names import OBSERVATION
from resolvent.traces.vocabulary import Codes

NATS, CLEARLY = 10.0, 0.01
"""By so many nats, and such a part of their sum, answers have to be likelier with other labels."""

_EFFORT, _MOST_STATES = 0.3, 12
"""Of the search for machines that are only compared. Wrong labels want many states."""


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

    >>> import numpy as np
    >>> from resolvent.traces import Trace
    >>> def walk(told, open):
    ...     return Trace([0, 1, 2 if open else 0], [None, told, None], ["go", "go"])
    >>> truth = [walk(told, told == "key") for told in ["key", None] * 40]
    >>> lies = [walk("key", False), walk(None, True)] * 20
    >>> options = {"timing": LabelTiming.CURRENT, "rounding": {}}
    >>> true, lying = TraceSet(truth), TraceSet(truth[40:] + lies)
    >>> explain_more(true, lying, ["observation"], **options)
    True
    >>> explain_more(lying, true, ["observation"], **options)
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
        if are_likelier(*found, part):
            return True
        if are_likelier(*reversed(found), part):
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
            observed = supplement(machines.transition, traces, states)
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
