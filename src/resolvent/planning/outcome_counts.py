"""Counts of outcomes and rewards, and confidence intervals around their shares."""

import numpy as np
from dataclasses import dataclass
from functools import cached_property
from numpy.typing import NDArray
from resolvent.arithmetic import log, log_gamma
from resolvent.by_value import ByValue
from resolvent.machines.columns import is_among, places
from resolvent.planning.confidence import least_mean, worst
from collections.abc import Callable, Sequence
from typing import Any
from resolvent.planning.steps import Keys, Space
from resolvent.machines import Machine
from resolvent.traces.vocabulary import Codes, codes_of


Keys = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally(ByValue):
    """How often each value came in each row.

    `key` are the numbers of the rows, sorted; the values of row i, sorted, and their counts
    lie from `offset[i]` up to `offset[i + 1]`.

    >>> coins = Tally.of(np.array([7, 3, 7, 7]), np.array([1, 0, 0, 1]), 2)
    >>> coins.key.tolist(), coins.value.tolist(), coins.count.tolist(), coins.total.tolist()
    ([3, 7], [0, 0, 1], [1, 1, 2], [1, 3])
    """

    key: Keys
    offset: Keys
    value: Keys
    count: Keys

    @classmethod
    def of(cls, keys: Keys, values: Keys, size: int, counts: Keys | None = None) -> "Tally":
        """Count values, which are below `size`, by the rows in which they came."""
        names = None
        if (int(keys.max(initial=0)) + 1) * size > np.iinfo(np.int64).max:
            names, keys = np.unique(keys, return_inverse=True)
        both, place = np.unique(keys.astype(np.int64) * size + values, return_inverse=True)
        count = np.bincount(place, counts, len(both)).astype(np.int64)
        row, value = np.divmod(both, size)
        start = np.flatnonzero(np.diff(row, prepend=-1))
        key = row[start] if names is None else names[row[start]]
        return cls(key, np.append(start, len(row)), value, count)

    def __len__(self) -> int:
        return len(self.key)

    @cached_property
    def size(self) -> Keys:
        """How many different values came in each row."""
        return np.diff(self.offset)

    @cached_property
    def total(self) -> Keys:
        """How often anything came in each row."""
        return np.add.reduceat(self.count, self.offset[:-1]) if len(self) else self.size

    @cached_property
    def row(self) -> Keys:
        """For each value the place of its row."""
        return np.repeat(np.arange(len(self)), self.size)

    @cached_property
    def share(self) -> Numbers:
        """How often each value came, as a share of all that came in its row."""
        return self.count / self.total[self.row]

    def find(self, wanted: Keys) -> Keys:
        """Return the place of each row that is wanted, −1 where there is none."""
        return places(self.key, wanted).astype(np.int64)

    def spread_out(self, rows: Keys) -> tuple[Keys, Keys]:
        """Return, for rows by their places, which of them each of their values belongs to.

        The second column says where that value lies. A place of −1 has no values.
        """
        size = np.where(rows < 0, 0, self.size[rows]) if len(self) else np.zeros(len(rows), int)
        owner = np.repeat(np.arange(len(rows)), size)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        return owner, self.offset[rows[owner]] + within

    def seen_more(self, other: "Tally") -> "Tally":
        """Return each row as one of the two counted it: the one that saw more of it.

        The same steps may be in both, so they are never added up.

        >>> one, other = (Tally.of(np.array([1, 1, k]), np.array([0, 0, 0]), 2) for k in (1, 2))
        >>> both = other.seen_more(one)
        >>> both.key.tolist(), both.total.tolist()
        ([1, 2], [3, 1])
        """
        if not len(other) or not len(self):
            return self if len(self) else other
        mine, yours = self.find(other.key), other.find(self.key)
        keep = (yours < 0) | (self.total >= other.total[yours])
        take = (mine < 0) | (other.total > self.total[mine])
        one, more = keep[self.row], take[other.row]
        keys = np.concatenate([self.key[self.row[one]], other.key[other.row[more]]])
        values = np.concatenate([self.value[one], other.value[more]])
        counts = np.concatenate([self.count[one], other.count[more]])
        return Tally.of(keys, values, int(values.max(initial=0)) + 1, counts)

    def regret(self, values: int) -> Numbers:
        """Return how much likelier the shares of a row make it than a bet made in advance.

        The bet is on any shares of so many `values`, drawn evenly by Dirichlet's
        distribution with 1 / values for each. By Ville's inequality the true chances p of a
        row seen n times fulfil n · KL(shares ‖ p) ≤ regret + log(1 / delta) with probability
        1 − delta, however it was decided how often to look.

        >>> Tally.of(np.zeros(8, int), np.array([0] * 6 + [1] * 2), 2).regret(2).round(3).tolist()
        [1.303]
        """
        return regrets(self.row, self.count.astype(float), len(self), values)


