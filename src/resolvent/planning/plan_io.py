"""A plan → text, and a versioned JSON file with a row for each augmented state."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from resolvent._util.files import atomic_write, read_json
from resolvent._util.records import builtin
from resolvent._util.text import amount
from resolvent.errors import ModelError, TraceError
from resolvent.machines.augmented_state import by_name
from resolvent.machines.io.schema import StoredPreprocessor, preprocessor_in, stored_preprocessor
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.symbols import as_symbol

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan


def facts_of(plan: "Plan") -> list[tuple[str, str]]:
    """Return the value of the plan and the number of unknown steps, as names and texts."""
    model = plan.model
    discount = "undiscounted" if plan.gamma == 1 else f"discounted by {plan.gamma:g}"
    expected = "" if plan.expected is None else " expected"
    facts = [
        ("value", f"{plan.value:.4g}{expected} from the starts, {discount}"),
        ("bound", _bound_text(plan)),
    ]
    if plan.assumes_rewards:
        seen = " to ".join(f"{reward:g}" for reward in dict.fromkeys(model.reward_range))
        facts.append(("", f"this assumes rewards that were never observed; observed were {seen}"))
    size = f"{amount(len(model), 'augmented state')}, {amount(len(model.actions), 'action')}"
    unknown = f"{model.unknown_steps:,} of {model.known.size:,} steps"
    facts += [("model", size), ("unknown", unknown)]
    if model.outcomes is not None:
        facts.append(("outcomes", model.outcomes.text()))
    sometimes = int((model.sometimes_ends & ~model.known).sum())
    if sometimes:
        facts.append(("", f"{sometimes:,} of these sometimes end the episode and sometimes do not"))
    if plan.advice is not None:
        facts.append(("try next", plan.advice))
    return facts


def _bound_text(plan: "Plan") -> str:
    if plan.all_rewards_equal and plan.largest_gap == 0:
        reward = f"{plan.model.reward_range[0]:g}"
        ends = "" if reward == "0" else " and no step ended an episode"
        return f"none: all rewards are {reward}{ends}, so all policies have the same value"
    if plan.no_bound is not None:
        return f"not known: {plan.no_bound}"
    if plan.confidence is not None:
        return _bound_with_confidence(plan)
    bound = "optimal: no policy has a higher value"
    if not plan.is_optimal:
        bound = f"at most {plan.bound:.4g} below the best"
        if len(plan.model.starts) > 1:
            bound += f" on average, {plan.largest_gap:.4g} from any one start"
    if plan.model.unknown_steps:
        bound += ", if rewards are within {:g} to {:g}".format(*plan.reward_range)
    return bound


def _bound_with_confidence(plan: "Plan") -> str:
    least, most = map(plan.model.mean_at_starts, (plan.pessimistic, plan.optimistic))
    sure = f"with {100 * (plan.confidence or 0):.6g}% confidence"
    if not np.isfinite(plan.bound):
        bounds = [f"at least {least:.4g}"] * bool(np.isfinite(least))
        bounds += [f"at most {most:.4g}"] * bool(np.isfinite(most))
        suffix = f"; {sure} its value is {' and '.join(bounds)}" if bounds else ""
        return f"none: without discount no outcome can be excluded{suffix}"
    return (
        f"within {plan.bound:.4g} of the best {sure}: its value is at least {least:.4g}, "
        f"that of any policy at most {most:.4g}, if rewards are within "
        "{:g} to {:g}".format(*plan.reward_range)
    )


FORMAT = "resolvent-plan"
VERSION = 1

State = Annotated[int, msgspec.Meta(ge=0)]


class Row(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The action in one augmented state and bounds on its value; null is infinite.

    `expected` is the expected return, for machines with random outputs.
    """

    observation: Any
    transition_state: State
    reward_state: State
    action: Any
    pessimistic: float | None
    optimistic: float | None
    terminated_state: State | None = None  # if a machine predicts termination
    expected: float | UnsetType | None = UNSET


class PlanFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The content of a plan's file; `preprocessor` is as in a file of machines.

    `confidence` is that of the bounds of all rows, for machines with random outputs.
    """

    format: str
    version: int
    gamma: Annotated[float, msgspec.Meta(gt=0, le=1)]
    timing: LabelTiming
    policy: list[Row]
    preprocessor: StoredPreprocessor | None = None
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None


def content_of(plan: "Plan") -> PlanFile:
    """Return the content of a plan's file."""
    model = plan.model
    rows = [
        Row(
            **by_name(model.augmented_state(number)),
            action=model.actions[int(plan.policy[number])],
            pessimistic=builtin(plan.pessimistic[number]),
            optimistic=builtin(plan.optimistic[number]),
            expected=UNSET if plan.expected is None else builtin(plan.expected[number]),
        )
        for number in range(len(model))
    ]
    machines = plan.machines
    return PlanFile(
        FORMAT,
        VERSION,
        plan.gamma,
        machines.timing,
        rows,
        stored_preprocessor(machines.preprocessor),
        plan.confidence,
    )


def save(plan: "Plan", path: str | Path) -> None:
    """Write a plan to a file, atomically."""
    content = content_of(plan)
    with atomic_write(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def load(path: str | Path) -> PlanFile:
    """Read a file written by `save`."""
    content = read_json(path, PlanFile, "a plan that Resolvent wrote")
    try:
        for row in content.policy:
            row.observation, row.action = as_symbol(row.observation), as_symbol(row.action)
        preprocessor_in(content.preprocessor)
    except (ModelError, TraceError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a plan that Resolvent wrote: {error}") from error
    if (content.format, content.version) != (FORMAT, VERSION):
        raise ModelError(
            f"{path}: a plan is {FORMAT} {VERSION}, this is {content.format} {content.version}"
        )
    return content
