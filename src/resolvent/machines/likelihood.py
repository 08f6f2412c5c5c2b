"""Probabilities of outputs under a machine, smoothed, and log loss and calibration from them.

The most frequent output of a state and query, with count m of n, has the probability
(m + s·(1 − noise)) / (n + s), where s is the strength of the smoothing. Any other output, with
count c, has the share (c + t·b) / (n − m + t) of the rest, where t is the strength for deviating
outputs, and b its share among the deviating outputs of other states for the same query, mixed
with the uniform distribution. An output that the machine does not know has a small probability,
by which all others are reduced. The parameters maximize the leave-one-out likelihood: the
probability of each output given all others for its query.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import geometric, log
from resolvent.machines.machine import Machine
from resolvent.machines.tables import places
from resolvent.traces.vocabulary import Codes

_Numbers = NDArray[np.int64]
_Reals = NDArray[np.float64]

_STRENGTHS: Final = 2.0 ** np.arange(13)
_DEVIATING_STRENGTHS: Final = 2.0 ** np.arange(-6, 13)
_NOISE_BINS: Final = 7
"""Number of noise shares: for queries with the counts 1, 2 to 3, 4 to 7, and so on."""
_ROUNDS: Final = 2
"""Rounds of coordinate ascent over the strengths for deviating outputs."""
_MAX_NOISE: Final = 0.95
_NOISE_STEPS: Final = 120
_CALIBRATION_BINS: Final = 20
_UNIT: Final = 10**9
"""Probabilities and losses are summed in billionths: integers add up the same in any order."""


@dataclass(frozen=True)
class Smoothing:
    """Parameters of smoothing: pseudo-counts, as if further outputs had been observed.

    Each query gets `strength` further outputs, a share of `noise` of them deviating; this share
    depends on the count of the query, in powers of two. The deviating outputs of a state get
    `odd_strength` more, distributed as those of other states, and the latter `even_strength`
    more, distributed uniformly. `novelty` is the probability of an unknown output.
    """

    noise: tuple[float, ...]
    strength: float
    odd_strength: float
    even_strength: float
    novelty: float

    def noise_of(self, counts: _Numbers) -> _Reals:
        """Return the share of noise for queries with these counts."""
        return np.array(self.noise)[_noise_bin(counts)]


def smoothing_of(machine: Machine) -> Smoothing:
    """Return the smoothing of a machine's outputs by leave-one-out likelihood.

    Half a deviating and half an unknown output are added, so that no machine is certain.

    >>> from resolvent.worlds import House
    >>> smoothing_of(House().machines().reward).noise[0]  # without counts
    0.5
    """
    rest = _leave_one_out(machine)
    novelty = 0.5 / (1 + sum(int(counts.sum()) for counts in machine.query_counts()))
    if len(machine.outputs) == 1:
        return Smoothing((0.0,) * _NOISE_BINS, float(_STRENGTHS[0]), 1.0, 1.0, novelty)
    if not len(rest.times):
        return Smoothing((0.5,) * _NOISE_BINS, float(_STRENGTHS[0]), 1.0, 1.0, novelty)
    return Smoothing(*_noise_and_strength(rest), *_deviating_strengths(machine), novelty)


def output_probabilities(
    machine: Machine,
    smoothing: Smoothing,
    states: Codes,
    questions: _Numbers,
    outputs: Codes,
) -> _Reals:
    """Return the probability of outputs in these states for these queries.

    All are codes of the machine, −1 for unknown ones; where the machine has no output, the
    probability is nan. An output that is the same in every state has its total count; one
    without a count has the count 1.

    >>> from resolvent.worlds import House
    >>> machine = House().machines().transition
    >>> row = machine.output_state[:1], machine.output_question[:1]
    >>> right, unknown = machine.output_value[:1], np.array([-1], np.int32)
    >>> few = Smoothing((0.2,) * 7, strength=1, odd_strength=1, even_strength=1, novelty=0.01)
    >>> both = (output_probabilities(machine, few, *row, output) for output in (right, unknown))
    >>> [probabilities.round(3).tolist() for probabilities in both]
    [[0.891], [0.01]]
    """
    row = machine.output_rows(states, questions)
    constant = places(machine.constant_question, questions)
    total = np.zeros(len(row), np.int64)
    for place, counts in zip((row, constant), machine.query_counts(), strict=True):
        total[place >= 0] = counts[place[place >= 0]]
    main = machine.answer_many(states, questions)
    count, most = np.where(main == outputs, total, 0), total.copy()
    if machine.is_noisy:
        varies, varying_count = _varying_counts(machine, row, outputs)
        count[varies] = varying_count[varies]
        most[varies] = _varying_counts(machine, row, main)[1][varies]
    strength = smoothing.strength
    of_main = (most + strength * (1 - smoothing.noise_of(total))) / (total + strength)
    deviating = total - most
    pool = _Pool.of(machine)
    elsewhere = pool.output_counts(questions, outputs) - np.where(main == outputs, 0, count)
    all_elsewhere = pool.query_counts(questions) - deviating - pool.output_counts(questions, main)
    base = (elsewhere + smoothing.even_strength / max(len(machine.outputs) - 1, 1)) / (
        all_elsewhere + smoothing.even_strength
    )
    share = (count + smoothing.odd_strength * base) / (deviating + smoothing.odd_strength)
    chance = (1 - smoothing.novelty) * np.where(main == outputs, of_main, (1 - of_main) * share)
    chance[outputs < 0] = smoothing.novelty
    chance[main < 0] = np.nan
    return chance


def _varying_counts(
    machine: Machine, row: Codes, outputs: Codes
) -> tuple[NDArray[np.bool_], _Numbers]:
    """Return which rows have several outputs, and the count of the given output there."""
    spread, width = machine.spread, len(machine.outputs)
    spread_rows = machine.spread_rows
    varies = np.zeros(len(machine.output_value) + 1, bool)  # the last is for rows of −1
    varies[spread_rows] = True
    wanted = np.where((row >= 0) & (outputs >= 0), row.astype(np.int64) * width + outputs, -1)
    place = places(spread_rows.astype(np.int64) * width + spread.value, wanted)
    return varies[row], np.where(place >= 0, spread.count[place], 0)


@dataclass(frozen=True)
class _Pool:
    """The deviating outputs of all states together, as sorted keys with counts."""

    width: int
    output_keys: _Numbers
    output_totals: _Numbers
    query_keys: _Numbers
    query_totals: _Numbers

    @classmethod
    def of(cls, machine: Machine) -> "_Pool":
        spread, width = machine.spread, len(machine.outputs)
        deviates = spread.value != spread.main[spread.group]
        query, value, count = (
            column[deviates] for column in (spread.question, spread.value, spread.count)
        )
        return cls(width, *_sums(query * width + value, count), *_sums(query, count))

    def output_counts(self, queries: _Numbers, outputs: Codes) -> _Numbers:
        """Return the count of these outputs for these queries, where they deviate."""
        is_known = (queries >= 0) & (outputs >= 0)
        keys = np.where(is_known, queries * self.width + outputs, -1)
        return _values(self.output_keys, self.output_totals, keys)

    def query_counts(self, queries: _Numbers) -> _Numbers:
        """Return the number of deviating outputs for these queries."""
        return _values(self.query_keys, self.query_totals, queries)


def _sums(keys: _Numbers, counts: _Numbers) -> tuple[_Numbers, _Numbers]:
    distinct, group = np.unique(keys, return_inverse=True)
    total = np.zeros(len(distinct), np.int64)
    np.add.at(total, group, counts)
    return distinct, total


def _values(keys: _Numbers, values: _Numbers, wanted: _Numbers) -> _Numbers:
    """Return the value of each wanted key, 0 where there is none; `keys` are sorted."""
    place = places(keys, wanted)
    return np.append(values, 0)[place]


class _Rest(NamedTuple):
    """The remaining outputs of a query when one is left out, equal cases grouped.

    Columns: whether the left-out output is the most frequent one of the rest, the count of the
    latter, the size of the rest, and the number of such cases.
    """

    is_main: NDArray[np.bool_]
    main: _Numbers
    all: _Numbers
    times: _Numbers


def _noise_bin(counts: _Numbers) -> _Numbers:
    """Return the index of the noise share for queries with these counts."""
    return np.asarray(np.searchsorted(2 ** np.arange(1, _NOISE_BINS), counts, "right"))


def _noise_and_strength(rest: _Rest) -> tuple[tuple[float, ...], float]:
    """Return the share of deviating outputs in each bin, and the strength of the smoothing.

    The prior of each share is half a deviating output, with its mode at the best overall share.
    """
    count = np.where(rest.is_main, rest.main, rest.all - rest.main)
    bins = _noise_bin(rest.all)
    noises = geometric(min(0.25 / rest.times.sum(), 0.1), _MAX_NOISE, _NOISE_STEPS)
    share = np.where(rest.is_main[:, None], 1 - noises, noises)

    def fitted(strength: float) -> tuple[float, _Reals]:
        """Return the maximum log likelihood, and the shares of noise that reach it."""
        chance = (count[:, None] + strength * share) / (rest.all[:, None] + strength)
        losses = rest.times[:, None] * log(chance)
        of_bins = np.array([losses[bins == number].sum(0) for number in range(_NOISE_BINS)])
        overall = int((of_bins.sum(0) + 0.5 * log(noises)).argmax())
        noise = noises[overall]
        prior = 0.5 * (log(noises / noise) + (1 - noise) / noise * log((1 - noises) / (1 - noise)))
        best = (of_bins + prior).argmax(1)
        likelihood = (of_bins + prior)[np.arange(_NOISE_BINS), best].sum() + 0.5 * log(noise)
        return float(likelihood), noises[best]

    fits = [fitted(strength) for strength in _STRENGTHS]
    best = int(np.argmax([likelihood for likelihood, _ in fits]))
    return tuple(map(float, fits[best][1])), float(_STRENGTHS[best])


def _deviating_strengths(machine: Machine) -> tuple[float, float]:
    """Return `odd_strength` and `even_strength`, both 1 without evidence."""
    spread, pool = machine.spread, _Pool.of(machine)
    stays, main, value = _main_of_rest(machine)
    deviates = ~stays & (spread.totals[spread.group] > 1)
    group, count, main = spread.group[deviates], spread.count[deviates], main[deviates]
    query, output = spread.question[deviates], spread.value[deviates]
    is_main = output == spread.main[group]  # the left-out output did not deviate
    left, here = count - 1, spread.totals[group] - 1 - main
    elsewhere = pool.output_counts(query, output) - np.where(is_main, 0, count)
    all_elsewhere = pool.query_counts(query) - (spread.totals[group] - spread.most[group])
    all_elsewhere -= pool.output_counts(query, value[deviates]) - np.where(is_main, main, 0)
    deviating = len(machine.outputs) - 1

    def likelihood(strength: float, even: float) -> float:
        base = (elsewhere + even / deviating) / (all_elsewhere + even)
        return float((count * log((left + strength * base) / (here + strength))).sum())

    odd, even = 1.0, 1.0
    for _ in range(_ROUNDS if here.any() or all_elsewhere.any() else 0):
        even = max(_DEVIATING_STRENGTHS, key=lambda strength: likelihood(odd, strength))
        odd = max(_DEVIATING_STRENGTHS, key=lambda strength: likelihood(strength, even))
    return float(odd), float(even)


def _leave_one_out(machine: Machine) -> _Rest:
    """Leave out each output in turn, and group those with the same rest.

    With noise, the rest of a single output that differs from those of all states is pooled over
    all states.
    """
    by_state, constant = machine.query_counts()
    spread = machine.spread
    single = np.delete(np.arange(len(by_state)), machine.spread_rows[spread.starts])
    uniform = np.concatenate([by_state[single], constant])
    stays, main, _ = _main_of_rest(machine)
    rows = np.stack(
        [
            np.concatenate([uniform - 1, spread.count - 1]),
            np.concatenate([np.ones(len(uniform), bool), stays]),
            np.concatenate([uniform - 1, main]),
            np.concatenate([uniform - 1, spread.totals[spread.group] - 1]),
            np.concatenate([uniform, spread.count]),
        ]
    )
    if machine.is_noisy:
        query = np.concatenate([machine.output_question[single], spread.question])
        value = np.concatenate([machine.output_value[single], spread.value])
        count = np.concatenate([by_state[single], spread.count])
        place, remaining = _exceptions(query, value, count, len(machine.outputs))
        place = np.where(place < len(single), place, place + len(constant))
        rows[1:4, place] = np.stack([np.zeros_like(remaining), remaining, remaining])
    rows = rows[:, rows[3] > 0]
    rows = rows[:, np.lexsort(rows[:4])]
    is_first = np.ones(rows.shape[1], bool)
    is_first[1:] = np.any(rows[:4, 1:] != rows[:4, :-1], axis=0)
    starts = np.flatnonzero(is_first)
    _, is_main, main, total = rows[:4, starts]
    times = np.add.reduceat(rows[4], starts) if len(starts) else rows[4]
    return _Rest(is_main.astype(bool), main, total, times)


def _exceptions(
    query: _Numbers, value: Codes, count: _Numbers, width: int
) -> tuple[_Numbers, _Numbers]:
    """Return the rows of each query's only exception to equal outputs, and the number of these."""
    keys, group = np.unique(query * width + value, return_inverse=True)
    times = np.bincount(group, count, len(keys)).astype(np.int64)
    _, first, of_key, outputs = np.unique(
        keys // width, return_index=True, return_inverse=True, return_counts=True
    )
    total = np.add.reduceat(times, first) if len(first) else times
    is_single = (times == 1) & (outputs[of_key] == 2)
    # Of two outputs that both occurred once, each is an exception to the other.
    rows = np.flatnonzero(is_single[group])
    return rows, total[of_key[group[rows]]] - 1


