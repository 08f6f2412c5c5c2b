"""A model with chances → what to do, what it is expected to pay, and bounds with confidence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from resolvent.control.planning.chance.bounding import cautious_policy, least_worth, most_worth
from resolvent.control.planning.chance.chances import Chances
from resolvent.control.planning.chance.expecting import best_policy, ending_worth, worth_of
from resolvent.control.planning.chance.linear import Numbers, Rows
from resolvent.control.planning.chance.plausible import least_mean
from resolvent.control.planning.chance.tallies import regrets
from resolvent.control.planning.chance.view import View
from resolvent.control.planning.promises import in_all

if TYPE_CHECKING:
    from resolvent.control.planning.model import Model


_NEARLY_ONE = 0.9999
_CAUTION = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """For each situation an action, what acting so is expected to pay, and bounds.

    With the confidence that was asked for, acting so is worth at least `pessimistic`, and
    nothing is worth more than `optimistic`.
    """

    policy: Rows
    expected: Numbers
    pessimistic: Numbers
    optimistic_policy: Rows
    optimistic: Numbers


def expect(
    model: "Model",
    chances: Chances,
    gamma: float,
    reward_range: tuple[float, float],
    confidence: float,
) -> Expectation:
    """Find a way to act that is expected to pay much, and say what is sure of it.

    What to do is chosen with caution: a step counts for what it is worth if its pay is off by the
    divergence 1 / 2n that is usual after n times, and if something else had come of it in a
    twentieth of a case beside these n. So a step that was lucky once is not preferred to one
    that did well a thousand times. Without discount it is chosen with next to none, so that of
    ways worth the same one is taken that soon ends; if that might never end, the one that is
    expected to pay most.
    """
    low, high = reward_range
    mean = np.where(model.known, model.reward, 0.0).ravel()
    seen, paid = (np.maximum(one, 1).astype(float) for one in (chances.seen, chances.paid))
    plain = _view(model, chances, mean, mean, low, gamma, min)
    ahead = min(gamma, _NEARLY_ONE)
    least, _ = _plausible_pay(mean, 1 / (2 * paid), reward_range)
    caution = _view(model, chances, least, least, low, ahead, min)
    policy = cautious_policy(caution, _CAUTION / seen, ahead)
    expected: Numbers | None
    if gamma < 1:
        expected = worth_of(plain, policy, gamma)
    else:
        surely, most_expected = best_policy(plain, gamma)
        expected = ending_worth(plain, policy)
        if expected is None:
            policy, expected = surely, most_expected
    # A third each for what follows a step, for labels and endings, and for what is paid.
    delta = (1 - confidence) / 3
    doubt = _pay_doubt(mean, paid, reward_range) + np.log(chances.possible / delta) / paid
    least, most = _plausible_pay(mean, doubt, reward_range)
    anything = np.full(len(mean), low), np.full(len(mean), high)
    sure = _view(model, chances, least, anything[0], low, gamma, min)
    hope = _view(model, chances, most, anything[1], high, gamma, max)
    pessimistic = least_worth(sure, chances.radius(delta), gamma, policy)
    hopeful, optimistic = most_worth(hope, chances.radius(delta), gamma)
    return Expectation(
        policy,
        expected,
        np.minimum(pessimistic, expected),
        hopeful,
        np.maximum(optimistic, expected),
    )


def _view(
    model: "Model",
    chances: Chances,
    mean: Numbers,
    otherwise: Numbers,
    reward: float,
    gamma: float,
    worst_or_best: Callable[[float, float], float],
) -> View:
    """See what is not known as if it paid this reward, for one step or for ever."""
    for_ever = in_all(reward, gamma)
    unknown, beyond = worst_or_best(reward, for_ever), worst_or_best(0.0, for_ever)
    return View.of(chances, model.known, mean, otherwise, reward, unknown, beyond)


def _plausible_pay(
    mean: Numbers, radius: Numbers, reward_range: tuple[float, float]
) -> tuple[Numbers, Numbers]:
    """Return the least and the most that steps may truly pay on average, if they paid so much."""
    low, high = reward_range
    if high == low:
        return mean, mean
    above = np.clip((mean - low) / (high - low), 0.0, 1.0)
    least = low + (high - low) * least_mean(above, radius)
    most = high - (high - low) * least_mean(1 - above, radius)
    return np.minimum(least, mean), np.maximum(most, mean)


def _pay_doubt(mean: Numbers, times: Numbers, reward_range: tuple[float, float]) -> Numbers:
    """Return how far the true mean of what is paid may be, but for how sure one wants to be."""
    low, high = reward_range
    above = times * np.clip((mean - low) / max(high - low, np.finfo(float).tiny), 0.0, 1.0)
    steps = np.tile(np.arange(len(mean)), 2)
    counts = np.concatenate([above, np.maximum(times - above, 0.0)])
    return regrets(steps, counts, len(mean), 2) / times
