"""Bound the value of each augmented state, and mark the unknown steps that matter for it.

Input: the `EmpiricalModel`. Output: the value of the plan, an upper bound on any plan's value, and
a level of importance for each unknown step.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.exploration.empirical_model import EmpiricalModel
from resolvent.exploration.optimistic_model import OptimisticModel, optimistic_model
from resolvent.planning.deterministic import OptimalPolicy, solve
from resolvent.planning.value_bounds import discounted_sum
from resolvent.traces.vocabulary import Codes

RELIED_ON: Final = 6.0
"""Use of an unknown step that the best plan of the optimistic model takes."""

USES: Final = (
    (0.0, ""),
    (1.0, "a step nobody has taken"),
    (3.0, "a step that may pay"),
    (RELIED_ON, "a step that the plan would rely on"),
)
"""Use and purpose of an unknown step, by its level of importance."""

GAIN_QUANTILE: Final = 0.95
"""Quantile of the gains of known steps that an unseen outcome is assumed to have."""

MANY_STARTS: Final = 10
"""Number of starts above which others are likely."""


@dataclass
class ValueBounds:
    """Lower and upper bounds on the value of each augmented state, and the policy of the lower one.

    `importance` has a level for each unknown step: 1 if a better plan may use it in some world, 2
    if also in the optimistic model, 3 if that model's best plan does. `relied_on` are the latter.
    """

    gamma: float
    value: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    upper: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    policy: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    importance: NDArray[np.int8] = field(default_factory=lambda: np.empty((0, 0), np.int8))
    relied_on: set[tuple[int, int]] = field(default_factory=set)
    novelty: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def update(
        self, model: EmpiricalModel, reward_range: tuple[float, float] | None, target: float
    ) -> None:
        """Compute the bounds from the model; a gap up to the target counts as none."""
        next_row, reward, is_known = model.arrays()
        least, most = reward_range or (model.least, model.most)
        worst, best = (
            min(least, discounted_sum(least, self.gamma)),
            max(most, discounted_sum(most, self.gamma)),
        )
        # Of actions of equal value the first by name, as in a plan made from the traces.
        order = model.buffer.actions_by_name
        safe = solve(next_row[:, order], np.where(is_known, reward, worst)[:, order], self.gamma)
        highest = solve(next_row, np.where(is_known, reward, best), self.gamma)
        is_above = highest.value > safe.value + safe.rounding + highest.rounding
        self.value, self.policy = safe.value, order[safe.policy]
        self.upper = np.where(is_above, highest.value, safe.value)
        self.importance, self.relied_on = np.zeros(is_known.shape, np.int8), set()
        self.novelty = np.ones(is_known.shape)
        if model.single_reward:  # no reason to prefer one unknown step to another
            self.importance[~is_known] = 2
            return
        if largest_gap(model, self) <= target:
            return
        after = np.append(self.upper, 0.0)[next_row]
        bound = np.where(is_known, reward + self.gamma * after, best)
        self._mark(1, model, next_row, is_known, bound, safe.rounding + highest.rounding)
        # Without discount, assumed rewards may recur for ever and then say nothing.
        world = optimistic_model(model, next_row, reward, is_known) if self.gamma < 1 else None
        likely = max(most, float(safe.value.max(initial=most)))
        if world is None:
            better = solve(next_row, np.where(is_known, reward, likely), self.gamma)
            after = np.append(better.value, 0.0)[next_row]
            bound = np.where(is_known, reward + self.gamma * after, likely)
            self._mark(2, model, next_row, is_known, bound, safe.rounding + better.rounding)
            return
        self.novelty = world.novelty[world.number_of_row]
        closed, leads = world.solve(worst, None, self.gamma)
        unseen = self._value_of_unseen(closed.value, next_row, reward, is_known, likely)
        better, better_leads = world.solve(worst, unseen, self.gamma, (closed, leads))
        bound = world.action_values(better.value, better_leads, unseen, self.gamma)
        slack = safe.rounding + better.rounding[world.number_of_row]
        self._mark(2, model, next_row, is_known, bound, slack)
        self._mark_relied_on(model, world, closed, leads, safe)

    def _value_of_unseen(
        self,
        value: NDArray[np.float64],
        next_row: Codes,
        reward: NDArray[np.float64],
        is_known: NDArray[np.bool_],
        likely: float,
    ) -> NDArray[np.float64]:
        """Return the assumed value of an unseen outcome of a step in each augmented state.

        It exceeds the value of the best known action there by the gain of most known steps.
        """
        after = np.append(self.value, 0.0)[next_row]
        worth = np.sort(np.where(is_known, reward + self.gamma * after, -np.inf), axis=1)
        has_choice = is_known.sum(axis=1) > 1
        if worth.shape[1] < 2 or not has_choice.any():
            return np.full(len(value), likely)
        gain = np.quantile(worth[has_choice, -1] - worth[has_choice, -2], GAIN_QUANTILE)
        assumed: NDArray[np.float64] = np.maximum(value, np.median(self.value)) + gain
        return np.minimum(likely, assumed)

    def _mark_relied_on(
        self,
        model: EmpiricalModel,
        world: OptimisticModel,
        best: OptimalPolicy,
        next_number: Codes,
        safe: OptimalPolicy,
    ) -> None:
        """Mark the unknown steps that the best policy of the optimistic model takes."""
        value, rounding = best.value[world.number_of_row], best.rounding[world.number_of_row]
        is_above = value > safe.value + safe.rounding + rounding
        starts = np.array([row for row in _likely_starts(model) if is_above[row]], np.int64)
        target = next_number[np.arange(len(world.row_of_number)), best.policy]
        reached = np.zeros(len(world.row_of_number), bool)
        frontier = world.number_of_row[starts]
        while len(frontier):
            reached[frontier] = True
            further = np.unique(target[frontier][target[frontier] >= 0]).astype(np.int64)
            frontier = further[~reached[further]]
        rows = world.row_of_number[reached & (world.row_of_number >= 0)]
        chosen = (best.policy // world.width)[world.number_of_row[rows]]
        unknown = ~world.known[world.number_of_row[rows], chosen]
        self.importance[rows[unknown], chosen[unknown]] = 3
        self.relied_on = set(zip(rows[unknown].tolist(), chosen[unknown].tolist(), strict=True))

    def _mark(
        self,
        level: int,
        model: EmpiricalModel,
        next_row: Codes,
        is_known: NDArray[np.bool_],
        bound: NDArray[np.float64],
        slack: NDArray[np.float64],
    ) -> None:
        """Mark unknown steps to which a path of possibly better actions leads from a start."""
        may_be_better = bound > (self.value + slack)[:, None]
        reached = np.zeros(len(is_known), bool)
        frontier = np.array(list(model.starts), np.int64)
        while len(frontier):
            reached[frontier] = True
            targets = next_row[frontier][may_be_better[frontier] & is_known[frontier]]
            further = np.unique(targets[targets >= 0]).astype(np.int64)
            frontier = further[~reached[further]]
        self.importance[reached[:, None] & may_be_better & ~is_known] = level

    def level(self, row: int, action: int) -> int:
        """Return the importance of an unknown step; 2 in an augmented state met since."""
        if row >= len(self.importance):
            return 2
        return int(self.importance[row, action])


def _likely_starts(model: EmpiricalModel) -> list[int]:
    """Return the starts; if there are many, also where episodes are likely to start."""
    starts = list(model.starts)
    if len(starts) <= MANY_STARTS:
        return starts
    states = {model.augmented_states[row][1:] for row in starts}
    return [row for row, state in enumerate(model.augmented_states) if state[1:] in states]


def largest_gap(model: EmpiricalModel, values: ValueBounds) -> float:
    """Return the largest difference between upper and lower bound among the starts."""
    rows = [row for row in model.starts if row < len(values.value)]
    if not rows:
        return float("inf")
    return float((values.upper[rows] - values.value[rows]).max())


def mean_value(model: EmpiricalModel | None, values: ValueBounds) -> tuple[float, float]:
    """Return the value of the plan and the gap, both averaged over the starts."""
    if model is None:
        return 0.0, float("inf")
    rows = np.array(list(model.starts), np.int64)
    weights = np.array(list(model.starts.values()), np.float64)
    inside = rows < len(values.value)
    if not inside.any():
        return 0.0, float("inf")
    rows, weights = rows[inside], weights[inside]
    gaps = values.upper[rows] - values.value[rows]
    return float(np.average(values.value[rows], weights=weights)), float(
        np.average(gaps, weights=weights)
    )
