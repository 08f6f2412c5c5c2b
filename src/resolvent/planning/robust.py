"""Policies and values that hold for all plausible transition probabilities.

The probabilities of each step are any within a radius of the frequencies (extended value
iteration: Auer, Jaksch and Ortner 2010; Strehl and Littman 2008). An outcome that never occurred
may end the episode, or lead to any state of the model. A cautious policy assumes that it leads back
to the state of the step.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from resolvent.planning.confidence import Numbers, Rows, worst_probabilities
from resolvent.planning.stochastic import DecisionProcess

_ROUNDS: Final = 100
_FIRST_SWEEPS: Final = 16
_SWEEPS: Final = 2_000
_TOLERANCE: Final = 1e-9
"""Share of the largest value below which a difference is rounding."""

_CONVERGED: Final = 1e-9
"""Share of the largest value below which changes end the iteration; bounds account for them."""


def cautious_policy(process: DecisionProcess, radius: Numbers, gamma: float) -> Rows:
    """Return the policy of highest value if probabilities are as bad as their radius allows."""
    states: Rows = np.arange(process.states)
    value = np.zeros(process.states)
    for _ in range(_FIRST_SWEEPS):
        value = _worst_backup(process, radius, gamma, value, states).value.max(axis=1)
    policy: Rows = _worst_backup(process, radius, gamma, value, states).value.argmax(axis=1)
    for _ in range(_ROUNDS):
        own, own_radius = process.only(policy), radius[process.steps_of(policy)]
        _, value = _iterate(own, own_radius, gamma, _first, value, states)
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
    return _iterate(process.only(policy), radius[process.steps_of(policy)], gamma, _first)[1]


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
    policy, value = _iterate(losses, radius, gamma, lambda of_action: of_action.argmin(axis=1))
    return policy, -value


def _first(of_action: Numbers) -> Rows:
    return np.zeros(len(of_action), np.int64)


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
    select: Callable[[Numbers], Rows],
    guess: Numbers | None = None,
    target: Rows | None = None,
) -> tuple[Rows, Numbers]:
    """Return the actions selected by their lowest values, and lower bounds on the values.

    Policies and the worst probabilities for each are improved in turn. The values are lowered by
    the last change, summed for ever, so that they are bounds even without convergence.
    """
    states = np.arange(process.states)
    value = np.zeros(process.states) if guess is None else guess
    if gamma == 1 and not _has_only_gains(process):
        of_action = process.backup(process.ahead(value, gamma), process.frequency)
        return select(of_action), value - np.inf
    for _ in range(_ROUNDS if gamma < 1 else _SWEEPS):
        worst = _worst_backup(process, radius, gamma, value, target)
        policy = select(worst.value)
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


def _has_only_gains(process: DecisionProcess) -> bool:
    """Return whether no reward is negative, so that values of few steps are bounds for many."""
    rewards = (process.reward, process.outcome_reward, np.array([process.unseen_reward]))
    return process.unknown_value >= 0 and all(
        float(column.min(initial=0.0)) >= 0 for column in rewards
    )
