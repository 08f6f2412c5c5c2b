"""Find the values that noisy rewards vary around.

Steps with the same query after the same labels (in the same context) are in the same state, so
their rewards differ by noise alone; this gives the size of the noise.

Input: traces. Output: `RewardLevels`, and samples with rewards assigned to these levels.
"""

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import log, product
from resolvent._util.text import amount
from resolvent.errors import TraceError
from resolvent.noise.mixture import Floats, Groups, Ints, Mixture, find_centers
from resolvent.preprocess.reduction import remove_trivial
from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import RewardLevels
from resolvent.traces.schema import REWARD
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.trace_set import TraceSet

_MAX_DISTINCT_SHARE = 0.2
"""Number of different rewards, as a share of the steps, above which they are no symbols."""

_MAX_SYMBOLS = 64
"""Maximum number of different rewards around one value that are symbols nevertheless."""

FEWEST_VALUES = 16
"""Number of different rewards below which they are compared as symbols: noise flips them."""

_MIN_REPEATS = 30
"""Minimum number of repeated contexts to estimate the variance of rewards from."""

_MIN_REPEATS_OF_NOISE = 5
"""Minimum number of repeated contexts for rewards to count as noisy."""

_MAX_EQUAL = 0.2
"""Share of equal rewards in the same context above which some rewards are exact."""

_MIN_EXACT = 20
"""Minimum number of occurrences of an exact reward, which has ten times those of its neighbors."""

_NEIGHBORS = 17
"""Number of neighbors that an exact reward is compared with, itself included."""

_MIN_FREQUENT_STEPS, _MIN_UNIQUE_SHARE = 1_000, 0.5
"""Minimum number of steps with frequent queries, and share of these with a unique reward, above
which machines would memorize the traces: no memory predicts the rewards of new steps."""

_MAX_REWARD = 1e100
"""Largest reward that is searched for levels; sums of larger squares overflow."""

_ROUNDING = 1e-6
"""Difference of rewards, absolute or relative, below which they differ by rounding."""

_IMPURE = 1.1
"""Factor by which the variance grows if states have different rewards for one query."""

_FIRST_PRICE = 0.3
"""Price of a level before there are machines. Memory is found with too many levels, and then shows
which of them exist; with too few levels it may not be found."""

_OUTLIER_SIGMA = 4.0
"""Standard deviations beyond which a value is an outlier."""

_MAX_STEPS = 500_000
"""Maximum number of steps that levels are estimated from."""

_MIN_NATS = 3.0
"""Nats by which several levels must explain the rewards of a query better than one level."""

_EM_STEPS = 50
"""Number of steps of expectation maximization for the shares of levels."""

_UNEXPLAINED = 1e-6
"""Probability of a reward that no level explains."""


@dataclass(frozen=True)
class StepRewards:
    """The rewards of steps, and keys that are equal for steps which may have the same reward.

    The keys are the query alone, or with all labels read (`history`), with those other than "no
    event" (`events`), or with the states of machines (`state`).
    """

    reward: Floats
    query: Ints
    history: Ints
    events: Ints
    state: Ints

    @classmethod
    def of(cls, traces: TraceSet, timing: LabelTiming, states: Ints | None) -> "StepRewards":
        """Return the rewards of all steps of traces, given the states of machines, if any."""
        query = _queries(traces)
        width = int(query.max()) + 1
        histories = Histories.of(traces, timing)
        quiet = [code for code, label in enumerate(traces.labels) if label == NO_EVENT]
        history, events = (
            _core.history_columns(read.tree)[0].astype(np.int64) * width + query
            for read in (histories, remove_trivial(histories, quiet))
        )
        rewards = np.array(traces.rewards, np.float64)[traces.reward_codes]
        state = query if states is None else states * width + query
        return cls(rewards, query, history, events, state)

    def where(self, mask: NDArray[np.bool_]) -> "StepRewards":
        """Return the steps that a mask selects."""
        keys = (self.query, self.history, self.events, self.state)
        return StepRewards(self.reward[mask], *(key[mask] for key in keys))


