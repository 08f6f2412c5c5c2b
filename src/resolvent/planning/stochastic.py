"""Steps with chances → the policy that is expected to pay most, and what any policy is worth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from resolvent.arithmetic import log
from resolvent.planning.robust import cautious_policy, lower_bounds, upper_bounds
from resolvent.planning.markov_chain import DecisionProcess, Flags, Numbers, Rows
from resolvent.planning.stochastic_model import Outcomes
from resolvent.planning.value_bounds import in_all

if TYPE_CHECKING:
    from resolvent.planning.model import Model


_SWEEPS = 32
_ROUNDS = 10_000
_ALIKE = 1e-10
"""Of what values may be: differences below this are those of rounding."""


class EndlessReward(Exception):  # noqa: N818
    """Without discount, a policy pays for ever: its situations and actions."""

    def __init__(self, situations: list[int], actions: list[int]) -> None:
        super().__init__()
        self.situations, self.actions = situations, actions


def optimal_policy(view: DecisionProcess, gamma: float) -> tuple[Rows, Numbers]:
    """Return the policy that is expected to pay most, and what it is worth everywhere.

    Policies are improved until none is better but for rounding. Of actions worth the same, the
    first is taken. Without discount, a situation from which no way to act surely ends, or comes
    to rest at no cost, is worth −inf.
    """
    return _discounted(view, gamma) if gamma < 1 else _undiscounted(view)


def policy_value(view: DecisionProcess, policy: Rows, gamma: float) -> Numbers:
    """Return what a policy is worth in every situation; without discount it has to end surely."""
    chain = view.chain(policy, gamma)
    return chain.worth(gamma, np.zeros(view.situations))


def terminating_value(view: DecisionProcess, policy: Rows) -> Numbers | None:
    """Return what a policy is worth without discount; None if it does not surely end somewhere.

    Where it comes to rest at no cost, it is worth nothing more.
    """
    everywhere = np.ones(view.situations, bool)
    caught = _caught(view, policy, everywhere, ~everywhere)
    taken = np.flatnonzero(caught) * view.actions + policy[caught]
    if (view.pay[taken] != 0).any() or _varies(view)[taken].any():
        return None
    return _ended_worth(view, policy, everywhere, caught)


def _varies(view: DecisionProcess) -> Flags:
    """Return of which steps something may come that pays."""
    found: Flags = np.bincount(view.row, view.extra != 0, len(view.pay)) > 0
    return found


def _discounted(view: DecisionProcess, gamma: float) -> tuple[Rows, Numbers]:
    rows, value = np.arange(view.situations), np.zeros(view.situations)
    for _ in range(_SWEEPS):
        worth = view.worth(view.ahead(value, gamma), view.share)
        value = worth.max(axis=1)
    policy = worth.argmax(axis=1)
    for _ in range(_ROUNDS):
        value = view.chain(policy, gamma).worth(gamma, value)
        worth = view.worth(view.ahead(value, gamma), view.share)
        alike = _tolerance(worth)
        better = worth.max(axis=1) > worth[rows, policy] + alike
        if not better.any():
            break
        policy = np.where(better, worth.argmax(axis=1), policy)
    policy = (worth >= worth.max(axis=1)[:, None] - alike).argmax(axis=1)
    return policy, view.chain(policy, gamma).worth(gamma, value)


def _undiscounted(view: DecisionProcess) -> tuple[Rows, Numbers]:
    """Improve a policy that surely ends, as long as another is better.

    If a better one did not surely end, it would go round for pay: each of its steps was taken
    for being worth at least as much as before, and one for more.
    """
    shape = view.situations, view.actions
    allowed = (view.known | np.isfinite(view.pay)).reshape(shape)
    if not np.isfinite(view.beyond):
        lost = view.following == view.situations + 1
        allowed &= ~(np.bincount(view.row[lost], minlength=len(view.pay)) > 0).reshape(shape)
    resting, rest = _resting(view)
    policy, sure = _ending(view, allowed, rest)
    inside = allowed & _all_lead_into(view, np.append(sure, [True, True]))
    stays = rest.copy()
    for _ in range(_ROUNDS):
        value = _ended_worth(view, policy, sure, stays)
        worth = view.worth(view.ahead(np.where(sure, value, 0.0), 1.0), view.share)
        worth = np.where(inside, worth, -np.inf)
        alike = _tolerance(np.where(np.isfinite(worth), worth, 0.0))
        best = worth.max(axis=1)
        better = sure & (best > value + alike)
        idle = rest & ~stays & (value < -alike)
        if not (better | idle).any():
            break
        policy = np.where(better, worth.argmax(axis=1), policy)
        stays = (stays & ~better) | (idle & ~(best > alike))
        _check_that_it_ends(view, policy, sure, stays)
    same = (worth >= best[:, None] - alike) & inside
    chosen = np.where(stays, resting, policy)
    # The first of actions worth the same, if that still ends surely.
    first = np.where(same.any(axis=1) & ~stays & sure, same.argmax(axis=1), chosen)
    if _ends_surely(view, first, sure, stays):
        chosen = np.where(stays, resting, first)
    return chosen, np.where(sure, value, -np.inf)


def _ended_worth(view: DecisionProcess, policy: Rows, sure: Flags, stays: Flags) -> Numbers:
    """Return what a policy that ends surely is worth; 0 where it stays at no cost."""
    chain = view.chain(policy, 1.0)
    goes = (sure & ~stays)[chain.row] & (sure & ~stays)[chain.following]
    part = type(chain)(
        chain.row[goes],
        chain.following[goes],
        chain.chance[goes],
        np.where(sure & ~stays, chain.pay, 0.0),
    )
    return np.where(sure, part.worth(1.0, np.zeros(view.situations)), -np.inf)


def _resting(view: DecisionProcess) -> tuple[Rows, Flags]:
    """Return where one may stay for ever at no cost, and the action that does."""
    free = (view.known & (view.pay == 0) & ~_varies(view)).reshape(-1, view.actions)
    rest = np.append(np.ones(view.situations, bool), [False, False])
    while True:
        stays = free & _all_lead_into(view, rest)
        left = rest[:-2] & ~stays.any(axis=1)
        if not left.any():
            return stays.argmax(axis=1), rest[:-2]
        rest[:-2] &= ~left


def _ending(view: DecisionProcess, allowed: Flags, rest: Flags) -> tuple[Rows, Flags]:
    """Return a policy that surely ends, or comes to rest, and from where it does.

    Of all that are left, keep those from which allowed steps, none of which may lead out of
    what is left, can come to an end; until nothing is lost.
    """
    sure = np.append(np.ones(view.situations, bool), [True, True])
    while True:
        inside = allowed & _all_lead_into(view, sure)
        near = np.append(rest & sure[:-2], [True, True])
        policy = np.zeros(view.situations, np.int64)
        while True:
            hit = np.bincount(view.row, near[view.following], len(view.pay)) > 0
            closer = inside & (hit | ~view.known).reshape(-1, view.actions)
            new = closer.any(axis=1) & ~near[:-2]
            if not new.any():
                break
            policy[new] = closer.argmax(axis=1)[new]
            near[:-2] |= new
        if (near == sure).all():
            return policy, sure[:-2]
        sure = near


def _all_lead_into(view: DecisionProcess, where: Flags) -> Flags:
    """Return which steps surely lead into some situations, as a table."""
    out = np.bincount(view.row, ~where[view.following], len(view.pay)) > 0
    return ~out.reshape(-1, view.actions)


def _ends_surely(view: DecisionProcess, policy: Rows, sure: Flags, stays: Flags) -> bool:
    return not _caught(view, policy, sure, stays).any()


def _caught(view: DecisionProcess, policy: Rows, sure: Flags, stays: Flags) -> Flags:
    """Return from where a policy cannot come to an end."""
    chain = view.chain(policy, 1.0)
    inside = np.bincount(chain.row, chain.chance, view.situations)
    out = ~sure | stays | (inside < 1 - 1e-9)
    while True:
        more = (np.bincount(chain.row, out[chain.following], view.situations) > 0) & ~out
        if not more.any():
            return ~out
        out = out | more


def _check_that_it_ends(view: DecisionProcess, policy: Rows, sure: Flags, stays: Flags) -> None:
    caught = np.flatnonzero(_caught(view, policy, sure, stays))
    if len(caught):
        raise EndlessReward(caught.tolist(), policy[caught].tolist())


def _tolerance(worth: Numbers) -> float:
    return _ALIKE * float(np.abs(worth).max(initial=0.0))


_NEARLY_ONE = 0.9999
_CAUTION = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class StochasticSolution:
    """For each situation an action, what acting so is expected to pay, and bounds.

    With the confidence that was asked for, acting so is worth at least `pessimistic`, and
    nothing is worth more than `optimistic`.
    """

    policy: Rows
    expected: Numbers
    pessimistic: Numbers
    optimistic_policy: Rows
    optimistic: Numbers


def solve_stochastic(
    model: "Model",
    chances: Outcomes,
    gamma: float,
    reward_range: tuple[float, float],
    confidence: float,
) -> StochasticSolution:
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
    least = _of_steps(chances, mean, chances.pays.least(1 / (2 * chances.pays.counts.total), low))
    caution = _view(model, chances, least, least, low, ahead, min)
    policy = cautious_policy(caution, _CAUTION / seen, ahead)
    expected: Numbers | None
    if gamma < 1:
        expected = policy_value(plain, policy, gamma)
    else:
        surely, most_expected = optimal_policy(plain, gamma)
        expected = terminating_value(plain, policy)
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
    pessimistic = lower_bounds(sure, chances.radius(delta), gamma, policy)
    hopeful, optimistic = upper_bounds(hope, chances.radius(delta), gamma)
    return StochasticSolution(
        policy,
        expected,
        np.minimum(pessimistic, expected),
        hopeful,
        np.maximum(optimistic, expected),
    )


def _view(
    model: "Model",
    chances: Outcomes,
    mean: Numbers,
    otherwise: Numbers,
    reward: float,
    gamma: float,
    worst_or_best: Callable[[float, float], float],
) -> DecisionProcess:
    """See what is not known as if it paid this reward, for one step or for ever."""
    for_ever = in_all(reward, gamma)
    unknown, beyond = worst_or_best(reward, for_ever), worst_or_best(0.0, for_ever)
    return DecisionProcess.of(chances, model.known, mean, otherwise, reward, unknown, beyond)


def _of_steps(chances: Outcomes, mean: Numbers, paid: Numbers) -> Numbers:
    """Return for each step what its row is said to pay; the mean where it has none."""
    return np.where(chances.paid < 0, mean, paid[chances.paid]) if len(paid) else mean
