"""Bounds on the return of a plan, and episodes whose returns violate them.

Deterministic machines are refuted by one episode with a return outside of the plan's bounds.
Stochastic machines are refuted by the mean return of many episodes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import powers
from resolvent._util.records import builtin
from resolvent.preprocess.samples import rounded
from resolvent.traces import TraceSet

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan


_ERRORS = 3
"""Number of standard errors by which a mean has to miss the bounds."""

_LARGEST_SUM = 1e307
"""Largest sum of rewards: floating-point numbers end at 1.8e308."""

_ENOUGH = 10
"""Minimum number of episodes for a standard error."""

_ROUNDING = 1e-9
"""Share of the larger return below which a difference is rounding."""


@dataclass(frozen=True)
class BoundViolation:
    """An episode with a return outside of the plan's bounds; `episode` is None for the mean of all.

    `actual` is the discounted return, `least` and `most` are the plan's bounds on it, within the
    length of the episode if it was truncated. They are equal unless the plan takes an unknown step.
    """

    episode: int | None
    least: float
    most: float
    actual: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "episode": self.episode,
            "bounds": builtin((self.least, self.most)),
            "return": self.actual,
        }

    def __str__(self) -> str:
        """Return a line of text.

        >>> print(BoundViolation(3, 0.5, 0.5, 0.0))
        episode 3 returned 0, but the plan's value is 0.5
        >>> print(BoundViolation(None, 0.5, math.inf, 0.125))
        the episodes returned 0.125 on average, but the plan's value is at least 0.5
        """
        returned = f"episode {self.episode} returned {self.actual:.4g}"
        if self.episode is None:
            returned = f"the episodes returned {self.actual:.4g} on average"
        bound = f"{self.least:.4g}"
        if self.most > self.least:
            bound = f"at most {self.most:.4g}" if self.actual > self.most else f"at least {bound}"
        return f"{returned}, but the plan's value is {bound}"


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
    """Return an error message if rewards are so large that their sums are not finite, else None.

    >>> overflow_error(1e308, 0.95, 4)
    'rewards as large as 1e+308 overflow when summed: divide all by the same number'
    """
    times = states if gamma == 1 else 1 / (1 - gamma)
    if largest <= _LARGEST_SUM / times:
        return None
    return f"rewards as large as {largest:g} overflow when summed: divide all by the same number"


def return_bounds(plan: "Plan", start: int, steps: float = math.inf) -> tuple[float, float]:
    """Return bounds on the plan's return from an augmented state within a number of steps.

    They differ only where the plan reaches an unknown step.
    """
    model, gamma, state = plan.model, plan.gamma, start
    total, weight = 0.0, 1.0
    for done in range(len(model) + 1 if math.isinf(steps) else int(steps)):
        action = int(plan.policy[state])
        if not model.known[state, action]:
            (low, high), remaining = plan.reward_range, steps - done
            return (
                total + weight * min(low, discounted_sum(low, gamma, remaining)),
                total + weight * max(high, discounted_sum(high, gamma, remaining)),
            )
        total += weight * float(model.reward[state, action])
        weight *= gamma
        state = int(model.next_state[state, action])
        if state < 0:
            return total, total
    if math.isinf(steps):  # the plan runs in a cycle
        total = float(plan.pessimistic[start])
    return total, total


def returns_of(
    traces: TraceSet, gamma: float = 1.0, digits: int | None = None
) -> NDArray[np.float64]:
    """Return the discounted return of each episode, its rewards rounded to `digits` if given.

    >>> from resolvent.traces import Trace
    >>> returns_of(TraceSet([Trace("abc", [None] * 3, "xy", [1, 4])]), 0.5).tolist()
    [3.0]
    """
    rewards = np.array(rounded(traces.rewards, digits))
    steps = np.arange(traces.steps) - np.repeat(traces.offsets[:-1], np.diff(traces.offsets))
    terms = rewards[traces.reward_codes] * powers(gamma, int(steps.max(initial=0)) + 1)[steps]
    returns: NDArray[np.float64] = np.add.reduceat(terms, traces.offsets[:-1])
    return returns


def bound_violations(
    plan: "Plan", traces: TraceSet, starts: Sequence[int | None]
) -> tuple[BoundViolation, ...]:
    """Return the episodes of the plan with returns outside of its bounds.

    `starts` are their initial augmented states, None if the plan does not know it. If no episode
    from a known start contradicts the plan and there are others, the mean of all must not be more
    than three standard errors below its value. For a stochastic model, the mean of all episodes
    from known starts must not be more than three standard errors outside of the plan's bounds.
    """
    known = np.array([number for number, start in enumerate(starts) if start is not None], int)
    if plan.model.outcomes is not None:
        states = [start for start in starts if start is not None]
        returns = returns_of(traces, plan.gamma, plan.machines.reward.digits)
        bounds = plan.pessimistic[states], plan.optimistic[states]
        return _mean_violations(plan, traces, returns, known, bounds)
    levels = plan.machines.preprocessor.rewards
    if levels is not None:
        traces = levels.transform(traces)  # the plan predicts the level of a noisy reward
    returns = returns_of(traces, plan.gamma, plan.machines.reward.digits)
    bounds_from = lru_cache(maxsize=None)(partial(return_bounds, plan))
    violations = []
    for number in known.tolist():
        length = math.inf if traces.terminated[number] else int(np.diff(traces.offsets)[number])
        least, most = bounds_from(starts[number], length)
        actual = float(returns[number])
        if not _at_most(least, actual) or not _at_most(actual, most):
            violations.append(BoundViolation(number, least, most, actual))
    if violations or len(known) == len(starts):
        return tuple(violations)
    everywhere = np.full(1, plan.value), np.full(1, math.inf)
    return _mean_violations(plan, traces, returns, np.arange(len(starts)), everywhere)


def _mean_violations(
    plan: "Plan",
    traces: TraceSet,
    returns: NDArray[np.float64],
    episodes: NDArray[np.intp],
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[BoundViolation, ...]:
    """Return whether the mean return of some episodes is outside of the mean of the bounds."""
    if len(episodes) < _ENOUGH:
        return ()
    mean, least, most = (float(column.mean()) for column in (returns[episodes], *bounds))
    error = _ERRORS * float(returns[episodes].std(ddof=1)) / math.sqrt(len(episodes))
    # A truncated episode might have continued with the lowest or the highest reward.
    lengths, ended = np.diff(traces.offsets)[episodes], traces.terminated[episodes]
    discount = powers(plan.gamma, int(lengths.max()) + 1)[lengths]
    weight = float(np.where(ended, 0.0, discount).mean())
    low, high = plan.reward_range
    loss = weight * min(0.0, discounted_sum(low, plan.gamma)) if weight else 0.0
    gain = weight * max(0.0, discounted_sum(high, plan.gamma)) if weight else 0.0
    if _at_most(least, mean + gain + error) and _at_most(mean + loss - error, most):
        return ()
    return (BoundViolation(None, least, most, mean),)


def _at_most(less: float, more: float) -> bool:
    """Return whether a number is at most another, up to rounding."""
    finite = [abs(number) for number in (less, more) if math.isfinite(number)]
    return less <= more + _ROUNDING * max([1.0, *finite])
