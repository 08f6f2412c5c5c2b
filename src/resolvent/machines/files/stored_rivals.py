"""How sure moves are ↔ what files of machines hold of that."""

from math import isfinite
from typing import TypeAlias

import numpy as np
from msgspec import UNSET, UnsetType

from resolvent.machines.machine import Machine
from resolvent.machines.uncertainty import AlternativeTransitions

StoredRivals: TypeAlias = list[tuple[int, int, float]]
"""Row of `transitions`, the likeliest other target, and the odds against it, as a logarithm."""

_DECIMALS = 3


def stored_rivals(
    machine: Machine, rivals: AlternativeTransitions | None
) -> StoredRivals | UnsetType:
    """Return what a file holds of how sure moves are; nothing where none has a rival."""
    if rivals is None:
        return UNSET
    known = np.nonzero(machine.transitions >= 0)
    target, log_odds = rivals.target[known], np.round(rivals.log_odds[known], _DECIMALS)
    rows = np.flatnonzero(target >= 0)
    columns = (rows.tolist(), target[rows].tolist(), log_odds[rows].tolist())
    return list(zip(*columns, strict=True)) or UNSET


def rivals_in(stored: StoredRivals | UnsetType, machine: Machine) -> AlternativeTransitions | None:
    """Return what `stored_rivals` wrote down.

    Raises:
        ValueError: when it does not fit the machine.
    """
    if isinstance(stored, UnsetType):
        return None
    target = np.full(machine.transitions.shape, -1, np.int32)
    log_odds = np.zeros(target.shape)
    state, label = np.nonzero(machine.transitions >= 0)
    last = -1
    for row, other, odds in stored:
        if not last < row < len(state) or not 0 <= other < machine.states or not isfinite(odds):
            raise ValueError("rivals do not fit the transitions")
        if other == machine.transitions[state[row], label[row]]:
            raise ValueError("rivals name the state that a move leads to as its rival")
        target[state[row], label[row]], log_odds[state[row], label[row]] = other, odds
        last = row
    return AlternativeTransitions(target, log_odds)
