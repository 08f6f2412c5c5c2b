"""Read learning curves and policies, and collect their data for a report."""

import csv
import io
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from resolvent._util.files import decode_json, read_content, read_json
from resolvent.errors import ModelError
from resolvent.planning import plan_io
from resolvent.planning.plan import Plan
from resolvent.planning.plan_io import PlanFile, Row
from resolvent.rl import q_table
from resolvent.rl.q_table import QTable, name_of_number, observation_text
from resolvent.traces.symbols import is_mapping
from resolvent.viz.thumbnails import Gallery, value_text

_MOST_POINTS, _MOST_ROWS = 400, 300


class _CurveFile(msgspec.Struct):
    returns: list[float] = msgspec.field(name="return")


class _Header(msgspec.Struct):
    format: str = ""


def read_returns(path: str | Path) -> list[float]:
    """Read the returns of a learning curve that `resolvent train --curve` wrote, .csv or .json."""
    content = read_content(path)
    try:
        if content.lstrip().startswith(b"{"):
            returns = decode_json(content, _CurveFile).returns
        else:
            rows = csv.DictReader(io.StringIO(content.decode(), newline=""))
            returns = [float(row["return"]) for row in rows]
    except (KeyError, TypeError, ValueError, csv.Error) as error:  # also bytes that are no UTF-8
        raise ModelError(
            f"{path}: not a learning curve: a .csv or .json file with a column 'return' is needed"
        ) from error
    if not returns or not np.isfinite(returns).all():
        raise ModelError(f"{path}: a learning curve needs returns, all of them finite")
    return returns


def curve(returns: list[float]) -> dict[str, Any]:
    """Return the mean returns of at most `_MOST_POINTS` groups of successive episodes."""
    parts = np.array_split(np.array(returns), min(len(returns), _MOST_POINTS))
    means = [round(float(part.mean()), 6) for part in parts]
    return {"episodes": len(returns), "each": -(-len(returns) // _MOST_POINTS), "means": means}


def read_policy(path: str | Path) -> QTable | PlanFile:
    """Read a file that `resolvent train -o` or `resolvent plan -o` wrote."""
    wanted = "a policy: give the file of `resolvent train -o` or `resolvent plan -o`"
    match read_json(path, _Header, wanted).format:
        case plan_io.FORMAT:
            return plan_io.load(path)
        case q_table.FORMAT:
            return QTable.load(path)
    raise ModelError(f"{path}: not {wanted}")


def policy(source: QTable | Plan | PlanFile, gallery: Gallery) -> dict[str, Any]:
    """Return action and value of the augmented states, the most valuable first."""
    if isinstance(source, QTable):
        return _learned_policy(source, gallery)
    plan = plan_io.content_of(source) if isinstance(source, Plan) else source
    rows = []
    for row in sorted(plan.policy, key=lambda row: -_expected(row))[:_MOST_ROWS]:
        text = (
            f"observation {value_text(row.observation)}, reward state {row.reward_state}, "
            f"transition state {row.transition_state}"
        )
        value = bounds_text(row.pessimistic, row.optimistic)
        if row.expected is not UNSET and row.expected is not None:
            value += f", {row.expected:.4g} expected"
        rows.append([gallery.caption(row.observation, text), value_text(row.action), value])
    return {"states": len(plan.policy), "named": True, "rows": rows}


def _expected(row: Row) -> float:
    """Return the expected value, or the lower bound of a value that is certain."""
    value = row.pessimistic if row.expected is UNSET else row.expected
    return -inf if value is None else value


def bounds_text(lower: float | None, upper: float | None) -> str:
    """Write the bounds of a value; None is infinite."""
    if lower is None:
        return "unknown" if upper is None else f"{upper:.4g} or less"
    if upper is None:
        return f"{lower:.4g} or more"
    low, high = f"{lower:.4g}", f"{upper:.4g}"
    return low if low == high else f"{low} to {high}"


def _learned_policy(learned: QTable, gallery: Gallery) -> dict[str, Any]:
    values = learned.q.max(axis=1)
    rows = []
    for number in np.argsort(-values, kind="stable")[:_MOST_ROWS].tolist():
        state = learned.observations[number]
        inner = dict(state).get("observation", state) if is_mapping(state) else state
        observation = name_of_number(inner, learned.observation_names)
        text = observation_text(state, learned.observation_names)
        action = value_text(name_of_number(learned.action(state), learned.action_names))
        rows.append([gallery.caption(observation, text), action, f"{values[number]:.4g}"])
    named = learned.action_names is not None
    return {"states": len(learned.observations), "named": named, "rows": rows}
