"""Machines + traces → the machines without the answers that no trace shows.

A question that always got the same answer is answered so in every state, also in
states in which nobody asked it (docs/decisions/unseen.md). Whoever looks for the
best thing to do looks hardest where such an answer is wrong.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from resolvent.control.steps import distinct_keys
from resolvent.machines import MachinePair
from resolvent.machines.machine import Machine, look_up
from resolvent.machines.score import StepsAsked

M = TypeVar("M", bound=Machine)


def as_witnessed(pair: MachinePair, asked: tuple[StepsAsked, StepsAsked]) -> MachinePair:
    """Return the pair with constant answers only in states in which they were asked for."""
    return replace(
        pair,
        transition=_witnessed(pair.transition, asked[0]),
        reward=_witnessed(pair.reward, asked[1]),
    )


def _witnessed(machine: M, asked: StepsAsked) -> M:
    size = len(machine.observations) * len(machine.actions)
    rows = (asked.states >= 0) & (asked.questions >= 0)
    keys = asked.states[rows].astype(np.int64) * size + asked.questions[rows]
    shown, _ = distinct_keys(keys, machine.states * size)
    values = look_up(machine.constant_question, machine.constant_value, shown % max(size, 1))
    shown, values = shown[values >= 0], values[values >= 0]
    by_state = machine.output_state.astype(np.int64) * size + machine.output_question
    everything = np.concatenate([by_state, shown])
    order = np.argsort(everything)
    state, question = np.divmod(everything[order], max(size, 1))
    return replace(
        machine,
        output_state=state.astype(np.int32),
        output_question=question,
        output_value=np.concatenate([machine.output_value, values])[order],
        constant_question=machine.constant_question[:0],
        constant_value=machine.constant_value[:0],
        support=None,
    )
