"""A model → a policy, lower bounds on its value, and upper bounds on the value of any policy.

In a stochastic model, the probabilities of each step are any within a radius of the frequencies
(extended value iteration: Auer, Jaksch and Ortner 2010; Strehl and Littman 2008). An outcome that
never occurred may end the episode, or lead to any state of the model. A cautious policy assumes
that it leads back to the state of the step.
"""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log
from resolvent.errors import OptionError
from resolvent.planning.confidence import Numbers, Rows, worst_probabilities
from resolvent.planning.deterministic import RewardingCycle, discounted_sum, overflow_error, solve
from resolvent.planning.model import Model
from resolvent.planning.outcomes import Outcomes
from resolvent.planning.stochastic import DecisionProcess, policy_value
from resolvent.traces.symbols import symbol_text
from resolvent.traces.vocabulary import Codes

_NEARLY_ONE: Final = 0.9999  # discount in place of 1 where a policy is chosen with caution
_CAUTION: Final = 0.05  # weight of an unseen outcome when a policy is chosen; others weigh 1
_DRAWS: Final = 4  # number of times that counts are drawn anew, to estimate optimism
_ROUNDS: Final = 100
_FIRST_SWEEPS: Final = 16
_SWEEPS: Final = 2_000
_TOLERANCE: Final = 1e-9  # share of the largest value below which a difference is rounding
_CONVERGED: Final = 1e-9  # the same for changes that end an iteration; bounds account for them


