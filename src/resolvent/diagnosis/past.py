"""Steps → what happened before each of them, in many ways of putting it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis.steps import Steps, beginning
from resolvent.traces import NO_EVENT, label_text
from resolvent.traces.column_names import OBSERVATION
from resolvent.wording import short

Values = NDArray[np.int32]

MOST_OF_A_KIND = 300
"""Observations, actions, pairs and labels that are looked at, each: those in most traces."""

_QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Past:
    """One way of telling what happened before a step.

    `kind` stays the same from version to version, `of` names what it is about, if anything,
    and `text` goes on after "depend on".
    """

    kind: str
    of: str | None
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"kind": self.kind, "of": self.of}


def pasts(steps: Steps, output: str) -> Iterator[tuple[Past, Values]]:
    """Go through all ways of telling what happened before, each with its value at every step.

    Values are −1 where there is none, as before the first step.
    """
    traces = steps.traces
    yield from _ever(steps)
    first = steps.number == 0
    for kind, column in (
        ("previous-observation", traces.at_step(traces.observation_codes)),
        ("previous-action", traces.action_codes),
    ):
        before = np.roll(column, 1).astype(np.int32)
        before[first] = -1
        yield Past(kind, None, f"which {kind.partition('-')[2]} came just before"), before
    text = "what came of it the last time in the same episode"
    yield Past("last-time", None, text), _last_time(steps, output)
    bounds = np.quantile(steps.number, _QUARTERS)
    quarter = np.searchsorted(bounds, steps.number, side="left").astype(np.int32)
    yield Past("time", None, "how many steps were taken before"), quarter


def _ever(steps: Steps) -> Iterator[tuple[Past, Values]]:
    """Say of each observation, action, pair of both and label whether it came before."""
    traces = steps.traces
    seen = traces.at_step(traces.observation_codes)
    observations, actions = [*traces.observations], [*traces.actions]
    for code, value in _came_before(steps, seen):
        name = beginning(observations[code])
        yield Past("seen", name, f"whether {name} was seen before"), value
    for code, value in _came_before(steps, traces.action_codes):
        name = beginning(actions[code])
        yield Past("done", name, f"whether {name} was done before"), value
    for code, value in _came_before(steps, steps.question):
        name = steps.question_text(code)
        yield Past("asked", name, f"whether {name} was tried before"), value
    samples = steps.samples[OBSERVATION]
    for code, value in _came_before(steps, samples.beta, inclusive=True):
        if samples.labels[code] != NO_EVENT:
            name = short(label_text(samples.labels[code]))
            yield Past("read", name, f"whether the label {name} was read before"), value


def _came_before(
    steps: Steps, column: NDArray[np.int32], *, inclusive: bool = False
) -> Iterator[tuple[int, Values]]:
    """Yield each code of a column, and at every step whether it came earlier in the trace.

    A label that is read at a step is read before it: that is `inclusive`.
    """
    traces = len(steps.traces)
    keys = column.astype(np.int64) * traces + steps.trace
    kept = np.flatnonzero(column >= 0)
    found, where = np.unique(keys[kept], return_index=True)
    code, trace = np.divmod(found, traces)
    number = steps.number[kept[where]]
    codes, starts, among = np.unique(code, return_index=True, return_counts=True)
    never = np.iinfo(np.int64).max
    for place in np.argsort(-among, kind="stable")[:MOST_OF_A_KIND].tolist():
        rows = slice(starts[place], starts[place] + among[place])
        first = np.full(traces, never)
        first[trace[rows]] = number[rows] - int(inclusive)
        yield int(codes[place]), (steps.number > first[steps.trace]).astype(np.int32)


def _last_time(steps: Steps, output: str) -> Values:
    """Return what was answered when the question came up last in the same trace; −1 if never."""
    samples = steps.samples[output]
    order = np.lexsort((steps.number, samples.alpha, steps.trace))
    alike = np.zeros(len(order), bool)
    alike[1:] = (np.diff(steps.trace[order]) == 0) & (np.diff(samples.alpha[order]) == 0)
    last = np.full(len(order), -1, np.int32)
    last[order[1:]] = np.where(alike[1:], samples.output[order[:-1]], -1)
    return last
