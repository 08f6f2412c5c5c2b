"""Shares of what came + how far they may be off → the worst and the best chances that there may be.

The chances of a row are any that are no further from its shares than a Kullback-Leibler
divergence; also what never came may come. Filippi, Cappé and Garivier (2010) solve this for
optimism in reinforcement learning.
"""

import numpy as np
from numpy.typing import NDArray
from resolvent.arithmetic import exp, log
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple
from resolvent.planning.markov_chain import Numbers, Rows, View


Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

_HALVINGS = 60

_TOUCHING = 1e-290
"""A value that is above another by no more than this is as low: shares divided by less overflow."""


def worst(
    row: Rows, share: Numbers, value: Numbers, radius: Numbers, lowest: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the plausible chances that make the mean value of each row least.

    `row` says to which of the rows, as many as there are radii, a value belongs. `lowest` is for
    each row the worth of what never came; its chance is the second column, 0 in rows that have
    a value as low as that.

    >>> row, half = np.zeros(2, int), np.full(2, 0.5)
    >>> shares, rest = worst(row, half, np.array([0.0, 1.0]), np.array([0.1]), np.zeros(1))
    >>> shares.round(3).tolist(), rest.round(3).tolist()
    ([0.713, 0.287], [0.0])
    """
    rows = len(radius)
    above = value - lowest[row]
    # Where taking from all is not too far, what never came gets what may be taken.
    safe = np.where(above > _TOUCHING, above, 1.0)
    touching = np.bincount(row, above <= _TOUCHING, rows) > 0
    inverse = np.bincount(row, share / safe, rows)
    distance = np.bincount(row, share * log(safe), rows)
    distance += log(np.where(inverse > 0, inverse, 1.0))
    outside = ~touching & (distance < radius)
    weight = np.where(outside, exp(np.where(outside, distance - radius, 0.0)), 1.0)
    chance = share / safe / np.where(inverse > 0, inverse, 1.0)[row] * weight[row]
    within = np.flatnonzero(~outside & (radius > 0) & (np.bincount(row, minlength=rows) > 0))
    plain = ~outside[row]
    chance[plain] = share[plain]
    if len(within):
        _shift(row, share, value, radius, within, chance)
    return chance, np.where(outside, 1 - weight, 0.0)


def _shift(
    row: Rows, share: Numbers, value: Numbers, radius: Numbers, which: Rows, chance: Numbers
) -> None:
    """Shift shares towards the worse values of some rows, as far as the radius allows."""
    number = np.full(len(radius), -1)
    number[which] = np.arange(len(which))
    at = np.flatnonzero(number[row] >= 0)
    row, share, value, radius = number[row[at]], share[at], value[at], radius[which]
    least, most = np.full(len(which), np.inf), np.full(len(which), -np.inf)
    np.minimum.at(least, row, value)
    np.maximum.at(most, row, value)
    span = most - least
    flat = span <= 0
    span[flat] = 1.0
    above = (value - least[row]) / span[row]
    # The chances are share / (above + gap): a small gap shifts far, a large one next to nothing.
    near, far = np.full(len(which), -40.0), log(4 + 4 / np.sqrt(radius))
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        reach = above + exp(middle)[row]
        inverse = np.bincount(row, share / reach, len(which))
        distance = np.bincount(row, share * log(reach), len(which)) + log(inverse)
        too_far = distance > radius
        near, far = np.where(too_far, middle, near), np.where(too_far, far, middle)
    reach = above + exp(near)[row]  # rather a little too far than not far enough
    inverse = np.bincount(row, share / reach, len(which))
    chance[at] = np.where(flat[row], share, share / reach / inverse[row])


def least_mean(mean: Numbers, radius: Numbers) -> Numbers:
    """Return the least true mean of pays between 0 and 1 that such a mean of them leaves plausible.

    The mean of many pays, each between 0 and 1, is no further from the true one than that of as
    many throws of a coin.

    >>> least_mean(np.array([0.5, 0.0, 1.0]), np.array([0.1, 0.1, 0.1])).round(3).tolist()
    [0.287, 0.0, 0.905]
    """
    low, high = np.zeros(len(mean)), mean.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_far = _coin_divergence(mean, middle) > radius
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return low


def _coin_divergence(seen: Numbers, true: Numbers) -> Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(seen > 0, seen * log(seen / true), 0.0)
        tails = np.where(seen < 1, (1 - seen) * log((1 - seen) / (1 - true)), 0.0)
    return np.where((true >= 1) & (seen < 1), np.inf, heads + tails)


_ROUNDS = 100
_FIRST_SWEEPS = 16
_SWEEPS = 2_000
_ALIKE = 1e-9
_CLOSE = 1e-9
"""Of what values may be: when rounds count as settled. What they still miss is accounted for."""


def cautious_policy(view: View, radius: Numbers, gamma: float) -> Rows:
    """Return the policy that is worth most if chances are as bad as their radius allows.

    Each is improved by what its steps are worth at worst, until none is better.
    """
    rows: Rows = np.arange(view.situations)
    value = np.zeros(view.situations)
    for _ in range(_FIRST_SWEEPS):
        value = _at_worst(view, radius, gamma, value, rows).worth.max(axis=1)
    policy = _at_worst(view, radius, gamma, value, rows).worth.argmax(axis=1)
    for _ in range(_ROUNDS):
        taken = rows * view.actions + policy
        _, value = _settled(view.only(taken), radius[taken], gamma, _first, value, rows)
        worth = _at_worst(view, radius, gamma, value, rows).worth
        better = worth.max(axis=1) > worth[rows, policy] + _ALIKE * float(np.abs(worth).max())
        if not better.any():
            break
        policy = np.where(better, worth.argmax(axis=1), policy)
    chosen: Rows = policy
    return chosen


def least_worth(view: View, radius: Numbers, gamma: float, policy: Rows) -> Numbers:
    """Return what a policy is worth at least, whatever the chances are within their radius.

    `view.beyond` must be the least that going on can be worth, where nobody knows.
    """
    taken = np.arange(view.situations) * view.actions + policy
    return _settled(view.only(taken), radius[taken], gamma, _first)[1]


def most_worth(view: View, radius: Numbers, gamma: float) -> tuple[Rows, Numbers]:
    """Return a policy for which one may hope most, and what any is worth at most.

    `view.beyond` must be the most that going on can be worth, where nobody knows.
    """
    # The most is the least of what is lost.
    lost = replace(view, pay=-view.pay, extra=-view.extra, beyond=-view.beyond, odd=-view.odd)
    policy, value = _settled(lost, radius, gamma, lambda worth: worth.argmin(axis=1))
    return policy, -value


def _first(worth: Numbers) -> Rows:
    return np.zeros(len(worth), np.int64)


class _Worst(NamedTuple):
    """What steps are worth at worst, and how: where what never came leads to, −1 for an end."""

    worth: Numbers
    chance: Numbers
    rest: Numbers
    led: Rows


def _at_worst(
    view: View, radius: Numbers, gamma: float, value: Numbers, leads: Rows | None = None
) -> _Worst:
    """Return what each step is worth at worst if what follows is worth so much.

    What never came ends the episode, or leads to where it `leads` from each situation, or to
    any situation.
    """
    ahead = view.ahead(value, gamma)
    led = np.full(view.situations, value.argmin()) if leads is None else leads
    led = np.where(value[led] < 0, led, -1)
    odd = view.odd + gamma * np.where(led < 0, 0.0, value[led]).repeat(view.actions)
    chance, rest = worst(view.row, view.share, ahead, radius, odd)
    worth = view.worth(ahead, chance) + (rest * odd).reshape(-1, view.actions)
    return _Worst(worth, chance, rest.reshape(-1, view.actions), led)


def _settled(
    view: View,
    radius: Numbers,
    gamma: float,
    pick: Callable[[Numbers], Rows],
    guess: Numbers | None = None,
    leads: Rows | None = None,
) -> tuple[Rows, Numbers]:
    """Return the actions picked by what they are worth at least, and what that comes to.

    Policies, and the worst chances for each, are improved in turn. By as much as the last round
    would still change, taken for ever, the values are lowered: they are bounds in any case.
    """
    rows = np.arange(view.situations)
    value = np.zeros(view.situations) if guess is None else guess
    if gamma == 1 and not _only_gains(view):
        return pick(view.worth(view.ahead(value, gamma), view.share)), value - np.inf
    for _ in range(_ROUNDS if gamma < 1 else _SWEEPS):
        found = _at_worst(view, radius, gamma, value, leads)
        policy = pick(found.worth)
        change = found.worth[rows, policy] - value
        scale = float(np.abs(value).max(initial=0.0) + np.abs(found.worth).max(initial=0.0))
        close = _CLOSE * scale * (1 - gamma if gamma < 1 else 1) + float(np.finfo(np.float64).tiny)
        if np.abs(change).max(initial=0.0) <= close:
            break
        if gamma < 1:
            chain = view.chain(policy, gamma, found.chance)
            chain = chain.plus(found.rest[rows, policy], view.odd, found.led)
            value = chain.worth(gamma, value)
        else:  # nothing is lost on the way, so that each sweep only adds to a bound
            value = value + np.maximum(change, 0.0)
    if gamma == 1:
        return policy, value
    return policy, value - max(0.0, -float(change.min(initial=0.0))) / (1 - gamma)


def _only_gains(view: View) -> bool:
    """Whether no step loses anything, so that values of few steps are bounds for many."""
    worths = (view.pay, view.extra, np.array([view.odd]))
    return view.beyond >= 0 and all(float(one.min(initial=0.0)) >= 0 for one in worths)
