"""Tables of a deterministic world → an optimal policy and its value."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import Codes

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]

_ROUNDING = 64 * float(np.finfo(np.float64).eps)
_LEAST = float(np.finfo(np.float64).tiny)
"""Below this, numbers lose digits, and a share of them says nothing of their rounding."""
_STEPS_AHEAD = 16


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """For each situation an action and what acting so is worth, give or take the rounding."""

    policy: Codes
    value: Numbers
    rounding: Numbers


class PayingCycle(Exception):  # noqa: N818
    """Situations that can be gone round and round for pay, so that nothing bounds it."""

    def __init__(self, situations: list[int], actions: list[int]) -> None:
        super().__init__()
        self.situations, self.actions = situations, actions


def solve(following: Codes, reward: Numbers, gamma: float, near: Codes | None = None) -> Solution:
    """Return the policy worth most, for rows of situations and columns of actions.

    `following` is −1 where a step is the last one. Of actions worth the same,
    the first is taken; without discount, the first of those that end soonest.
    Where a policy is known that may be near the best one, it is found sooner from there.

    >>> following, reward = np.int32([[0, 1], [0, -1]]), np.array([[0.0, 0.0], [0.5, 1.0]])
    >>> solved = solve(following, reward, 0.5)
    >>> solved.policy.tolist(), solved.value.tolist()
    ([1, 1], [0.5, 1.0])
    """
    last = len(following)
    following = np.where(following < 0, last, following)
    if gamma < 1:
        return _discounted(following, reward, gamma, near)
    return _undiscounted(following, reward)


def _discounted(
    following: NDArray[Any], reward: Numbers, gamma: float, near: Codes | None
) -> Solution:
    """Policy iteration: evaluate, take what is better, until nothing is.

    Actions come before situations here: what is best of few actions in each of many situations
    is found several times as fast then.
    """
    following = np.ascontiguousarray(following.T, np.intp)
    reward = np.ascontiguousarray(reward.T)
    rows = np.arange(reward.shape[1])
    policy = _first_guess(following, reward, gamma) if near is None else near.astype(np.intp)
    while True:
        value, size = _followed(following[policy, rows], reward[policy, rows], gamma)
        worth = reward + gamma * value[following]
        first = worth.argmax(axis=0)
        best, own = worth[first, rows], worth[policy, rows]
        better = np.flatnonzero(best > own)
        doubt = sum(
            np.abs(reward[actions, better]) + gamma * size[following[actions, better]]
            for actions in (first[better], policy[better])
        )
        better = better[(best - own)[better] > _ROUNDING * doubt + _LEAST]
        if not len(better):
            break
        policy[better] = first[better]
    doubt = _ROUNDING * (np.abs(reward) + gamma * size[following]) + _LEAST
    best_doubt = doubt[first, rows]
    policy = (best - worth <= best_doubt + doubt).argmax(axis=0)
    value, size = _followed(following[policy, rows], reward[policy, rows], gamma)
    return Solution(policy.astype(np.int32), value[:-1], _ROUNDING * size[:-1])


def _first_guess(following: Places, reward: Numbers, gamma: float) -> Places:
    """Return what to do with few steps ahead: a good policy to begin with, and a cheap one."""
    value, worth = np.zeros(reward.shape[1] + 1), np.empty(reward.shape)
    for _ in range(_STEPS_AHEAD):
        np.multiply(np.take(value, following, out=worth, mode="clip"), gamma, out=worth)
        np.add(reward, worth, out=worth)
        worth.max(axis=0, out=value[:-1])
    policy: Places = worth.argmax(axis=0)
    return policy


def _followed(following: Places, reward: Numbers, gamma: float) -> tuple[Numbers, Numbers]:
    """Return what one action in each situation is worth, and the same without signs.

    Each round doubles the steps that are summed, so that paths of any length, and
    those that never end, are done in a few. One entry more, worth nothing, stands
    for the end.
    """
    last = len(reward)
    value, jump = np.append(reward, 0.0), np.append(following, last)
    size, summed = np.abs(value), 1
    while (weight := gamma**summed) > 0 and np.any(jump != last):
        value = value + weight * value[jump]
        size = size + weight * size[jump]
        jump, summed = jump[jump], 2 * summed
    return value, size


def _undiscounted(following: Codes, reward: Numbers) -> Solution:
    """The best way to an end, or to where one may stay for ever at no cost.

    A run that never ends and never comes to rest so is worth nothing one could
    name; it is not looked for.
    """
    last = len(reward)
    goes_on = following < last
    # First as if one could stop anywhere: only then does each cycle that pays show.
    _longest(following, np.where(goes_on, reward, -np.inf), np.zeros(last))
    rest = np.ones(last + 1, bool)
    free = goes_on & (reward == 0)
    while np.any(left := rest[:-1] & ~(free & rest[following]).any(axis=1)):
        rest[:-1] &= ~left
    resting = (free & rest[following]).argmax(axis=1)
    policy, value = _longest(following, reward, np.where(rest[:-1], 0.0, -np.inf))
    policy = np.where(policy < 0, resting, policy)
    return Solution(policy.astype(np.int32), value, np.full(last, _slack(reward)))


def _longest(following: Codes, reward: Numbers, base: Numbers) -> tuple[Codes, Numbers]:
    """Return the first action of the way that pays most, −1 for staying, and what it pays."""
    rows, last = np.arange(len(reward)), len(reward)
    value, policy = np.append(base, 0.0), np.full(len(reward), -1, np.int32)
    slack, rounds = _slack(reward), 0
    while True:
        worth = reward + value[following]
        first = worth.argmax(axis=1)
        better = worth[rows, first] > value[:-1] + slack
        if not better.any():
            return policy, value[:-1]
        policy[better] = first[better]
        value[:-1][better] = worth[rows, first][better]
        rounds += 1
        if rounds & (rounds - 1) == 0:
            _check_cycles(np.where(policy < 0, last, following[rows, policy]), policy)


def _check_cycles(following: Codes, policy: Codes) -> None:
    """Raise `PayingCycle` if these steps lead round: each was taken for it paid more than before.

    Had the steps of a cycle no pay in sum, none of them could have been the last
    to become better.
    """
    last = len(following)
    jump = np.append(following, last)
    for _ in range(last.bit_length()):
        jump = jump[jump]
    caught = np.flatnonzero(jump != last)
    if len(caught):
        here, cycle = int(jump[caught[0]]), [int(jump[caught[0]])]
        while (here := int(following[here])) != cycle[0]:
            cycle.append(here)
        raise PayingCycle(cycle, [int(policy[one]) for one in cycle])


def _slack(reward: Numbers) -> float:
    finite = np.abs(reward[np.isfinite(reward)])
    return len(reward) * _ROUNDING * float(finite.max(initial=0.0))
