"""Show traces: some of them step by step, and observations that lie on a grid as a map."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from resolvent.evaluation.evidence import Evidence, Example
from resolvent.machines import UNSEEN, Machine, Machines, Score
from resolvent.machines.tables import GENERALIZED_CODE
from resolvent.preprocess.timing import labels_read
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import StepQueries, step_queries
from resolvent.traces import Codes, Symbol, TraceSet
from resolvent.traces.vocabulary import distinct_pairs
from resolvent.viz.thumbnails import Caption, Gallery, event_text, value_text

MOST_STEPS = 2000  # maximum number of steps shown of a trace
_LEAST_CELLS, _MOST_CELLS, _MOST_LABELS = 4, 2500, 3
_LEAST_SHORT_MOVES = 0.9  # least share of transitions to the same or a neighboring cell

Cell = tuple[int, int]


class _Captions(dict[str, tuple[int, Caption]]):
    """Distinct captions by their text, since those with pictures have no hash, each numbered."""

    def numbers(
        self,
        codes: Codes,
        caption_of: Callable[[Any], Caption],
        values: Sequence[Any],
        unknown: str = "",
    ) -> list[int]:
        """Return the number of the caption of each value; a code below 0 is unknown."""
        number_of = {}
        for code in dict.fromkeys(codes.tolist()):
            caption = caption_of(values[code]) if code >= 0 else unknown
            number_of[code], _ = self.setdefault(repr(caption), (len(self), caption))
        return [number_of[code] for code in codes.tolist()]


def replays(
    machines: Machines, examples: Iterable[Example], score: Score, gallery: Gallery
) -> dict[str, Any]:
    """Return the example traces, step by step.

    A step is a list of numbers: the captions of its observation, of the label read and of its
    action; then for each machine the captions of the recorded and of the predicted output, its
    state (−1 if unknown), whether the prediction is right (1, 0, or −1 without prediction), and
    whether it is generalized.
    """
    captions, first = _Captions(), score.first_mismatch
    traces = []
    for number, why, trace in examples:
        start = 0
        if first is not None and first.trace == number and first.step >= MOST_STEPS:
            start = first.step - MOST_STEPS // 2
        traces.append(
            {
                "number": number,
                "why": why,
                "first": start,
                "length": trace.steps,
                "terminated": bool(trace.terminated[0]),
                "steps": _steps(machines, trace, start, captions, gallery),
            }
        )
    return {"texts": [caption for _, caption in captions.values()], "traces": traces}


def _steps(
    machines: Machines, trace: TraceSet, start: int, captions: _Captions, gallery: Gallery
) -> list[list[Any]]:
    window = slice(start, start + MOST_STEPS)
    seen = trace.at_step(trace.observation_codes)[window]
    read = labels_read(trace, machines.timing)[window]
    columns = [
        captions.numbers(seen, gallery.caption, trace.observations),
        captions.numbers(read, event_text, trace.labels),
        captions.numbers(trace.action_codes[window], value_text, trace.actions),
    ]
    queries = step_queries(machines, trace, states_at_steps(machines, trace)).values()
    predictions = (_predictions(steps, trace, window, captions, gallery) for steps in queries)
    return [list(step) for step in zip(*columns, *predictions, strict=True)]


def _predictions(
    queries: StepQueries, trace: TraceSet, window: slice, captions: _Captions, gallery: Gallery
) -> list[list[int]]:
    """Return the numbers of a machine for some steps of a trace."""
    machine = queries.machine
    if machine.predicts == "observation":
        values: Sequence[Any] = trace.observations
        codes = trace.after_step(trace.observation_codes)
    else:
        values, codes = trace.column(machine.predicts)
    predicted = queries.predicted[window]
    basis = machine.basis_many(queries.states, queries.queries)[window]

    caption_of = partial(gallery.output_caption, machine)
    columns = (
        captions.numbers(codes[window], caption_of, values),
        captions.numbers(predicted, caption_of, machine.outputs, unknown=value_text(UNSEEN)),
        queries.states[window].tolist(),
        np.where(predicted < 0, -1, predicted == queries.outputs[window]).tolist(),
        (basis == GENERALIZED_CODE).astype(int).tolist(),
    )
    return [list(row) for row in zip(*columns, strict=True)]


def grid_map(machines: Machines, evidence: Evidence) -> dict[str, Any] | None:
    """Return the observations as cells of a map, or None if they lie on no grid.

    They do if each is a pair (x, y) of integers, or an integer that counts the cells of a square
    column by column, and if nine of ten transitions stay in a cell or lead to a neighbor. `depends`
    of a cell holds the numbers of the machines with outputs there that depend on their state.
    """
    cells = cells_of(list(evidence.replay.alphabets.observations))
    if cells is None or not _moves_are_short(evidence, cells):
        return None
    across, up = zip(*cells.values(), strict=True)
    labels = _labels(evidence)
    depending = list(map(_state_dependent, machines.values()))
    return {
        "x": [min(across), max(across)],
        "y": [min(up), max(up)],
        "cells": [
            {
                "x": x,
                "y": y,
                "text": value_text(observation),
                "labels": labels.get(observation, []),
                "depends": [at for at, places in enumerate(depending) if observation in places],
            }
            for observation, (x, y) in cells.items()
        ],
    }


def cells_of(observations: list[Symbol]) -> dict[Symbol, Cell] | None:
    """Return the cell of each observation, if they can lie on a grid."""
    if len(observations) < _LEAST_CELLS:
        return None
    numbers = [value for value in observations if type(value) is int and value >= 0]
    cells: dict[Symbol, Cell] = {
        pair: pair
        for pair in observations
        if isinstance(pair, tuple) and [*map(type, pair)] == [int, int]
    }
    if len(numbers) == len(observations):
        side = isqrt(max(numbers)) + 1
        cells = {number: divmod(number, side) for number in numbers}
    elif len(cells) < len(observations):
        return None
    across, up = zip(*cells.values(), strict=True)
    size = (max(across) - min(across) + 1) * (max(up) - min(up) + 1)
    return cells if size <= min(_MOST_CELLS, 4 * len(observations)) else None


def _moves_are_short(evidence: Evidence, cells: dict[Symbol, Cell]) -> bool:
    """Return whether most distinct transitions lead to the same or a neighboring cell."""
    steps, alphabets = evidence.counts.steps, evidence.replay.alphabets
    actions, observations = len(alphabets.actions), len(alphabets.observations)
    queries, query = distinct_pairs(steps["observation"], steps["action"], observations, actions)
    transitions, _ = distinct_pairs(query, steps["next_observation"], len(queries), observations)
    before, after = np.divmod(transitions, observations)
    cell = np.array([cells[observation] for observation in alphabets.observations])
    far = np.abs(cell[queries[before] // actions] - cell[after]).max(axis=1) > 1
    return len(far) > 0 and int(far.sum()) <= (1 - _LEAST_SHORT_MOVES) * len(far)


def _labels(evidence: Evidence) -> dict[Symbol, list[str]]:
    """Return the labels that occur together with each observation, "no event" left out."""
    steps, starts = evidence.counts.steps, evidence.counts.starts
    alphabets = evidence.replay.alphabets
    width = len(alphabets.labels)
    pairs, _ = distinct_pairs(
        np.concatenate([starts["observation"], steps["next_observation"]]),
        np.concatenate([starts["label"], steps["label"]]),
        len(alphabets.observations),
        width,
    )
    texts: dict[Symbol, list[str]] = {}
    for pair in pairs.tolist():
        if label := alphabets.labels[pair % width]:
            texts.setdefault(alphabets.observations[pair // width], []).append(event_text(label))
    return {observation: here[:_MOST_LABELS] for observation, here in texts.items()}


def _state_dependent(machine: Machine) -> set[Symbol]:
    """Return the observations with an action whose output depends on the state."""
    codes = set((machine.output_query // len(machine.actions)).tolist())
    seen: Any = (machine.observations[code] for code in codes)
    return {observation for observation, _ in seen} if machine.supplemented else set(seen)
