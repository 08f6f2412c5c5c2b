"""How often a machine's questions were answered, and how → how far to trust few answers.

A question that was asked three times, and three times answered alike, may still be answered
otherwise: how likely that is, all other questions tell. The main answer is taken to have the
chance 1 − `noise`, from which single questions differ the less, the greater `strength` is. What
was answered few times may have another main answer than it seems, so `noise` is looked up by how
often that was, in powers of two. Of
the other outputs each may come as well as any, or some come again and again, as the places do
that a slip can lead to. That is told by the odd answers of the same state, the more, the less
`odd_strength` is, and by those of other states, the more, the less `even_strength` is. All are
chosen so that every answer, left out, is foretold best by the others to the same question.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import geometric, log
from resolvent.machines.asking import spread_rows, times_asked
from resolvent.machines.likelihood.pool import Pool
from resolvent.machines.machine import Machine
from resolvent.traces.vocabulary import Codes

_STRENGTHS = 2.0 ** np.arange(13)
_ODD_STRENGTHS = 2.0 ** np.arange(-6, 13)
_BINS, _ROUNDS = 7, 2
_MOST_NOISE, _STEPS = 0.95, 120


@dataclass(frozen=True)
class Smoothing:
    """As if `strength` more answers had come to each question, a share of `noise` of them odd.

    That share is for questions asked once, twice or thrice, 4 to 7 times, and so on. And as if
    to the odd ones `odd_strength` more had come, shared as the odd answers of other states are,
    to which `even_strength` more are added, evenly of all outputs. `novelty` is the chance of an
    output that the machine does not know at all.
    """

    noise: tuple[float, ...]
    strength: float
    odd_strength: float
    even_strength: float
    novelty: float

    def noise_of(self, asked: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of noise for questions that were asked so often."""
        return np.array(self.noise)[_bin(asked)]


def smoothing_of(machine: Machine) -> Smoothing:
    """Return how a machine's answers are to be smoothed, by how well they foretell each other.

    Half an odd answer, and half an output that is not known, are taken to have come beside
    all others: a machine that was never shown one is not certain.

    >>> from resolvent.worlds import House
    >>> smoothing_of(House().machines().reward).noise[0]  # which nobody counted
    0.5
    """
    rest = _left_out(machine)
    odd = len(machine.outputs) - 1
    novelty = 0.5 / (1 + sum(int(one.sum()) for one in times_asked(machine)))
    if odd == 0:
        return Smoothing((0.0,) * _BINS, float(_STRENGTHS[0]), 1.0, 1.0, novelty)
    if not len(rest.times):
        return Smoothing((0.5,) * _BINS, float(_STRENGTHS[0]), 1.0, 1.0, novelty)
    return Smoothing(*_noise_and_strength(rest), *_odd_strengths(machine), novelty)


@dataclass(frozen=True)
class _Rest:
    """What is left of the answers to a question when one of them is left out.

    How often the same answer is left, whether it is the main one of the rest, how often that
    one is there, how many the rest are in all; and how often that is so.
    """

    left: NDArray[np.int64]
    is_main: NDArray[np.bool_]
    main: NDArray[np.int64]
    all: NDArray[np.int64]
    times: NDArray[np.int64]