def _main_of_rest(machine: Machine) -> tuple[NDArray[np.bool_], _Numbers, Codes]:
    """Return for each varying output whether it stays the most frequent one with a count less.

    Also return the count and the code of the most frequent output of the rest.
    """
    spread = machine.spread
    first, second = spread.by_count[spread.starts], spread.by_count[spread.starts + 1]
    lead = spread.count[first] - 1 - spread.count[second]
    keeps = (lead > 0) | ((lead == 0) & (spread.value[first] < spread.value[second]))
    stays = np.zeros(len(spread), bool)
    stays[first] = keeps
    main, value = spread.count[first][spread.group], spread.value[first][spread.group]
    main[first] = spread.count[second] + np.where(keeps, lead, 0)
    value[first] = np.where(keeps, spread.value[first], spread.value[second])
    return stays, main, value


class Calibration(NamedTuple):
    """The steps whose most likely output had a probability from `lower` to `upper`.

    If the machine is calibrated, `right` is about `predicted`.
    """

    lower: float
    upper: float
    predicted: float
    """Mean probability of the most likely outputs."""
    right: float
    """Share of steps with the most likely output."""
    steps: int


class Bin(NamedTuple):
    """Sums over the steps whose most likely outputs have about the same probability."""

    steps: int = 0
    right: int = 0
    predicted: int = 0


