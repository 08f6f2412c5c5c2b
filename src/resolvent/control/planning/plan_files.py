"""A plan's policy ↔ one versioned JSON file, a row for each situation."""

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from resolvent.atomic_file import atomic_write
from resolvent.control.planning.situations import by_name
from resolvent.errors import ModelError, TraceError
from resolvent.json_files import read_json
from resolvent.machines.files.stored_senses import StoredSenses, senses_in, stored_senses
from resolvent.samples import LabelTiming
from resolvent.traces.symbols import as_symbol

if TYPE_CHECKING:
    from resolvent.control.planning.plans import Plan

FORMAT = "resolvent-plan"
VERSION = 1

State = Annotated[int, msgspec.Meta(ge=0)]


class Row(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What to do in one situation, and its worth, at least and at most; null is infinite.

    Where there is chance, also what acting so is expected to pay.
    """

    observation: Any
    transition_state: State
    reward_state: State
    action: Any
    pessimistic: float | None
    optimistic: float | None
    terminated_state: State | None = None  # there if a machine tells when episodes end
    expected: float | UnsetType | None = UNSET  # there if machines answer with chance


class PlanFile(msgspec.Struct, forbid_unknown_fields=True):
    """What a plan's file holds; `senses` as in a file of machines.

    `confidence` is there where machines answer with chance: the worth of all rows holds with it.
    """

    format: str
    version: int
    gamma: Annotated[float, msgspec.Meta(gt=0, le=1)]
    timing: LabelTiming
    policy: list[Row]
    senses: StoredSenses | UnsetType = UNSET
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] | UnsetType = UNSET


def json_number(number: float) -> float | None:
    """Return a number, or None where it is infinite, which JSON has no word for."""
    return float(number) if isfinite(number) else None


def content_of(plan: "Plan") -> PlanFile:
    """Return what a plan's file holds."""
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
    """Write what to do in every situation, whole or not at all."""
    content = content_of(plan)
    with atomic_write(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def load(path: str | Path) -> PlanFile:
    """Read what `save` wrote."""
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
