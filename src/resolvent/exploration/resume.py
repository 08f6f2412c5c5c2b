"""Resume exploration without taking the same steps again.

Steps after the last checkpoint are replayed to the learner; only the actions of the last open
episodes are repeated in their environments.
"""

import warnings
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolvent._util.text import amount
from resolvent.errors import ModelError, ResumeWarning, TraceError
from resolvent.exploration.buffer import TERMINATED, TRUNCATED, Buffer, Episode, SymbolIndex
from resolvent.exploration.checkpoint import (
    Checkpoint,
    checkpoint_of_closed,
    first_checkpoint,
    restore,
)
from resolvent.exploration.learner import (
    EncodedReset,
    EncodedStep,
    begin_episode,
    close_episode,
    present_label,
)
from resolvent.exploration.player import EpisodePlayer
from resolvent.exploration.run import SolveRun
from resolvent.exploration.solution import Solution
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.traces import Label, TraceSet


def restored_log(run: SolveRun, previous: Solution) -> "LogReplay":
    """Restore the last checkpoint of an earlier solution; return the steps after it."""
    state, traces, count = run.state, previous.traces, len(run.state.episodes)
    labeling = previous.machines.preprocessor.labeling
    if not state.labels.automatic and state.labels.labeling != labeling:
        raise ModelError(
            f"what to go on from has other labels ({labeling.reads}, not "
            f"{state.labels.labeling.reads}): resume with the same ones"
        )
    ends = list(previous.ends)
    environments = list(previous.places) or [0] * len(traces)
    checkpoint = previous.point or first_checkpoint(state, max(environments, default=0) + 1)
    count_before = len(checkpoint.open)
    if count_before != count:
        if len(ends) < len(traces):
            warnings.warn(
                f"{amount(count_before, 'environment')} side by side before, {count} now: "
                f"what was seen stays, and episodes that were under way count as cut",
                ResumeWarning,
                stacklevel=5,
            )
        ends += [TRUNCATED] * (len(traces) - len(ends))
        environments = [0] * len(traces)
        checkpoint = checkpoint_of_closed(state, checkpoint, traces, labeling)
    fits = checkpoint.closed <= len(ends) <= len(traces) == len(environments)
    if not (fits and set(environments) <= set(range(count))):
        raise ModelError("what to go on from is damaged: its episodes do not fit its traces")
    log = recorded_log(checkpoint, traces, ends, environments, state.buffer.actions)
    restore(state, checkpoint, log.buffer)
    run.restore(previous, checkpoint)
    return LogReplay(state, run.player, log)


@dataclass(frozen=True)
class RecordedLog:
    """The buffer at a checkpoint, and all later episodes.

    Later episodes have the codes of `coding`: the learner must not know their symbols before. They
    are listed by environment, each with its kind of end; None if it is still open. The first one
    continues the episode that was open at the checkpoint.
    """

    buffer: Buffer
    later: list[deque[tuple[Episode, int | None]]]
    coding: Buffer


def recorded_log(
    checkpoint: Checkpoint,
    traces: TraceSet,
    ends: Sequence[int],
    environments: Sequence[int],
    actions: list[Any],
) -> RecordedLog:
    """Return the episodes before and after a checkpoint.

    `ends` is the kind of end of each closed episode, `environments` the environment of each trace.
    """
    buffer, coding = Buffer(actions), Buffer(actions)
    buffer.observations = SymbolIndex.from_codes(traces.observations, checkpoint.observations)
    buffer.labels = SymbolIndex.from_codes(traces.labels, checkpoint.labels)
    action_codes = {action: code for code, action in enumerate(actions)}
    if not all(action in action_codes for action in traces.actions):
        raise ModelError("the traces have actions that the environment has not: use the same one")
    for number in range(checkpoint.closed):
        index = environments[number]
        buffer.open[index] = _encoded(traces, number, buffer, action_codes)
        buffer.close(index, ends[number])
    coding.observations = SymbolIndex(buffer.observations.values)
    coding.labels = SymbolIndex(buffer.labels.values)
    later: list[deque[tuple[Episode, int | None]]] = [deque() for _ in checkpoint.open]
    for number in range(checkpoint.closed, len(traces)):
        index = environments[number]
        length = -1 if later[index] else checkpoint.open[index].length
        if length >= 0:
            buffer.open[index] = _encoded(traces, number, buffer, action_codes, length)
        end = ends[number] if number < len(ends) else None
        later[index].append((_encoded(traces, number, coding, action_codes), end))
    return RecordedLog(buffer, later, coding)


def _encoded(
    traces: TraceSet,
    number: int,
    buffer: Buffer,
    action_codes: dict[Any, int],
    length: int | None = None,
) -> Episode:
    """Return a trace, or its first steps, in the codes of a buffer."""
    trace = traces[number]
    rewards = trace.rewards or ()
    observations, labels = buffer.observations, buffer.labels
    episode = Episode.begun(observations.code(trace.observations[0]), labels.code(trace.labels[0]))
    for step in range(len(trace.actions) if length is None else length):
        episode.step(
            action_codes[trace.actions[step]],
            float(rewards[step]),
            observations.code(trace.observations[step + 1]),
            labels.code(trace.labels[step + 1]),
        )
    return episode


