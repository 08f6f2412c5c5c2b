"""Machines + traces → which steps were taken where, and what came of each most often."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from resolvent.control.planning.steps import Taking
from resolvent.machines import Machines
from resolvent.replay import Tables, through, whole
from resolvent.replay.taken import state_of
from resolvent.traces import Label, Symbol, TraceFolder, TraceSet
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION
from resolvent.traces.given import as_traces
from resolvent.workers import Threads

MOST_GUESSES: Final = 3
"""So many of what may come of a step elsewhere are thought of."""

States = tuple[int, ...]


class Came(NamedTuple):
    """What came of a step: what was seen, which label was read, whether it was the last."""

    observation: Symbol
    label: Label
    ends: bool


@dataclass(frozen=True)
class StepsSeen:
    """The steps that traces took.

    `taken` has what came of them most often by observation and states, and by action;
    `elsewhere` all that did by observation alone, the most frequent first.
    """

    actions: tuple[Symbol, ...]
    taken: Mapping[tuple[Symbol, States | None], Mapping[Symbol, Came]]
    elsewhere: Mapping[Symbol, Mapping[Symbol, list[Came]]]


def steps_seen(machines: Machines, traces: TraceSet | TraceFolder) -> StepsSeen:
    """Return which steps traces took, with the states that machines were in.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.environments.House(), episodes=20, seed=0)
    >>> seen = steps_seen(rs.infer(traces).machines, traces)
    >>> seen.taken["corridor", (0, 0)]["left"].observation
    'orangeroom'
    """
    corpus = whole(machines, as_traces(traces), Threads())
    alphabets = corpus.alphabets
    found = through(corpus, Taking(Tables.of(machines, alphabets))).steps
    order = np.lexsort((found.step, found.trace, -found.count))
    columns = [found.columns.get("read", found[LABEL]), found["ended"]]
    columns += [found[name] for name in (OBSERVATION, ACTION, "following")]
    columns += [found[state_of(kind)] for kind in machines]
    taken: dict[tuple[Symbol, States | None], dict[Symbol, Came]] = {}
    elsewhere: dict[Symbol, dict[Symbol, list[Came]]] = {}
    for read, ended, seen, done, led, *states in np.stack(columns, axis=1)[order].tolist():
        observation, action = alphabets.observations[seen], alphabets.actions[done]
        came = Came(alphabets.observations[led], alphabets.labels[read], bool(ended))
        if not states or min(states) >= 0:
            taken.setdefault((observation, tuple(states)), {}).setdefault(action, came)
        others = elsewhere.setdefault(observation, {}).setdefault(action, [])
        if len(others) < MOST_GUESSES and came not in others:
            others.append(came)
    return StepsSeen(tuple(alphabets.actions), taken, elsewhere)
