"""Policies and values that hold for all plausible transition probabilities.

Probabilities are any within a radius of the shares, for each step anew (extended value
iteration: Auer, Jaksch and Ortner 2010; Strehl and Littman 2008). An outcome that never occurred
may end the episode, or lead to any situation of the model. A cautious policy assumes that it
leads back to where the step began.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from resolvent.planning.confidence import worst_probabilities
from resolvent.planning.markov_chain import DecisionProcess, Numbers, Rows

_ROUNDS = 100
_FIRST_SWEEPS = 16
_SWEEPS = 2_000
_ALIKE = 1e-9
_CLOSE = 1e-9
"""Of what values may be: when rounds count as settled. What they still miss is accounted for."""


def cautious_policy(view: DecisionProcess, radius: Numbers, gamma: float) -> Rows:
    """Return the policy that is worth most if chances are as bad as their radius allows.

    Each is improved by what its steps are worth at worst_probabilities, until none is better.
    """
    rows: Rows = np.arange(view.situations)
    value = np.zeros(view.situations)
    for _ in range(_FIRST_SWEEPS):
        value = _robust_backup(view, radius, gamma, value, rows).worth.max(axis=1)
    policy = _robust_backup(view, radius, gamma, value, rows).worth.argmax(axis=1)
    for _ in range(_ROUNDS):
        taken = rows * view.actions + policy
        _, value = _robust_values(view.only(taken), radius[taken], gamma, _first, value, rows)
        worth = _robust_backup(view, radius, gamma, value, rows).worth
        better = worth.max(axis=1) > worth[rows, policy] + _ALIKE * float(np.abs(worth).max())
        if not better.any():
            break
        policy = np.where(better, worth.argmax(axis=1), policy)
    chosen: Rows = policy
    return chosen


def lower_bounds(view: DecisionProcess, radius: Numbers, gamma: float, policy: Rows) -> Numbers:
    """Return what a policy is worth at least, whatever the chances are within their radius.

    `view.beyond` must be the least that going on can be worth, where nobody knows.
    """
    taken = np.arange(view.situations) * view.actions + policy
    return _robust_values(view.only(taken), radius[taken], gamma, _first)[1]


def upper_bounds(view: DecisionProcess, radius: Numbers, gamma: float) -> tuple[Rows, Numbers]:
    """Return a policy for which one may hope most, and what any is worth at most.

    `view.beyond` must be the most that going on can be worth, where nobody knows.
    """
    # The most is the least of what is lost.
    lost = replace(view, pay=-view.pay, extra=-view.extra, beyond=-view.beyond, odd=-view.odd)
    policy, value = _robust_values(lost, radius, gamma, lambda worth: worth.argmin(axis=1))
    return policy, -value


def _first(worth: Numbers) -> Rows:
    return np.zeros(len(worth), np.int64)


class _RobustBackup(NamedTuple):
    """What steps are worth at worst_probabilities, and how: where what never came leads to, −1 for an end."""

    worth: Numbers
    chance: Numbers
    rest: Numbers
    led: Rows


def _robust_backup(
    view: DecisionProcess, radius: Numbers, gamma: float, value: Numbers, leads: Rows | None = None
) -> _RobustBackup:
    """Return what each step is worth at worst if what follows is worth so much.

    What never came ends the episode, or leads to where it `leads` from each situation, or to
    any situation.
    """
    ahead = view.ahead(value, gamma)
    led = np.full(view.situations, value.argmin()) if leads is None else leads
    led = np.where(value[led] < 0, led, -1)
    odd = view.odd + gamma * np.where(led < 0, 0.0, value[led]).repeat(view.actions)
    chance, rest = worst_probabilities(view.row, view.share, ahead, radius, odd)
    worth = view.worth(ahead, chance) + (rest * odd).reshape(-1, view.actions)
    return _RobustBackup(worth, chance, rest.reshape(-1, view.actions), led)


def _robust_values(
    view: DecisionProcess,
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
        found = _robust_backup(view, radius, gamma, value, leads)
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


def _only_gains(view: DecisionProcess) -> bool:
    """Whether no step loses anything, so that values of few steps are bounds for many."""
    worths = (view.pay, view.extra, np.array([view.odd]))
    return view.beyond >= 0 and all(float(one.min(initial=0.0)) >= 0 for one in worths)
