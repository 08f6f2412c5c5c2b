"""A learning curve and a policy → what a report shows of them."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from resolvent.control import Learned
from resolvent.display.report.wording import short, value_text
from resolvent.errors import ModelError
from resolvent.traces import Symbol

_MOST_POINTS, _MOST_SITUATIONS = 400, 300


def read_returns(path: str | Path) -> list[float]:
    """Read the returns of a learning curve that `resolvent train --curve` wrote as .csv."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            returns = [float(row["return"]) for row in csv.DictReader(file)]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path}: not a learning curve: a .csv file with a column 'return' is needed"
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
    return {
        "situations": len(learned.situations),
        "rows": [
            [
                situation_text(learned.situations[number]),
                str(learned.action(learned.situations[number])),
                f"{values[number]:.4g}",
            ]
            for number in order
        ],
    }


def situation_text(situation: Symbol) -> str:
    """Write a situation; the parts of a mapping each by their name.

    >>> situation_text((("observation", 3), ("reward_state", 1))), situation_text((1, 2))
    ('observation 3, reward state 1', '(1, 2)')
    """
    if not isinstance(situation, tuple) or not all(map(_is_named, situation)):
        return value_text(situation)
    return ", ".join(
        f"{short(name).replace('_', ' ')} {value_text(value)}" for name, value in situation
    )


def _is_named(part: Symbol) -> bool:
    return isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str)
