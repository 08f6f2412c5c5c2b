"""Steps with chances → the policy that is expected to pay most, and what any policy is worth."""

import numpy as np

from resolvent.control.planning.chance.linear import Numbers, Rows
from resolvent.control.planning.chance.view import Flags, View

_SWEEPS = 32
_ROUNDS = 10_000
_ALIKE = 1e-10
"""Of what values may be: differences below this are those of rounding."""


class NeverEnds(Exception):  # noqa: N818
    """Without discount, a policy pays for ever: its situations and actions."""

    def __init__(self, situations: list[int], actions: list[int]) -> None:
        super().__init__()
        self.situations, self.actions = situations, actions


def best_policy(view: View, gamma: float) -> tuple[Rows, Numbers]:
    """Return the policy that is expected to pay most, and what it is worth everywhere.

    Policies are improved until none is better but for rounding. Of actions worth the same, the
    first is taken. Without discount, a situation from which no way to act surely ends, or comes
    to rest at no cost, is worth −inf.
    """
    return _discounted(view, gamma) if gamma < 1 else _undiscounted(view)


def worth_of(view: View, policy: Rows, gamma: float) -> Numbers:
    """Return what a policy is worth in every situation; without discount it has to end surely."""
    chain = view.chain(policy, gamma)
    return chain.worth(gamma, np.zeros(view.situations))


def ending_worth(view: View, policy: Rows) -> Numbers | None:
    """Return what a policy is worth without discount; None if it does not surely end somewhere.

    Where it comes to rest at no cost, it is worth nothing more.
    """
    everywhere = np.ones(view.situations, bool)
    caught = _caught(view, policy, everywhere, ~everywhere)
    taken = np.flatnonzero(caught) * view.actions + policy[caught]
    if (view.pay[taken] != 0).any() or _varies(view)[taken].any():
        return None
    return _ended_worth(view, policy, everywhere, caught)


def _varies(view: View) -> Flags:
    """Return of which steps something may come that pays."""
    found: Flags = np.bincount(view.row, view.extra != 0, len(view.pay)) > 0
    return found


def _discounted(view: View, gamma: float) -> tuple[Rows, Numbers]:
    rows, value = np.arange(view.situations), np.zeros(view.situations)
    for _ in range(_SWEEPS):
        worth = view.worth(view.ahead(value, gamma), view.share)
        value = worth.max(axis=1)
    policy = worth.argmax(axis=1)
    for _ in range(_ROUNDS):
        value = view.chain(policy, gamma).worth(gamma, value)
        worth = view.worth(view.ahead(value, gamma), view.share)
        alike = _alike(worth)
        better = worth.max(axis=1) > worth[rows, policy] + alike
        if not better.any():
            break
        policy = np.where(better, worth.argmax(axis=1), policy)
    policy = (worth >= worth.max(axis=1)[:, None] - alike).argmax(axis=1)
    return policy, view.chain(policy, gamma).worth(gamma, value)


def _undiscounted(view: View) -> tuple[Rows, Numbers]:
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
        alike = _alike(np.where(np.isfinite(worth), worth, 0.0))
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


def _ended_worth(view: View, policy: Rows, sure: Flags, stays: Flags) -> Numbers:
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


def _resting(view: View) -> tuple[Rows, Flags]:
    """Return where one may stay for ever at no cost, and the action that does."""
    free = (view.known & (view.pay == 0) & ~_varies(view)).reshape(-1, view.actions)
    rest = np.append(np.ones(view.situations, bool), [False, False])
    while True:
        stays = free & _all_lead_into(view, rest)
        left = rest[:-2] & ~stays.any(axis=1)
        if not left.any():
            return stays.argmax(axis=1), rest[:-2]
        rest[:-2] &= ~left


def _ending(view: View, allowed: Flags, rest: Flags) -> tuple[Rows, Flags]:
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


def _all_lead_into(view: View, where: Flags) -> Flags:
    """Return which steps surely lead into some situations, as a table."""
    out = np.bincount(view.row, ~where[view.following], len(view.pay)) > 0
    return ~out.reshape(-1, view.actions)


def _ends_surely(view: View, policy: Rows, sure: Flags, stays: Flags) -> bool:
    return not _caught(view, policy, sure, stays).any()


def _caught(view: View, policy: Rows, sure: Flags, stays: Flags) -> Flags:
    """Return from where a policy cannot come to an end."""
    chain = view.chain(policy, 1.0)
    inside = np.bincount(chain.row, chain.chance, view.situations)
    out = ~sure | stays | (inside < 1 - 1e-9)
    while True:
        more = (np.bincount(chain.row, out[chain.following], view.situations) > 0) & ~out
        if not more.any():
            return ~out
        out = out | more


def _check_that_it_ends(view: View, policy: Rows, sure: Flags, stays: Flags) -> None:
    caught = np.flatnonzero(_caught(view, policy, sure, stays))
    if len(caught):
        raise NeverEnds(caught.tolist(), policy[caught].tolist())


def _alike(worth: Numbers) -> float:
    return _ALIKE * float(np.abs(worth).max(initial=0.0))