class BoundedPolicy(NamedTuple):
    """A policy and bounds on values; the fields are those of a `Plan`."""

    policy: Codes
    pessimistic: NDArray[np.float64]
    optimistic_policy: Codes
    optimistic: NDArray[np.float64]
    expected: NDArray[np.float64] | None = None
    confidence: float | None = None
    optimism: float = 0.0


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
            f"reward_range={reward_range}: it must include the observed rewards, "
            "{:g} to {:g}".format(*model.reward_range)
        )
    error = overflow_error(max(abs(low), abs(high)), gamma, len(model))
    if error is not None:
        raise OptionError(error)
    if model.outcomes is not None:
        return _optimize_stochastic(model, model.outcomes, gamma, reward_range, confidence)
    worst, best = min(low, discounted_sum(low, gamma)), max(high, discounted_sum(high, gamma))
    try:
        lower, upper = (
            solve(model.next_state, np.where(model.known, model.reward, unknown), gamma)
            for unknown in (worst, best)
        )
    except RewardingCycle as cycle:
        reward = model.reward[cycle.states, cycle.actions].sum()
        actions = ", ".join(symbol_text(model.actions[action]) for action in cycle.actions)
        raise OptionError(
            f"gamma=1: in {model.text(cycle.states[0])} the actions {actions} return to the same "
            f"state with a reward of {reward:.6g}: use gamma below 1"
        ) from None
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

    The policy is chosen with caution (docs/decisions/planning.md). Without discount, a discount
    close to 1 is used for this choice, so that among policies of equal value one ends soon.
    """
    low, high = reward_range
    mean = np.where(model.known, model.reward, 0.0).ravel()
    rewards = outcomes.rewards
    discount = min(gamma, _NEARLY_ONE)
    least = _of_steps(outcomes, mean, rewards.least(1 / (2 * rewards.counts.total), low))
    cautious = DecisionProcess.of(model, least, least, low, discount, min)
    caution = _CAUTION / np.maximum(outcomes.count, 1).astype(float)
    policy = cautious_policy(cautious, caution, discount)
    process = DecisionProcess.expected(model, low, gamma)
    expected = policy_value(process, policy, gamma)
    endless = model.starts[np.isneginf(expected[model.starts])]
    if len(endless):
        raise OptionError(
            f"gamma={gamma:g}: from {model.text(int(endless[0]))} the plan may never end the "
            f"episode: use gamma below 1 or more traces"
        )
    # The upper bound has to hold for one policy, the best one, so that no union of steps counts.
    # The plan's own policy chose among the actions of each state by the same counts.
    log_risk = float(log(2 / (1 - confidence)))
    log_risks = log_risk + float(log(len(model.actions))), log_risk
    least, most = (
        _of_steps(outcomes, mean, rewards.bounds(risk, reward_range)[end])
        for end, risk in enumerate(log_risks)
    )
    lowest, highest = np.full(len(mean), low), np.full(len(mean), high)
    share = np.where(outcomes.evidence > 0, 1 / np.maximum(outcomes.evidence, 1), 0.0)
    lower_radius, upper_radius = (risk * share for risk in log_risks)
    pessimistic = lower_bounds(
        DecisionProcess.of(model, least, lowest, low, gamma, min), lower_radius, gamma, policy
    )
    optimistic_policy, optimistic = upper_bounds(
        DecisionProcess.of(model, most, highest, high, gamma, max), upper_radius, gamma
    )
    return BoundedPolicy(
        policy.astype(np.int32),
        np.minimum(pessimistic, expected),
        optimistic_policy.astype(np.int32),
        np.maximum(optimistic, expected),
        expected,
        confidence,
        _optimism(model, outcomes, policy, (process, cautious, caution), gamma),
    )


def _optimism(
    model: Model,
    outcomes: Outcomes,
    policy: Rows,
    choice: tuple[DecisionProcess, DecisionProcess, Numbers],
    gamma: float,
) -> float:
    """Return by how much the value of a policy is too high, since the same counts chose it.

    With counts drawn anew, another policy is chosen. Its value by these counts exceeds its value
    in the model, on average by as much as the model's value of its own policy exceeds the truth
    (a parametric bootstrap). Where the same policy is chosen again, nothing is added.
    """
    process, cautious, caution = choice
    random, gains = np.random.default_rng(0), list[float]()
    for _ in range(_DRAWS):
        frequency, change = outcomes.drawn(random)
        drawn = replace(process, frequency=frequency, reward=process.reward + change)
        other = cautious_policy(
            replace(cautious, frequency=frequency, reward=cautious.reward + change),
            caution,
            min(gamma, _NEARLY_ONE),
        )
        if (other == policy).all():
            gains.append(0.0)
            continue
        values = [
            policy_value(each, own, gamma) for own in (other, policy) for each in (drawn, process)
        ]
        gain = (values[0] - values[1]) - (values[2] - values[3])
        gains.append(model.mean_at_starts(gain))
    optimism = float(np.mean(gains))
    return max(0.0, optimism) if np.isfinite(optimism) else 0.0


def _of_steps(outcomes: Outcomes, mean: Numbers, of_row: Numbers) -> Numbers:
    """Return for each step the number of its row of rewards; the mean where it has none."""
    if not len(of_row):
        return mean
    return np.where(outcomes.reward_row < 0, mean, of_row[outcomes.reward_row])


# --- Policies for all plausible probabilities ----------------------------------------------------


def cautious_policy(process: DecisionProcess, radius: Numbers, gamma: float) -> Rows:
    """Return the policy of highest value if probabilities are as bad as their radius allows."""
    states: Rows = np.arange(process.states)
    value = np.zeros(process.states)
    for _ in range(_FIRST_SWEEPS):
        value = _worst_backup(process, radius, gamma, value, states).value.max(axis=1)
    policy: Rows = _worst_backup(process, radius, gamma, value, states).value.argmax(axis=1)
    for _ in range(_ROUNDS):
        own, own_radius = process.only(policy), radius[process.steps_of(policy)]
        _, value = _iterate(own, own_radius, gamma, value, states)
        of_action = _worst_backup(process, radius, gamma, value, states).value
        tolerance = _TOLERANCE * float(np.abs(of_action).max())
        better = of_action.max(axis=1) > of_action[states, policy] + tolerance
        if not better.any():
            break
        policy = np.where(better, of_action.argmax(axis=1), policy)
    return policy


def lower_bounds(process: DecisionProcess, radius: Numbers, gamma: float, policy: Rows) -> Numbers:
    """Return the lowest value of a policy, for any probabilities within their radius.

    `process.unknown_value` must be the lowest value that is possible where nothing is known.
    """
    return _iterate(process.only(policy), radius[process.steps_of(policy)], gamma)[1]


def upper_bounds(process: DecisionProcess, radius: Numbers, gamma: float) -> tuple[Rows, Numbers]:
    """Return an optimistic policy, and the highest value of any policy.

    `process.unknown_value` must be the highest value that is possible where nothing is known.
    """
    # The highest value is the lowest loss.
    losses = replace(
        process,
        reward=-process.reward,
        outcome_reward=-process.outcome_reward,
        unknown_value=-process.unknown_value,
        unseen_reward=-process.unseen_reward,
    )
    policy, value = _iterate(losses, radius, gamma)
    return policy, -value


class _WorstBackup(NamedTuple):
    """Lowest values of steps, and the probabilities that yield them.

    `rest` is the probability of unseen outcomes, which lead to `target`; −1 for an end.
    """

    value: Numbers
    probability: Numbers
    rest: Numbers
    target: Rows


def _worst_backup(
    process: DecisionProcess,
    radius: Numbers,
    gamma: float,
    value: Numbers,
    target: Rows | None = None,
) -> _WorstBackup:
    """Return the lowest value of each step, given the values of the next states.

    An unseen outcome ends the episode, or leads to the target of its state, or by default to any
    state.
    """
    ahead = process.ahead(value, gamma)
    target = np.full(process.states, value.argmin()) if target is None else target
    target = np.where(value[target] < 0, target, -1)
    unseen = process.unseen_reward + gamma * np.where(target < 0, 0.0, value[target]).repeat(
        process.actions
    )
    probability, rest = worst_probabilities(process.step, process.frequency, ahead, radius, unseen)
    of_action = process.backup(ahead, probability) + (rest * unseen).reshape(-1, process.actions)
    return _WorstBackup(of_action, probability, rest.reshape(-1, process.actions), target)


def _iterate(
    process: DecisionProcess,
    radius: Numbers,
    gamma: float,
    value: Numbers | None = None,
    target: Rows | None = None,
) -> tuple[Rows, Numbers]:
    """Return the actions of lowest value in the worst case, and lower bounds on the values.

    Policies and the worst probabilities for each are improved in turn, from a first `value`. The
    values are lowered by the last change, summed for ever, so that they are bounds even without
    convergence.
    """
    states = np.arange(process.states)
    value = np.zeros(process.states) if value is None else value
    if gamma == 1:
        rewards = process.reward, process.outcome_reward, process.unseen_reward
        lowest = min(float(np.min(column, initial=0.0)) for column in rewards)
        if min(lowest, process.unknown_value) < 0:  # values of few steps are no bounds for many
            of_action = process.backup(process.ahead(value, gamma), process.frequency)
            return of_action.argmin(axis=1), value - np.inf
    for _ in range(_ROUNDS if gamma < 1 else _SWEEPS):
        worst = _worst_backup(process, radius, gamma, value, target)
        policy: Rows = worst.value.argmin(axis=1)
        change = worst.value[states, policy] - value
        scale = float(np.abs(value).max(initial=0.0) + np.abs(worst.value).max(initial=0.0))
        small = _CONVERGED * scale * (1 - gamma if gamma < 1 else 1)
        if np.abs(change).max(initial=0.0) <= small + float(np.finfo(np.float64).tiny):
            break
        if gamma < 1:
            chain = process.chain(policy, gamma, worst.probability)
            chain = chain.plus(worst.rest[states, policy], process.unseen_reward, worst.target)
            value = chain.value(gamma, value)
        else:  # nothing is lost on the way, so that each sweep only adds to a bound
            value = value + np.maximum(change, 0.0)
    if gamma == 1:
        return policy, value
    return policy, value - max(0.0, -float(change.min(initial=0.0))) / (1 - gamma)
