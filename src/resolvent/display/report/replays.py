"""Machines + traces → some traces step by step: what was predicted, and what happened."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from resolvent.display.report.gallery import Gallery, Told, answer_told
from resolvent.display.report.wording import event_text, value_text
from resolvent.machines import UNSEEN, Machines, Score
from resolvent.machines.knowledge import ASSUMED_CODE
from resolvent.replay import StepsAsked, steps_asked
from resolvent.samples.timing import labels_read
from resolvent.traces import Codes, TraceSet
from resolvent.traces.vocabulary import distinct_pairs

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
    machines: Machines,
    traces: TraceSet,
    score: Score,
    states: Mapping[str, Codes],
    gallery: Gallery,
) -> dict[str, Any]:
    """Play the traces worth looking at; `states` are those that their replay found.

    A step is a list of numbers: those of the texts for observation, label read and
    action; then for each machine those of what happened and of what it predicted, its
    state (−1 where not known), what came of the prediction (1 right, 0 wrong, −1 none),
    and 1 where that was only assumed.
    """
    texts = Texts()
    shown = [
        _played(machines, traces, number, why, _first_shown(number, score), states, texts, gallery)
        for number, why in chosen(traces, score, states).items()
    ]
    return {"texts": texts.all, "traces": shown}


def chosen(traces: TraceSet, score: Score, states: Mapping[str, Codes]) -> dict[int, str]:
    """Return the numbers of the traces worth looking at, and why each is."""
    lengths = np.diff(traces.offsets)
    reasons: dict[int, list[str]] = {}
    if score.first_mismatch is not None:
        reasons.setdefault(score.first_mismatch.trace, []).append("has the first mismatch")
    if len(traces) == 1:
        reasons.setdefault(0, []).append("the only one")
    else:
        reasons.setdefault(_most_states(traces, states), []).append("visits most states")
        reasons.setdefault(int(np.argmin(lengths)), []).append("the shortest")
        reasons.setdefault(int(np.argmax(lengths)), []).append("the longest")
    return {number: ", ".join(why) for number, why in reasons.items()}


def _most_states(traces: TraceSet, states: Mapping[str, Codes]) -> int:
    """Return the shortest of the traces that visit most combinations of states."""
    lengths = np.diff(traces.offsets)
    memory, memories = np.zeros(traces.steps, np.int32), 1
    for state in states.values():
        sizes = int(state.max(initial=-1)) + 2  # one more, for "not known"
        kept, memory = distinct_pairs(memory, state + np.int32(1), memories, sizes)
        memories = len(kept)
    # Sorted, not `np.unique`, which puts millions of numbers into a hash table one by one.
    keys = np.sort(np.repeat(np.arange(len(traces)), lengths) * memories + memory)
    new = np.diff(keys, prepend=-1) > 0
    visited = np.bincount(keys[new] // memories, minlength=len(traces))
    return int(np.lexsort((lengths, -visited))[0])


def _first_shown(number: int, score: Score) -> int:
    """Return the step to begin with: the first, unless the mismatch would be cut off."""
    first = score.first_mismatch
    if first is None or first.trace != number or first.step < MOST_STEPS:
        return 0
    return first.step - MOST_STEPS // 2


def _played(
    machines: Machines,
    traces: TraceSet,
    number: int,
    why: str,
    start: int,
    states: Mapping[str, Codes],
    texts: Texts,
    gallery: Gallery,
) -> dict[str, Any]:
    one = traces.take([number])
    read = labels_read(one, machines.timing)
    rows = slice(*traces.offsets[number : number + 2])
    asked = steps_asked(machines, one, {kind: codes[rows] for kind, codes in states.items()})
    shown = slice(start, start + MOST_STEPS)
    words = (
        texts.numbers(one.at_step(one.observation_codes)[shown], gallery.told, one.observations),
        texts.numbers(read[shown], event_text, one.labels, unknown=""),
        texts.numbers(one.action_codes[shown], value_text, one.actions),
    )
    answers = (_answers(each, one, shown, texts, gallery) for each in asked.values())
    steps = [list(step) for step in zip(*words, *answers, strict=True)]
    return {
        "number": number,
        "why": why,
        "length": one.steps,
        "first": start,
        "terminated": bool(one.terminated[0]),
        "steps": steps,
    }


def _answers(
    asked: StepsAsked, one: TraceSet, shown: slice, texts: Texts, gallery: Gallery
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
        (machine.knowledge_many(asked.states, asked.questions)[shown] == ASSUMED_CODE)
        .astype(int)
        .tolist(),
    )
    return [list(row) for row in zip(*columns, strict=True)]