def _bin(asked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which of the shares of noise is for questions that were asked so often."""
    found: NDArray[np.int64] = np.searchsorted(2 ** np.arange(1, _BINS), asked, "right")
    return found


def _noise_and_strength(rest: _Rest) -> tuple[tuple[float, ...], float]:
    """Return how likely the main answer is not to come, and how alike questions are in that.

    The former for each bin, where half an odd answer, and as many others as that has by the best
    share for all bins together, speak for that one.
    """
    came = np.where(rest.is_main, rest.main, rest.all - rest.main)
    which = _bin(rest.all)
    noises = geometric(min(0.25 / rest.times.sum(), 0.1), _MOST_NOISE, _STEPS)
    share = np.where(rest.is_main[:, None], 1 - noises, noises)

    def fitted(strength: float) -> tuple[float, NDArray[np.float64]]:
        """Return how likely it is when the main answer came, by the best shares of noise."""
        chance = (came[:, None] + strength * share) / (rest.all[:, None] + strength)
        told = rest.times[:, None] * log(chance)
        of_bins = np.array([told[which == one].sum(0) for one in range(_BINS)])
        overall = int((of_bins.sum(0) + 0.5 * log(noises)).argmax())
        odd = noises[overall]
        prior = 0.5 * (log(noises / odd) + (1 - odd) / odd * log((1 - noises) / (1 - odd)))
        best = (of_bins + prior).argmax(1)
        likelihood = (of_bins + prior)[np.arange(_BINS), best].sum() + 0.5 * log(odd)
        return float(likelihood), noises[best]

    found = [fitted(strength) for strength in _STRENGTHS]
    best = int(np.argmax([likelihood for likelihood, _ in found]))
    return tuple(map(float, found[best][1])), float(_STRENGTHS[best])


def _odd_strengths(machine: Machine) -> tuple[float, float]:
    """Return how much less odd answers tell than those of other states, and these than nothing.

    Both are 1 where nothing tells.
    """
    spread, pool = machine.spread, Pool.of(machine)
    stays, main, value = _main_of_rest(machine)
    some = ~stays & (spread.totals[spread.group] > 1)
    group, count, main = spread.group[some], spread.count[some], main[some]
    question, output = spread.question[some], spread.value[some]
    tied = output == spread.main[group]  # what is left out was the main answer, and no odd one
    left, here = count - 1, spread.totals[group] - 1 - main
    alike = pool.times_answered(question, output) - np.where(tied, 0, count)
    there = pool.times_odd(question) - (spread.totals[group] - spread.most[group])
    there -= pool.times_answered(question, value[some]) - np.where(tied, main, 0)
    odd = len(machine.outputs) - 1

    def likelihood(strength: float, even: float) -> float:
        base = (alike + even / odd) / (there + even)
        return float((count * log((left + strength * base) / (here + strength))).sum())

    best = 1.0, 1.0
    for _ in range(_ROUNDS if here.any() or there.any() else 0):
        best = best[0], max(_ODD_STRENGTHS, key=lambda even: likelihood(best[0], even))
        best = max(_ODD_STRENGTHS, key=lambda one: likelihood(one, best[1])), best[1]
    return float(best[0]), float(best[1])


def _left_out(machine: Machine) -> _Rest:
    """Leave each answer out in turn, and put together those of which the rest tells the same.

    Where one answer alone differs from those of all states, and there is noise, the rest is the
    same in every state, and is told of all of them together, as such answers are.
    """
    by_state, constant = times_asked(machine)
    spread = machine.spread
    several = spread_rows(machine)
    single = np.delete(np.arange(len(by_state)), several[spread.starts])
    alike = np.concatenate([by_state[single], constant])
    stays, main, _ = _main_of_rest(machine)
    rows = np.stack(
        [
            np.concatenate([alike - 1, spread.count - 1]),
            np.concatenate([np.ones(len(alike), bool), stays]),
            np.concatenate([alike - 1, main]),
            np.concatenate([alike - 1, spread.totals[spread.group] - 1]),
            np.concatenate([alike, spread.count]),
        ]
    )
    question = np.concatenate([machine.output_question[single], spread.question])
    value = np.concatenate([machine.output_value[single], spread.value])
    count = np.concatenate([by_state[single], spread.count])
    if machine.is_noisy:
        alone, others = _exceptions(question, value, count, len(machine.outputs))
        place = np.where(alone < len(single), alone, alone + len(constant))
        rows[1:4, place] = np.stack([np.zeros_like(others), others, others])
    rows = rows[:, rows[3] > 0]
    rows = rows[:, np.lexsort(rows[:4])]
    new = np.ones(rows.shape[1], bool)
    new[1:] = np.any(rows[:4, 1:] != rows[:4, :-1], axis=0)
    starts = np.flatnonzero(new)
    left, is_main, main, total = rows[:4, starts]
    times = np.add.reduceat(rows[4], starts) if len(starts) else rows[4]
    return _Rest(left, is_main.astype(bool), main, total, times)


def _exceptions(
    question: NDArray[np.int64], value: Codes, count: NDArray[np.int64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where answers stand that came once, while all others to a question are the same.

    And how many these are.
    """
    keys, place = np.unique(question * width + value, return_inverse=True)
    times = np.bincount(place, count, len(keys)).astype(np.int64)
    _, first, of_key, answers = np.unique(
        keys // width, return_index=True, return_inverse=True, return_counts=True
    )
    total = np.add.reduceat(times, first) if len(first) else times
    alone = (times == 1) & (answers[of_key] == 2)
    # Of two answers that both came once, each is an exception to the other.
    found = np.flatnonzero(alone[place])
    return found, total[of_key[place[found]]] - 1


def _main_of_rest(
    machine: Machine,
) -> tuple[NDArray[np.bool_], NDArray[np.int64], Codes]:
    """Return of each answer that varies if it is the main one even if it came once less.

    And how often the main one of the rest came, and which that is.
    """
    spread = machine.spread
    order = np.lexsort((spread.value, -spread.count, spread.group))
    first, second = order[spread.starts], order[spread.starts + 1]
    lead = spread.count[first] - 1 - spread.count[second]
    keeps = (lead > 0) | ((lead == 0) & (spread.value[first] < spread.value[second]))
    stays = np.zeros(len(spread), bool)
    stays[first] = keeps
    main, value = spread.count[first][spread.group], spread.value[first][spread.group]
    main[first] = spread.count[second] + np.where(keeps, lead, 0)
    value[first] = np.where(keeps, spread.value[first], spread.value[second])
    return stays, main, value
