"""A model with chances → what to do, what it is expected to pay, and bounds with confidence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from resolvent.control.planning.chance.bounding import cautious_policy, least_worth, most_worth
from resolvent.control.planning.chance.chances import Chances
from resolvent.control.planning.chance.expecting import best_policy, worth_of
from resolvent.control.planning.chance.linear import Numbers, Rows
from resolvent.control.planning.chance.plausible import least_mean
from resolvent.control.planning.chance.tallies import regrets
from resolvent.control.planning.chance.view import View
from resolvent.control.planning.promises import in_all

if TYPE_CHECKING:
    from resolvent.control.planning.model import Model


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

    What to do is chosen with caution: a step counts for what it is worth if its chances and its
    pay are off by the divergence 1 / n that is usual after n times. So a step that was lucky
    once is not preferred to one that did well a thousand times.
    """
    least, most = reward_range
    low = _view(model, chances, min, least, gamma)
    high = _view(model, chances, max, most, gamma)
    if gamma < 1:
        usual = 1 / np.maximum(chances.paid, 1)
        caution = low.with_pay(_least_pay(model, usual, reward_range))
        policy = cautious_policy(caution, 1 / np.maximum(chances.seen, 1), gamma)
        expected = worth_of(low, policy, gamma)
    else:
        policy, expected = best_policy(low, gamma)
    # A third each for what follows a step, for labels and endings, and for what is paid.
    delta = (1 - confidence) / 3
    radius, pays = chances.radius(delta), _pay_radius(model, chances, reward_range, delta)
    sure = low.with_pay(_least_pay(model, pays, reward_range))
    hope = high.with_pay(_most_pay(model, pays, reward_range))
    pessimistic = least_worth(sure, radius, gamma, policy)
    hopeful, optimistic = most_worth(hope, radius, gamma)
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
    worst_or_best: Callable[[float, float], float],
    reward: float,
    gamma: float,
) -> View:
    """See what is not known as if it paid this much, for one step or for ever."""
    for_ever = in_all(reward, gamma)
    return View.of(
        chances.step,
        chances.following,
        chances.share,
        model.reward,
        model.known,
        unknown=worst_or_best(reward, for_ever),
        beyond=worst_or_best(0.0, for_ever),
    )


def _least_pay(model: "Model", radius: Numbers, reward_range: tuple[float, float]) -> Numbers:
    """Return the least mean pay of each step that is within a radius of what was paid."""
    least, span = reward_range[0], reward_range[1] - reward_range[0]
    paid = _known_pay(model)
    if span == 0:
        return paid
    scaled = np.clip((paid - least) / span, 0.0, 1.0)
    return np.minimum(least + span * least_mean(scaled, radius), paid)


def _most_pay(model: "Model", radius: Numbers, reward_range: tuple[float, float]) -> Numbers:
    """Return the most mean pay of each step that is within a radius of what was paid."""
    most, span = reward_range[1], reward_range[1] - reward_range[0]
    paid = _known_pay(model)
    if span == 0:
        return paid
    scaled = np.clip((most - paid) / span, 0.0, 1.0)
    return np.maximum(most - span * least_mean(scaled, radius), paid)


def _pay_radius(
    model: "Model", chances: Chances, reward_range: tuple[float, float], delta: float
) -> Numbers:
    """Return how far from the mean that was paid the true one may be, in all steps together."""
    least, span = reward_range[0], reward_range[1] - reward_range[0]
    if span == 0:
        return np.zeros(len(chances.paid))
    times = np.maximum(chances.paid, 1).astype(float)
    high = times * np.clip((_known_pay(model) - least) / span, 0.0, 1.0)
    steps = np.arange(len(times))
    counts = np.concatenate([high, np.maximum(times - high, 0.0)])
    regret = regrets(np.concatenate([steps, steps]), counts, len(steps), 2)
    return (regret + np.log(chances.possible / delta)) / times


def _known_pay(model: "Model") -> Numbers:
    return np.where(model.known, model.reward, 0.0).ravel()
