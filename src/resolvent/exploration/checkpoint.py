"""Save the state of exploration, and restore it without taking the same steps again.

The model follows from the traces and the transition tables. So a checkpoint holds these tables and
some counters: a run that resumes there decides the same as one that was never stopped. Steps after
the checkpoint are replayed to the explorer; only the actions of the last open episodes are
repeated in their environments.
"""

import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from resolvent._util.text import amount
from resolvent.errors import ModelError, ResumeWarning, TraceError
from resolvent.exploration.buffer import (
    ABANDONED,
    TERMINATED,
    TRUNCATED,
    Buffer,
    Episode,
    SymbolIndex,
)
from resolvent.exploration.learner import Change, EncodedStep, begin_episode, close_episode
from resolvent.exploration.relabel import FIRST_SEARCH, restored_labelling, stored_sources
from resolvent.exploration.runner import Shown, StepResult
from resolvent.exploration.state import EpisodeState, LearnerState
from resolvent.exploration.tables import TransitionTables
from resolvent.exploration.tests import select_action
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.symbols import Label

if TYPE_CHECKING:
    from resolvent.exploration.run import SolveRun


class StoredHypothesis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The machines, and when they are inferred again; no names if there are none."""

    names: list[str] = []
    transitions: list[list[list[int]]] = []
    timing: str
    remove_trivial: bool
    thorough_at: int

    @property
    def tables(self) -> TransitionTables | None:
        """The transition tables."""
        if not self.names:
            return None
        transitions = tuple(np.array(table, np.int32) for table in self.transitions)
        return TransitionTables(tuple(self.names), transitions, LabelTiming(self.timing))


class StoredLabels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The source of labels, as `state.LabelState` has it."""

    reads: str
    events: list[tuple[Any, Any]] | None = None
    undecided: bool = False
    search_at: int = FIRST_SEARCH
    states_at_discovery: int = 0


