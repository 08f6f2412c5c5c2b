"""A Markov decision process → a policy of highest expected value, by policy iteration.

Without discount, policies have to end surely, or to stay for ever where nothing is paid.
"""

from typing import Final

import numpy as np

from resolvent.planning.confidence import Numbers, Rows
from resolvent.planning.markov_chain import DecisionProcess, MarkovChain
from resolvent.planning.transitions import Flags

_SWEEPS: Final = 32
"""Number of sweeps of value iteration before policy iteration."""

_ROUNDS: Final = 10_000
_TOLERANCE: Final = 1e-10
"""Share of the largest value below which a difference is rounding."""


class EndlessReward(Exception):  # noqa: N818
    """Without discount, a policy is rewarded for ever: its situations and actions."""

    def __init__(self, situations: list[int], actions: list[int]) -> None:
        super().__init__()
        self.situations, self.actions = situations, actions


def optimal_policy(process: DecisionProcess, gamma: float) -> tuple[Rows, Numbers]:
    """Return the policy of highest expected value, and its values.

    Of actions of equal value, the first is taken. Without discount, a situation from which no
    policy surely ends, or stays at no cost, has the value −inf.
    """
    return _discounted(process, gamma) if gamma < 1 else _undiscounted(process)


def policy_value(process: DecisionProcess, policy: Rows, gamma: float) -> Numbers:
    """Return the value of a policy in every situation; without discount it has to end surely."""
    return process.chain(policy, gamma).value(gamma, np.zeros(process.situations))


def terminating_value(process: DecisionProcess, policy: Rows) -> Numbers | None:
    """Return the value of a policy without discount; None if it does not surely end.

    Where it stays for ever at no cost, the value is that of the rewards before.
    """
    everywhere = np.ones(process.situations, bool)
    endless = _endless(process, policy, everywhere, ~everywhere)
    steps = np.flatnonzero(endless) * process.actions + policy[endless]
    if (process.pay[steps] != 0).any() or process.has_extra[steps].any():
        return None
    return _value_of_ending(process, policy, everywhere, endless)


def _discounted(process: DecisionProcess, gamma: float) -> tuple[Rows, Numbers]:
    rows, value = np.arange(process.situations), np.zeros(process.situations)
    for _ in range(_SWEEPS):
        of_action = process.backup(process.ahead(value, gamma), process.share)
        value = of_action.max(axis=1)
    policy = of_action.argmax(axis=1)
    for _ in range(_ROUNDS):
        value = process.chain(policy, gamma).value(gamma, value)
        of_action = process.backup(process.ahead(value, gamma), process.share)
        tolerance = _tolerance(of_action)
        better = of_action.max(axis=1) > of_action[rows, policy] + tolerance
        if not better.any():
            break
        policy = np.where(better, of_action.argmax(axis=1), policy)
    policy = (of_action >= of_action.max(axis=1)[:, None] - tolerance).argmax(axis=1)
    return policy, process.chain(policy, gamma).value(gamma, value)


def _undiscounted(process: DecisionProcess) -> tuple[Rows, Numbers]:
    """Improve a policy that surely ends, as long as another is better.

    A better policy that did not surely end would repeat a cycle of positive reward, since none of
    its steps lowers the value and one raises it.
    """
    shape = process.situations, process.actions
    allowed = (process.known | np.isfinite(process.pay)).reshape(shape)
    if not np.isfinite(process.beyond):
        unknown = process.following == process.situations + 1
        leads_out = np.bincount(process.row[unknown], minlength=len(process.pay)) > 0
        allowed &= ~leads_out.reshape(shape)
    resting, rest = _resting(process)
    policy, sure = _ending_policy(process, allowed, rest)
    inside = allowed & _all_lead_into(process, np.append(sure, [True, True]))
    stays = rest.copy()
    for _ in range(_ROUNDS):
        value = _value_of_ending(process, policy, sure, stays)
        of_action = process.backup(process.ahead(np.where(sure, value, 0.0), 1.0), process.share)
        of_action = np.where(inside, of_action, -np.inf)
        tolerance = _tolerance(np.where(np.isfinite(of_action), of_action, 0.0))
        best = of_action.max(axis=1)
        better = sure & (best > value + tolerance)
        idle = rest & ~stays & (value < -tolerance)
        if not (better | idle).any():
            break
        policy = np.where(better, of_action.argmax(axis=1), policy)
        stays = (stays & ~better) | (idle & ~(best > tolerance))
        endless = np.flatnonzero(_endless(process, policy, sure, stays))
        if len(endless):
            raise EndlessReward(endless.tolist(), policy[endless].tolist())
    equal = (of_action >= best[:, None] - tolerance) & inside
    chosen = np.where(stays, resting, policy)
    # The first of actions of equal value, if that still ends surely.
    first = np.where(equal.any(axis=1) & ~stays & sure, equal.argmax(axis=1), chosen)
    if not _endless(process, first, sure, stays).any():
        chosen = np.where(stays, resting, first)
    return chosen, np.where(sure, value, -np.inf)