class LogReplay:
    """Replays recorded steps to a learner, in the place of an `EpisodePlayer`.

    All environments step together, so the steps of each determine the order of all. Environments
    are reset as at that time: episodes that were left without a step are in no trace. If one does
    not begin as before, its episodes do not follow from seeds; the recorded steps still count.
    """

    def __init__(self, state: LearnerState, player: EpisodePlayer, log: RecordedLog) -> None:
        self.state, self.player, self.later, self.coding = state, player, log.later, log.coding
        open_lengths = {index: len(episode) for index, episode in log.buffer.open.items()}
        self._n_replayed = [open_lengths.get(index, 0) for index in range(len(log.later))]
        """Number of steps replayed of the first later episode, by environment."""

    def has_next(self) -> bool:
        """Return whether a step is left to replay."""
        return all(
            later and (len(later) > 1 or n_replayed < len(later[0][0]))
            for later, n_replayed in zip(self.later, self._n_replayed, strict=True)
        )

    def begin(self, indices: Iterable[int]) -> dict[int, EncodedReset]:
        """Begin the next episodes of some environments."""
        return self.player.begin(indices)

    def decide(self, episode: EpisodeState, selected: int | None) -> int | None:
        """Return the action that was taken; None if another episode was begun."""
        recorded, n_replayed = self.later[episode.index][0][0], self._n_replayed[episode.index]
        if not episode.length:
            if selected is None:
                return None
            self._begin_as_recorded(episode, recorded)
        if n_replayed < len(recorded):
            return recorded.actions[n_replayed]
        self._next_episode(episode.index)
        return None

    def step(self, actions: Mapping[int, int]) -> list[EncodedStep]:
        """Return the recorded step of every environment."""
        return [self._step(index) for index in actions]

    def _step(self, index: int) -> EncodedStep:
        (episode, end), step = self.later[index][0], self._n_replayed[index]
        self._n_replayed[index] += 1
        is_last = step + 1 == len(episode)
        if is_last and end in (TERMINATED, TRUNCATED):
            self._next_episode(index)
        return EncodedStep(
            episode.actions[step],
            episode.rewards[step],
            self.coding.observations.values[episode.observations[step + 1]],
            self._label(episode.labels[step + 1]),
            terminated=is_last and end == TERMINATED,
            truncated=is_last and end == TRUNCATED,
        )

    def finish(self) -> None:
        """Bring the environments to the state after the last steps.

        Episodes that proceed differently are truncated.
        """
        state = self.state
        try:
            lost = _repeat_open_episodes(state, self.player)
            why = "the environment does not do the same again by the same seed and actions"
        except TraceError as error:  # a failure at that time may recur
            lost = {episode.index for episode in state.episodes if episode.is_open}
            why = str(error)
        for index in sorted(lost):
            close_episode(state, state.episodes[index], TRUNCATED)
        if lost:
            warnings.warn(
                f"{amount(len(lost), 'episode')} under way could not be brought back ({why}): "
                f"what was seen stays, as of an episode that was cut",
                ResumeWarning,
                stacklevel=5,
            )

    def _next_episode(self, index: int) -> None:
        self.later[index].popleft()
        self._n_replayed[index] = 0

    def _begin_as_recorded(self, episode: EpisodeState, recorded: Episode) -> None:
        observation, label = recorded.start
        reset = EncodedReset(self.coding.observations.values[observation], self._label(label))
        if not _shows(self.state, episode, 0, reset):
            begin_episode(self.state, episode, reset)

    def _label(self, code: int) -> Label | None:
        """Return a recorded label; None if the learner makes labels, which may be others by now."""
        is_given = self.state.labels.labeling.is_given
        label: Label = self.coding.labels.values[code]
        return label if is_given else None


def _repeat_open_episodes(state: LearnerState, player: EpisodePlayer) -> set[int]:
    """Bring environments to the end of their open episodes; return those that proceed differently.

    All finish at the same time: those that wait, or have no episode, take the first action.
    """
    indices = [episode.index for episode in state.episodes]
    lengths = {episode.index: episode.length for episode in state.episodes if episode.is_open}
    lost, over = set[int](), set(indices)
    for remaining in range(max(lengths.values(), default=0), 0, -1):
        begin = {index for index, length in lengths.items() if length == remaining}
        for index, reset in player.repeat(sorted(over | begin)).items():
            if index in begin and not _shows(state, state.episodes[index], 0, reset):
                lost.add(index)
        playing = {index for index, length in lengths.items() if length >= remaining}
        actions = {
            index: state.episodes[index].recorded.actions[-remaining] if index in playing else 0
            for index in indices
        }
        over = set()
        for index, step in zip(indices, player.take(actions), strict=True):
            is_over = step.terminated or step.truncated
            if is_over:
                over.add(index)
            if index in playing:
                is_same = not is_over and _shows(state, state.episodes[index], -remaining, step)
                lost |= set() if is_same else {index}
    return lost


def _shows(
    state: LearnerState, episode: EpisodeState, position: int, now: EncodedReset | EncodedStep
) -> bool:
    """Return whether a reset or step shows what was recorded at a position of an episode."""
    recorded, buffer = episode.recorded, state.buffer
    observation = buffer.observations.values[recorded.observations[position]]
    label = buffer.labels.values[recorded.labels[position]]
    return bool(observation == now.observation and label == present_label(state, now))
