"""A plan → text, a table for notebooks, and a versioned JSON file with a row for each situation."""

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from resolvent._util import html as notebook
from resolvent._util.files import atomic_write, read_json
from resolvent._util.text import amount
from resolvent.errors import ModelError, TraceError
from resolvent.machines.io.schema import StoredSenses, senses_in, stored_senses
from resolvent.machines.situations import by_name
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.symbols import as_symbol, symbol_text
from resolvent.traces.thumbnails import thumbnails_of_symbols

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan


def text_of(plan: "Plan") -> str:
    """Return the figures of the plan, one a line."""
    return "\n".join(f"{name:<12} {text}" for name, text in _facts(plan))


def html_of(plan: "Plan") -> str:
    """Return the figures and the first rows of the policy as HTML."""
    model = plan.model
    situations = [model.named(number) for number in range(min(len(model), notebook.MOST_ROWS))]
    pictures = thumbnails_of_symbols(observation for observation, *_ in situations)
    rows = (
        [
            notebook.Pictured(symbol_text(situations[number][0]), pictures[number]),
            *situations[number][1:],
            symbol_text(model.actions[int(plan.policy[number])]),
            f"{plan.pessimistic[number]:.4g}",
            f"{plan.optimistic[number]:.4g}",
        ]
        for number in range(len(situations))
    )
    header = [*by_name(model.named(0)), "action", "at least", "at most"]
    if plan.expected is not None:
        header.append("expected")
        worth = plan.expected
        rows = ([*row, f"{worth[number]:.4g}"] for number, row in enumerate(rows))
    return notebook.panel(
        "a plan", notebook.figures(_facts(plan)), notebook.table(header, rows, len(model))
    )


def _facts(plan: "Plan") -> list[tuple[str, str]]:
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
        facts.append(("", f"this rests on rewards that were never seen: only {seen} was"))
    facts += [
        ("situations", f"{len(model):,}, and {amount(len(model.actions), 'action')}"),
        ("unknown", f"{model.unknown:,} of {model.known.size:,} steps"),
    ]
    if model.chances is not None:
        facts.append(("chance", model.chances.text()))
    sometimes = int((model.sometimes_ends & ~model.known).sum())
    if sometimes:
        facts.append(("", f"{sometimes:,} of these sometimes end the episode and sometimes do not"))
    if plan.advice is not None:
        facts.append(("try next", plan.advice))
    return facts


def _bound_text(plan: "Plan") -> str:
    if plan.vacuous is not None and plan.largest_gap == 0:
        return f"none: {plan.vacuous}"
    if plan.confidence is not None:
        return _bound_with_confidence(plan)
    bound = "optimal: no way to act is worth more"
    if not plan.is_optimal:
        bound = f"at most {plan.bound:.4g} below the best"
        if len(plan.model.starts) > 1:
            bound += f" on average, {plan.largest_gap:.4g} from any one start"
    if plan.model.unknown:
        bound += ", if pay stays within {:g} to {:g}".format(*plan.reward_range)
    return bound


def _bound_with_confidence(plan: "Plan") -> str:
    least, most = plan.model.at_starts(plan.pessimistic), plan.model.at_starts(plan.optimistic)
    sure = f"with {100 * (plan.confidence or 0):.6g}% confidence"
    if not np.isfinite(plan.bound):
        bounds = [f"at least {least:.4g}"] * bool(np.isfinite(least))
        bounds += [f"at most {most:.4g}"] * bool(np.isfinite(most))
        suffix = f"; {sure} it is worth {' and '.join(bounds)}" if bounds else ""
        return f"none, since nothing is discounted and anything may come{suffix}"
    return (
        f"within {plan.bound:.4g} of the best {sure}: worth at least {least:.4g}, "
        f"and nothing more than {most:.4g}, if pay stays within "
        "{:g} to {:g}".format(*plan.reward_range)
    )


FORMAT = "resolvent-plan"
VERSION = 1

State = Annotated[int, msgspec.Meta(ge=0)]


class Row(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The action in one situation and bounds on its value; null is infinite.

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


class PlanFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a plan's file; `senses` is as in a file of machines.

    `confidence` is that of the bounds of all rows, for machines with random outputs.
    """

    format: str
    version: int
    gamma: Annotated[float, msgspec.Meta(gt=0, le=1)]
    timing: LabelTiming
    policy: list[Row]
    senses: StoredSenses | UnsetType = UNSET
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] | UnsetType = UNSET


def json_number(number: float) -> float | None:
    """Return a number, or None where it is infinite, which JSON cannot represent."""
    return float(number) if isfinite(number) else None


def content_of(plan: "Plan") -> PlanFile:
    """Return the content of a plan's file."""
    model = plan.model
    rows = [
        Row(
            **by_name(model.named(number)),
            action=model.actions[int(plan.policy[number])],
            pessimistic=json_number(plan.pessimistic[number]),
            optimistic=json_number(plan.optimistic[number]),
            expected=UNSET if plan.expected is None else json_number(plan.expected[number]),
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
        stored_senses(machines.senses),
        UNSET if plan.confidence is None else plan.confidence,
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
        senses_in(content.senses)
    except (ModelError, TraceError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a plan that Resolvent wrote: {error}") from error
    if (content.format, content.version) != (FORMAT, VERSION):
        raise ModelError(
            f"{path}: a plan is {FORMAT} {VERSION}, this is {content.format} {content.version}"
        )
    return content
