"""A machine and answers → how likely it holds each of them to be, and never impossible.

The main answer, which came `m` times of `n`, has the chance (m + s·(1 − noise)) / (n + s),
where s is the strength of the machine's smoothing. An odd one that came `c` times has of the
rest the share (c + t·b) / (n − m + t), where t is the strength for odd ones, and b its share
among the odd answers of other states to the same question, and some more that are even. An
output that the machine does not know has a small chance of its own, by which all others are
reduced.
"""

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.asking import spread_rows, times_asked
from resolvent.machines.columns import places
from resolvent.machines.likelihood.pool import Pool
from resolvent.machines.likelihood.smoothing import Smoothing
from resolvent.machines.machine import Machine
from resolvent.traces.vocabulary import Codes


def chances(
    machine: Machine,
    smoothing: Smoothing,
    states: Codes,
    questions: NDArray[np.int64],
    outputs: Codes,
) -> NDArray[np.float64]:
    """Return how likely a machine holds outputs to be, in these states and to these questions.

    All are codes of the machine, −1 for what it does not know; where it has no answer, the
    chance is nan. An answer that is the same in every state counts as often as it came in
    all of them; what was not counted came once.

    >>> from resolvent.worlds import House
    >>> machine = House().machines().transition
    >>> told = machine.output_state[:1], machine.output_question[:1]
    >>> right, other = machine.output_value[:1], np.array([-1], np.int32)
    >>> few = Smoothing((0.2,) * 7, strength=1, odd_strength=1, even_strength=1, novelty=0.01)
    >>> [chances(machine, few, *told, one).round(3).tolist() for one in (right, other)]
    [[0.891], [0.01]]
    """
    row = machine._rows.answers(states, questions)
    fixed = places(machine.constant_question, questions)
    asked = np.zeros(len(row), np.int64)
    for place, times in zip((row, fixed), times_asked(machine), strict=True):
        asked[place >= 0] = times[place[place >= 0]]
    main = machine.answer_many(states, questions)
    came, most = np.where(main == outputs, asked, 0), asked.copy()
    if machine.is_noisy:
        varies, count = _varying(machine, row, outputs)
        came[varies] = count[varies]
        most[varies] = _varying(machine, row, main)[1][varies]
    strength = smoothing.strength
    of_main = (most + strength * (1 - smoothing.noise_of(asked))) / (asked + strength)
    base = _elsewhere(
        machine, smoothing.even_strength, questions, main, asked - most, outputs, came
    )
    few = smoothing.odd_strength
    share = (came + few * base) / (asked - most + few)
    chance = (1 - smoothing.novelty) * np.where(main == outputs, of_main, (1 - of_main) * share)
    chance[outputs < 0] = smoothing.novelty
    chance[main < 0] = np.nan
    return chance


def _elsewhere(
    machine: Machine,
    even: float,
    questions: NDArray[np.int64],
    main: Codes,
    odd: NDArray[np.int64],
    outputs: Codes,
    came: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the shares that outputs have among the odd answers of other states.

    Of the state itself are given its main answer, how often others came, and how often the
    outputs did.
    """
    pool = Pool.of(machine)
    alike = pool.times_answered(questions, outputs) - np.where(main == outputs, 0, came)
    others = pool.times_odd(questions) - odd - pool.times_answered(questions, main)
    shares: NDArray[np.float64] = (alike + even / max(len(machine.outputs) - 1, 1)) / (
        others + even
    )
    return shares


def _varying(
    machine: Machine, row: Codes, outputs: Codes
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which rows of outputs have more than one, and how often the given one came there."""
    spread, width = machine.spread, len(machine.outputs)
    its_row = spread_rows(machine)
    several = np.zeros(len(machine.output_value) + 1, bool)  # the last is for rows of −1
    several[its_row] = True
    wanted = np.where((row >= 0) & (outputs >= 0), row.astype(np.int64) * width + outputs, -1)
    place = places(its_row.astype(np.int64) * width + spread.value, wanted)
    return several[row], np.where(place >= 0, spread.count[place], 0)
