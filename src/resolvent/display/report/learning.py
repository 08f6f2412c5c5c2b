"""A learning curve and a policy → what a report shows of them."""

import csv
import io
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from resolvent._util.files import decode_json, read_json
from resolvent.display.report.gallery import Gallery
from resolvent.display.report.wording import value_text
from resolvent.errors import ModelError
from resolvent.planning import plan_io as plan_files
from resolvent.planning.plan import Plan
from resolvent.planning.plan_io import PlanFile, Row
from resolvent.rl import q_table as policy_files
from resolvent.rl.q_table import QTable, name_of_number, observation_text, observed

_MOST_POINTS, _MOST_SITUATIONS = 400, 300


def read_returns(path: str | Path) -> list[float]:
    """Read the returns of a learning curve that `resolvent train --curve` wrote, .csv or .json."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ModelError(f"{path} cannot be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise _no_curve(path) from error
    try:
        if text.lstrip().startswith("{"):
            returns = decode_json(text.encode(), _Curve).returns
        else:
            rows = csv.DictReader(io.StringIO(text, newline=""))
            returns = [float(row["return"]) for row in rows]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise _no_curve(path) from error
    if not returns or not np.isfinite(returns).all():
        raise ModelError(f"{path}: a learning curve needs returns, all of them finite")
    return returns


class _Curve(msgspec.Struct):
    returns: list[float] = msgspec.field(name="return")


def _no_curve(path: str | Path) -> ModelError:
    return ModelError(
        f"{path}: not a learning curve: a .csv or .json file with a column 'return' is needed"
    )


def curve(returns: list[float]) -> dict[str, Any]:
    """Return the means of stretches of episodes, as few as can be drawn."""
    stretches = np.array_split(np.array(returns), min(len(returns), _MOST_POINTS))
    return {
        "episodes": len(returns),
        "each": -(-len(returns) // _MOST_POINTS),
        "means": [round(float(one.mean()), 6) for one in stretches],
    }


def read_policy(path: str | Path) -> QTable | PlanFile:
    """Read what `resolvent train -o` or `resolvent plan -o` wrote, whichever it is."""
    wanted = "a policy: give the file of `resolvent train -o` or `resolvent plan -o`"
    kind = read_json(path, _Kind, wanted).format
    if kind == plan_files.FORMAT:
        return plan_files.load(path)
    if kind == policy_files.FORMAT:
        return QTable.load(path)
    raise ModelError(f"{path}: not {wanted}")


class _Kind(msgspec.Struct):
    format: str = ""


def policy(given: QTable | Plan | PlanFile, gallery: Gallery) -> dict[str, Any]:
    """Return the best action and its worth for the situations known, the most valuable first."""
    if isinstance(given, QTable):
        return _learned_policy(given, gallery)
    plan = plan_files.content_of(given) if isinstance(given, Plan) else given
    return _planned_policy(plan, gallery)


def _planned_policy(plan: PlanFile, gallery: Gallery) -> dict[str, Any]:
    order = sorted(plan.policy, key=lambda row: -_expected(row))
    return {
        "situations": len(order),
        "named": True,
        "rows": [
            [
                gallery.told(
                    row.observation,
                    f"observation {value_text(row.observation)}, reward state "
                    f"{row.reward_state}, transition state {row.transition_state}",
                ),
                value_text(row.action),
                _worth(row.pessimistic, row.optimistic) + _expected_text(row),
            ]
            for row in order[:_MOST_SITUATIONS]
        ],
    }


def _expected(row: Row) -> float:
    """Return what a situation is expected to pay, or what it is worth at least, if that is sure."""
    worth = row.pessimistic if row.expected is UNSET else row.expected
    return -inf if worth is None else worth


def _expected_text(row: Row) -> str:
    """Write what a situation is expected to pay where that is not sure."""
    if row.expected is UNSET or row.expected is None:
        return ""
    return f", {row.expected:.4g} expected"


def _worth(least: float | None, most: float | None) -> str:
    """Write what a situation is worth at least and at most; None is infinite.

    >>> _worth(0.5, 0.5), _worth(0.5, 2.0), _worth(0.5, None), _worth(None, None)
    ('0.5', '0.5 to 2', '0.5 or more', 'not known')
    """
    if least is None:
        return "not known" if most is None else f"{most:.4g} or less"
    if most is None:
        return f"{least:.4g} or more"
    low, high = f"{least:.4g}", f"{most:.4g}"
    return low if low == high else f"{low} to {high}"


def _learned_policy(learned: QTable, gallery: Gallery) -> dict[str, Any]:
    values = learned.q.max(axis=1)
    order = np.argsort(-values, kind="stable")[:_MOST_SITUATIONS].tolist()
    situations = [learned.situations[number] for number in order]
    return {
        "situations": len(learned.situations),
        "named": learned.action_names is not None,
        "rows": [
            [
                gallery.told(
                    name_of_number(observed(situation), learned.observation_names),
                    observation_text(situation, learned.observation_names),
                ),
                value_text(name_of_number(learned.action(situation), learned.action_names)),
                f"{values[number]:.4g}",
            ]
            for number, situation in zip(order, situations, strict=True)
        ],
    }
