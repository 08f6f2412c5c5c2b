"""Observations that lie on a grid → a map: labels, and the cells where memory decides."""

from math import isqrt
from typing import Any

import numpy as np

from resolvent.display.report.wording import event_text, value_text
from resolvent.machines import Machine, MachinePair, RewardMachine
from resolvent.traces import Symbol, TraceSet
from resolvent.traces.vocabulary import distinct_pairs

_LEAST_CELLS, _MOST_CELLS, _MOST_LABELS = 4, 2500, 3
_NEIGHBOURS = 0.9

Cell = tuple[int, int]


def grid_map(pair: MachinePair, traces: TraceSet) -> dict[str, Any] | None:
    """Draw the observations as cells, or return None where they are no grid.

    They are when each is a pair (x, y) of whole numbers, or a whole number that
    counts the cells of a square column by column, and when nine of ten answers
    of the Transition Machine stay put or lead to a neighbour.
    """
    cells = cells_of(list(traces.observations))
    if cells is None or not _moves_are_short(pair.transition, cells):
        return None
    across, up = zip(*cells.values(), strict=True)
    labels = _labels(traces)
    deciding = [_where_memory_decides(one) for one in (pair.transition, pair.reward)]
    return {
        "x": [min(across), max(across)],
        "y": [min(up), max(up)],
        "cells": [
            {
                "x": x,
                "y": y,
                "text": value_text(observation),
                "labels": labels.get(observation, []),
                "transition": observation in deciding[0],
                "reward": observation in deciding[1],
            }
            for observation, (x, y) in cells.items()
        ],
    }


def cells_of(observations: list[Symbol]) -> dict[Symbol, Cell] | None:
    """Say where each observation lies, if they can lie on a grid.

    >>> cells_of([0, 1, 2, 3])
    {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (1, 1)}
    >>> cells_of([(0, 0), (3, 1), (2, 2), (3, 3)])[3, 1]
    (3, 1)
    >>> cells_of(["hall", "attic", "cellar", "stairs"]) is None
    True
    """
    if len(observations) < _LEAST_CELLS:
        return None
    cells = _counted_cells(observations) or _paired_cells(observations)
    if cells is None:
        return None
    across, up = zip(*cells.values(), strict=True)
    size = (max(across) - min(across) + 1) * (max(up) - min(up) + 1)
    return cells if size <= min(_MOST_CELLS, 4 * len(observations)) else None


def _counted_cells(observations: list[Symbol]) -> dict[Symbol, Cell] | None:
    numbers = [one for one in observations if type(one) is int and one >= 0]
    if len(numbers) < len(observations):
        return None
    side = isqrt(max(numbers)) + 1
    return {one: divmod(one, side) for one in numbers}


def _paired_cells(observations: list[Symbol]) -> dict[Symbol, Cell] | None:
    cells: dict[Symbol, Cell] = {}
    for one in observations:
        if not isinstance(one, tuple) or [type(part) for part in one] != [int, int]:
            return None
        cells[one] = one
    return cells


def _moves_are_short(machine: Machine, cells: dict[Symbol, Cell]) -> bool:
    far = [
        max(abs(a - b) for a, b in zip(cells[one.observation], cells[one.output], strict=True)) > 1
        for one in machine.answers()
        if one.observation in cells and one.output in cells
    ]
    return bool(far) and sum(far) <= (1 - _NEIGHBOURS) * len(far)


def _labels(traces: TraceSet) -> dict[Symbol, list[str]]:
    """Return the labels that occur together with each observation, "no event" left out."""
    width = len(traces.labels)
    pairs, _ = distinct_pairs(
        traces.observation_codes, traces.label_codes, len(traces.observations), width
    )
    found: dict[Symbol, list[str]] = {}
    for observation, label in zip(*np.divmod(pairs, width), strict=True):
        named = found.setdefault(traces.observations[int(observation)], [])
        if traces.labels[int(label)] and len(named) < _MOST_LABELS:
            named.append(event_text(traces.labels[int(label)]))
    return found


def _where_memory_decides(machine: Machine) -> set[Symbol]:
    """Return the observations that some action gives different answers in, by the state."""
    paired = isinstance(machine, RewardMachine) and machine.supplemented
    codes = set((machine.output_question // len(machine.actions)).tolist())
    seen = (machine.observations[code] for code in codes)
    return {one[0] if paired and isinstance(one, tuple) else one for one in seen}
