"""Observations that lie on a grid → a map: labels, and the cells where memory decides."""

from math import isqrt
from typing import Any

import numpy as np

from resolvent.display.report.wording import event_text, value_text
from resolvent.evaluation.evidence import Evidence
from resolvent.machines import Machine, Machines
from resolvent.traces import Symbol
from resolvent.traces.vocabulary import distinct_pairs

_LEAST_CELLS, _MOST_CELLS, _MOST_LABELS = 4, 2500, 3
_NEIGHBOURS = 0.9

Cell = tuple[int, int]


def grid_map(machines: Machines, evidence: Evidence) -> dict[str, Any] | None:
    """Draw the observations as cells, or return None where they are no grid.

    They are when each is a pair (x, y) of whole numbers, or a whole number that
    counts the cells of a square column by column, and when nine of ten outcomes
    of an observation and an action stay put or lead to a neighbour. `depends` of a
    cell holds the places of the machines whose answers there depend on memory.
    """
    cells = cells_of(list(evidence.shown.alphabets.observations))
    if cells is None or not _moves_are_short(evidence, cells):
        return None
    across, up = zip(*cells.values(), strict=True)
    labels = _labels(evidence)
    deciding = [_where_memory_decides(one) for one in machines.values()]
    return {
        "x": [min(across), max(across)],
        "y": [min(up), max(up)],
        "cells": [
            {
                "x": x,
                "y": y,
                "text": value_text(observation),
                "labels": labels.get(observation, []),
                "depends": [place for place, where in enumerate(deciding) if observation in where],
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


def _moves_are_short(evidence: Evidence, cells: dict[Symbol, Cell]) -> bool:
    """Whether most of what the traces show to follow an observation and an action is near it."""
    steps, alphabets = evidence.passed.steps, evidence.shown.alphabets
    actions, observations = len(alphabets.actions), len(alphabets.observations)
    asked, question = distinct_pairs(steps["observation"], steps["action"], observations, actions)
    moves, _ = distinct_pairs(question, steps["following"], len(asked), observations)
    before, after = np.divmod(moves, observations)
    place = np.array([cells[one] for one in alphabets.observations])
    far = np.abs(place[asked[before] // actions] - place[after]).max(axis=1) > 1
    return len(far) > 0 and int(far.sum()) <= (1 - _NEIGHBOURS) * len(far)


def _labels(evidence: Evidence) -> dict[Symbol, list[str]]:
    """Return the labels that occur together with each observation, "no event" left out."""
    steps, starts, alphabets = (
        evidence.passed.steps,
        evidence.passed.starts,
        evidence.shown.alphabets,
    )
    width = len(alphabets.labels)
    pairs, _ = distinct_pairs(
        np.concatenate([starts["observation"], steps["following"]]),
        np.concatenate([starts["label"], steps["label"]]),
        len(alphabets.observations),
        width,
    )
    found: dict[Symbol, list[str]] = {}
    for observation, label in zip(*np.divmod(pairs, width), strict=True):
        named = found.setdefault(alphabets.observations[int(observation)], [])
        if alphabets.labels[int(label)] and len(named) < _MOST_LABELS:
            named.append(event_text(alphabets.labels[int(label)]))
    return found


def _where_memory_decides(machine: Machine) -> set[Symbol]:
    """Return the observations that some action gives different answers in, by the state."""
    codes = set((machine.output_question // len(machine.actions)).tolist())
    seen = (machine.observations[code] for code in codes)
    return {one[0] if machine.supplemented and isinstance(one, tuple) else one for one in seen}
