"""Machines + traces → some traces step by step: what was predicted, and what happened."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from resolvent.display.report.gallery import Gallery, Told, answer_told
from resolvent.display.report.wording import event_text, value_text
from resolvent.evaluation.evidence_pass import NotableExamples
from resolvent.machines import UNSEEN, Machines, Score
from resolvent.machines.knowledge import GENERALIZED_CODE
from resolvent.preprocess.timing import labels_read
from resolvent.replay import StepQueries, states_at_steps, step_queries
from resolvent.traces import Codes, TraceSet

MOST_STEPS = 2000
"""Of a longer trace so many steps are shown."""


class Texts:
    """Texts that are written once each, however often they occur, with their pictures."""

    def __init__(self) -> None:
        self.all: list[Told] = []
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = {}

    def numbers(
        self,
        codes: Codes,
        tell: Callable[[Any], Told],
        values: Sequence[Any],
        unknown: str = "",
    ) -> list[int]:
        """Return for codes of values the numbers of their texts; a code below 0 is unknown."""
        told = {
            code: self._number(tell(values[code]) if code >= 0 else unknown)
            for code in dict.fromkeys(codes.tolist())
        }
        return [told[code] for code in codes.tolist()]

    def _number(self, told: Told) -> int:
        key = (told, ()) if isinstance(told, str) else (told["text"], tuple(told["pictures"]))
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            self.all.append(told)
        return self._numbers[key]


def replays(
    machines: Machines, examples: NotableExamples, score: Score, gallery: Gallery
) -> dict[str, Any]:
    """Play the traces worth looking at.

    A step is a list of numbers: those of the texts for observation, label read and
    action; then for each machine those of what happened and of what it predicted, its
    state (−1 where not known), what came of the prediction (1 right, 0 wrong, −1 none),
    and 1 where that was only assumed.
    """
    texts = Texts()
    shown = [
        _played(
            machines,
            examples.trace(number),
            {"number": number, "why": why, "first": _first_shown(number, score)},
            texts,
            gallery,
        )
        for number, why in examples.why.items()
    ]
    return {"texts": texts.all, "traces": shown}


def _first_shown(number: int, score: Score) -> int:
    """Return the step to begin with: the first, unless the mismatch would be cut off."""
    first = score.first_mismatch
    if first is None or first.trace != number or first.step < MOST_STEPS:
        return 0
    return first.step - MOST_STEPS // 2


def _played(
    machines: Machines, one: TraceSet, about: dict[str, Any], texts: Texts, gallery: Gallery
) -> dict[str, Any]:
    """Return one trace step by step, from the step on that is the first to be shown."""
    read = labels_read(one, machines.timing)
    asked = step_queries(machines, one, states_at_steps(machines, one))
    shown = slice(about["first"], about["first"] + MOST_STEPS)
    words = (
        texts.numbers(one.at_step(one.observation_codes)[shown], gallery.told, one.observations),
        texts.numbers(read[shown], event_text, one.labels, unknown=""),
        texts.numbers(one.action_codes[shown], value_text, one.actions),
    )
    answers = (_answers(each, one, shown, texts, gallery) for each in asked.values())
    steps = [list(step) for step in zip(*words, *answers, strict=True)]
    return {
        **about,
        "length": one.steps,
        "terminated": bool(one.terminated[0]),
        "steps": steps,
    }


def _answers(
    asked: StepQueries, one: TraceSet, shown: slice, texts: Texts, gallery: Gallery
) -> list[list[int]]:
    """Return for some steps of a trace what happened, and what a machine made of it."""
    machine = asked.machine
    if machine.predicts == "observation":
        values: Sequence[Any] = one.observations
        codes = one.after_step(one.observation_codes)
    else:
        values, codes = one.column(machine.predicts)
    predicted = asked.predicted[shown]
    tell = partial(answer_told, machine, gallery=gallery)
    columns = (
        texts.numbers(codes[shown], tell, values),
        texts.numbers(predicted, tell, machine.outputs, unknown=value_text(UNSEEN)),
        asked.states[shown].tolist(),
        np.where(predicted < 0, -1, predicted == asked.outputs[shown]).tolist(),
        (machine.knowledge_many(asked.states, asked.questions)[shown] == GENERALIZED_CODE)
        .astype(int)
        .tolist(),
    )
    return [list(row) for row in zip(*columns, strict=True)]
