"""A model → a policy, lower bounds on its value, and upper bounds on the value of any policy."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent.errors import OptionError
from resolvent.machines.situations import augmented_state_text
from resolvent.planning.confidence import Numbers
from resolvent.planning.deterministic import RewardingCycle, solve
from resolvent.planning.markov_chain import DecisionProcess
from resolvent.planning.model import Model
from resolvent.planning.robust import cautious_policy, lower_bounds, upper_bounds
from resolvent.planning.stochastic import (
    EndlessReward,
    optimal_policy,
    policy_value,
    terminating_value,
)
from resolvent.planning.stochastic_model import Outcomes
from resolvent.planning.value_bounds import discounted_sum, too_large_to_add_up
from resolvent.traces.symbols import symbol_text
from resolvent.traces.vocabulary import Codes

_NEARLY_ONE: Final = 0.9999
"""Discount in place of 1 where a policy is chosen with caution."""

_CAUTION: Final = 0.05
"""Weight of an unseen outcome when a policy is chosen, beside 1 for each that occurred."""


class BoundedPolicy(NamedTuple):
    """A policy and bounds on values; the fields are those of a `Plan`."""

    policy: Codes
    pessimistic: NDArray[np.float64]
    optimistic_policy: Codes
    optimistic: NDArray[np.float64]
    expected: NDArray[np.float64] | None = None
    confidence: float | None = None


def optimize(
    model: Model, gamma: float, reward_range: tuple[float, float], confidence: float
) -> BoundedPolicy:
    """Return the policy of highest value if unknown steps have rewards within a range.

    For stochastic models, both bounds hold with `confidence`.

    Raises:
        OptionError: when rewards outside of the range occurred, when rewards are too large to be
            summed, and when undiscounted rewards are endless.
    """
    low, high = reward_range
    if not low <= model.reward_range[0] <= model.reward_range[1] <= high:
        raise OptionError(
            f"reward_range={reward_range}: rewards from {model.reward_range[0]:g} to "
            f"{model.reward_range[1]:g} were seen"
        )
    complaint = too_large_to_add_up(max(abs(low), abs(high)), gamma, len(model))
    if complaint is not None:
        raise OptionError(complaint)
    if model.chances is not None:
        return _optimize_stochastic(model, model.chances, gamma, reward_range, confidence)
    try:
        lower, upper = (
            solve(model.following, np.where(model.known, model.reward, unknown), gamma)
            for unknown in (
                min(low, discounted_sum(low, gamma)),
                max(high, discounted_sum(high, gamma)),
            )
        )
    except RewardingCycle as cycle:
        raise OptionError(_cycle_text(model, cycle)) from None
    is_more = upper.value > lower.value + lower.rounding + upper.rounding
    optimistic = np.where(is_more, upper.value, lower.value)
    return BoundedPolicy(lower.policy, lower.value, upper.policy, optimistic)


def _optimize_stochastic(
    model: Model,
    outcomes: Outcomes,
    gamma: float,
    reward_range: tuple[float, float],
    confidence: float,
) -> BoundedPolicy:
    """Return a policy of high expected value, and bounds.

    The policy is chosen with caution: the value of a step taken n times assumes that its mean
    reward is off by the divergence 1 / 2n, and that an unseen outcome has the weight 1/20 beside
    these n. So a step that was lucky once is not preferred to one that did well a thousand times.
    Without discount, a discount close to 1 is used for this choice, so that among policies of
    equal value one ends soon; if that might never end, the policy of highest expected value is
    returned.
    """
    low, high = reward_range
    mean = np.where(model.known, model.reward, 0.0).ravel()
    plain = _process(model, outcomes, mean, mean, low, gamma, min)
    discount = min(gamma, _NEARLY_ONE)
    least = _of_steps(
        outcomes, mean, outcomes.pays.least(1 / (2 * outcomes.pays.counts.total), low)
    )
    caution = _process(model, outcomes, least, least, low, discount, min)
    radius = _CAUTION / np.maximum(outcomes.seen, 1).astype(float)
    policy = cautious_policy(caution, radius, discount)
    expected: Numbers | None
    if gamma < 1:
        expected = policy_value(plain, policy, gamma)
    else:
        try:
            ending, value_of_ending = optimal_policy(plain, gamma)
        except EndlessReward as endless:
            raise OptionError(_endless_text(model, endless)) from None
        expected = terminating_value(plain, policy)
        if expected is None:
            policy, expected = ending, value_of_ending
    lost = model.starts[np.isneginf(expected[model.starts])]
    if len(lost):
        raise OptionError(
            f"gamma={gamma:g}: from {augmented_state_text(model.named(int(lost[0])))} no way to "
            f"act that is known surely ends the episode: use gamma below 1, or plan from more "
            f"traces"
        )
    # A third each for the next observation, for labels and endings, and for rewards.
    delta = (1 - confidence) / 3
    log_risk = float(log(outcomes.possible / delta))
    least, most = (
        _of_steps(outcomes, mean, bound) for bound in outcomes.pays.bounds(log_risk, reward_range)
    )
    lowest, highest = np.full(len(mean), low), np.full(len(mean), high)
    radius = outcomes.radius(delta)
    pessimistic = lower_bounds(
        _process(model, outcomes, least, lowest, low, gamma, min), radius, gamma, policy
    )
    optimistic_policy, optimistic = upper_bounds(
        _process(model, outcomes, most, highest, high, gamma, max), radius, gamma
    )
    return BoundedPolicy(
        policy.astype(np.int32),
        np.minimum(pessimistic, expected),
        optimistic_policy.astype(np.int32),
        np.maximum(optimistic, expected),
        expected,
        confidence,
    )


def _process(
    model: Model,
    outcomes: Outcomes,
    mean: Numbers,
    unknown_pay: Numbers,
    reward: float,
    gamma: float,
    worst_or_best: Callable[[float, float], float],
) -> DecisionProcess:
    """Return the decision process whose unknown steps have a reward, once or for ever."""
    for_ever = discounted_sum(reward, gamma)
    unknown, beyond = worst_or_best(reward, for_ever), worst_or_best(0.0, for_ever)
    return DecisionProcess.of(outcomes, model.known, mean, unknown_pay, reward, unknown, beyond)


def _of_steps(outcomes: Outcomes, mean: Numbers, of_row: Numbers) -> Numbers:
    """Return for each step the number of its row of rewards; the mean where it has none."""
    return np.where(outcomes.paid < 0, mean, of_row[outcomes.paid]) if len(of_row) else mean


def _endless_text(model: Model, endless: EndlessReward) -> str:
    here, action = endless.situations[0], model.actions[endless.actions[0]]
    return (
        f"gamma=1: one can be paid for ever, by {symbol_text(action)} in "
        f"{augmented_state_text(model.named(here))} and so on: use gamma below 1"
    )


def _cycle_text(model: Model, cycle: RewardingCycle) -> str:
    reward = model.reward[cycle.situations, cycle.actions].sum()
    actions = ", ".join(symbol_text(model.actions[action]) for action in cycle.actions)
    return (
        f"gamma=1: in {augmented_state_text(model.named(cycle.situations[0]))} the actions "
        f"{actions} pay {reward:.6g} and lead back there, again and again: use gamma below 1"
    )
