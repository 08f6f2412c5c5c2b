"""One call of `solve`: note, report and save its progress, and resume from an earlier one.

Input: the state of learning after each step. Output: rounds of the history, checkpoints, reports,
the folder, and the solution so far.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from resolvent._util.text import amount
from resolvent._util.validation import quoted
from resolvent.errors import (
    EnvironmentFailed,
    ModelError,
    OptionError,
    ResolventError,
    ResumeWarning,
    TraceError,
)
from resolvent.exploration.buffer import TRUNCATED
from resolvent.exploration.checkpoint import (
    Checkpoint,
    ReplayLog,
    checkpoint_of_closed,
    first_checkpoint,
    make_checkpoint,
    restore,
    with_codes_in,
)
from resolvent.exploration.environment import EnvironmentId
from resolvent.exploration.explorer import Explorer, plan_of
from resolvent.exploration.learner import close_episode
from resolvent.exploration.player import EpisodePlayer
from resolvent.exploration.solution import TRACES, Round, Solution
from resolvent.exploration.stopping import StopReason, guarantee_of
from resolvent.exploration.values import ValueBounds
from resolvent.planning.plan import Plan
from resolvent.rl.env import AnyEnv

FIRST_CHECKPOINT, NEXT_CHECKPOINT = 500, 1.25
"""Number of steps between checkpoints, and factor by which steps have to grow between them."""

SECONDS_BETWEEN_REPORTS: Final = 0.1

WRITING_SHARE: Final = 0.05
"""Maximum share of the time spent on writing the folder."""

MIN_SECONDS_UNWRITTEN: Final = 0.1
"""Minimum number of seconds before the folder is written."""

NEW_ROUND: Final = 1.02
"""Factor by which steps have to grow between two rounds of the history."""

Listener: TypeAlias = Callable[[Round], object]


@dataclass(frozen=True)
class RunOptions:
    """When a run stops, what it does in a random world, and where its progress goes."""

    budget: int
    max_steps: int | None = None
    noise: str = "auto"
    confidence: float = 0.95
    folder: str | Path | None = None
    progress: Listener | None = None

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise OptionError(f"budget={self.budget}: allow at least one step")
        if self.max_steps is not None and self.max_steps < 1:
            raise OptionError(f"max_steps={self.max_steps}: allow at least one step")
        if self.noise not in ("auto", "none"):
            raise OptionError(f"noise={quoted(self.noise)}: use 'auto' or 'none'")
        if not 0 < self.confidence < 1:
            raise OptionError(f"confidence={self.confidence}: use a number above 0 and below 1")


class SolveRun:
    """Notes, reports and saves the progress of learning."""

    def __init__(
        self,
        env: AnyEnv,
        explorer: Explorer,
        options: RunOptions,
        world: EnvironmentId | None = None,
    ) -> None:
        self.state, self.options, self.world = explorer.state, options, world
        self.player = EpisodePlayer(env, explorer.state, explorer.encoder, options.max_steps)
        self.folder = None if options.folder is None else Path(options.folder)
        count = len(self.state.episodes)
        if options.budget < count:
            raise OptionError(
                f"budget={options.budget}: allow at least one step in each of the {count} "
                f"environments"
            )
        self.history: list[Round] = []
        self.checkpoint: Checkpoint | None = None
        self._next_checkpoint, self._many_varying = FIRST_CHECKPOINT, 1
        self._written, self._writing, self._reported = time.monotonic(), 0.0, 0.0

    def after_step(self, *, changed: bool, saves: bool = True) -> None:
        """Note a step in every environment: whether the machines changed, and whether to save."""
        state, model = self.state, self.state.model
        if model is not None and model.lag and len(model.nondeterministic) >= self._many_varying:
            # Check early whether a plan can use labels that are read late.
            self._many_varying = 2 * len(model.nondeterministic)
            self._plan()
        if changed:
            self.note_round()
        # With several environments, one of them always follows a path.
        is_free = len(state.episodes) > 1 or not state.episodes[0].path
        if state.labels.changed or (is_free and state.steps >= self._next_checkpoint):
            self.make_checkpoint()
        if saves:
            self._write()
        now = time.monotonic()
        if self.options.progress is not None and now >= self._reported:
            self._reported = now + SECONDS_BETWEEN_REPORTS
            self.options.progress(self.present_round(state.values))

    def _plan(self) -> Plan:
        try:
            return plan_of(self.state)
        except ModelError:  # no plan can use labels that are read late
            self.save_traces()
            raise

    def add_round(self, present: Round) -> None:
        """Add a round to the history, and report it."""
        self.history.append(present)
        if self.options.progress is not None:
            self.options.progress(present)

    def note_round(self) -> None:
        """Add a round to the history, unless the last one was a few steps ago."""
        if self.history and self.state.steps < NEW_ROUND * self.history[-1].steps:
            return
        self.state.refresh_bounds()
        self.history.append(self.present_round(self.state.values))

    def present_round(self, values: ValueBounds) -> Round:
        """Return the present round, by some value bounds."""
        state = self.state
        value, bound = values.mean_value(state.model)
        return Round(
            state.steps,
            state.buffer.episodes,
            state.sizes,
            value,
            bound if np.isfinite(bound) else None,
            next((episode.purpose for episode in state.episodes if episode.is_open), ""),
        )

    def make_checkpoint(self) -> None:
        """Compute the model again: a run that resumes here decides the same."""
        state = self.state
        self.note_round()
        for episode in state.episodes:
            episode.action = None
            if episode.is_open and not episode.length:  # it leaves no trace
                close_episode(state, episode)
        state.buffer.forget_skipped_starts()
        state.rebuild()
        state.labels.changed = False
        self._schedule_checkpoint()
        self.checkpoint = make_checkpoint(state, self.player, len(self.history))

    def resume(self, previous: Solution) -> ReplayLog:
        """Restore the last checkpoint of an earlier solution; return the steps after it."""
        state, player, traces = self.state, self.player, previous.traces
        count = len(state.episodes)
        labeling = previous.machines.preprocessor.labeling
        if not state.labels.automatic and state.labels.labeling != labeling:
            raise ModelError(
                f"the result to resume from has other labels ({labeling.reads}, not "
                f"{state.labels.labeling.reads}): pass the same labels"
            )
        ends, environments = list(previous.ends), list(previous.places) or [0] * len(traces)
        checkpoint = previous.point or first_checkpoint(state, max(environments, default=0) + 1)
        if len(checkpoint.open) != count:
            if len(ends) < len(traces):
                warnings.warn(
                    f"the earlier run had {amount(len(checkpoint.open), 'environment')}, this one "
                    f"has {count}: all recorded steps are kept, and unfinished episodes count as "
                    f"truncated",
                    ResumeWarning,
                    stacklevel=5,
                )
            ends += [TRUNCATED] * (len(traces) - len(ends))
            environments = [0] * len(traces)
            checkpoint = checkpoint_of_closed(state, checkpoint, traces, labeling)
        fits = checkpoint.closed <= len(ends) <= len(traces) == len(environments)
        if not (fits and set(environments) <= set(range(count))):
            raise ModelError(
                "the result to resume from is damaged: its episodes do not match its traces"
            )
        log = ReplayLog(player, checkpoint, traces, ends, environments)
        restore(state, checkpoint, log.buffer)
        self.history = list(previous.history[: checkpoint.rounds])
        self.checkpoint, player.resets = previous.point, checkpoint.resets
        player.reset_of = [stored.reset for stored in checkpoint.open]
        if state.buffer.episodes and state.hypothesis.tables is None:  # all were closed
            state.conflict = state.hypothesis.relearn()
            if state.conflict is None:
                state.rebuild()
                self.make_checkpoint()
        self._schedule_checkpoint()
        return log

    def _schedule_checkpoint(self) -> None:
        steps = self.state.steps
        self._next_checkpoint = max(steps + FIRST_CHECKPOINT, int(NEXT_CHECKPOINT * steps))

    def _write(self) -> None:
        """Write the folder, within its share of the time."""
        now = time.monotonic()
        seconds = max(MIN_SECONDS_UNWRITTEN, self._writing / WRITING_SHARE)
        folder, is_known = self.folder, self.state.hypothesis.tables is not None
        if folder is not None and is_known and now - self._written >= seconds:
            self.solution("interrupted").save(folder)
            self._written = time.monotonic()
            self._writing = self._written - now

    def saved(self, solution: Solution) -> Solution:
        """Write a solution to the folder, if there is one, and return it."""
        if self.folder is not None:
            solution.save(self.folder)
        return solution

    def save_traces(self) -> None:
        """Write the traces to the folder if no machines explain them."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.state.buffer.traces().save(self.folder / TRACES)

    def failure(self, error: TraceError, solution: Solution | None = None) -> EnvironmentFailed:
        """Return the error for an environment that failed, and save the solution so far."""
        failure, folder = EnvironmentFailed(str(error)), self.folder
        if solution is None and self.state.steps:
            with suppress(ResolventError):  # a few steps may be too few for machines
                solution = self.solution("failed", str(error))
        if solution is not None:
            self.saved(solution)
            if folder is not None:
                failure = EnvironmentFailed(
                    f"{error} (the result so far is in {folder}: resume continues from there)"
                )
            failure.solution = solution
        elif self.state.steps:
            self.save_traces()
        return failure

    def solution(self, reason: StopReason | None, failure: str | None = None) -> Solution:
        """Return the solution so far, without a change of the state that decisions follow from."""
        state, buffer = self.state, self.state.buffer
        if state.labels.changed:
            self.make_checkpoint()
        guarantee, plan, traces = (
            guarantee_of(state, reason, failure),
            self._plan(),
            buffer.traces(),
        )
        checkpoint = self.checkpoint
        if checkpoint is not None:
            checkpoint = with_codes_in(checkpoint, buffer, traces)
        environments: tuple[int, ...] = ()
        if len(state.episodes) > 1:
            environments = *buffer.environments, *buffer.open_episodes()
        return Solution(
            plan,
            plan.machines,
            traces,
            (*self.history, self.present_round(state.current_bounds())),
            guarantee,
            state.config.seed,
            state.config.reward_range,
            checkpoint,
            tuple(buffer.ends),
            environments,
            self.world,
        )