def find_reward_levels(
    traces: TraceSet, timing: LabelTiming, *, stated: bool = False, states: Ints | None = None
) -> RewardLevels | None:
    """Find the values that rewards vary around; None if rewards are exact.

    Rewards are noisy only if those in the same context differ nearly always, or if hardly any
    reward occurs twice; and if few values with the same noise around each explain them. With
    `stated`, they are known to be noisy. `states` are those of machines at each step, which give
    sharper levels: rewards in one state differ by noise alone.

    Raises:
        TraceError: when rewards nearly all differ, at random, and not around few values.
    """
    if REWARD not in traces.columns or len(traces.rewards) < FEWEST_VALUES:
        return None
    if max(map(abs, traces.rewards)) > _MAX_REWARD:
        return None
    exact = _exact_values(traces)
    if not stated and _first_steps_are_exact(traces, exact):
        return None
    steps = StepRewards.of(traces, timing, states)
    steps = steps.where(~np.isin(steps.reward, exact))
    if len(np.unique(steps.reward)) < FEWEST_VALUES:
        return None
    if not stated and not _varies(steps) and not _hardly_repeats(steps):
        return None
    steps = _thinned(steps)
    groups = Groups.by(_state_key(steps), steps.reward)
    variance = _variance(groups)
    if states is not None:
        by_state = Groups.by(steps.state, steps.reward)
        if _variance(by_state) < _IMPURE * variance:
            groups = by_state
    sigma = variance**0.5
    if sigma <= _ROUNDING * max(float(np.abs(steps.reward).max()), 1):
        return None
    price = 1.0 if states is not None else _FIRST_PRICE
    size = _normal_size(groups, sigma)
    mixture = find_centers(_without_outliers(groups, sigma), sigma, size, price)
    different = len(traces.rewards)
    if mixture is None and different > _MAX_DISTINCT_SHARE * traces.steps:
        raise TraceError(
            f"rewards vary at random, but not around a few values: "
            f"{amount(different, 'different reward')} at {amount(traces.steps, 'step')}; round "
            f"them with reward_digits=N (--reward-digits N), or predict only "
            f"outputs=['observation'] (--outputs observation)"
        )
    if mixture is None or (len(mixture.centers) == 1 and different <= _MAX_SYMBOLS):
        return None  # as of a die, whose faces say more than their mean
    return _levels(mixture, sigma, exact)


def _queries(traces: TraceSet) -> Ints:
    """Return the number of the query, the observation and the action, at each step."""
    observations = traces.at_step(traces.observation_codes).astype(np.int64)
    return observations * len(traces.actions) + traces.action_codes


def _first_steps_are_exact(traces: TraceSet, exact: Floats) -> bool:
    """Return whether first steps alone, which are fast to compare, show that rewards are exact."""
    first = traces.offsets[:-1]
    label, observation = (
        codes[first + np.arange(len(first))]
        for codes in (traces.label_codes, traces.observation_codes)
    )
    context = label.astype(np.int64) * len(traces.observations) + observation
    context = context * len(traces.actions) + traces.action_codes[first]
    rewards = np.array(traces.rewards, np.float64)[traces.reward_codes[first]]
    mask = ~np.isin(rewards, exact)
    repeats, equal = _repeats(context[mask], rewards[mask])
    return repeats >= _MIN_REPEATS and equal > _MAX_EQUAL


def _varies(steps: StepRewards) -> bool:
    """Return whether rewards after the same labels nearly always differ."""
    repeats, equal = _repeats(steps.history, steps.reward)
    return repeats >= _MIN_REPEATS_OF_NOISE and equal <= _MAX_EQUAL


def _hardly_repeats(steps: StepRewards) -> bool:
    """Return whether queries are frequent and most of their rewards occur nowhere else.

    One long log has no context twice: only this distinguishes noise from memory there.
    """
    _, query, times = np.unique(steps.query, return_inverse=True, return_counts=True)
    _, value, occurrences = np.unique(steps.reward, return_inverse=True, return_counts=True)
    occurrences = occurrences[value][times[query] >= FEWEST_VALUES]
    unique, frequent = int((occurrences == 1).sum()), len(occurrences)
    return frequent >= _MIN_FREQUENT_STEPS and unique >= _MIN_UNIQUE_SHARE * frequent


def _repeats(context: Ints, rewards: Floats) -> tuple[int, float]:
    """Return the number of repeated contexts, and the share of pairs in them that are equal."""
    different, code = np.unique(rewards, return_inverse=True)
    _, number, size = np.unique(context, return_inverse=True, return_counts=True)
    _, same = np.unique(number * len(different) + code, return_counts=True)
    pairs, equal = (int((count * (count - 1)).sum()) for count in (size, same))
    return int((size - 1).sum()), equal / max(pairs, 1)


def _state_key(steps: StepRewards) -> Ints:
    """Return a key whose equality implies the same state, so that rewards differ by noise alone."""
    histories = Groups.by(steps.history, steps.reward)
    events = Groups.by(steps.events, steps.reward)
    if events.repeats < _MIN_REPEATS:  # as in one long log: most queries have one reward
        return steps.state
    if histories.repeats >= _MIN_REPEATS and _variance(histories) < 0.7 * _variance(events):
        return steps.history  # then "no event" changes the reward
    return steps.events


def _variance(groups: Groups) -> float:
    """Return the variance of rewards in the same context, without outliers."""
    repeated = groups.where(groups.size > 1)
    free = repeated.size - 1
    # The median is robust against a few outliers.
    scaled = repeated.squares / _median_of_chi_squared(free)
    order = np.argsort(scaled, kind="stable")
    below = np.cumsum(free[order])
    median = float(scaled[order[int(np.searchsorted(below, below[-1] / 2))]])
    is_typical = repeated.squares <= _OUTLIER_SIGMA**2 * median * free
    return float(repeated.squares[is_typical].sum() / max(free[is_typical].sum(), 1))


def _without_outliers(groups: Groups, sigma: float) -> Groups:
    free = np.maximum(groups.size - 1, 1)
    return groups.where(groups.squares <= _OUTLIER_SIGMA**2 * sigma**2 * free)


