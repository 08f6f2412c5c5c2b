"""A learning curve and a policy → what a report shows of them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from resolvent.control import Learned
from resolvent.display.report.wording import short, value_text
from resolvent.errors import ModelError
from resolvent.traces import Symbol

_MOST_POINTS, _MOST_SITUATIONS = 400, 300


def read_returns(path: str | Path) -> list[float]:
    """Read the returns of a learning curve that `resolvent train --curve` wrote, .csv or .json."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        if text.lstrip().startswith("{"):
            returns = [float(one) for one in json.loads(text)["return"]]
        else:
            rows = csv.DictReader(io.StringIO(text, newline=""))
            returns = [float(row["return"]) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path}: not a learning curve: a .csv or .json file with a column 'return' is needed"
        ) from error
    if not returns or not np.isfinite(returns).all():
        raise ModelError(f"{path}: a learning curve needs returns, all of them finite")
    return returns


def curve(returns: list[float]) -> dict[str, Any]:
    """Return the means of stretches of episodes, as few as can be drawn."""
    stretches = np.array_split(np.array(returns), min(len(returns), _MOST_POINTS))
    return {
        "episodes": len(returns),
        "each": -(-len(returns) // _MOST_POINTS),
        "means": [round(float(one.mean()), 6) for one in stretches],
    }


def policy(learned: Learned) -> dict[str, Any]:
    """Return the best action and its worth for the situations met, the most valuable first."""
    values = learned.q.max(axis=1)
    order = np.argsort(-values, kind="stable")[:_MOST_SITUATIONS].tolist()
    situations = [learned.situations[number] for number in order]
    return {
        "situations": len(learned.situations),
        "named": learned.action_names is not None,
        "rows": [
            [
                situation_text(situation, learned.observation_names),
                value_text(_name(learned.action(situation), learned.action_names)),
                f"{values[number]:.4g}",
            ]
            for number, situation in zip(order, situations, strict=True)
        ],
    }


def situation_text(situation: Symbol, names: tuple[Symbol, ...] | None = None) -> str:
    """Write a situation; the parts of a mapping each by their name.

    `names` are those of the numbers that observations are.

    >>> situation_text((("observation", 1), ("reward_state", 1)), ("hall", "attic"))
    'observation attic, reward state 1'
    >>> situation_text(1, ("hall", "attic")), situation_text((1, 2), ("hall", "attic"))
    ('attic', '(1, 2)')
    """
    if not isinstance(situation, tuple) or not all(map(_is_named, situation)):
        return value_text(_name(situation, names))
    return ", ".join(
        f"{short(part).replace('_', ' ')} "
        f"{value_text(_name(value, names if part == 'observation' else None))}"
        for part, value in situation
    )


def _name(value: Symbol, names: tuple[Symbol, ...] | None) -> Symbol:
    if names is None or type(value) is not int or not 0 <= value < len(names):
        return value
    return names[value]


def _is_named(part: Symbol) -> bool:
    return isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str)
