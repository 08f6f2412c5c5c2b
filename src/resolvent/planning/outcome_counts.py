"""Counts of next observations and rewards, and confidence bounds on mean rewards.

Input: rows of traces, or machines with counts of their own. Output: counts by the rows of a
model, the mean reward of each row, and bounds on the true mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from resolvent._util.math import log
from resolvent._util.records import ByValue
from resolvent.machines import Machine
from resolvent.machines.tables import is_member
from resolvent.planning.confidence import (
    Numbers,
    log_regret,
    lowest_mean,
    worst_probabilities,
)
from resolvent.planning.steps import Keys, StateSpace
from resolvent.replay.counts import GroupedCounts
from resolvent.traces.vocabulary import Codes, codes_of


def regret_of(counts: GroupedCounts, values: int) -> Numbers:
    """Return the regret of each key's shares; see `log_regret`.

    >>> eight = GroupedCounts.of(np.zeros(8, int), np.array([0] * 6 + [1] * 2))
    >>> regret_of(eight, 2).round(3).tolist()
    [1.303]
    """
    return log_regret(counts.row, counts.count.astype(float), len(counts), values)


@dataclass(frozen=True, eq=False)
class RewardCounts(ByValue):
    """Counts of the rewards of each row; the values of `counts` are places in `rewards`."""

    counts: GroupedCounts
    rewards: Numbers

    @classmethod
    def of(cls, keys: Keys, rewards: Numbers, count: Keys | None = None) -> "RewardCounts":
        """Count the rewards of each row, or sum the counts that they have already.

        >>> pay = RewardCounts.of(np.array([4, 4, 9]), np.array([1.0, 0.0, 2.0]))
        >>> pay.counts.key.tolist(), pay.counts.total.tolist(), pay.mean.tolist()
        ([4, 9], [2, 1], [0.5, 2.0])
        """
        # Equal rewards are counted before they are added, so that sums are the same in any order.
        distinct, code = np.unique(rewards, return_inverse=True)
        return cls(GroupedCounts.of(keys, code, count), distinct)

    @cached_property
    def mean(self) -> Numbers:
        """The mean reward of each row."""
        row, reward = self.counts.row, self.rewards[self.counts.value]
        least, most = np.full(len(self.counts), np.inf), np.full(len(self.counts), -np.inf)
        np.minimum.at(least, row, reward)
        np.maximum.at(most, row, reward)
        total = np.bincount(row, reward * self.counts.count, len(self.counts))
        return np.clip(total / self.counts.total, least, most)

    def better_known(self, other: "RewardCounts") -> "RewardCounts":
        """Return each row from whichever of the two has more counts of it."""
        rewards = np.union1d(self.rewards, other.rewards)
        first, second = (pay._recoded(rewards) for pay in (self, other))
        return RewardCounts(first.better_known(second), rewards)

    def _recoded(self, rewards: Numbers) -> GroupedCounts:
        """Return the counts with places among more rewards."""
        counts, place = self.counts, np.searchsorted(rewards, self.rewards)
        return GroupedCounts(counts.key, counts.offset, place[counts.value], counts.count)

    def least(self, radius: Numbers, low: float) -> Numbers:
        """Return the lowest true mean of each row if its shares are off by a radius.

        A reward that never occurred in a row is assumed to be `low`.

        >>> pay = RewardCounts.of(np.repeat([1, 2], 8), np.array([0.0] * 8 + [-1.0, 1.0] * 4))
        >>> pay.least(np.full(2, 1 / 16), -1.0).round(3).tolist()
        [-0.061, -0.343]
        """
        counts, reward = self.counts, self.rewards[self.counts.value]
        probability, rest = worst_probabilities(
            counts.row, counts.share, reward, radius, np.full(len(counts), low)
        )
        mean = np.bincount(counts.row, probability * reward, len(counts)) + rest * low
        return np.minimum(mean, self.mean)

    def bounds(self, log_risk: float, reward_range: tuple[float, float]) -> tuple[Numbers, Numbers]:
        """Return bounds on the true mean of each row; they fail with probability e^−log_risk.

        Half of that probability is for bounds by the shares of the distinct rewards, tight if
        these are few; half is for bounds by the mean alone, as of a coin between the lowest and
        the highest reward, which hold for any number of rewards.

        >>> pay = RewardCounts.of(np.zeros(1_000, int), np.zeros(1_000))
        >>> [bound.round(3).tolist() for bound in pay.bounds(3.0, (-1.0, 1.0))]
        [[-0.008], [0.008]]
        """
        low, high = reward_range
        if low == high or not len(self.counts):
            return self.mean, self.mean
        log_risk += float(log(2))
        radius = (regret_of(self.counts, len(self.rewards) + 1) + log_risk) / self.counts.total
        negated = RewardCounts(self.counts, -self.rewards)
        least, most = self.least(radius, low), -negated.least(radius, -high)
        above = np.clip((self.mean - low) / (high - low), 0.0, 1.0)
        radius = (self._coin_regret(above) + log_risk) / self.counts.total
        by_coin = low + (high - low) * lowest_mean(above, radius)
        to_coin = high - (high - low) * lowest_mean(1 - above, radius)
        return (
            np.minimum(np.maximum(least, by_coin), self.mean),
            np.maximum(np.minimum(most, to_coin), self.mean),
        )

    def _coin_regret(self, above: Numbers) -> Numbers:
        """Return the regret of each row's mean, as that of throws of a coin."""
        rows, total = np.tile(np.arange(len(above)), 2), self.counts.total
        return log_regret(rows, np.concatenate([above * total, (1 - above) * total]), len(above), 2)


