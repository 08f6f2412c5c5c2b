"""A machine's moves + noisy samples → the machine with all that its states answered there."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from resolvent.machines.machine import Machine
from resolvent.machines.spread import answered
from resolvent.machines.support import Support
from resolvent.samples import SampleSet

M = TypeVar("M", bound=Machine)


def answering(machine: M, samples: SampleSet) -> M:
    """Return the machine with the answers and counts of samples, and without moves never made.

    The machine and the samples share their codes. Every answer belongs to the state that gave
    it: none is taken to be the same in states that were never asked.
    """
    states = machine.replay(samples.beta, samples.offsets)
    rows = np.flatnonzero((samples.alpha >= 0) & (states >= 0))
    columns = np.stack(
        [states[rows], samples.alpha_keys[samples.alpha[rows]], samples.output[rows]]
    )
    (state, question, output), count = np.unique(columns, axis=1, return_counts=True)
    by_state = answered(
        state.astype(np.int32), question.astype(np.int64), output.astype(np.int32), count
    )
    made = np.zeros(machine.transitions.shape, np.int64)
    before = np.zeros_like(states)
    before[1:] = states[:-1]
    before[samples.offsets[:-1][np.diff(samples.offsets) > 0]] = 0
    read = np.flatnonzero((samples.beta >= 0) & (before >= 0))
    np.add.at(made, (before[read], samples.beta[read]), 1)
    transitions = np.where(made > 0, machine.transitions, np.int32(-1))
    loops = np.arange(machine.states, dtype=np.int32)[:, None]
    transitions[:, list(machine.trivial)] = loops
    made[:, list(machine.trivial)] = 0  # they are no moves
    return replace(
        machine,
        transitions=transitions,
        output_state=by_state.state,
        output_question=by_state.question,
        output_value=by_state.value,
        spread=by_state.spread,
        support=Support(made, by_state.asked, np.empty(0, np.int64)),
    )
