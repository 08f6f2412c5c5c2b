"""Counts of outcomes and rewards, and confidence intervals around their shares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import log, log_gamma
from resolvent.by_value import ByValue
from resolvent.machines import Machine
from resolvent.machines.columns import is_among, places
from resolvent.planning.confidence import least_mean, worst
from resolvent.planning.steps import Keys, Space
from resolvent.traces.vocabulary import Codes, codes_of

Keys = NDArray[np.int64]
Numbers = NDArray[np.float64]


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
