"""Value bounds: what the known steps guarantee, and what unknown steps could improve.

Input: the `EmpiricalModel`. Output: the value of the plan, an upper bound on any plan's value, and
a level of importance for each unknown step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent.exploration.empirical_model import EmpiricalModel, KnownSteps
from resolvent.exploration.optimistic_model import OptimisticModel, optimistic_model
from resolvent.exploration.tables import Flags
from resolvent.planning.deterministic import OptimalPolicy, discounted_sum
from resolvent.traces.vocabulary import Codes

if TYPE_CHECKING:
    from resolvent.exploration.state import LearnerConfig

RELIED_ON: Final = 6.0
"""Use of an unknown step that the best plan of the optimistic model takes."""

USES: Final = (
    (0.0, ""),
    (1.0, "untried step"),
    (3.0, "untried step that may improve the plan"),
    (RELIED_ON, "untried step of the optimistic plan"),
)
"""Use and purpose of an unknown step, by its level of importance."""

GAIN_QUANTILE: Final = 0.95
"""Quantile of the gains of known steps that an unseen outcome is assumed to have."""

MANY_STARTS: Final = 10
"""Number of starts above which others are likely."""


@dataclass(eq=False)
class ValueBounds:
    """Lower and upper bounds on the value of each augmented state, and the policy of the lower one.

    `importance` has a level for each unknown step: 1 if a better plan may use it in some world, 2
    if also in the optimistic model, 3 if that model's best plan does. `relied_on` are the latter.
    `novelty` is the share of its use that a step keeps although it changed nothing elsewhere.
    """

    value: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    upper: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    policy: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    importance: NDArray[np.int8] = field(default_factory=lambda: np.empty((0, 0), np.int8))
    novelty: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    relied_on: list[tuple[int, int]] = field(default_factory=list)

    @cached_property
    def _levels(self) -> list[list[int]]:
        levels: list[list[int]] = self.importance.tolist()  # several times as fast to look up
        return levels

    def levels(self, row: int) -> Sequence[int]:
        """Return the importance of unknown steps by action; 2 in an augmented state met since."""
        return self._levels[row] if row < len(self._levels) else [2] * self.importance.shape[1]

    def largest_gap(self, model: EmpiricalModel) -> float:
        """Return the largest difference between upper and lower bound among the starts."""
        rows = [row for row in model.starts if row < len(self.value)]
        return float((self.upper[rows] - self.value[rows]).max()) if rows else float("inf")

    def mean_value(self, model: EmpiricalModel | None) -> tuple[float, float]:
        """Return the value of the plan and the gap, both averaged over the starts."""
        starts = {} if model is None else model.starts
        rows = [row for row in starts if row < len(self.value)]
        if not rows:
            return 0.0, float("inf")
        weights = np.array([starts[row] for row in rows], np.float64)
        value, gap = self.value[rows], self.upper[rows] - self.value[rows]
        return float(np.average(value, weights=weights)), float(np.average(gap, weights=weights))


def value_bounds(model: EmpiricalModel, config: "LearnerConfig") -> ValueBounds:
    """Compute the bounds from the model; a gap up to the target counts as none."""
    gamma, known = config.gamma, model.known_steps()
    least, most = config.reward_range or (model.least, model.most)
    worst = min(least, discounted_sum(least, gamma))
    best = max(most, discounted_sum(most, gamma))
    # Of actions of equal value the first by name, as in a plan made from the traces.
    order = model.buffer.actions_by_name
    safe, highest = known.solve(worst, gamma, order), known.solve(best, gamma)
    slack = safe.rounding + highest.rounding
    bounds = ValueBounds(
        safe.value,
        np.where(highest.value > safe.value + slack, highest.value, safe.value),
        order[safe.policy],
        np.zeros(known.is_known.shape, np.int8),
        np.ones(known.is_known.shape),
    )
    if model.single_reward:  # no reason to prefer one unknown step to another
        bounds.importance[~known.is_known] = 2
    elif bounds.largest_gap(model) > config.target:
        bound = known.action_values(bounds.upper, best, gamma)
        bounds.importance[_useful_steps(model, known, bound > (safe.value + slack)[:, None])] = 1
        _mark_likely(bounds, model, known, safe, gamma, worst, most)
    return bounds


def _mark_likely(
    bounds: ValueBounds,
    model: EmpiricalModel,
    known: KnownSteps,
    safe: OptimalPolicy,
    gamma: float,
    worst: float,
    most: float,
) -> None:
    """Mark the unknown steps that are of use in the optimistic model, and in its best plan."""
    likely = max(most, float(safe.value.max(initial=most)))
    # Without discount, assumed rewards may recur for ever and then say nothing.
    world = optimistic_model(model, known) if gamma < 1 else None
    if world is None:
        better = known.solve(likely, gamma)
        bound, rounding = known.action_values(better.value, likely, gamma), better.rounding
    else:
        bounds.novelty = world.novelty[world.number_of_row]
        closed = world.solve(worst, None, gamma)
        unseen = _value_of_unseen(closed[0].value, known, safe.value, likely, gamma)
        better, next_number = world.solve(worst, unseen, gamma, closed)
        bound = world.action_values(better.value, next_number, unseen, gamma)
        rounding = better.rounding[world.number_of_row]
    is_better = bound > (safe.value + safe.rounding + rounding)[:, None]
    bounds.importance[_useful_steps(model, known, is_better)] = 2
    if world is not None:
        relied_on = _relied_on_steps(model, world, *closed, safe)
        bounds.importance[relied_on] = 3
        bounds.relied_on = list(zip(*(part.tolist() for part in relied_on), strict=True))


def _value_of_unseen(
    value: NDArray[np.float64],
    known: KnownSteps,
    safe_value: NDArray[np.float64],
    likely: float,
    gamma: float,
) -> NDArray[np.float64]:
    """Return the assumed value of an unseen outcome of a step in each augmented state.

    It exceeds the value of the best known action there by the gain of most known steps.
    """
    known_values = np.sort(known.action_values(safe_value, -np.inf, gamma), axis=1)
    has_choice = known.is_known.sum(axis=1) > 1
    if not has_choice.any():
        return np.full(len(value), likely)
    gains = known_values[has_choice, -1] - known_values[has_choice, -2]
    assumed: NDArray[np.float64] = np.maximum(value, np.median(safe_value)) + np.quantile(
        gains, GAIN_QUANTILE
    )
    return np.minimum(likely, assumed)


def _useful_steps(model: EmpiricalModel, known: KnownSteps, is_better: Flags) -> Flags:
    """Return the unknown steps to which a path of possibly better actions leads from a start."""
    targets = np.where(is_better & known.is_known, known.next_row, -1)
    return _reachable(list(model.starts), targets)[:, None] & is_better & ~known.is_known


def _reachable(starts: Any, targets: Codes) -> Flags:
    """Return the rows that are reached from some of them, by their next rows or -1."""
    reached, frontier = np.zeros(len(targets), bool), np.array(starts, np.int64)
    while len(frontier):
        reached[frontier] = True
        further = np.unique(targets[frontier]).astype(np.int64)
        further = further[further >= 0]
        frontier = further[~reached[further]]
    return reached


def _relied_on_steps(
    model: EmpiricalModel,
    world: OptimisticModel,
    best: OptimalPolicy,
    next_number: Codes,
    safe: OptimalPolicy,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and actions of the unknown steps that the best optimistic policy takes."""
    value, rounding = best.value[world.number_of_row], best.rounding[world.number_of_row]
    is_above = value > safe.value + safe.rounding + rounding
    starts = [row for row in _likely_starts(model) if is_above[row]]
    targets = next_number[np.arange(len(next_number)), best.policy]
    reached = _reachable(world.number_of_row[starts], targets)
    rows = world.row_of_number[reached & (world.row_of_number >= 0)]
    numbers = world.number_of_row[rows]
    chosen = best.policy[numbers] // world.width
    is_unknown = ~world.known[numbers, chosen]
    return rows[is_unknown], chosen[is_unknown].astype(np.int64)


def _likely_starts(model: EmpiricalModel) -> list[int]:
    """Return the starts; if there are many, also where episodes are likely to start."""
    starts = list(model.starts)
    if len(starts) <= MANY_STARTS:
        return starts
    states = {model.augmented_states[row][1:] for row in starts}
    return [row for row, state in enumerate(model.augmented_states) if state[1:] in states]
