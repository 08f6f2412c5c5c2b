"""A model → a policy, lower bounds on its value, and upper bounds on the value of any policy."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent.errors import OptionError
from resolvent.planning.confidence import Numbers
from resolvent.planning.deterministic import RewardingCycle, solve
from resolvent.planning.model import Model
from resolvent.planning.outcomes import Outcomes
from resolvent.planning.robust import cautious_policy, lower_bounds, upper_bounds
from resolvent.planning.stochastic import DecisionProcess, policy_value
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
            f"{model.reward_range[1]:g} were observed"
        )
    complaint = too_large_to_add_up(max(abs(low), abs(high)), gamma, len(model))
    if complaint is not None:
        raise OptionError(complaint)
    if model.outcomes is not None:
        return _optimize_stochastic(model, model.outcomes, gamma, reward_range, confidence)
    try:
        lower, upper = (
            solve(model.next_state, np.where(model.known, model.reward, unknown), gamma)
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
    equal value one ends soon.
    """
    low, high = reward_range
    mean = np.where(model.known, model.reward, 0.0).ravel()
    rewards = outcomes.rewards
    discount = min(gamma, _NEARLY_ONE)
    least = _of_steps(outcomes, mean, rewards.least(1 / (2 * rewards.counts.total), low))
    policy = cautious_policy(
        DecisionProcess.of(model, least, least, low, discount, min),
        _CAUTION / np.maximum(outcomes.count, 1).astype(float),
        discount,
    )
    expected = policy_value(DecisionProcess.of(model, mean, mean, low, gamma, min), policy, gamma)
    endless = model.starts[np.isneginf(expected[model.starts])]
    if len(endless):
        raise OptionError(
            f"gamma={gamma:g}: from {model.text(int(endless[0]))} the plan does not surely end the "
            f"episode: use gamma below 1, or plan from more traces"
        )
    # A third each for the next observation, for labels and endings, and for rewards.
    delta = (1 - confidence) / 3
    log_risk = float(log(outcomes.possible_steps / delta))
    least, most = (
        _of_steps(outcomes, mean, bound) for bound in rewards.bounds(log_risk, reward_range)
    )
    lowest, highest = np.full(len(mean), low), np.full(len(mean), high)
    radius = outcomes.radius(delta)
    pessimistic = lower_bounds(
        DecisionProcess.of(model, least, lowest, low, gamma, min), radius, gamma, policy
    )
    optimistic_policy, optimistic = upper_bounds(
        DecisionProcess.of(model, most, highest, high, gamma, max), radius, gamma
    )
    return BoundedPolicy(
        policy.astype(np.int32),
        np.minimum(pessimistic, expected),
        optimistic_policy.astype(np.int32),
        np.maximum(optimistic, expected),
        expected,
        confidence,
    )


def _of_steps(outcomes: Outcomes, mean: Numbers, of_row: Numbers) -> Numbers:
    """Return for each step the number of its row of rewards; the mean where it has none."""
    if not len(of_row):
        return mean
    return np.where(outcomes.reward_row < 0, mean, of_row[outcomes.reward_row])


def _cycle_text(model: Model, cycle: RewardingCycle) -> str:
    reward = model.reward[cycle.situations, cycle.actions].sum()
    actions = ", ".join(symbol_text(model.actions[action]) for action in cycle.actions)
    return (
        f"gamma=1: in {model.text(cycle.situations[0])} the actions "
        f"{actions} have rewards of {reward:.6g} and lead back there: use gamma below 1"
    )
