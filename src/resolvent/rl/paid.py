"""Returns of episodes → their mean, with a 95% interval that allows for rare returns.

The interval is that of Gaffke: quantiles of the mean under random weights, with one more episode
at the end of the range. It is Clopper and Pearson's for two returns; see docs/decisions/rl.md.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resolvent._util.math import erfc, exp, log, powers
from resolvent._util.records import to_builtins
from resolvent._util.text import amount
from resolvent.planning.deterministic import discounted_sum
from resolvent.traces import TraceSet

_TAIL: Final = 0.025
"""Probability of a mean beyond either end of the interval."""

_HALVINGS: Final = 60


def missing_rewards(
    traces: TraceSet, truncated: set[int], gamma: float, reward_range: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the most that each episode could still have been paid at its end.

    It is 0 for both where the environment ended the episode, or `truncated` it itself.
    """
    is_over = traces.terminated.copy()
    is_over[list(truncated)] = True
    lengths = np.diff(traces.offsets)
    weight = powers(gamma, int(lengths.max()) + 1)[lengths]
    low, high = (discounted_sum(reward, gamma) for reward in reward_range)
    least, most = (
        np.where(is_over, 0.0, rest) * weight for rest in (min(0.0, low), max(0.0, high))
    )
    return least, most


@dataclass(frozen=True)
class Paid:
    """The mean discounted return of fresh episodes, with its 95% interval.

    >>> import numpy as np
    >>> print(Paid.of(np.array([0.9] * 28 + [0.0] * 2)))
    0.84 (95% interval 0.7012 to 0.8927) in 30 episodes
    >>> print(Paid.of(np.full(30, 0.9), possible=(0, 0.9)))
    0.9 (95% interval 0.7956 to 0.9) in 30 episodes
    """

    mean: float
    low: float
    high: float
    episodes: int

    @classmethod
    def of(
        cls,
        returns: NDArray[np.float64],
        *,
        missing: tuple[ArrayLike, ArrayLike] = (0.0, 0.0),
        possible: tuple[float, float] | None = None,
    ) -> "Paid":
        """Return the mean of returns; the interval is not narrower than the returns suggest.

        `missing` is the least and the most that each episode could still have been paid.
        `possible` is a range of returns that may occur although none of these episodes had them.
        """
        low, high = possible or (math.inf, -math.inf)
        least, most = (returns + np.asarray(rest, float) for rest in missing)
        mean = float(returns.mean())
        lower = -_upper_limit(-least, -min(low, float(least.min())))
        upper = _upper_limit(most, max(high, float(most.max())))
        return cls(mean, min(lower, mean), max(upper, mean), len(returns))

    def allows(self, least: float, most: float, tolerance: float) -> bool:
        """Return whether a value in a range is possible, within three standard errors.

        The `tolerance` is a share of the value; the interval has a width of four standard errors.
        """
        margin = (self.high - self.low) / 4 + tolerance * max(abs(self.mean), 1e-9)
        return not (least > self.high + margin or most < self.low - margin)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return to_builtins(self)

    @property
    def interval_text(self) -> str:
        """The interval as text; empty if it is not wider than the digits shown."""
        low, high = f"{self.low:.4g}", f"{self.high:.4g}"
        return "" if low == high else f"95% interval {low} to {high}"

    def __str__(self) -> str:
        interval = f" ({self.interval_text})" if self.interval_text else ""
        return f"{self.mean:.4g}{interval} in {amount(self.episodes, 'episode')}"


def _upper_limit(returns: NDArray[np.float64], highest: float) -> float:
    """Return the 97.5% quantile of the mean under uniformly random weights.

    The weights are those of the returns and of one more that is `highest`. The mean is below m
    where a sum of (return − m) · e is below 0, with exponential random numbers e; its probability
    is Lugannani and Rice's saddlepoint approximation.
    """
    if not math.isfinite(highest) or not np.isfinite(returns).all():
        return math.inf
    value, count = np.unique(np.append(returns, highest), return_counts=True)
    span = float(highest - value[0])
    if span <= 0:
        return highest
    below = (highest - value) / span
    near, far = -40.0, log(4 * len(returns))
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        mean, tail = _tail_at(below, count, exp(middle))
        near, far = (middle, far) if tail < _TAIL else (near, middle)
    return min(highest, highest - span * mean)


def _tail_at(
    below: NDArray[np.float64], count: NDArray[np.int64], gap: float
) -> tuple[float, float]:
    """Return a mean that is tilted to the highest value, and the probability beyond it.

    Values are given as distances below the highest one. The tilted weights are proportional to
    1 / (distance + gap).
    """
    weight = count / (below + gap)
    total = float(weight.sum())
    mean = float((weight * below).sum()) / total
    scale = (below + gap) / (mean + gap)  # 1 − t · (value − mean), with t = 1 / (mean + gap)
    deviation = 2 * float((count * log(scale)).sum())
    root = math.sqrt(max(deviation, 0.0))
    curvature = math.sqrt(float((count * ((mean - below) / (mean + gap) / scale) ** 2).sum()))
    if root < 1e-6 or curvature < 1e-6:
        return mean, 0.5
    density = exp(-root * root / 2) / math.sqrt(2 * math.pi)
    return mean, erfc(root / math.sqrt(2)) / 2 + density * (1 / curvature - 1 / root)
