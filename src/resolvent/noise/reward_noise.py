"""Traces → whether noise is added to their rewards, and the values that these vary around.

Steps that read the same labels and are asked the same are in the same state, so what they pay
differs by noise alone: this says whether there is any, and how much. A question that varies no
more than that over all its steps pays the same in all states: its mean is as good as exact.
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import TraceError
from resolvent.noise.mixture import Floats, Groups, Ints, Mixture, find_centres
from resolvent.reduction import remove_trivial
from resolvent.samples import Histories, LabelTiming
from resolvent.senses import RewardLevels
from resolvent.traces.column_names import REWARD
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.trace_set import TraceSet
from resolvent.wording import amount

MOST_DIFFERENT = 0.2
"""With more different rewards than this share of the steps, they are no symbols."""

FEW = 64
"""Up to so many different rewards that vary around one value are symbols all the same."""

FEWEST_VALUES = 16
"""Fewer different rewards than this are compared as symbols: what varies among them flips."""

_FEWEST_REPEATS = 30
"""Repeats of a situation that tell how much rewards vary in it."""

_FEWEST_TO_VARY = 5
"""Repeats that must have been seen before rewards are taken to vary."""

_EQUAL = 0.2
"""With a greater share of equal rewards in the same situation, some are exact."""

_EXACT = 20
"""A value that comes this often, and ten times as often as those around it, is paid exactly."""

_AROUND = 17

_FEWEST_TO_COME_BACK = 1_000
"""Steps whose question comes often, before rewards that never come back are noise for sure."""

_NEVER_BACK = 0.5
"""Where so many of them pay what is paid nowhere else, no memory foretells what fresh steps pay:
machines would know the traces by heart, with a state for nearly each step."""

_LARGEST = 1e100
"""Rewards beyond this are compared as they are: sums of their squares are no numbers any more."""

_ROUNDING = 1e-6
"""Rewards that differ by less, or by less than this share of them, differ in their last digits:
those are rounded."""

_IMPURE = 1.1
"""Machines whose states pay different rewards for one question show more variance than this."""

_FIRST_PRICE = 0.3
"""What a level costs before there are machines: with too many, memory is found all the same,
and then shows which of them there are; with too few it may not be."""

_OUTLYING = 4.0
_MOST_STEPS = 500_000


@dataclass(frozen=True)
class Situations:
    """The rewards of steps, and which steps are in the same situation; parallel columns.

    `state` is what was seen and done, and the labels read without "no event"; `moment` has all
    labels read, `memory` the states of machines instead, and `asked` nothing else.
    """

    reward: Floats
    state: Ints
    moment: Ints
    memory: Ints
    asked: Ints

    @classmethod
    def of(cls, traces: TraceSet, timing: LabelTiming, memory: Ints | None) -> "Situations":
        """Return those of traces."""
        asked = traces.at_step(traces.observation_codes).astype(np.int64) * len(traces.actions)
        asked += traces.action_codes
        histories = Histories.of(traces, timing)
        quiet = [code for code, label in enumerate(traces.labels) if label == NO_EVENT]
        state, moment = (
            _core.history_columns(one.tree)[0].astype(np.int64) * (int(asked.max()) + 1) + asked
            for one in (remove_trivial(histories, quiet), histories)
        )
        rewards = np.array(traces.rewards, np.float64)[traces.reward_codes]
        memory = asked if memory is None else memory * (int(asked.max()) + 1) + asked
        return cls(rewards, state, moment, memory, asked)

    def where(self, kept: NDArray[np.bool_]) -> "Situations":
        """Return some of the steps."""
        others = (self.state, self.moment, self.memory, self.asked)
        return Situations(self.reward[kept], *(column[kept] for column in others))


def find_reward_levels(
    traces: TraceSet,
    timing: LabelTiming,
    *,
    stated: bool = False,
    memory: Ints | None = None,
) -> RewardLevels | None:
    """Find the values that rewards vary around; None if rewards are exact, or follow from more.

    Rewards are taken to be noisy only if those of steps that read the same labels and are
    asked the same differ nearly always, or if hardly any reward ever comes back; and if few
    values with the same noise around each explain them. With `stated` it is known that they are,
    and need not be seen. `memory` is the state that machines were in at each step, if there are
    machines: what is paid in one state differs by noise alone, too, so it shows levels more
    sharply.

    >>> from resolvent.traces import Trace
    >>> random = np.random.default_rng(0)
    >>> def episode(first):
    ...     paid = [random.normal(0, 0.1), random.normal(first == "key", 0.1)]
    ...     return Trace(["hall", "hall", "hall"], [None, first, None], ["up", "open"], paid)
    >>> traces = TraceSet([episode(one) for one in ["key", "bell"] * 100])
    >>> print(find_reward_levels(traces, LabelTiming.CURRENT))
    rewards vary by ±0.1 around 0, 1

    Raises:
        TraceError: when rewards nearly all differ, by chance, and vary around no few values.
    """
    if REWARD not in traces.columns or len(traces.rewards) < FEWEST_VALUES:
        return None
    if max(map(abs, traces.rewards)) > _LARGEST:
        return None
    exact = _exact_values(traces)
    if not stated and _begins_alike(traces, exact):
        return None
    steps = Situations.of(traces, timing, memory)
    steps = steps.where(~np.isin(steps.reward, exact))
    if len(np.unique(steps.reward)) < FEWEST_VALUES:
        return None
    if not stated and not _varies(steps) and not _never_come_back(steps):
        return None
    steps = _thinned(steps)
    groups = Groups.by(_same_state(steps), steps.reward)
    variance = _variance(groups)
    if memory is not None:
        remembered = Groups.by(steps.memory, steps.reward)
        if _variance(remembered) < _IMPURE * variance:
            groups = remembered
    sigma = variance**0.5
    if sigma <= _ROUNDING * max(float(np.abs(steps.reward).max()), 1):
        return None
    price = 1.0 if memory is not None else _FIRST_PRICE
    found = find_centres(_usual(groups, sigma), sigma, _sure(groups, sigma), price)
    if found is None:
        if len(traces.rewards) > MOST_DIFFERENT * traces.steps:
            raise TraceError(
                f"rewards vary at random, and not around few values: "
                f"{amount(len(traces.rewards), 'different one')} at "
                f"{amount(traces.steps, 'step')}; round them with reward_digits=N "
                f"(--reward-digits N), or predict only outputs=['observation'] "
                f"(--outputs observation)"
            )
        return None
    if len(found.centres) == 1 and len(traces.rewards) <= FEW:
        return None  # a die: its faces are worth more than their mean
    return _levels(found, sigma, exact)


def _begins_alike(traces: TraceSet, exact: Floats) -> bool:
    """Whether first steps alone show that the same situation pays the same; this is fast."""
    first = traces.offsets[:-1]
    label, seen = (
        codes[first + np.arange(len(first))]
        for codes in (traces.label_codes, traces.observation_codes)
    )
    situation = label.astype(np.int64) * len(traces.observations) + seen
    situation = situation * len(traces.actions) + traces.action_codes[first]
    paid = np.array(traces.rewards, np.float64)[traces.reward_codes[first]]
    kept = ~np.isin(paid, exact)
    repeats, equal = _equal(situation[kept], paid[kept])
    return repeats >= _FEWEST_REPEATS and equal > _EQUAL


def _varies(steps: Situations) -> bool:
    """Whether steps in the very same situation nearly always pay different rewards."""
    repeats, equal = _equal(steps.moment, steps.reward)
    return repeats >= _FEWEST_TO_VARY and equal <= _EQUAL


def _never_come_back(steps: Situations) -> bool:
    """Whether questions come again and again, and most of what they pay is paid nowhere else.

    One long log has no situation twice: there, nothing but this tells noise from memory.
    """
    _, question, times = np.unique(steps.asked, return_inverse=True, return_counts=True)
    _, value, paid = np.unique(steps.reward, return_inverse=True, return_counts=True)
    often = times[question] >= FEWEST_VALUES
    once = int((often & (paid[value] == 1)).sum())
    asked = int(often.sum())
    return asked >= _FEWEST_TO_COME_BACK and once >= _NEVER_BACK * asked


def _equal(situation: Ints, rewards: Floats) -> tuple[int, float]:
    """Return how often situations come again, and the share of pairs in them that pay the same."""
    different, code = np.unique(rewards, return_inverse=True)
    _, number, size = np.unique(situation, return_inverse=True, return_counts=True)
    _, same = np.unique(number * len(different) + code, return_counts=True)
    pairs, equal = (int((one * (one - 1)).sum()) for one in (size, same))
    return int((size - 1).sum()), equal / max(pairs, 1)


def _same_state(steps: Situations) -> Ints:
    """Return a key that steps in the same state have in common: they differ by noise alone."""
    moments = Groups.by(steps.moment, steps.reward)
    states = Groups.by(steps.state, steps.reward)
    if states.repeats < _FEWEST_REPEATS:  # such as one long log: most questions pay one value
        return steps.memory
    if moments.repeats >= _FEWEST_REPEATS and _variance(moments) < 0.7 * _variance(states):
        return steps.moment  # then "no event" changes what is paid
    return steps.state


def _variance(groups: Groups) -> float:
    """Return how much values vary in the same situation, but for what lies far off."""
    repeated = groups.where(groups.size > 1)
    free = repeated.size - 1
    # Half of all groups vary by less than this, however far a few lie off.
    middle = _median(repeated.squares / _median_of_chi_squared(free), free)
    usual = repeated.squares <= _OUTLYING**2 * middle * free
    return float(repeated.squares[usual].sum() / max(free[usual].sum(), 1))


def _usual(groups: Groups, sigma: float) -> Groups:
    """Return the groups without those in which something lies far off."""
    return groups.where(groups.squares <= _OUTLYING**2 * sigma**2 * np.maximum(groups.size - 1, 1))


def _sure(groups: Groups, sigma: float) -> float:
    """Return how many values groups must have so that their means look normally distributed.

    One, if single values do. The excess kurtosis of noise is seen in the difference of two
    values, and that of a mean is smaller by as many times as it has values.
    """
    pairs = groups.squares[groups.size == 2] * 2
    pairs = pairs[pairs <= 2 * (_OUTLYING * sigma) ** 2]
    if len(pairs) < 100:
        return 1
    excess = 2 * (float((pairs**2).mean() / pairs.mean() ** 2) - 3)
    if abs(excess) < 8 * (24 / len(pairs)) ** 0.5:
        return 1
    for size in np.unique(groups.size):
        if abs(excess) / size * (float((groups.size >= size).sum()) / 24) ** 0.5 < 2:
            return float(size)
    return float(groups.size.max()) + 1


def _levels(found: Mixture, sigma: float, exact: Floats) -> RewardLevels:
    centres = found.centres.tolist()
    errors = sigma / np.sqrt(np.maximum(found.values, 1))
    short = [_shortest(one, 3 * error) for one, error in zip(centres, errors, strict=True)]
    for value in exact:  # the noise of a value that is often paid without any
        short = [float(value) if abs(one - value) < sigma / 2 else one for one in short]
    return RewardLevels(
        tuple(sorted(set(short))),
        float(f"{sigma:.3g}"),
        tuple(value for value in exact.tolist() if value not in short),
    )


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
    """Return the rewards that come again and again, among others that hardly do."""
    counts = np.bincount(traces.reward_codes, minlength=len(traces.rewards))
    often = np.flatnonzero(counts >= _EXACT)
    if len(counts) <= _AROUND:
        often = often[:0]
    begin = np.clip(often - _AROUND // 2, 0, max(len(counts) - _AROUND, 0))
    beside = np.median(counts[begin[:, None] + np.arange(_AROUND)], axis=1)
    found = often[counts[often] >= 10 * beside]
    values: Floats = np.array(traces.rewards, np.float64)[found]
    return values


def _thinned(steps: Situations) -> Situations:
    """Return at most so many steps, by what they are: their order makes no difference."""
    if len(steps.reward) <= _MOST_STEPS:
        return steps
    order = np.lexsort((steps.reward, steps.moment))
    some = np.zeros(len(order), bool)
    some[order[np.linspace(0, len(order) - 1, _MOST_STEPS).astype(np.int64)]] = True
    return steps.where(some)


def _median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order[int(np.searchsorted(below, below[-1] / 2))]])


def _median_of_chi_squared(free: Floats) -> Floats:
    """Return the median of the chi-squared distribution, by the rule of Wilson and Hilferty.

    >>> _median_of_chi_squared(np.array([1, 2, 10])).round(1).tolist()
    [0.5, 1.4, 9.3]
    """
    median: Floats = free * (1 - 2 / (9 * free)) ** 3
    return median