def pack(parts: Sequence[Any], sizes: Sequence[int]) -> Keys:
    """Return one number for parts below their sizes; the first size is not used.

    >>> int(pack((2, 1, 3), (0, 2, 5)))
    28
    """
    number = np.asarray(parts[0], np.int64)
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        number = number * size + part
    return number


def observation_counts(machine: Machine, space: StateSpace, trust_constants: bool) -> GroupedCounts:
    """Return the counts of next observations that are stored with the Transition Machine."""
    state, query, value, count = _output_counts(machine, trust_constants)
    observation, action = np.divmod(query, len(machine.actions))
    o = codes_of(machine.observations, space.observations, -1)[observation]
    a = codes_of(machine.actions, space.actions, -1)[action]
    following = codes_of(machine.outputs, space.observations, -1)[value]
    keys = pack((o, state, a), (0, space.sizes[0], len(space.actions)))
    return GroupedCounts.of(keys, following, count)


def reward_counts(
    machine: Machine, space: StateSpace, trust_constants: bool, row_of: Callable[..., Keys]
) -> RewardCounts:
    """Return the counts of rewards that are stored with the Reward Machine.

    `row_of` numbers a row by observation, states and action.
    """
    state, query, value, count = _output_counts(machine, trust_constants)
    observation, action = np.divmod(query, len(machine.actions))
    a = codes_of(machine.actions, space.actions, -1)[action]
    observed, transition = list(machine.observations), np.zeros(len(observation), np.int64)
    if machine.supplemented:
        pairs: list[Any] = observed
        observed = [symbol for symbol, _ in pairs]
        transition = np.array([own for _, own in pairs], np.int64)[observation]
    o = codes_of(observed, space.observations, -1)[observation]
    is_found = o >= 0
    keys = row_of(o[is_found], [transition[is_found], state[is_found]], a[is_found])
    rewards = np.array([float(output) for output in machine.outputs])[value]
    return RewardCounts.of(keys, rewards[is_found], count[is_found])


def _output_counts(machine: Machine, trust_constants: bool) -> tuple[Codes, Keys, Codes, Keys]:
    """Return all outputs that a machine has counted, as state, query, value and count.

    Trusted constant outputs are included in every state, with their total count.
    """
    spread, support = machine.spread, machine.support
    columns = [(spread.state, spread.question, spread.value, spread.count)]
    if support is not None:
        width = len(machine.observations) * len(machine.actions)
        varying = np.unique(spread.state.astype(np.int64) * width + spread.question)
        own = machine.output_state.astype(np.int64) * width + machine.output_question
        single = ~is_member(varying, own)
        columns.append(
            (
                machine.output_state[single],
                machine.output_question[single],
                machine.output_value[single],
                support.outputs[single],
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
    state, query, value, count = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    counted = count > 0
    return state[counted], query[counted], value[counted], count[counted]
