"""Machines → what they have counted themselves, in the rows and codes of a model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from resolvent.control.planning.chance.paying import Pay
from resolvent.control.planning.chance.tallies import Tally
from resolvent.control.planning.steps import Keys, Space
from resolvent.machines import Machine
from resolvent.machines.columns import is_among
from resolvent.traces.vocabulary import Codes, codes_of


def number_of(parts: Sequence[Any], sizes: Sequence[int]) -> Keys:
    """Return one number for parts that are below their sizes; that of the first is not needed.

    >>> int(number_of((2, 1, 3), (0, 2, 5)))
    28
    """
    number = np.asarray(parts[0], np.int64)
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        number = number * size + part
    return number


def _answers_of(machine: Machine, trust_constants: bool) -> tuple[Codes, Keys, Codes, Keys]:
    """Return all answers that a machine has counted, as state, question, value and count.

    Constant answers are there if they are trusted: then in every state, as often as anywhere.
    """
    spread, support = machine.spread, machine.support
    columns = [(spread.state, spread.question, spread.value, spread.count)]
    if support is not None:
        width = len(machine.observations) * len(machine.actions)
        several = np.unique(spread.state.astype(np.int64) * width + spread.question)
        own = machine.output_state.astype(np.int64) * width + machine.output_question
        one = ~is_among(several, own)
        columns.append(
            (
                machine.output_state[one],
                machine.output_question[one],
                machine.output_value[one],
                support.outputs[one],
            )
        )
    if trust_constants:
        states, constants = machine.states, len(machine.constant_question)
        times = np.ones(constants, np.int64) if support is None else support.constants
        columns.append(
            (
                np.repeat(np.arange(states, dtype=np.int32), constants),
                np.tile(machine.constant_question, states),
                np.tile(machine.constant_value, states),
                np.tile(np.maximum(times, 1), states),
            )
        )
    state, question, value, count = (np.concatenate(one) for one in zip(*columns, strict=True))
    counted = count > 0
    return state[counted], question[counted], value[counted], count[counted]


def arriving_by(machine: Machine, space: Space, trust_constants: bool) -> Tally:
    """Return how often the Transition Machine saw each observation follow."""
    state, question, value, count = _answers_of(machine, trust_constants)
    seen, done = np.divmod(question, len(machine.actions))
    o = codes_of(machine.observations, space.observations, -1)[seen]
    a = codes_of(machine.actions, space.actions, -1)[done]
    following = codes_of(machine.outputs, space.observations, -1)[value]
    keys = number_of((o, state, a), (0, space.sizes[0], len(space.actions)))
    return Tally.of(keys, following.astype(np.int64), len(space.observations), count)


def paid_by(
    machine: Machine, space: Space, trust_constants: bool, number: Callable[..., Keys]
) -> Pay:
    """Return how often the Reward Machine saw something paid, and what on average.

    `number` makes a row's number of observation, states and action.
    """
    state, question, value, count = _answers_of(machine, trust_constants)
    seen, done = np.divmod(question, len(machine.actions))
    a = codes_of(machine.actions, space.actions, -1)[done]
    if machine.supplemented:
        pairs: list[Any] = list(machine.observations)
        o = codes_of((one for one, _ in pairs), space.observations, -1)[seen]
        transition = np.array([own for _, own in pairs], np.int64)[seen]
    else:
        o = codes_of(machine.observations, space.observations, -1)[seen]
        transition = np.zeros(len(seen), np.int64)
    named = o >= 0
    keys = number(o[named], [transition[named], state[named]], a[named])
    pay = np.array([float(one) for one in machine.outputs])[value]
    return Pay.of(keys, pay[named], count[named])
