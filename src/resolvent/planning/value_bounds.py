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
from resolvent.planning.plan_io import json_number
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

    `least` and `most` are the plan's bounds: discounted, from the start of the episode, and
    within its length if it was truncated. They are equal unless the plan takes an unknown step.
    """

    episode: int | None
    least: float
    most: float
    paid: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "episode": self.episode,
            "promised": [json_number(self.least), json_number(self.most)],
            "paid": self.paid,
        }

    def __str__(self) -> str:
        """Return a line of text.

        >>> print(BoundViolation(3, 0.5, 0.5, 0.0))
        episode 3 was promised 0.5 and paid 0
        >>> print(BoundViolation(None, 0.5, math.inf, 0.125))
        the mean was promised at least 0.5 and paid 0.125
        """
        what = "the mean" if self.episode is None else f"episode {self.episode}"
        promised = f"{self.least:.4g}"
        if self.most > self.least:
            promised = f"at least {promised}"
            if self.paid > self.most:
                promised = f"at most {self.most:.4g}"
        return f"{what} was promised {promised} and paid {self.paid:.4g}"


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


def too_large_to_add_up(largest: float, gamma: float, situations: int) -> str | None:
    """Return a text if rewards are so large that their sums are not finite, else None.

    >>> too_large_to_add_up(1e308, 0.95, 4)[:45]
    'rewards as large as 1e+308 cannot be added up'
    """
    times = situations if gamma == 1 else 1 / (1 - gamma)
    if largest <= _LARGEST_SUM / times:
        return None
    return (
        f"rewards as large as {largest:g} cannot be added up: what a plan is worth would be "
        f"no finite number; divide all rewards by the same number"
    )


def return_bounds(plan: "Plan", start: int, steps: float = math.inf) -> tuple[float, float]:
    """Return bounds on the plan's return from a situation within a number of steps.

    They differ only where the plan reaches an unknown step.
    """
    model, gamma, here = plan.model, plan.gamma, start
    total, weight = 0.0, 1.0
    for done in range(len(model) + 1 if math.isinf(steps) else int(steps)):
        action = int(plan.policy[here])
        if not model.known[here, action]:
            (least, most), left = plan.reward_range, steps - done
            return (
                total + weight * min(least, discounted_sum(least, gamma, left)),
                total + weight * max(most, discounted_sum(most, gamma, left)),
            )
        total += weight * float(model.reward[here, action])
        weight *= gamma
        here = int(model.following[here, action])
        if here < 0:
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
    worth = rewards[traces.reward_codes] * powers(gamma, int(steps.max(initial=0)) + 1)[steps]
    paid: NDArray[np.float64] = np.add.reduceat(worth, traces.offsets[:-1])
    return paid


def bound_violations(
    plan: "Plan", traces: TraceSet, starts: Sequence[int | None]
) -> tuple[BoundViolation, ...]:
    """Return the episodes of the plan with returns outside of its bounds.

    `starts` are their initial situations, None if the plan does not know it. If no episode from a
    known start contradicts the plan and there are others, the mean of all must not be more than
    three standard errors below its value. For a stochastic model, the mean of all episodes from
    known starts must not be more than three standard errors outside of the plan's bounds.
    """
    levels = plan.machines.senses.rewards
    if levels is not None and plan.model.chances is None:
        traces = levels.on(traces)  # the plan predicts the level of a noisy reward
    paid = returns_of(traces, plan.gamma, plan.machines.reward.reward_digits)
    lengths = np.diff(traces.offsets).tolist()
    if plan.model.chances is not None:
        return _of_stochastic(plan, traces, paid, starts)
    bounds = lru_cache(maxsize=None)(partial(return_bounds, plan))
    violations = []
    for number, start in enumerate(starts):
        if start is None:
            continue
        least, most = bounds(start, math.inf if traces.terminated[number] else lengths[number])
        actual = float(paid[number])
        if not _at_most(least, actual) or not _at_most(actual, most):
            violations.append(BoundViolation(number, least, most, actual))
    if violations or None not in starts or len(starts) < _ENOUGH:
        return tuple(violations)
    return _of_the_mean(plan, traces, paid, lengths)


def _of_the_mean(
    plan: "Plan", traces: TraceSet, paid: NDArray[np.float64], lengths: list[int]
) -> tuple[BoundViolation, ...]:
    # A truncated episode might have gone on with the highest reward.
    rest = max(0.0, discounted_sum(plan.reward_range[1], plan.gamma))
    if math.isinf(rest) and not traces.terminated.all():
        return ()
    discount = powers(plan.gamma, max(lengths) + 1).tolist()
    future = [
        0.0 if over else discount[length] * rest
        for over, length in zip(traces.terminated.tolist(), lengths, strict=True)
    ]
    returns = paid + future
    error = float(returns.std(ddof=1)) / math.sqrt(len(returns))
    if _at_most(plan.value, float(returns.mean()) + _ERRORS * error):
        return ()
    return (BoundViolation(None, plan.value, math.inf, float(paid.mean())),)


def _of_stochastic(
    plan: "Plan", traces: TraceSet, paid: NDArray[np.float64], starts: Sequence[int | None]
) -> tuple[BoundViolation, ...]:
    began = [number for number, start in enumerate(starts) if start is not None]
    if len(began) < _ENOUGH:
        return ()
    places = np.array([starts[number] for number in began])
    # A truncated episode might have gone on with the lowest or the highest reward.
    lengths, over = np.diff(traces.offsets)[began], traces.terminated[began]
    discount = powers(plan.gamma, int(lengths.max()) + 1)[lengths]
    weight = float(np.where(over, 0.0, discount).mean())
    mean = float(paid[began].mean())
    error = _ERRORS * float(paid[began].std(ddof=1)) / math.sqrt(len(began))
    low, high = plan.reward_range
    loss = weight * min(0.0, discounted_sum(low, plan.gamma)) if weight else 0.0
    gain = weight * max(0.0, discounted_sum(high, plan.gamma)) if weight else 0.0
    least, most = float(plan.pessimistic[places].mean()), float(plan.optimistic[places].mean())
    if _at_most(least, mean + gain + error) and _at_most(mean + loss - error, most):
        return ()
    return (BoundViolation(None, least, most, mean),)


def _at_most(less: float, more: float) -> bool:
    """Return whether a number is at most another, up to rounding."""
    slack = _ROUNDING * max(
        [1.0, *(abs(number) for number in (less, more) if math.isfinite(number))]
    )
    return less <= more + slack
