"""Smoothed probabilities of outputs under a machine, and its description length.

The most frequent output of a state and query, with count m of n, has the probability
(m + s·(1 − noise)) / (n + s), where s is the strength of the smoothing. Any other output, with
count c, has the share (c + t·b) / (n − m + t) of the rest, where t is the strength for deviating
outputs, and b its share among the deviating outputs of other states for the same query, mixed
with the uniform distribution. An output that the machine does not know has a small probability,
by which all others are reduced. The parameters maximize the leave-one-out likelihood: the
probability of each output given all others for its query.

Inference chooses among machines by their description length (docs/decisions/inference.md).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._core import binary_log, log_gamma, log_gammas, natural_log, power
from resolvent._util.math import geometric, log
from resolvent.machines.machine import Machine
from resolvent.machines.tables import OutputCounts, pair_keys, positions
from resolvent.traces.vocabulary import Codes

_Numbers = NDArray[np.int64]
_Reals = NDArray[np.float64]

_STRENGTHS: Final = 2.0 ** np.arange(13)
_DEVIATING_STRENGTHS: Final = 2.0 ** np.arange(-6, 13)
_NOISE_BINS: Final = 7  # of noise shares: for queries with the counts 1, 2 to 3, 4 to 7, …
_ROUNDS: Final = 2  # rounds of coordinate ascent over the strengths for deviating outputs
_MAX_NOISE: Final = 0.95
_NOISE_STEPS: Final = 120
_MAX_PRIOR: Final = 0.5  # largest prior count of each symbol: that of Krichevsky and Trofimov


@dataclass(frozen=True)
class Smoothing:
    """Parameters of smoothing: pseudo-counts, as if further outputs had been observed.

    Each query gets `strength` further outputs, a share of `noise` of them deviating; this share
    depends on the count of the query, in powers of two. The deviating outputs of a state get
    `deviating_strength` more, distributed as those of other states, and the latter
    `uniform_strength` more, distributed uniformly. `novelty` is the probability of an unknown
    output.
    """

    noise: tuple[float, ...]
    strength: float
    deviating_strength: float
    uniform_strength: float
    novelty: float


def smoothing_of(machine: Machine) -> Smoothing:
    """Return the smoothing of a machine's outputs by leave-one-out likelihood.

    Half a deviating and half an unknown output are added, so that no machine is certain.
    """
    rest = _leave_one_out(machine)
    novelty = 0.5 / (1 + sum(int(counts.sum()) for counts in machine.query_counts()))
    if len(machine.outputs) == 1 or not len(rest.times):
        noise = 0.0 if len(machine.outputs) == 1 else 0.5
        return Smoothing((noise,) * _NOISE_BINS, float(_STRENGTHS[0]), 1.0, 1.0, novelty)
    return Smoothing(*_noise_and_strength(rest), *_deviating_strengths(machine), novelty)


def output_probabilities(
    machine: Machine, smoothing: Smoothing, states: Codes, queries: _Numbers, outputs: Codes
) -> _Reals:
    """Return the probability of outputs in these states for these queries.

    All are codes of the machine, −1 for unknown ones; without an output the probability is nan. A
    constant output has its total count, and one without a count the count 1.
    """
    row = machine.output_rows(states, queries)
    constant = positions(machine.constant_query, queries)
    total = np.zeros(len(row), np.int64)
    for position, counts in zip((row, constant), machine.query_counts(), strict=True):
        total[position >= 0] = counts[position[position >= 0]]
    main = machine.predict(states, queries)
    is_main = main == outputs
    count, most = np.where(is_main, total, 0), total.copy()
    width = len(machine.outputs)
    if machine.is_noisy:
        table, rows = machine.output_counts, machine.output_count_rows
        varies = np.isin(row, rows)
        varying = _Sums(pair_keys(rows, table.value, width), table.count)
        count[varies] = varying.of(pair_keys(row, outputs, width))[varies]
        most[varies] = varying.of(pair_keys(row, main, width))[varies]
    strength, noise = smoothing.strength, np.array(smoothing.noise)[_noise_bin(total)]
    of_main = (most + strength * (1 - noise)) / (total + strength)
    deviating = total - most
    of_output, of_query = _deviations(machine)
    elsewhere = of_output.of(pair_keys(queries, outputs, width)) - np.where(is_main, 0, count)
    all_elsewhere = of_query.of(queries) - deviating - of_output.of(pair_keys(queries, main, width))
    uniform = smoothing.uniform_strength
    base = (elsewhere + uniform / max(len(machine.outputs) - 1, 1)) / (all_elsewhere + uniform)
    strength = smoothing.deviating_strength
    share = (count + strength * base) / (deviating + strength)
    chance = (1 - smoothing.novelty) * np.where(is_main, of_main, (1 - of_main) * share)
    chance[outputs < 0] = smoothing.novelty
    chance[main < 0] = np.nan
    return chance


class _Sums(NamedTuple):
    """Counts by key; the keys are sorted."""

    keys: _Numbers
    counts: _Numbers

    @classmethod
    def by(cls, keys: _Numbers, counts: _Numbers) -> "_Sums":
        """Sum up counts by key."""
        distinct, group = np.unique(keys, return_inverse=True)
        total = np.zeros(len(distinct), np.int64)
        np.add.at(total, group, counts)
        return cls(distinct, total)

    def of(self, wanted: _Numbers) -> _Numbers:
        """Return the count of each wanted key, 0 where there is none."""
        return np.append(self.counts, 0)[positions(self.keys, wanted)]


def _deviations(machine: Machine) -> tuple[_Sums, _Sums]:
    """Return counts of the deviating outputs of all states: by query and output, and by query."""
    counts = machine.output_counts
    deviates = counts.value != counts.main[counts.group]
    query, value, count = (
        column[deviates] for column in (counts.query, counts.value, counts.count)
    )
    keys = pair_keys(query, value, len(machine.outputs))
    return _Sums.by(keys, count), _Sums.by(query, count)


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
    """Return `deviating_strength` and `uniform_strength`, both 1 without evidence."""
    counts, width = machine.output_counts, len(machine.outputs)
    of_output, of_query = _deviations(machine)
    stays, main, value = _main_of_rest(counts)
    deviates = ~stays & (counts.totals[counts.group] > 1)
    group, count, main = counts.group[deviates], counts.count[deviates], main[deviates]
    query, output = counts.query[deviates], counts.value[deviates]
    is_main = output == counts.main[group]  # the left-out output did not deviate
    left, here = count - 1, counts.totals[group] - 1 - main
    elsewhere = of_output.of(pair_keys(query, output, width)) - np.where(is_main, 0, count)
    all_elsewhere = of_query.of(query) - (counts.totals[group] - counts.most[group])
    of_rest = of_output.of(pair_keys(query, value[deviates], width))
    all_elsewhere -= of_rest - np.where(is_main, main, 0)

    def likelihood(deviating: float, uniform: float) -> float:
        base = (elsewhere + uniform / (width - 1)) / (all_elsewhere + uniform)
        return float((count * log((left + deviating * base) / (here + deviating))).sum())

    deviating, uniform = 1.0, 1.0
    for _ in range(_ROUNDS if here.any() or all_elsewhere.any() else 0):
        uniform = max(_DEVIATING_STRENGTHS, key=lambda strength: likelihood(deviating, strength))
        deviating = max(_DEVIATING_STRENGTHS, key=lambda strength: likelihood(strength, uniform))
    return float(deviating), float(uniform)


def _leave_one_out(machine: Machine) -> _Rest:
    """Leave out each output in turn, and group those with the same rest.

    With noise, the rest of a single output that differs from those of all states is pooled over
    all states.
    """
    by_state, constant = machine.query_counts()
    counts = machine.output_counts
    single = np.delete(np.arange(len(by_state)), machine.output_count_rows[counts.starts])
    uniform = np.concatenate([by_state[single], constant])
    stays, main, _ = _main_of_rest(counts)
    rest = counts.totals[counts.group] - 1
    columns = ((np.ones(len(uniform), bool), stays), (uniform - 1, main), (uniform - 1, rest))
    rows = np.stack(list(map(np.concatenate, columns)))
    times = np.concatenate([uniform, counts.count])
    if machine.is_noisy:
        query = np.concatenate([machine.output_query[single], counts.query])
        value = np.concatenate([machine.output_value[single], counts.value])
        count = np.concatenate([by_state[single], counts.count])
        row, remaining = _exceptions(query, value, count, len(machine.outputs))
        row = np.where(row < len(single), row, row + len(constant))
        rows[:, row] = np.stack([np.zeros_like(remaining), remaining, remaining])
    has_rest = rows[2] > 0
    (is_main, main, rest), group = np.unique(rows[:, has_rest], axis=1, return_inverse=True)
    total = np.zeros(len(rest), np.int64)
    np.add.at(total, group, times[has_rest])
    return _Rest(is_main.astype(bool), main, rest, total)


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


def _main_of_rest(counts: OutputCounts) -> tuple[NDArray[np.bool_], _Numbers, Codes]:
    """Return for each varying output whether it stays the most frequent one with a count less.

    Also return the count and the code of the most frequent output of the rest.
    """
    first, second = counts.by_count[counts.starts], counts.by_count[counts.starts + 1]
    lead = counts.count[first] - 1 - counts.count[second]
    keeps = (lead > 0) | ((lead == 0) & (counts.value[first] < counts.value[second]))
    stays = np.zeros(len(counts), bool)
    stays[first] = keeps
    main, value = counts.count[first][counts.group], counts.value[first][counts.group]
    main[first] = counts.count[second] + np.where(keeps, lead, 0)
    value[first] = np.where(keeps, counts.value[first], counts.value[second])
    return stays, main, value


def description_bits(machine: Machine) -> float:
    """Return the description length of a machine in bits; the fewer, the more probable it is.

    Described are the number of states, the target of each observed transition, and the output
    of each observed query in each state. Trivial labels and constant outputs cost nothing, since
    all machines that explain the same traces share them. See docs/decisions/inference.md.
    """
    table = np.delete(machine.transitions, list(machine.trivial), axis=1)
    outputs = _output_bits(machine.output_query, machine.output_value)
    return 2 * binary_log(machine.states) + 1 + _transition_bits(table) + outputs


def _transition_bits(table: NDArray[np.int32]) -> float:
    """Return the bits for the targets in a table [state, label]; −1 is unseen.

    First which transitions are loops: by state, since all labels loop in a sink, or by label,
    since those that change nothing loop in all states. Then the other targets, by how often
    transitions of all labels, of the same label or from the same state lead there. The codes
    are mixed evenly. The numbering of the states is not described.
    """
    states, labels = table.shape
    if states == 1:
        return 0.0
    state, label = np.nonzero(table >= 0)
    target = table[state, label]
    loops = (target == state).astype(np.int64)
    loop_bits = _mixed(_adaptive(state, loops, 2, states), _adaptive(label, loops, 2, labels))
    is_change = loops == 0
    state, label, target = state[is_change], label[is_change], target[is_change]
    target_bits = _mixed(
        _adaptive(np.zeros_like(label), target, states, 1),
        _adaptive(label, target, states, labels),
        _adaptive(state, target, states, states),
    )
    return loop_bits + target_bits - log_gamma(states) / natural_log(2)


def _output_bits(query: NDArray[np.int64], output: NDArray[np.int32]) -> float:
    """Return the bits for the outputs of states, each query with its own distribution."""
    if not len(output):
        return 0.0
    _, context = np.unique(query, return_inverse=True)
    distinct, symbol = np.unique(output, return_inverse=True)
    return _adaptive(context, symbol, len(distinct), int(context.max()) + 1)


def _adaptive(
    context: NDArray[np.int64], symbol: NDArray[np.int64], symbols: int, contexts: int
) -> float:
    """Return the bits of symbols under an adaptive code with one distribution for each context.

    It is their probability under a Dirichlet prior with a count of 0.5 for each of the `symbols`,
    but together at most 1, so that a new symbol costs no more than naming it.
    """
    prior = min(_MAX_PRIOR, 1 / symbols)
    pairs, count = np.unique(context * symbols + symbol, return_counts=True)
    gained = np.zeros(contexts)
    np.add.at(gained, pairs // symbols, _log_rising(count, prior))
    spent = _log_rising(np.bincount(context, minlength=contexts), prior * symbols)
    return float(((spent - gained) / natural_log(2)).sum())


def _log_rising(count: NDArray[np.int64], start: float) -> NDArray[np.float64]:
    """Return ln of the rising factorial start · (start + 1) · … of `count` factors."""
    values = log_gammas(start + np.arange(int(count.max(initial=0)) + 1.0)) - log_gamma(start)
    return np.asarray(values[count])


def _mixed(*bits: float) -> float:
    """Return the bits under an even mixture of codes."""
    least = min(bits)
    return float(
        least + binary_log(len(bits)) - binary_log(sum(power(2.0, least - code) for code in bits))
    )
