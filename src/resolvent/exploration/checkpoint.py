"""Where exploring was at some step, so that it can go on from there as if nothing had happened.

What is known follows from what was seen and from the moves that are believed in. So a
checkpoint holds these alone; whoever explores on from it decides the same as whoever never stopped.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from resolvent.errors import ModelError
from resolvent.exploration.buffer import SymbolIndex, Episode, Buffer
from resolvent.exploration.relabel import stored_sources
from resolvent.exploration.tables import TransitionTables
from resolvent.options import Options
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.labelling import Labelling


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step at which all that is known was worked out anew, and what cannot be worked out.

    `episodes` are over, and the one after them has `under_way` steps; -1 if none is under
    way. Of several environments side by side that is the first one, and `beside` has the others.
    `began` are the numbers of the resets that each of these episodes began with. `resets` counts
    all of the environments, and `rounds` those of the history.
    `observations` and `labels` are in the order in which they came up, as the numbers that
    they have in all traces there were; −1 where only a start showed them that was left at once.
    `labelling` and `events` say what labels are made of, and
    `events_at` after how many steps events are looked for again, and `events_states` how many
    states machines had when they were found.
    """

    episodes: int
    under_way: int
    resets: int
    thorough_at: int
    observations: list[int]
    labels: list[int]
    kinds: list[str] = []
    moves: list[list[list[int]]] = []
    timing: str = LabelTiming.CURRENT.value
    labelling: str = "given"
    may_tell: bool = False
    capped: int = 0
    rounds: int = 0
    confirmed: list[list[int]] = []
    confirming: int = 0
    rechecked: int = 0
    remove_trivial: bool = True
    events: list[tuple[Any, Any]] | None = None
    events_at: int = 0
    events_states: int = 0
    beside: list[int] = []
    began: list[int] = []

    @property
    def lengths(self) -> list[int]:
        """How many steps the episode under way has in each environment; -1 if there is none."""
        return [self.under_way, *self.beside]

    @property
    def tables(self) -> TransitionTables | None:
        """The moves that were believed in; None where there were none yet."""
        if not self.kinds:
            return None
        moves = tuple(np.array(one, np.int32) for one in self.moves)
        return TransitionTables(tuple(self.kinds), moves, LabelTiming(self.timing))


def whole_point(
    traces: TraceSet, labelling: Labelling, options: Options, resets: int, capped: int, count: int
) -> Checkpoint:
    """Return a point at which all of these traces are over, and machines are still to be found.

    `count` is how many environments there are side by side from then on.
    """
    return Checkpoint(
        len(traces),
        -1,
        resets,
        0,
        list(range(len(traces.observations))),
        list(range(len(traces.labels))),
        timing=options.timing.value,
        labelling=labelling.reads,
        capped=capped,
        remove_trivial=options.remove_trivial,
        events=stored_sources(labelling),
        beside=[-1] * (count - 1),
    )


@dataclass(frozen=True)
class RestoredLog:
    """A log as it was at a point, the episodes under way then, and all episodes as they went on.

    The later episodes are coded apart, by `coding`: what they show must not be known before.
    They stand apart by the environment that they were played in, each with how it ended; None
    is one that was under way at last. The first is the whole of the one under way at the point.
    """

    log: Buffer
    under_way: list[Episode | None]
    later: list[deque[tuple[Episode, int | None]]]
    coding: Buffer


def restored(
    point: Checkpoint,
    traces: TraceSet,
    ends: Sequence[int],
    places: Sequence[int],
    actions: list[Any],
) -> RestoredLog:
    """Return where exploring was at a point, and what was seen and done after it.

    `ends` say how each episode ended that is over, and `places` which environment each of the
    traces was played in.
    """
    log = Buffer(actions)
    log.observations = SymbolIndex.out_of(traces.observations, point.observations)
    log.labels = SymbolIndex.out_of(traces.labels, point.labels)
    known = {action: code for code, action in enumerate(actions)}
    if not all(action in known for action in traces.actions):
        raise ModelError("the traces have actions that the environment has not: use the same one")
    for number in range(point.episodes):
        log.close(episode_of(traces, number, log, known), ends[number], places[number])
    apart = Buffer(actions)
    apart.observations, apart.labels = (
        SymbolIndex(log.observations.values),
        SymbolIndex(log.labels.values),
    )
    under_way: list[Episode | None] = [None for _ in point.lengths]
    later: list[deque[tuple[Episode, int | None]]] = [deque() for _ in point.lengths]
    for number in range(point.episodes, len(traces)):
        place = places[number]
        length = -1 if later[place] else point.lengths[place]
        if length >= 0:
            under_way[place] = episode_of(traces, number, log, known, length)
        end = ends[number] if number < len(ends) else None
        later[place].append((episode_of(traces, number, apart, known), end))
    return RestoredLog(log, under_way, later, apart)


def episode_of(
    traces: TraceSet, number: int, log: Buffer, actions: dict[Any, int], length: int | None = None
) -> Episode:
    """Return a trace, or how it begins, in the codes of a log."""
    episode = Episode()
    trace = traces[number]
    steps = len(trace.actions) if length is None else length
    rewards = trace.rewards or ()
    episode.begin(log.observation(trace.observations[0]), log.label(trace.labels[0]))
    for step in range(steps):
        episode.step(
            actions[trace.actions[step]],
            float(rewards[step]),
            log.observation(trace.observations[step + 1]),
            log.label(trace.labels[step + 1]),
        )
    return episode
