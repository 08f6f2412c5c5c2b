"""A model → the best way to act in it, what that is worth at least, and what any is at most."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import OptionError
from resolvent.machines.situations import situation_text
from resolvent.planning.deterministic import PayingCycle, Solution, solve
from resolvent.planning.model import Model
from resolvent.planning.stochastic import EndlessReward, solve_stochastic
from resolvent.planning.stochastic_model import Outcomes
from resolvent.planning.value_bounds import in_all, too_large_to_add_up
from resolvent.traces.symbols import symbol_text
from resolvent.traces.vocabulary import Codes


class BoundedPolicy(NamedTuple):
    """What to do in each situation, and its worth: the fields of a plan that go by these names."""

    policy: Codes
    pessimistic: NDArray[np.float64]
    optimistic_policy: Codes
    optimistic: NDArray[np.float64]
    expected: NDArray[np.float64] | None = None
    confidence: float | None = None


def optimize(
    model: Model, gamma: float, reward_range: tuple[float, float], confidence: float
) -> BoundedPolicy:
    """Find the best way to act, where steps that are not known pay within a range.

    `confidence` is for models with chances: both bounds hold with it.

    Raises:
        OptionError: when more was paid than the range allows, when rewards are too large to be
            added up, and when nothing is discounted though one can be paid for ever.
    """
    least, most = reward_range
    if not least <= model.reward_range[0] <= model.reward_range[1] <= most:
        raise OptionError(
            f"reward_range={reward_range}: rewards from {model.reward_range[0]:g} to "
            f"{model.reward_range[1]:g} were seen"
        )
    complaint = too_large_to_add_up(max(abs(least), abs(most)), gamma, len(model))
    if complaint is not None:
        raise OptionError(complaint)
    if model.chances is not None:
        return _under_chance(model, model.chances, gamma, reward_range, confidence)
    try:
        safe, hopeful = (
            solve(model.following, np.where(model.known, model.reward, worth), gamma)
            for worth in (min(least, in_all(least, gamma)), max(most, in_all(most, gamma)))
        )
    except PayingCycle as cycle:
        raise OptionError(_cycle_text(model, cycle)) from None
    return BoundedPolicy(safe.policy, safe.value, hopeful.policy, _unless_equal(hopeful, safe))


def _under_chance(
    model: Model,
    chances: Outcomes,
    gamma: float,
    reward_range: tuple[float, float],
    confidence: float,
) -> BoundedPolicy:
    try:
        found = solve_stochastic(model, chances, gamma, reward_range, confidence)
    except EndlessReward as endless:
        raise OptionError(_endless_text(model, endless)) from None
    lost = model.starts[np.isneginf(found.expected[model.starts])]
    if len(lost):
        raise OptionError(
            f"gamma={gamma:g}: from {situation_text(model.named(int(lost[0])))} no way to act that "
            f"is known surely ends the episode: use gamma below 1, or plan from more traces"
        )
    return BoundedPolicy(
        found.policy.astype(np.int32),
        found.pessimistic,
        found.optimistic_policy.astype(np.int32),
        found.optimistic,
        found.expected,
        confidence,
    )


def _endless_text(model: Model, endless: EndlessReward) -> str:
    here, action = endless.situations[0], model.actions[endless.actions[0]]
    return (
        f"gamma=1: one can be paid for ever, by {symbol_text(action)} in "
        f"{situation_text(model.named(here))} and so on: use gamma below 1"
    )


def _unless_equal(hopeful: Solution, safe: Solution) -> NDArray[np.float64]:
    """Return the optimistic values, or the pessimistic ones where they differ by rounding alone."""
    more = hopeful.value > safe.value + safe.rounding + hopeful.rounding
    return np.where(more, hopeful.value, safe.value)


def _cycle_text(model: Model, cycle: PayingCycle) -> str:
    paid = model.reward[cycle.situations, cycle.actions].sum()
    actions = ", ".join(symbol_text(model.actions[action]) for action in cycle.actions)
    return (
        f"gamma=1: in {situation_text(model.named(cycle.situations[0]))} the actions {actions} "
        f"pay {paid:.6g} and lead back there, again and again: use gamma below 1"
    )
