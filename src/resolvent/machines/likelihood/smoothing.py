"""How often a machine's questions were answered, and how → how far to trust few answers.

A question that was asked three times, and three times answered alike, may still be answered
otherwise: how likely that is, all other questions tell. Answers are taken to be drawn around
a main one: it has the chance 1 − `noise`, all other outputs share `noise` evenly, and single
questions differ from that the less, the greater `strength` is. Both are chosen so that every
answer, left out, is foretold best by the others to the same question.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.machines.columns import places
from resolvent.machines.machine import Machine

_STRENGTHS = 2.0 ** np.arange(13)
_MOST_NOISE, _STEPS, _FINER_STEPS, _REFINEMENTS = 0.95, 24, 9, 2


@dataclass(frozen=True)
class Smoothing:
    """As if `strength` more answers had come to each question, a share of `noise` of them odd.

    `novelty` is the chance of an output that the machine does not know at all.
    """

    noise: float
    strength: float
    novelty: float


def smoothing_of(machine: Machine) -> Smoothing:
    """Return how a machine's answers are to be smoothed, by how well they foretell each other.

    Half an odd answer, and half an output that is not known, are taken to have come beside
    all others: a machine that was never shown one is not certain.

    >>> from resolvent.environments import House
    >>> smoothing_of(House().machines().reward).noise  # which nobody counted
    0.5
    """
    left, others, is_main, times = _left_out(machine)
    total, odd = float(times.sum()), len(machine.outputs) - 1
    novelty = 0.5 / (1 + sum(int(one.sum()) for one in machine._times_asked))
    if odd == 0:
        return Smoothing(0.0, float(_STRENGTHS[0]), novelty)
    if total == 0:
        return Smoothing(0.5, float(_STRENGTHS[0]), novelty)

    def likelihood(noise: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
        """Return for each share of noise how likely the answers are, each by all others."""
        share = np.where(is_main[:, None], 1 - noise, noise / odd)
        chance = (left[:, None] + strength * share) / (others[:, None] + strength)
        told: NDArray[np.float64] = (times[:, None] * np.log(chance)).sum(0)
        return told + 0.5 * np.log(noise)

    noises = np.geomspace(min(0.25 / total, 0.1), _MOST_NOISE, _STEPS)
    table = np.array([likelihood(noises, strength) for strength in _STRENGTHS])
    row, best = divmod(int(table.argmax()), _STEPS)
    strength = float(_STRENGTHS[row])
    for _ in range(_REFINEMENTS):
        around = noises[max(best - 1, 0)], noises[min(best + 1, len(noises) - 1)]
        noises = np.geomspace(*around, _FINER_STEPS)
        best = int(likelihood(noises, strength).argmax())
    return Smoothing(float(noises[best]), strength, novelty)


def _left_out(
    machine: Machine,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Leave each answer out in turn, and put together those of which the rest tells the same.

    Returns how often the answer is left among the others to its question, how many these are,
    whether it is their main one, and how often that is so.
    """
    by_state, constant = machine._times_asked
    spread = machine.spread
    several = places(machine._output_keys, machine._keys(spread.state, spread.question))
    alike = np.concatenate([np.delete(by_state, several[spread.starts]), constant])
    rows = np.stack(
        [
            np.concatenate([alike - 1, spread.count - 1]),
            np.concatenate([alike - 1, spread.totals[spread.group] - 1]),
            np.concatenate([np.ones(len(alike), bool), _stays_main(machine)]),
            np.concatenate([alike, spread.count]),
        ]
    )
    rows = rows[:, rows[1] > 0]
    rows = rows[:, np.lexsort(rows[:3])]
    new = np.ones(rows.shape[1], bool)
    new[1:] = np.any(rows[:3, 1:] != rows[:3, :-1], axis=0)
    starts = np.flatnonzero(new)
    left, others, is_main = rows[:3, starts]
    times = np.add.reduceat(rows[3], starts) if len(starts) else rows[3]
    return left, others, is_main.astype(bool), times


def _stays_main(machine: Machine) -> NDArray[np.bool_]:
    """Return for each answer that varies whether it is the main one even if it came once less."""
    spread = machine.spread
    order = np.lexsort((spread.value, -spread.count, spread.group))
    first, second = order[spread.starts], order[spread.starts + 1]
    lead = spread.count[first] - 1 - spread.count[second]
    stays = np.zeros(len(spread), bool)
    stays[first] = (lead > 0) | ((lead == 0) & (spread.value[first] < spread.value[second]))
    return stays
