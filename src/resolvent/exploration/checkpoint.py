"""Checkpoints, and how exploration resumes at one without taking the same steps again.

The model follows from the traces and the transition tables. So a checkpoint holds these tables and
some counters: a run that resumes there decides the same as one that was never stopped. Steps after
the last checkpoint are replayed to the learner; only the actions of the last open episodes are
repeated in their environments.
"""

import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from resolvent._util.text import amount
from resolvent.errors import ResumeWarning, TraceError
from resolvent.exploration.buffer import TERMINATED, TRUNCATED, Buffer, Episode, SymbolIndex
from resolvent.exploration.environment import EpisodePlayer
from resolvent.exploration.learner import (
    FIRST_SEARCH,
    EncodedStep,
    begin_episode,
    close_episode,
    present_label,
)
from resolvent.exploration.state import EpisodeState, LearnerState, Validation
from resolvent.exploration.tables import TransitionTables
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Label, Trace, TraceSet
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
    shortened_to: int = 0


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

    def with_codes_in(self, buffer: Buffer, traces: TraceSet) -> "Checkpoint":
        """Return the checkpoint with the codes that its symbols have in later traces."""
        observations = buffer.observations.codes_in(traces.observations, len(self.observations))
        labels = buffer.labels.codes_in(traces.labels, len(self.labels))
        return msgspec.structs.replace(self, observations=observations, labels=labels)


def make_checkpoint(state: LearnerState, player: EpisodePlayer, rounds: int) -> Checkpoint:
    """Return a checkpoint of the present state, with the codes of its buffer."""
    buffer, labels, validation = state.buffer, state.labels, state.validation
    return Checkpoint(
        closed=buffer.episodes,
        open=[
            StoredEpisode(length=episode.length if episode.is_open else -1, reset=reset)
            for episode, reset in zip(state.episodes, player.reset_of, strict=True)
        ],
        resets=player.resets,
        rounds=rounds,
        truncated_episodes=state.truncated_episodes,
        observations=list(range(len(buffer.observations))),
        labels=list(range(len(buffer.labels))),
        hypothesis=_stored_hypothesis(state),
        label_source=_stored_labels(
            labels.labeling,
            undecided=labels.undecided,
            search_at=labels.search_at,
            states_at_discovery=labels.states_at_discovery,
            shortened_to=labels.shortened_to,
        ),
        validation=StoredValidation(**vars(validation) | {"starts": sorted(validation.starts)}),
    )