@dataclass(frozen=True)
class PredictionSums:
    """Sums of predicted probabilities and observed outputs, for log loss and calibration.

    `loss` is the sum of −ln p over the steps with a prediction, p being the probability of the
    observed output. `bins` split those steps by the probability of the most likely output. Both
    are in billionths.
    """

    loss: int = 0
    bins: tuple[Bin, ...] = (Bin(),) * _CALIBRATION_BINS

    @classmethod
    def of(
        cls, chance: _Reals, main: _Reals, right: NDArray[np.bool_], count: _Numbers
    ) -> "PredictionSums":
        """Sum up steps by the probabilities of the observed and of the most likely output.

        `right` marks where these are the same, `count` is the number of such steps.

        >>> right, count = np.array([True, False]), np.array([3, 1])
        >>> sums = PredictionSums.of(np.array([0.8, 0.2]), np.array([0.8, 0.8]), right, count)
        >>> round(sums.log_loss, 4), [tuple(map(float, row)) for row in sums.calibration]
        (0.5697, [(0.8, 0.85, 0.8, 0.75, 4.0)])
        """
        which = np.minimum((main * _CALIBRATION_BINS).astype(np.int64), _CALIBRATION_BINS - 1)
        bins = [
            Bin(
                int(count[inside].sum()),
                int(count[inside & right].sum()),
                _total(main[inside], count[inside]),
            )
            for inside in (which == number for number in range(_CALIBRATION_BINS))
        ]
        return cls(_total(-log(chance), count), tuple(bins))

    @property
    def steps(self) -> int:
        """Number of steps with a prediction."""
        return sum(entry.steps for entry in self.bins)

    @property
    def log_loss(self) -> float | None:
        """Mean of −ln p over these steps; None without steps."""
        return self.loss / _UNIT / self.steps if self.steps else None

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """Share of right predictions by their probability, only where there are steps."""
        return tuple(
            Calibration(
                number / _CALIBRATION_BINS,
                (number + 1) / _CALIBRATION_BINS,
                entry.predicted / _UNIT / entry.steps,
                entry.right / entry.steps,
                entry.steps,
            )
            for number, entry in enumerate(self.bins)
            if entry.steps
        )

    def __add__(self, other: "PredictionSums") -> "PredictionSums":
        return self._combined(other, 1)

    def __sub__(self, other: "PredictionSums") -> "PredictionSums":
        return self._combined(other, -1)

    def _combined(self, other: "PredictionSums", sign: int) -> "PredictionSums":
        bins = (
            Bin(*(mine + sign * yours for mine, yours in zip(*pair, strict=True)))
            for pair in zip(self.bins, other.bins, strict=True)
        )
        return PredictionSums(self.loss + sign * other.loss, tuple(bins))


def _total(values: _Reals, count: _Numbers) -> int:
    """Return the weighted sum of values in billionths; two summands avoid overflow."""
    high, low = np.divmod(np.rint(values * _UNIT).astype(np.int64), 1 << 20)
    return (int(high @ count) << 20) + int(low @ count)