def regrets(row: Keys, count: Numbers, rows: int, values: int) -> Numbers:
    """Return how much likelier the shares of rows make them than a bet on any of so many values.

    Counts need not be whole: a pay between the least and the most counts as a part of both.
    """
    prior = 1 / values
    total = np.bincount(row, count, rows).astype(float, copy=False)
    fitted = np.bincount(row, count * log(np.where(count > 0, count, 1)), rows)
    fitted -= total * log(np.where(total > 0, total, 1))
    bet = np.bincount(row, log_gamma(count + prior) - log_gamma(prior), rows)
    regret: Numbers = np.maximum(fitted - bet + log_gamma(total + 1), 0.0)
    return regret


@dataclass(frozen=True, eq=False)
class Pay(ByValue):
    """How often each reward was paid in each row; `tally` counts places in `rewards`."""

    tally: Tally
    rewards: Numbers

    @classmethod
    def of(cls, keys: Keys, paid: Numbers, counts: Keys | None = None) -> "Pay":
        """Put together what was paid in the same rows, each so often.

        >>> pay = Pay.of(np.array([4, 4, 9]), np.array([1.0, 0.0, 2.0]))
        >>> pay.tally.key.tolist(), pay.count.tolist(), pay.mean.tolist()
        ([4, 9], [2, 1], [0.5, 2.0])
        """
        # Sums do not depend on the order of traces: equal pays are counted before they are added.
        rewards, code = np.unique(paid, return_inverse=True)
        return cls(Tally.of(keys, code, max(len(rewards), 1), counts), rewards)

    @property
    def count(self) -> Keys:
        """How often anything was paid in each row."""
        return self.tally.total

    @cached_property
    def mean(self) -> Numbers:
        """What was paid in each row on average."""
        tally, paid = self.tally, self.rewards[self.tally.value]
        least, most = np.full(len(tally), np.inf), np.full(len(tally), -np.inf)
        np.minimum.at(least, tally.row, paid)
        np.maximum.at(most, tally.row, paid)
        return np.clip(
            np.bincount(tally.row, paid * tally.count, len(tally)) / self.count, least, most
        )

    def find(self, wanted: Keys) -> Keys:
        """Return the place of each row that is wanted, −1 where there is none."""
        return self.tally.find(wanted)

    def seen_more(self, other: "Pay") -> "Pay":
        """Return each row as one of the two saw it: the one that saw more of it."""
        rewards = np.union1d(self.rewards, other.rewards)
        one, more = (pay._among(rewards) for pay in (self, other))
        return Pay(one.seen_more(more), rewards)

    def _among(self, rewards: Numbers) -> Tally:
        """Return the tally with places among more rewards."""
        tally = self.tally
        place = np.searchsorted(rewards, self.rewards)
        return Tally(tally.key, tally.offset, place[tally.value], tally.count)

    def least(self, radius: Numbers, low: float) -> Numbers:
        """Return the least that rows may truly pay on average, if shares are so far off.

        What was never paid in a row may be paid: then it is `low`. So a row that always paid
        the same is hardly in doubt, however far the lowest reward may be.

        >>> pay = Pay.of(np.repeat([1, 2], 8), np.array([0.0] * 8 + [-1.0, 1.0] * 4))
        >>> pay.least(np.full(2, 1 / 16), -1.0).round(3).tolist()
        [-0.061, -0.343]
        """
        tally, paid = self.tally, self.rewards[self.tally.value]
        chance, rest = worst(tally.row, tally.share, paid, radius, np.full(len(tally), low))
        found = np.bincount(tally.row, chance * paid, len(tally)) + rest * low
        return np.minimum(found, self.mean)

    def bounds(self, doubt: float, reward_range: tuple[float, float]) -> tuple[Numbers, Numbers]:
        """Return the least and the most that rows truly pay on average, but for e^−doubt.

        That is the probability that any row is outside. Half of it is for shares of the rewards
        that were ever paid, which say much where these are few; half is for the mean alone, that
        of a coin between the least and the most reward, which holds for any number of rewards.

        >>> pay = Pay.of(np.zeros(1_000, int), np.zeros(1_000))
        >>> [one.round(3).tolist() for one in pay.bounds(3.0, (-1.0, 1.0))]
        [[-0.008], [0.008]]
        """
        low, high = reward_range
        if low == high or not len(self.tally):
            return self.mean, self.mean
        doubt += float(log(2))
        radius = (self.tally.regret(len(self.rewards) + 1) + doubt) / self.count
        lost = Pay(self.tally, -self.rewards)
        least, most = self.least(radius, low), -lost.least(radius, -high)
        above = np.clip((self.mean - low) / (high - low), 0.0, 1.0)
        radius = (self._coin_regret(above) + doubt) / self.count
        return (
            np.minimum(
                np.maximum(least, low + (high - low) * least_mean(above, radius)), self.mean
            ),
            np.maximum(
                np.minimum(most, high - (high - low) * least_mean(1 - above, radius)), self.mean
            ),
        )

    def _coin_regret(self, above: Numbers) -> Numbers:
        """Return how much likelier such a mean makes rows than a bet on any coin."""
        rows = np.tile(np.arange(len(above)), 2)
        counts = np.concatenate([above * self.count, (1 - above) * self.count])
        return regrets(rows, counts, len(above), 2)


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
