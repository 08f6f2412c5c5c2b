"""Answers that vary ↔ what files of machines hold of them."""

from typing import TypeAlias

import numpy as np
from msgspec import UNSET, UnsetType

from resolvent.machines.asking import spread_rows
from resolvent.machines.machine import Machine
from resolvent.machines.spread import Spread

StoredSpread: TypeAlias = list[tuple[int, int, int]]
"""Row of `by_state`, output, and how often it came: two or more for each such row, sorted."""

MOST_TIMES = 1 << 40
"""No answer came more often than that: sums of such counts fit into 64 bits."""


def stored_spread(machine: Machine) -> StoredSpread | UnsetType:
    """Return what a file holds of answers that vary; nothing if none does."""
    spread = machine.spread
    if not machine.is_noisy:
        return UNSET
    row = spread_rows(machine)
    columns = (row.tolist(), spread.value.tolist(), spread.count.tolist())
    return list(zip(*columns, strict=True))


def spread_in(stored: StoredSpread | UnsetType, machine: Machine) -> Spread:
    """Return the spread that `stored_spread` wrote down, for a machine that lacks only that.

    Raises:
        ValueError: when it does not fit the machine, or is not consistent in itself.
    """
    if isinstance(stored, UnsetType):
        return Spread()
    row, value, count = np.array(stored, np.int64).reshape(len(stored), 3).T
    if len(row) == 0:
        raise ValueError("spread is there, and holds nothing")
    outputs = len(machine.outputs)
    if np.any((row < 0) | (row >= len(machine.output_value)) | (value < 0) | (value >= outputs)):
        raise ValueError("spread holds a number out of range")
    if np.any(np.diff(row * outputs + value) <= 0):
        raise ValueError("spread is not sorted or has an entry twice")
    if np.any((count < 1) | (count > MOST_TIMES)):
        raise ValueError(f"spread holds a count that is not from 1 to {MOST_TIMES:,}")
    spread = Spread(
        machine.output_state[row],
        machine.output_question[row],
        value.astype(np.int32),
        np.ascontiguousarray(count),
    )
    first = spread.starts
    if np.any(np.diff(first, append=len(row)) < 2):
        raise ValueError("spread has a row of by_state with only one answer")
    if not np.array_equal(spread.main, machine.output_value[row[first]]):
        raise ValueError("by_state does not hold the most frequent answer of spread")
    return spread
