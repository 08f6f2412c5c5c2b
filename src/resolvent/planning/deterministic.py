"""Tables of a deterministic model → an optimal policy and its value.

Policies are improved until none is better, and their values are summed along their paths. The
result is exact up to rounding errors, which are bounded.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import Codes

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]

_ROUNDING = 64 * float(np.finfo(np.float64).eps)
_LEAST = float(np.finfo(np.float64).tiny)  # below it, rounding errors are not relative
_STEPS_AHEAD = 16  # number of sweeps of value iteration before policy iteration
_LARGEST_SUM = 1e307  # largest sum of rewards: floating-point numbers end at 1.8e308


@dataclass(frozen=True, slots=True, eq=False)
class OptimalPolicy:
    """A policy, its value in each state, and bounds on the rounding error of the values."""

    policy: Codes
    value: Numbers
    rounding: Numbers


class RewardingCycle(Exception):  # noqa: N818
    """A cycle of states with a positive sum of rewards, so that returns are unbounded."""

    def __init__(self, states: list[int], actions: list[int]) -> None:
        super().__init__()
        self.states, self.actions = states, actions


def solve(
    following: Codes, reward: Numbers, gamma: float, near: Codes | None = None
) -> OptimalPolicy:
    """Return the optimal policy of tables with rows of states and columns of actions.

    `following` is −1 where a step is the last one. Of actions of equal value, the first is
    taken; without discount, the first of those that end soonest. A policy `near` the optimal
    one, if there is one, is where the search starts.
    """
    last = len(following)
    following = np.where(following < 0, last, following)
    if gamma < 1:
        return _discounted(following, reward, gamma, near)
    return _undiscounted(following, reward)


def _discounted(
    following: NDArray[Any], reward: Numbers, gamma: float, near: Codes | None
) -> OptimalPolicy:
    """Solve by policy iteration.

    Arrays have actions first: the maximum over few actions is then several times as fast.
    """
    following = np.ascontiguousarray(following.T, np.intp)
    reward = np.ascontiguousarray(reward.T)
    rows = np.arange(reward.shape[1])
    policy = _value_iteration(following, reward, gamma) if near is None else near.astype(np.intp)
    while True:
        value, size = _evaluate(following[policy, rows], reward[policy, rows], gamma)
        of_action = reward + gamma * value[following]
        first = of_action.argmax(axis=0)
        best, own = of_action[first, rows], of_action[policy, rows]
        better = np.flatnonzero(best > own)
        error = sum(
            np.abs(reward[actions, better]) + gamma * size[following[actions, better]]
            for actions in (first[better], policy[better])
        )
        better = better[(best - own)[better] > _ROUNDING * error + _LEAST]
        if not len(better):
            break
        policy[better] = first[better]
    error = _ROUNDING * (np.abs(reward) + gamma * size[following]) + _LEAST
    best_error = error[first, rows]
    policy = (best - of_action <= best_error + error).argmax(axis=0)
    value, size = _evaluate(following[policy, rows], reward[policy, rows], gamma)
    return OptimalPolicy(policy.astype(np.int32), value[:-1], _ROUNDING * size[:-1])


def _value_iteration(following: Places, reward: Numbers, gamma: float) -> Places:
    """Return the best policy for few steps, as a cheap initial policy."""
    value, of_action = np.zeros(reward.shape[1] + 1), np.empty(reward.shape)
    for _ in range(_STEPS_AHEAD):
        np.multiply(np.take(value, following, out=of_action, mode="clip"), gamma, out=of_action)
        np.add(reward, of_action, out=of_action)
        of_action.max(axis=0, out=value[:-1])
    policy: Places = of_action.argmax(axis=0)
    return policy


def _evaluate(following: Places, reward: Numbers, gamma: float) -> tuple[Numbers, Numbers]:
    """Return the values of a policy, and the same with absolute rewards.

    Each round doubles the number of steps summed, so few rounds suffice for paths of any length.
    A last entry, 0, stands for the end.
    """
    last = len(reward)
    value, jump = np.append(reward, 0.0), np.append(following, last)
    size, summed = np.abs(value), 1
    while (weight := gamma**summed) > 0 and np.any(jump != last):
        value = value + weight * value[jump]
        size = size + weight * size[jump]
        jump, summed = jump[jump], 2 * summed
    return value, size


def _undiscounted(following: Codes, reward: Numbers) -> OptimalPolicy:
    """Return the best policy that ends, or that stays for ever at no cost."""
    last = len(reward)
    goes_on = following < last
    # First as if one could stop anywhere: only then does each rewarding cycle show.
    _highest_path(following, np.where(goes_on, reward, -np.inf), np.zeros(last))
    rest = np.ones(last + 1, bool)
    free = goes_on & (reward == 0)
    while np.any(left := rest[:-1] & ~(free & rest[following]).any(axis=1)):
        rest[:-1] &= ~left
    resting = (free & rest[following]).argmax(axis=1)
    policy, value = _highest_path(following, reward, np.where(rest[:-1], 0.0, -np.inf))
    policy = np.where(policy < 0, resting, policy)
    return OptimalPolicy(policy.astype(np.int32), value, np.full(last, _slack(reward)))


def _highest_path(following: Codes, reward: Numbers, base: Numbers) -> tuple[Codes, Numbers]:
    """Return the first action of the path of highest return, −1 for staying, and the return."""
    rows, last = np.arange(len(reward)), len(reward)
    value, policy = np.append(base, 0.0), np.full(len(reward), -1, np.int32)
    slack, rounds = _slack(reward), 0
    while True:
        of_action = reward + value[following]
        first = of_action.argmax(axis=1)
        better = of_action[rows, first] > value[:-1] + slack
        if not better.any():
            return policy, value[:-1]
        policy[better] = first[better]
        value[:-1][better] = of_action[rows, first][better]
        rounds += 1
        if rounds & (rounds - 1) == 0:
            _check_cycles(np.where(policy < 0, last, following[rows, policy]), policy)


def _check_cycles(following: Codes, policy: Codes) -> None:
    """Raise `RewardingCycle` if these steps, each an improvement, form a cycle.

    A cycle whose rewards have no positive sum cannot consist of improvements.
    """
    last = len(following)
    jump = np.append(following, last)
    for _ in range(last.bit_length()):
        jump = jump[jump]
    endless = np.flatnonzero(jump != last)
    if len(endless):
        here, cycle = int(jump[endless[0]]), [int(jump[endless[0]])]
        while (here := int(following[here])) != cycle[0]:
            cycle.append(here)
        raise RewardingCycle(cycle, [int(policy[state]) for state in cycle])


def _slack(reward: Numbers) -> float:
    finite = np.abs(reward[np.isfinite(reward)])
    return len(reward) * _ROUNDING * float(finite.max(initial=0.0))


def discounted_sum(reward: float, gamma: float, steps: float = math.inf) -> float:
    """Return the discounted sum of an equal reward in each of a number of steps.

    >>> discounted_sum(1.0, 0.5), discounted_sum(1.0, 0.5, 2)
    (2.0, 1.5)
    >>> discounted_sum(-1.0, 1.0), discounted_sum(0.0, 1.0)
    (-inf, 0.0)
    """
    if reward == 0:
        return 0.0
    return reward * (steps if gamma == 1 else (1 - gamma**steps) / (1 - gamma))


def overflow_error(largest: float, gamma: float, states: int) -> str | None:
    """Return an error message if rewards are so large that their sums are not finite, else None."""
    times = states if gamma == 1 else 1 / (1 - gamma)
    if largest <= _LARGEST_SUM / times:
        return None
    return f"rewards as large as {largest:g} overflow when summed: divide all by the same number"