def _value_of_ending(process: DecisionProcess, policy: Rows, sure: Flags, stays: Flags) -> Numbers:
    """Return the value of a policy that ends surely; 0 where it stays at no cost."""
    chain = process.chain(policy, 1.0)
    moves = sure & ~stays
    goes = moves[chain.row] & moves[chain.following]
    part = MarkovChain(
        chain.row[goes],
        chain.following[goes],
        chain.chance[goes],
        np.where(moves, chain.pay, 0.0),
    )
    return np.where(sure, part.value(1.0, np.zeros(process.situations)), -np.inf)


def _resting(process: DecisionProcess) -> tuple[Rows, Flags]:
    """Return the actions that stay for ever at no cost, and the situations that have one."""
    free = (process.known & (process.pay == 0) & ~process.has_extra).reshape(-1, process.actions)
    rest = np.append(np.ones(process.situations, bool), [False, False])
    while True:
        stays = free & _all_lead_into(process, rest)
        left = rest[:-2] & ~stays.any(axis=1)
        if not left.any():
            return stays.argmax(axis=1), rest[:-2]
        rest[:-2] &= ~left


def _ending_policy(process: DecisionProcess, allowed: Flags, rest: Flags) -> tuple[Rows, Flags]:
    """Return a policy that surely ends, or stays at no cost, and the situations where it does.

    Situations that cannot reach an end by allowed steps within the remaining situations are
    removed, until none is.
    """
    sure = np.append(np.ones(process.situations, bool), [True, True])
    while True:
        inside = allowed & _all_lead_into(process, sure)
        near = np.append(rest & sure[:-2], [True, True])
        policy = np.zeros(process.situations, np.int64)
        while True:
            hit = np.bincount(process.row, near[process.following], len(process.pay)) > 0
            closer = inside & (hit | ~process.known).reshape(-1, process.actions)
            new = closer.any(axis=1) & ~near[:-2]
            if not new.any():
                break
            policy[new] = closer.argmax(axis=1)[new]
            near[:-2] |= new
        if (near == sure).all():
            return policy, sure[:-2]
        sure = near


def _all_lead_into(process: DecisionProcess, where: Flags) -> Flags:
    """Return as [situation, action] which steps surely lead into some situations."""
    out = np.bincount(process.row, ~where[process.following], len(process.pay)) > 0
    return ~out.reshape(-1, process.actions)


def _endless(process: DecisionProcess, policy: Rows, sure: Flags, stays: Flags) -> Flags:
    """Return the situations from which a policy cannot end."""
    chain = process.chain(policy, 1.0)
    inside = np.bincount(chain.row, chain.chance, process.situations)
    out = ~sure | stays | (inside < 1 - 1e-9)
    while True:
        more = (np.bincount(chain.row, out[chain.following], process.situations) > 0) & ~out
        if not more.any():
            return ~out
        out = out | more


def _tolerance(of_action: Numbers) -> float:
    return _TOLERANCE * float(np.abs(of_action).max(initial=0.0))
