"""Machines + traces → some traces step by step: what was predicted, and what happened."""

from typing import Any

import numpy as np

from resolvent.display.report.wording import event_text, value_text
from resolvent.machines import UNSEEN, MachinePair, Score
from resolvent.replay import StepsAsked, states_at_steps, steps_asked
from resolvent.samples.timing import labels_read
from resolvent.traces import TraceSet

MOST_STEPS = 2000
"""Of a longer trace so many steps are shown."""


class Texts:
    """Texts that are written once each, however often they occur."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))


def replays(pair: MachinePair, traces: TraceSet, score: Score) -> dict[str, Any]:
    """Replay the traces worth looking at.

    A step is a list of numbers: those of the texts for observation, label read,
    action, next observation, reward, predicted observation, predicted reward,
    then both states (−1 where not known) and what came of each prediction: 1
    right, 0 wrong, −1 none.
    """
    texts = Texts()
    shown = [
        _replay(pair, traces, number, why, _first_shown(number, score), texts)
        for number, why in chosen(pair, traces, score).items()
    ]
    return {"texts": list(texts.numbers), "traces": shown}


def chosen(pair: MachinePair, traces: TraceSet, score: Score) -> dict[int, str]:
    """Return the numbers of the traces worth looking at, and why each is."""
    lengths = np.diff(traces.offsets)
    reasons: dict[int, list[str]] = {}
    if score.first_mismatch is not None:
        reasons.setdefault(score.first_mismatch.trace, []).append("has the first mismatch")
    if len(traces) == 1:
        reasons.setdefault(0, []).append("the only one")
    else:
        reasons.setdefault(_most_states(pair, traces), []).append("visits most states")
        reasons.setdefault(int(np.argmin(lengths)), []).append("the shortest")
        reasons.setdefault(int(np.argmax(lengths)), []).append("the longest")
    return {number: ", ".join(why) for number, why in reasons.items()}


def _most_states(pair: MachinePair, traces: TraceSet) -> int:
    """Return the shortest of the traces that visit most pairs of states."""
    histories = Histories.of(traces, pair.timing)
    one, other = (states_at_steps(each, histories) for each in (pair.transition, pair.reward))
    lengths = np.diff(traces.offsets)
    trace = np.repeat(np.arange(len(traces)), lengths)
    places = (pair.transition.states + 1) * (pair.reward.states + 1)
    # Sorted, not `np.unique`, which puts millions of numbers into a hash table one by one.
    keys = np.sort(trace * places + (one + 1) * np.int64(pair.reward.states + 1) + other + 1)
    new = np.diff(keys, prepend=-1) > 0
    visited = np.bincount(keys[new] // places, minlength=len(traces))
    return int(np.lexsort((lengths, -visited))[0])


def _first_shown(number: int, score: Score) -> int:
    """Return the step to begin with: the first, unless the mismatch would be cut off."""
    first = score.first_mismatch
    if first is None or first.trace != number or first.step < MOST_STEPS:
        return 0
    return first.step - MOST_STEPS // 2


def _replay(
    pair: MachinePair, traces: TraceSet, number: int, why: str, start: int, texts: Texts
) -> dict[str, Any]:
    one = traces.take([number])
    trace, read = one[0], labels_read(one, pair.timing)
    transition, reward = steps_asked(pair.transition, pair.reward, pair.timing, one)
    predicted = [_predicted(transition), _predicted(reward)]
    steps = []
    for step in range(start, min(len(trace), start + MOST_STEPS)):
        label = int(read[step])
        words = (
            value_text(trace.observations[step]),
            event_text(one.labels[label]) if label >= 0 else "",
            value_text(trace.actions[step]),
            value_text(trace.observations[step + 1]),
            value_text(trace.rewards[step]),
            value_text(predicted[0][step][0]),
            value_text(predicted[1][step][0]),
        )
        states = int(transition.states[step]), int(reward.states[step])
        steps.append([*map(texts.number, words), *states, *(each[step][1] for each in predicted)])
    return {
        "number": number,
        "why": why,
        "length": len(trace),
        "first": start,
        "terminated": trace.terminated,
        "steps": steps,
    }


def _predicted(asked: StepsAsked) -> list[tuple[Any, int]]:
    """Return for each step what the machine predicts, and whether it is right."""
    codes = asked.machine.answer_many(asked.states, asked.questions)
    return [
        (UNSEEN, -1) if code < 0 else (asked.machine.outputs[code], int(code == actual))
        for code, actual in zip(codes.tolist(), asked.outputs.tolist(), strict=True)
    ]
