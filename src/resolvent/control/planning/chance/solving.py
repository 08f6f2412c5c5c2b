"""A model with chances → what to do, what it is expected to pay, and bounds with confidence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from resolvent.arithmetic import log
from resolvent.control.planning.chance.bounding import cautious_policy, least_worth, most_worth
from resolvent.control.planning.chance.chances import Chances
from resolvent.control.planning.chance.expecting import best_policy, ending_worth, worth_of
from resolvent.control.planning.chance.linear import Numbers, Rows
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
    seen = np.maximum(chances.seen, 1).astype(float)
    plain = _view(model, chances, mean, mean, low, gamma, min)
    ahead = min(gamma, _NEARLY_ONE)
    least = _of_steps(chances, mean, chances.pays.least(1 / (2 * chances.pays.count), low))
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
    doubt = float(log(chances.possible / delta))
    least, most = (
        _of_steps(chances, mean, one) for one in chances.pays.bounds(doubt, reward_range)
    )
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


def _of_steps(chances: Chances, mean: Numbers, paid: Numbers) -> Numbers:
    """Return for each step what its row is said to pay; the mean where it has none."""
    return np.where(chances.paid < 0, mean, paid[chances.paid]) if len(paid) else mean