def checkpoint_of_closed(
    state: LearnerState, checkpoint: Checkpoint | None, traces: TraceSet, labeling: LabelingFunction
) -> Checkpoint:
    """Return a checkpoint after all these traces, where machines are to be inferred."""
    return Checkpoint(
        closed=len(traces),
        open=[StoredEpisode()] * len(state.episodes),
        resets=max(0 if checkpoint is None else checkpoint.resets, len(traces)),
        truncated_episodes=0 if checkpoint is None else checkpoint.truncated_episodes,
        observations=list(range(len(traces.observations))),
        labels=list(range(len(traces.labels))),
        hypothesis=msgspec.structs.replace(_stored_hypothesis(state), thorough_at=0),
        label_source=_stored_labels(labeling),
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


def _stored_labels(labeling: LabelingFunction, **counters: Any) -> StoredLabels:
    events = None if labeling.events is None else labeling.event_pairs()
    return StoredLabels(reads=labeling.reads, events=events, **counters)


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
        labels.shortened_to = stored.shortened_to
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
    passed = checkpoint.validation
    state.validation = Validation(set(passed.starts), passed.steps, passed.repeated_steps)
    for index, episode in buffer.open.items():
        state.episodes[index].recorded = episode
    state.rebuild()


class ReplayLog:
    """The episodes after a checkpoint, replayed to a learner in the place of an `EpisodePlayer`.

    `buffer` has the steps before the checkpoint. `later` lists the episodes after it by
    environment, each with its kind of end, None if it is still open; the first one continues the
    episode that was open at the checkpoint.

    All environments step together, so the steps of each determine the order of all. Environments
    are reset as at that time: episodes that were left without a step are in no trace. If one does
    not begin as before, its episodes do not follow from seeds; the recorded steps still count.
    """

    def __init__(
        self,
        player: EpisodePlayer,
        checkpoint: Checkpoint,
        traces: TraceSet,
        ends: Sequence[int],
        environments: Sequence[int],
    ) -> None:
        """Read traces, with the kind of end of each closed one and the environment of each."""
        self.player, self.state = player, player.state
        self.buffer = buffer = Buffer(self.state.buffer.actions)
        self._actions = {action: code for code, action in enumerate(buffer.actions)}
        buffer.observations = SymbolIndex.from_codes(traces.observations, checkpoint.observations)
        buffer.labels = SymbolIndex.from_codes(traces.labels, checkpoint.labels)
        self.later: list[deque[tuple[Trace, int | None]]] = [deque() for _ in checkpoint.open]
        # The number of steps replayed of each environment's first later episode.
        self._n_replayed = [max(stored.length, 0) for stored in checkpoint.open]
        for number, (index, trace) in enumerate(zip(environments, traces, strict=True)):
            if number < checkpoint.closed:
                buffer.open[index] = self._encoded(trace, len(trace.actions))
                buffer.close(index, ends[number])
                continue
            if not self.later[index] and checkpoint.open[index].length >= 0:
                buffer.open[index] = self._encoded(trace, checkpoint.open[index].length)
            self.later[index].append((trace, ends[number] if number < len(ends) else None))

    def _encoded(self, trace: Trace, length: int) -> Episode:
        """Return the first steps of a trace in the codes of the buffer."""
        observations = [*map(self.buffer.observations.code, trace.observations[: length + 1])]
        labels = [*map(self.buffer.labels.code, trace.labels[: length + 1])]
        episode = Episode.begun(observations[0], labels[0])
        for step, action in enumerate(trace.actions[:length]):
            reward = float((trace.rewards or ())[step])
            episode.step(self._actions[action], reward, observations[step + 1], labels[step + 1])
        return episode

    def has_next(self) -> bool:
        """Return whether a step is left to replay."""
        return all(
            later and (len(later) > 1 or n_replayed < len(later[0][0].actions))
            for later, n_replayed in zip(self.later, self._n_replayed, strict=True)
        )

    def action(self, episode: EpisodeState, selected: int | None) -> int | None:
        """Return the action that was taken; None if another episode was begun."""
        trace, n_replayed = self.later[episode.index][0][0], self._n_replayed[episode.index]
        if not episode.length:
            if selected is None:
                return None
            reset = EncodedStep(trace.observations[0], self._label(trace, 0))
            if not _shows(self.state, episode, 0, reset):
                begin_episode(self.state, episode, reset)
        if n_replayed < len(trace.actions):
            return self._actions[trace.actions[n_replayed]]
        self._next_episode(episode.index)
        return None

    def step(self) -> list[EncodedStep]:
        """Return the next step of every environment."""
        return [self._next_step(index) for index in range(len(self.later))]

    def _next_step(self, index: int) -> EncodedStep:
        (trace, end), step = self.later[index][0], self._n_replayed[index]
        self._n_replayed[index] += 1
        is_last = step + 1 == len(trace.actions)
        if is_last and end in (TERMINATED, TRUNCATED):
            self._next_episode(index)
        return EncodedStep(
            trace.observations[step + 1],
            self._label(trace, step + 1),
            self._actions[trace.actions[step]],
            float((trace.rewards or ())[step]),
            terminated=is_last and end == TERMINATED,
            truncated=is_last and end == TRUNCATED,
        )

    def _next_episode(self, index: int) -> None:
        self.later[index].popleft()
        self._n_replayed[index] = 0

    def _label(self, trace: Trace, position: int) -> Label | None:
        """Return a recorded label; None if the learner makes labels, which may be others by now."""
        return trace.labels[position] if self.state.labels.labeling.is_given else None

    def finish(self) -> None:
        """Bring the environments to the state after the last steps.

        Episodes that proceed differently are truncated.
        """
        state = self.state
        try:
            lost = self._repeat_open_episodes()
            reason = "the environment does not repeat its steps for the same seed and actions"
        except TraceError as error:  # a failure at that time may recur
            lost = {episode.index for episode in state.episodes if episode.is_open}
            reason = str(error)
        for index in sorted(lost):
            close_episode(state, state.episodes[index], TRUNCATED)
        if lost:
            warnings.warn(
                f"{amount(len(lost), 'unfinished episode')} could not be restored ({reason}): all "
                f"recorded steps are kept, and unfinished episodes count as truncated",
                ResumeWarning,
                stacklevel=5,
            )

    def _repeat_open_episodes(self) -> set[int]:
        """Bring environments to the end of their open episodes; return those that differ.

        All finish at the same time: those that wait, or have no episode, take the first action.
        """
        state, player = self.state, self.player
        lengths = {episode.index: episode.length for episode in state.episodes if episode.is_open}
        lost, over = set[int](), {episode.index for episode in state.episodes}
        for remaining in range(max(lengths.values(), default=0), 0, -1):
            begin = {index for index, length in lengths.items() if length == remaining}
            for index, reset in player.repeat(sorted(over | begin)).items():
                if index in begin and not _shows(state, state.episodes[index], 0, reset):
                    lost.add(index)
            over = set()
            is_playing = [lengths.get(episode.index, 0) >= remaining for episode in state.episodes]
            actions = [
                episode.recorded.actions[-remaining] if plays else 0
                for episode, plays in zip(state.episodes, is_playing, strict=True)
            ]
            steps = player.take(actions)
            for episode, plays, step in zip(state.episodes, is_playing, steps, strict=True):
                is_over = step.terminated or step.truncated
                if is_over:
                    over.add(episode.index)
                if plays and (is_over or not _shows(state, episode, -remaining, step)):
                    lost.add(episode.index)
        return lost


def _shows(state: LearnerState, episode: EpisodeState, position: int, step: EncodedStep) -> bool:
    """Return whether a reset or step shows what was recorded at a position of an episode."""
    recorded, buffer = episode.recorded, state.buffer
    observation = buffer.observations.values[recorded.observations[position]]
    label = buffer.labels.values[recorded.labels[position]]
    return bool(observation == step.observation and label == present_label(state, step))