class StoredValidation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The tests passed by the plan, as `state.LearnerState` has them."""

    validated: list[list[int]] = []
    validation_steps: int = 0
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

    closed: int
    open: list[StoredEpisode]
    resets: int
    rounds: int = 0
    truncated_episodes: int = 0
    observations: list[int] = []
    labels: list[int] = []
    hypothesis: StoredHypothesis
    label_source: StoredLabels
    validation: StoredValidation = StoredValidation()


def make_checkpoint(
    state: LearnerState, resets: int, reset_of: Sequence[int], rounds: int
) -> Checkpoint:
    """Return a checkpoint of the present state; `reset_of` is by environment."""
    traces, tables, options = state.traces(), state.hypothesis.tables, state.hypothesis.options
    return Checkpoint(
        closed=state.buffer.episodes,
        open=[
            StoredEpisode(length=len(episode.episode) if episode.active else -1, reset=reset)
            for episode, reset in zip(state.episodes, reset_of, strict=True)
        ],
        resets=resets,
        rounds=rounds,
        truncated_episodes=state.truncated_episodes,
        observations=state.buffer.observations.codes_in(traces.observations),
        labels=state.buffer.labels.codes_in(traces.labels),
        hypothesis=StoredHypothesis(
            names=[] if tables is None else list(tables.names),
            transitions=[] if tables is None else [table.tolist() for table in tables.transitions],
            timing=options.timing.value,
            remove_trivial=options.remove_trivial,
            thorough_at=state.hypothesis.thorough_at,
        ),
        label_source=StoredLabels(
            reads=state.labels.labelling.reads,
            events=stored_sources(state.labels.labelling),
            undecided=state.labels.undecided,
            search_at=state.labels.search_at,
            states_at_discovery=state.labels.states_at_discovery,
        ),
        validation=StoredValidation(
            validated=sorted(list(start) for start in state.validated),
            validation_steps=state.validation_steps,
            repeated_steps=state.repeated_steps,
        ),
    )


def first_checkpoint(state: LearnerState, count: int) -> Checkpoint:
    """Return a checkpoint before the first step, of this number of environments."""
    options = state.hypothesis.options
    return Checkpoint(
        closed=0,
        open=[StoredEpisode()] * count,
        resets=0,
        hypothesis=StoredHypothesis(
            timing=options.timing.value,
            remove_trivial=options.remove_trivial,
            thorough_at=state.hypothesis.thorough_at,
        ),
        label_source=StoredLabels(reads="given", undecided=True),
    )


def checkpoint_of_closed(
    state: LearnerState,
    checkpoint: Checkpoint,
    traces: TraceSet,
    labelling: LabelingFunction,
    count: int,
) -> Checkpoint:
    """Return a checkpoint after all these traces, where machines are to be inferred.

    `count` is the number of environments from then on.
    """
    options = state.hypothesis.options
    return Checkpoint(
        closed=len(traces),
        open=[StoredEpisode()] * count,
        resets=max(checkpoint.resets, len(traces)),
        truncated_episodes=checkpoint.truncated_episodes,
        observations=list(range(len(traces.observations))),
        labels=list(range(len(traces.labels))),
        hypothesis=StoredHypothesis(
            timing=options.timing.value, remove_trivial=options.remove_trivial, thorough_at=0
        ),
        label_source=StoredLabels(reads=labelling.reads, events=stored_sources(labelling)),
    )


@dataclass(frozen=True)
class RestoredLog:
    """The buffer at a checkpoint, the episodes open then, and all later episodes.

    Later episodes have the codes of `coding`: the explorer must not know their symbols before. They
    are listed by environment, each with its kind of end; None if it is still open. The first one
    continues the episode that was open at the checkpoint.
    """

    buffer: Buffer
    open_episodes: list[Episode | None]
    later: list[deque[tuple[Episode, int | None]]]
    coding: Buffer


def restored_log(
    checkpoint: Checkpoint,
    traces: TraceSet,
    ends: Sequence[int],
    environments: Sequence[int],
    actions: list[Any],
) -> RestoredLog:
    """Return the episodes before and after a checkpoint.

    `ends` is the kind of end of each closed episode, `environments` the environment of each trace.
    """
    buffer = Buffer(actions)
    buffer.observations = SymbolIndex.from_codes(traces.observations, checkpoint.observations)
    buffer.labels = SymbolIndex.from_codes(traces.labels, checkpoint.labels)
    action_codes = {action: code for code, action in enumerate(actions)}
    if not all(action in action_codes for action in traces.actions):
        raise ModelError("the traces have actions that the environment has not: use the same one")
    for number in range(checkpoint.closed):
        episode = _encoded(traces, number, buffer, action_codes)
        buffer.close(episode, ends[number], environments[number])
    coding = Buffer(actions)
    coding.observations = SymbolIndex(buffer.observations.values)
    coding.labels = SymbolIndex(buffer.labels.values)
    open_episodes: list[Episode | None] = [None for _ in checkpoint.open]
    later: list[deque[tuple[Episode, int | None]]] = [deque() for _ in checkpoint.open]
    for number in range(checkpoint.closed, len(traces)):
        index = environments[number]
        length = -1 if later[index] else checkpoint.open[index].length
        if length >= 0:
            open_episodes[index] = _encoded(traces, number, buffer, action_codes, length)
        end = ends[number] if number < len(ends) else None
        later[index].append((_encoded(traces, number, coding, action_codes), end))
    return RestoredLog(buffer, open_episodes, later, coding)


def _encoded(
    traces: TraceSet,
    number: int,
    buffer: Buffer,
    action_codes: dict[Any, int],
    length: int | None = None,
) -> Episode:
    """Return a trace, or its first steps, in the codes of a buffer."""
    episode = Episode()
    trace = traces[number]
    rewards = trace.rewards or ()
    episode.begin(buffer.observations(trace.observations[0]), buffer.labels(trace.labels[0]))
    for step in range(len(trace.actions) if length is None else length):
        episode.step(
            action_codes[trace.actions[step]],
            float(rewards[step]),
            buffer.observations(trace.observations[step + 1]),
            buffer.labels(trace.labels[step + 1]),
        )
    return episode


def restore(state: LearnerState, checkpoint: Checkpoint, log: RestoredLog) -> None:
    """Restore the state at a checkpoint."""
    labels, stored = state.labels, checkpoint.label_source
    if labels.automatic:
        labels.labelling = restored_labelling(stored.reads, stored.events)
        labels.search_at = stored.search_at
        labels.states_at_discovery = stored.states_at_discovery
    labels.undecided = labels.undecided and stored.undecided
    state.truncated_episodes = checkpoint.truncated_episodes
    hypothesis = state.hypothesis
    state.buffer = hypothesis.buffer = log.buffer
    hypothesis.tables = checkpoint.hypothesis.tables
    hypothesis.thorough_at = checkpoint.hypothesis.thorough_at
    hypothesis.options = replace(
        hypothesis.options,
        timing=LabelTiming(checkpoint.hypothesis.timing),
        remove_trivial=checkpoint.hypothesis.remove_trivial,
    )
    state.validated = {tuple(start) for start in checkpoint.validation.validated}
    state.validation_steps = checkpoint.validation.validation_steps
    state.repeated_steps = checkpoint.validation.repeated_steps
    state.episodes = [EpisodeState(index) for index in range(len(log.open_episodes))]
    for episode, recorded in zip(state.episodes, log.open_episodes, strict=True):
        if recorded is not None:
            episode.episode, episode.active = recorded, True
    state.rebuild()


class LogReplay:
    """Replays the steps after a checkpoint to an explorer.

    All environments step together, so the steps of each determine the order of all. If an
    environment does not begin as before, its episodes do not follow from seeds; the recorded steps
    still count.
    """

    def __init__(self, run: "SolveRun", log: RestoredLog) -> None:
        self.run, self.later, self.coding = run, log.later, log.coding
        self.explorer, self.state = run.explorer, run.explorer.state
        self.indices = range(run.runner.count)
        self.n_shown = [0 if episode is None else len(episode) for episode in log.open_episodes]
        """Number of steps replayed of the first later episode, by environment."""

    def replay(self) -> None:
        """Replay all steps, and bring the environments to the state after the last ones."""
        run, ready = self.run, set[int]()
        run.shown = {episode.index: (None, {}) for episode in self._active()}
        while all(map(self._has_more, self.indices)) and not run.verify_if_done():
            run.begin_episodes()
            for index in self.indices:
                if index not in ready and self._decides(index):
                    ready.add(index)
            if len(ready) == len(self.indices):
                ready.clear()
                self._step()
        if len(self.indices) == 1:
            self._abandon_last()
        run.shown = {}
        self._catch_up()

    def _active(self) -> Iterable[EpisodeState]:
        return (episode for episode in self.state.episodes if episode.active)

    def _has_more(self, index: int) -> bool:
        """Return whether a step is left to replay."""
        later = self.later[index]
        return len(later) > 1 or (len(later) == 1 and self.n_shown[index] < len(later[0][0]))

    def _decides(self, index: int) -> bool:
        """Let the explorer decide; return False where it has to begin another episode."""
        episode = self.explorer.episode(index)
        if not episode.active:
            if self.explorer.select(*self.run.shown[index], index) is None:
                del self.run.shown[index]
                return False
            self._begin_as_before(episode)
            return True
        select_action(self.state, episode)
        if self.n_shown[index] < len(self.later[index][0][0]):
            return True
        self._abandon(episode)
        return False

    def _abandon(self, episode: EpisodeState) -> None:
        """Leave an episode that was abandoned."""
        close_episode(self.state, episode)
        del self.run.shown[episode.index]
        self._next_episode(episode.index)

    def _next_episode(self, index: int) -> None:
        self.later[index].popleft()
        self.n_shown[index] = 0

    def _begin_as_before(self, episode: EpisodeState) -> None:
        recorded, buffer, coding = self.later[episode.index][0][0], self.state.buffer, self.coding
        observation = buffer.observations(coding.observations.values[recorded.observations[0]])
        label = buffer.labels(coding.labels.values[recorded.labels[0]])
        if (episode.episode.observations[0], episode.episode.labels[0]) != (observation, label):
            begin_episode(self.state, episode, observation, label)

    def _step(self) -> None:
        """Replay the next step of every environment."""
        changed = False
        for index in self.indices:
            (episode, end), step = self.later[index][0], self.n_shown[index]
            self.n_shown[index] += 1
            is_last = step + 1 == len(episode)
            encoded = EncodedStep(
                episode.actions[step],
                episode.rewards[step],
                self.coding.observations.values[episode.observations[step + 1]],
                self.coding.labels.values[episode.labels[step + 1]],
                terminated=is_last and end == TERMINATED,
                truncated=is_last and end == TRUNCATED,
            )
            changed |= self.explorer.update(encoded, index) is not Change.NONE
            if encoded.terminated or encoded.truncated:
                del self.run.shown[index]
                self._next_episode(index)
        self.run.after_step(changed)

    def _abandon_last(self) -> None:
        """Leave the episode that was abandoned last; of several, the run determines which one."""
        episode, later = self.explorer.episode(0), self.later[0]
        was_abandoned = episode.active and bool(later) and later[0][1] == ABANDONED
        if was_abandoned and not self._has_more(0) and not self.run.verify_if_done():
            select_action(self.state, episode)
            self._abandon(episode)

    def _catch_up(self) -> None:
        """Repeat the actions of open episodes; those that proceed differently are truncated."""
        open_episodes = {episode.index: episode for episode in self._active()}
        try:
            lost = self._repeat_actions(open_episodes)
            why = "the environment does not do the same again by the same seed and actions"
        except TraceError as error:  # a failure at that time may recur
            lost, why = set(open_episodes), str(error)
        for index in sorted(lost):
            close_episode(self.state, open_episodes[index], TRUNCATED)
        if lost:
            warnings.warn(
                f"{amount(len(lost), 'episode')} under way could not be brought back ({why}): "
                f"what was seen stays, as of an episode that was cut",
                ResumeWarning,
                stacklevel=5,
            )
        self.run.shown = {
            index: observed
            for index, observed in self.run.shown.items()
            if index in open_episodes and index not in lost
        }

    def _repeat_actions(self, open_episodes: dict[int, EpisodeState]) -> set[int]:
        """Repeat the actions so that all environments finish at the same time.

        Environments that wait, or have no episode, take the first action. Return those that
        proceeded differently.
        """
        run, lost = self.run, set[int]()
        lengths = {index: len(episode.episode) for index, episode in open_episodes.items()}
        over = set(self.indices)
        for remaining in range(max(lengths.values(), default=0), 0, -1):
            begins = {index for index, length in lengths.items() if length == remaining}
            run.reset(sorted(over | begins))
            lost |= {index for index in begins if not self._begins_as_before(open_episodes[index])}
            actions = {}
            for index in self.indices:
                has_turn = lengths.get(index, 0) >= remaining
                code = open_episodes[index].episode.actions[-remaining] if has_turn else 0
                actions[index] = self.explorer.action(code)
            before, results = dict(run.shown), run.runner.step(actions)
            for result in results:
                index = result.index
                run.shown[index] = result.observation, result.info
                has_turn = lengths.get(index, 0) >= remaining
                if has_turn and not self._proceeds_as_before(
                    open_episodes[index], remaining, before[index], result
                ):
                    lost.add(index)
            over = {result.index for result in results if result.terminated or result.truncated}
        return lost | {
            index
            for index in open_episodes
            if not self.explorer.is_last_observation(run.shown[index][0], index)
        }

    def _begins_as_before(self, episode: EpisodeState) -> bool:
        label = self.explorer.labels.at_reset(*self.run.shown[episode.index])
        return self._has_code(label, episode.episode.labels[0])

    def _proceeds_as_before(
        self, episode: EpisodeState, remaining: int, before: Shown, result: StepResult
    ) -> bool:
        label = self.explorer.labels.after_step(
            before[0], result.action, result.reward, result.observation, result.info
        )
        is_over = result.terminated or result.truncated
        position = len(episode.episode.labels) - remaining
        return not is_over and self._has_code(label, episode.episode.labels[position])

    def _has_code(self, label: Label, code: int) -> bool:
        return self.state.buffer.labels.codes.get(label) == code
