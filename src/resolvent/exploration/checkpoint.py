"""Checkpoints: the state of learning that does not follow from the traces.

The model follows from the traces and the transition tables. So a checkpoint holds these tables and
some counters: a run that resumes there decides the same as one that was never stopped.
"""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from resolvent.exploration.buffer import Buffer
from resolvent.exploration.player import EpisodePlayer
from resolvent.exploration.relabel import FIRST_SEARCH
from resolvent.exploration.state import LearnerState, Validation
from resolvent.exploration.tables import TransitionTables
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.symbols import as_symbol


class StoredHypothesis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The machines, and when they are inferred again; no names if there are none."""

    names: list[str] = []
    transitions: list[list[list[int]]] = []
    timing: str
    remove_trivial: bool
    thorough_at: int


class StoredLabels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The source of labels, as `state.LabelState` has it."""

    reads: str
    events: list[tuple[Any, Any]] | None = None
    undecided: bool = False
    search_at: int = FIRST_SEARCH
    states_at_discovery: int = 0


class StoredValidation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The tests passed by the plan, as `state.Validation` has them."""

    starts: list[tuple[int, ...]] = []
    steps: int = 0
    repeated_steps: int = 0


class StoredEpisode(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The episode of one environment: its number of steps (-1 if closed), and that of its reset."""

    length: int = -1
    reset: int = -1


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A step at which the model was computed again, and the state that traces do not contain.

    `closed` is the number of closed episodes, `open` has one for each environment, `resets` counts
    all resets, and `rounds` is the length of the history. `observations` and `labels` are the
    codes, in all traces, of symbols in the order of their first occurrence; -1 for those of
    abandoned starts.
    """

    closed: int = 0
    open: list[StoredEpisode]
    resets: int = 0
    rounds: int = 0
    truncated_episodes: int = 0
    observations: list[int] = []
    labels: list[int] = []
    hypothesis: StoredHypothesis
    label_source: StoredLabels
    validation: StoredValidation = StoredValidation()


def make_checkpoint(state: LearnerState, player: EpisodePlayer, rounds: int) -> Checkpoint:
    """Return a checkpoint of the present state."""
    buffer, labels, validation = state.buffer, state.labels, state.validation
    traces = buffer.traces()
    return Checkpoint(
        closed=buffer.episodes,
        open=[
            StoredEpisode(length=episode.length if episode.is_open else -1, reset=reset)
            for episode, reset in zip(state.episodes, player.reset_of, strict=True)
        ],
        resets=player.resets,
        rounds=rounds,
        truncated_episodes=state.truncated_episodes,
        observations=buffer.observations.codes_in(traces.observations),
        labels=buffer.labels.codes_in(traces.labels),
        hypothesis=_stored_hypothesis(state),
        label_source=StoredLabels(
            reads=labels.labeling.reads,
            events=_stored_events(labels.labeling),
            undecided=labels.undecided,
            search_at=labels.search_at,
            states_at_discovery=labels.states_at_discovery,
        ),
        validation=StoredValidation(
            starts=sorted(validation.starts),
            steps=validation.steps,
            repeated_steps=validation.repeated_steps,
        ),
    )


def first_checkpoint(state: LearnerState, count: int) -> Checkpoint:
    """Return a checkpoint before the first step, of this number of environments."""
    return Checkpoint(
        open=[StoredEpisode()] * count,
        hypothesis=_stored_hypothesis(state),
        label_source=StoredLabels(reads="given", undecided=True),
    )


def checkpoint_of_closed(
    state: LearnerState, checkpoint: Checkpoint, traces: TraceSet, labeling: LabelingFunction
) -> Checkpoint:
    """Return a checkpoint after all these traces, where machines are to be inferred."""
    return Checkpoint(
        closed=len(traces),
        open=[StoredEpisode()] * len(state.episodes),
        resets=max(checkpoint.resets, len(traces)),
        truncated_episodes=checkpoint.truncated_episodes,
        observations=list(range(len(traces.observations))),
        labels=list(range(len(traces.labels))),
        hypothesis=msgspec.structs.replace(_stored_hypothesis(state), thorough_at=0),
        label_source=StoredLabels(reads=labeling.reads, events=_stored_events(labeling)),
    )


def with_codes_in(checkpoint: Checkpoint, buffer: Buffer, traces: TraceSet) -> Checkpoint:
    """Return a checkpoint with the codes that its symbols have in later traces."""
    n_observations, n_labels = len(checkpoint.observations), len(checkpoint.labels)
    return msgspec.structs.replace(
        checkpoint,
        observations=buffer.observations.codes_in(traces.observations, n_observations),
        labels=buffer.labels.codes_in(traces.labels, n_labels),
    )


def _stored_hypothesis(state: LearnerState) -> StoredHypothesis:
    tables, options = state.hypothesis.tables, state.hypothesis.options
    return StoredHypothesis(
        names=[] if tables is None else list(tables.names),
        transitions=[] if tables is None else [table.tolist() for table in tables.transitions],
        timing=options.timing.value,
        remove_trivial=options.remove_trivial,
        thorough_at=state.hypothesis.thorough_at,
    )


def _stored_events(labeling: LabelingFunction) -> list[tuple[Any, Any]] | None:
    return None if labeling.events is None else labeling.event_pairs()


def restore(state: LearnerState, checkpoint: Checkpoint, buffer: Buffer) -> None:
    """Restore the state at a checkpoint, with the steps before it."""
    labels, stored, hypothesis = state.labels, checkpoint.label_source, state.hypothesis
    if labels.automatic:
        events = None
        if stored.events is not None:
            events = {as_symbol(source): name for source, name in stored.events}
        labels.labeling = LabelingFunction(stored.reads, events)  # type: ignore[arg-type]
        labels.search_at = stored.search_at
        labels.states_at_discovery = stored.states_at_discovery
    labels.undecided = labels.undecided and stored.undecided
    state.truncated_episodes = checkpoint.truncated_episodes
    state.buffer = hypothesis.buffer = buffer
    machines = checkpoint.hypothesis
    timing = LabelTiming(machines.timing)
    if machines.names:
        transitions = tuple(np.array(table, np.int32) for table in machines.transitions)
        hypothesis.tables = TransitionTables(tuple(machines.names), transitions, timing)
    hypothesis.thorough_at = machines.thorough_at
    hypothesis.options = replace(
        hypothesis.options, timing=timing, remove_trivial=machines.remove_trivial
    )
    validation = checkpoint.validation
    state.validation = Validation(
        set(validation.starts), validation.steps, validation.repeated_steps
    )
    for index, episode in buffer.open.items():
        state.episodes[index].recorded = episode
    state.rebuild()