def _normal_size(groups: Groups, sigma: float) -> float:
    """Return the size from which the means of groups look normally distributed.

    It is 1 if single values do. The excess kurtosis of noise is estimated from differences of two
    values; that of a mean is smaller by the number of its values.
    """
    pairs = groups.squares[groups.size == 2] * 2
    pairs = pairs[pairs <= 2 * (_OUTLIER_SIGMA * sigma) ** 2]
    if len(pairs) < 100:
        return 1
    excess = 2 * (float((pairs**2).mean() / pairs.mean() ** 2) - 3)
    if abs(excess) < 8 * (24 / len(pairs)) ** 0.5:
        return 1
    for size in np.unique(groups.size):
        if abs(excess) / size * (float((groups.size >= size).sum()) / 24) ** 0.5 < 2:
            return float(size)
    return float(groups.size.max()) + 1


def _levels(mixture: Mixture, sigma: float, exact: Floats) -> RewardLevels:
    errors = 3 * (sigma / np.sqrt(np.maximum(mixture.values, 1)))
    levels = [*map(_shortest, mixture.centers.tolist(), errors)]
    for value in exact.tolist():  # a level that often occurs without noise is exactly this value
        levels = [value if abs(level - value) < sigma / 2 else level for level in levels]
    others = tuple(value for value in exact.tolist() if value not in levels)
    return RewardLevels(tuple(sorted(set(levels))), float(f"{sigma:.3g}"), others)


def _shortest(number: float, error: float) -> float:
    """Return the number with the fewest digits that lies within an error.

    >>> _shortest(0.0702, 0.001), _shortest(-3.6993, 0.004), _shortest(0.0003, 0.001)
    (0.07, -3.7, 0.0)
    """
    first = -Decimal(max(error, abs(number), 1e-300)).adjusted()
    for decimals in range(first - 1, first + 17):
        if abs((shorter := round(number, decimals)) - number) <= error:
            return shorter + 0.0
    return number


def _exact_values(traces: TraceSet) -> Floats:
    """Return the rewards that occur often, among others that hardly do."""
    counts = np.bincount(traces.reward_codes, minlength=len(traces.rewards))
    frequent = np.flatnonzero(counts >= _MIN_EXACT)
    if len(counts) <= _NEIGHBORS:
        frequent = frequent[:0]
    begin = np.clip(frequent - _NEIGHBORS // 2, 0, max(len(counts) - _NEIGHBORS, 0))
    neighbors = np.median(counts[begin[:, None] + np.arange(_NEIGHBORS)], axis=1)
    exact = frequent[counts[frequent] >= 10 * neighbors]
    values: Floats = np.array(traces.rewards, np.float64)[exact]
    return values


def _thinned(steps: StepRewards) -> StepRewards:
    """Return a limited number of steps, chosen by their values: their order has no effect."""
    if len(steps.reward) <= _MAX_STEPS:
        return steps
    order = np.lexsort((steps.reward, steps.history))
    mask = np.zeros(len(order), bool)
    mask[order[np.linspace(0, len(order) - 1, _MAX_STEPS).astype(np.int64)]] = True
    return steps.where(mask)


def _median_of_chi_squared(free: Floats) -> Floats:
    """Return the median of the chi-squared distribution, by the rule of Wilson and Hilferty.

    >>> _median_of_chi_squared(np.array([1, 2, 10])).round(1).tolist()
    [0.5, 1.4, 9.3]
    """
    median: Floats = free * (1 - 2 / (9 * free)) ** 3
    return median


def assign_reward_levels(samples: SampleSet, traces: TraceSet, levels: RewardLevels) -> SampleSet:
    """Return samples with the same reward throughout for each query that one level explains.

    The levels determine how often noise moves a reward from one level to another. Deviations from
    the only level of a query are noise, which a search for memory can ignore. The samples may be
    supplemented; the query here is the observation and the action alone.
    """
    queries, query = np.unique(_queries(traces), return_inverse=True)
    counts = np.zeros((len(queries), len(samples.outputs)))
    np.add.at(counts, (query, samples.output), 1)
    confusion = levels.confusion(list(samples.outputs))
    with_one_level = product(counts, log(confusion + _UNEXPLAINED).T)
    level = with_one_level.argmax(1)
    has_one = with_one_level.max(1) + _MIN_NATS >= _with_several_levels(counts, confusion)
    output = np.where(has_one[query], level[query], samples.output).astype(np.int32)
    return replace(samples, output=output)


def _with_several_levels(counts: Floats, confusion: Floats) -> Floats:
    """Return the log likelihood of each query's rewards if it has several levels."""
    total = counts.sum(1, keepdims=True)
    shares = np.full(counts.shape, 1 / counts.shape[1])
    for _ in range(_EM_STEPS):
        expected = product(shares, confusion) + _UNEXPLAINED
        shares = shares * product(counts / expected, confusion.T) / total
    log_likelihood: Floats = (counts * log(product(shares, confusion) + _UNEXPLAINED)).sum(1)
    return log_likelihood
