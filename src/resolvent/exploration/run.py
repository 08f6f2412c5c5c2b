"""The loop of `solve`: select actions, take steps, update, save checkpoints, decide to stop."""

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from resolvent._util.interrupts import stop_requests
from resolvent._util.text import amount
from resolvent.errors import (
    EnvironmentFailed,
    ModelError,
    OptionError,
    ResolventError,
    ResumeWarning,
    TraceError,
    locating,
)
from resolvent.exploration.buffer import TRUNCATED
from resolvent.exploration.checkpoint import (
    Checkpoint,
    LogReplay,
    checkpoint_of_closed,
    first_checkpoint,
    make_checkpoint,
    restore,
    restored_log,
)
from resolvent.exploration.environment import EnvironmentId
from resolvent.exploration.explorer import Explorer
from resolvent.exploration.learner import Change, close_episode, verify
from resolvent.exploration.runner import Shown, make_runner
from resolvent.exploration.solution import TRACES, Round, Solution
from resolvent.exploration.stochastic import StochasticSolver
from resolvent.exploration.stopping import Kind, is_done, stop_reason
from resolvent.exploration.values import mean_value
from resolvent.planning.plan import Plan
from resolvent.rl.env import AnyEnv
from resolvent.traces import TraceSet

MAX_EPISODE_STEPS: Final = 2_000
"""Maximum length of an episode in an environment without a limit."""

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


class SolveRun:
    """One call of `solve`."""

    def __init__(
        self,
        env: AnyEnv,
        explorer: Explorer,
        budget: int,
        limit: int | None,
        folder: str | Path | None,
        progress: Listener | None,
        world: EnvironmentId | None = None,
    ) -> None:
        self.runner, self.explorer, self.world = make_runner(env), explorer, world
        self.state = explorer.state
        self.limit = limit or (None if self.runner.has_limit else MAX_EPISODE_STEPS)
        if budget < self.runner.count:
            raise OptionError(
                f"budget={budget}: allow at least one step in each of the "
                f"{self.runner.count} environments"
            )
        self.budget, self.progress = budget, progress
        self.folder = None if folder is None else Path(folder)
        self.history: list[Round] = []
        self.checkpoint: Checkpoint | None = None
        self.shown: dict[int, Shown] = {}
        """The present observation and info of each environment with an open episode."""
        self.resets = 0
        self.reset_of: dict[int, int] = {}
        """The number of the reset of each environment's last episode."""
        self._selected: dict[int, Any] = {}
        self._next_checkpoint, self._many_varying = FIRST_CHECKPOINT, 1
        self._written, self._writing, self._reported = time.monotonic(), 0.0, 0.0

    def run(self) -> Solution:
        """Explore until no test is left, or for another reason to stop."""
        with stop_requests() as is_interrupted:
            try:
                kind = self._explore(is_interrupted)
            except TraceError as error:
                raise self._failure(error) from error
        if kind == "interrupted" and not self.explorer.steps:
            raise KeyboardInterrupt
        return self._saved(self.solution(kind))

    def _explore(self, is_interrupted: Callable[[], bool]) -> Kind:
        max_steps = self.budget - self.runner.count
        while True:
            is_finished = self.verify_if_done()
            if self.state.labels.changed and not is_finished:
                self._make_checkpoint()
            kind = stop_reason(self.state, max_steps, is_interrupted=is_interrupted())
            if kind is not None:
                return kind
            self._play_round()

    def verify_if_done(self) -> bool:
        """Verify the machines if no test is open; return whether exploration is done."""
        if self.state.exhausted and not self.state.verified:
            verify(self.state)
        if not is_done(self.state):
            return False
        self.state.refresh_bounds()
        return True

    def _play_round(self) -> None:
        """Select an action for every environment, and take a step once all have one."""
        self.begin_episodes()
        for index in range(self.runner.count):
            if index not in self._selected:
                action = self.explorer.select(*self.shown[index], index)
                if action is None:
                    del self.shown[index]
                else:
                    self._selected[index] = action
        if len(self._selected) == self.runner.count:
            self._step()

    def begin_episodes(self) -> None:
        """Begin episodes where none is open, each with a seed derived from its number."""
        idle = [index for index in range(self.runner.count) if index not in self.shown]
        for index in idle:
            self.reset_of[index] = self.resets
            self.resets += 1
        self.reset(idle)

    def reset(self, indices: Iterable[int]) -> None:
        """Reset environments, each by the seed of its last episode."""
        seeds = {}
        for index in indices:
            entropy = (self.explorer.seed, self.reset_of[index])
            seeds[index] = int(np.random.SeedSequence(entropy).generate_state(1)[0]) >> 1
        if seeds:
            with locating(f"episode {self.explorer.episodes}"):
                self.shown.update(self.runner.reset(seeds))

    def _step(self) -> None:
        explorer, episodes, actions = self.explorer, self.state.episodes, self._selected
        self._selected = {}
        with locating(f"episode {explorer.episodes}: step {len(episodes[0].episode)}"):
            results = self.runner.step(actions)
        # All steps are learned from or none is: a run that resumes finds them side by side.
        steps = []
        for result in results:
            is_at_limit = len(episodes[result.index].episode) + 1 == self.limit
            steps.append(
                explorer.encode(
                    result.action,
                    result.observation,
                    result.reward,
                    result.terminated,
                    result.truncated or is_at_limit,
                    result.info,
                    result.index,
                )
            )
        changed = False
        for result, step in zip(results, steps, strict=True):
            changed |= explorer.update(step, result.index) is not Change.NONE
            self.shown[result.index] = result.observation, result.info
            if step.terminated or step.truncated:
                del self.shown[result.index]
        self.after_step(changed)

    def after_step(self, changed: bool) -> None:
        """Check labels, save and report after a step in every environment."""
        self._check_late_labels()
        if changed:
            self._note_round()
        # With several environments, one of them always follows a path.
        is_free = self.runner.count > 1 or not self.state.episodes[0].path
        is_due = is_free and self.explorer.steps >= self._next_checkpoint
        if self.state.labels.changed or is_due:
            self._make_checkpoint()
        self._write()
        now = time.monotonic()
        if self.progress is not None and now >= self._reported:
            self._reported = now + SECONDS_BETWEEN_REPORTS
            self.progress(self._round())

    def _check_late_labels(self) -> None:
        """Check early whether a plan can use labels that are read late."""
        model = self.state.model
        if model is None or not model.lag or len(model.nondeterministic) < self._many_varying:
            return
        self._many_varying = 2 * len(model.nondeterministic)
        self._plan()

    def _plan(self) -> Plan:
        try:
            return self.explorer.plan()
        except ModelError:  # no plan can use labels that are read late
            self.keep_traces()
            raise

    def _note_round(self) -> None:
        """Add a round to the history, unless the last one was a few steps ago."""
        if self.history and self.explorer.steps < NEW_ROUND * self.history[-1].steps:
            return
        self.state.refresh_bounds()
        self.history.append(self._round())

    def _round(self) -> Round:
        """Return the present round, by the value bounds computed last."""
        explorer = self.explorer
        value, bound = mean_value(self.state.model, self.state.values)
        return Round(
            explorer.steps,
            explorer.episodes,
            explorer.sizes,
            value,
            bound if np.isfinite(bound) else None,
            explorer.after,
        )

    def _make_checkpoint(self) -> None:
        """Compute the model again: a run that resumes here decides the same."""
        state = self.state
        self._note_round()
        self._selected = {}
        for episode in state.episodes:  # an episode without a step leaves no trace
            if episode.active and not len(episode.episode):
                close_episode(state, episode)
                self.shown.pop(episode.index, None)
        state.buffer.forget_skipped_starts(state.open_episodes)
        state.rebuild()
        state.labels.changed = False
        self._schedule_checkpoint()
        reset_of = [self.reset_of.get(index, 0) for index in range(self.runner.count)]
        self.checkpoint = make_checkpoint(state, self.resets, reset_of, len(self.history))

    def _schedule_checkpoint(self) -> None:
        steps = self.explorer.steps
        self._next_checkpoint = max(steps + FIRST_CHECKPOINT, int(NEXT_CHECKPOINT * steps))

    def _write(self) -> None:
        """Write the folder, within its share of the time."""
        now = time.monotonic()
        elapsed = now - self._written
        if self.folder is None or elapsed < max(
            MIN_SECONDS_UNWRITTEN, self._writing / WRITING_SHARE
        ):
            return
        if self.state.hypothesis.tables is None:
            return
        with self._values_kept():
            self.solution("interrupted").save(self.folder)
        self._written = time.monotonic()
        self._writing = self._written - now

    @contextmanager
    def _values_kept(self) -> Iterator[None]:
        """Keep decisions independent of the times when the folder is written."""
        values, bounds_at = copy.copy(self.state.values), self.state.bounds_at
        try:
            yield
        finally:
            self.state.values, self.state.bounds_at = values, bounds_at

    def _saved(self, solution: Solution) -> Solution:
        if self.folder is not None:
            solution.save(self.folder)
        return solution

    def keep_traces(self) -> None:
        """Write the traces to the folder if no machines explain them."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.explorer.traces().save(self.folder / TRACES)

    def _failure(self, error: TraceError, solution: Solution | None = None) -> EnvironmentFailed:
        """Return the error for an environment that failed, with the solution so far."""
        failure = EnvironmentFailed(str(error))
        if solution is None and self.explorer.steps:
            with suppress(ResolventError):  # a few steps may be too few for machines
                solution = self.solution("failed", str(error))
        if solution is not None:
            self._saved(solution)
            if self.folder is not None:
                failure = EnvironmentFailed(
                    f"{error} (what was found is kept in {self.folder}: resume goes on from there)"
                )
            failure.solved = solution
        elif self.explorer.steps:
            self.keep_traces()
        return failure

    def solution(self, kind: Kind | None, failure: str | None = None) -> Solution:
        """Return the solution so far."""
        explorer, state = self.explorer, self.state
        if state.labels.changed:
            self._make_checkpoint()
        statement = explorer.statement(kind, failure)
        plan, traces = self._plan(), explorer.traces()
        open_in = [episode.index for episode in state.episodes if len(episode.episode)]
        environments = (*state.buffer.environments, *open_in) if self.runner.count > 1 else ()
        return Solution(
            plan,
            plan.machines,
            traces,
            (*self.history, self._round()),
            statement,
            explorer.seed,
            explorer.reward_range,
            self._checkpoint_for(traces),
            tuple(state.buffer.ends),
            environments,
            self.world,
        )

    def _checkpoint_for(self, traces: TraceSet) -> Checkpoint | None:
        """Return the last checkpoint, with the codes of symbols in these traces."""
        checkpoint, buffer = self.checkpoint, self.state.buffer
        if checkpoint is None:
            return None
        n_observations, n_labels = len(checkpoint.observations), len(checkpoint.labels)
        return msgspec.structs.replace(
            checkpoint,
            observations=buffer.observations.codes_in(traces.observations, n_observations),
            labels=buffer.labels.codes_in(traces.labels, n_labels),
        )

    def resume(self, before: Solution) -> None:
        """Continue an earlier solution without taking its steps again."""
        state, traces, count = self.state, before.traces, self.runner.count
        labelling = before.machines.senses.labelling
        if not state.labels.automatic and state.labels.labelling != labelling:
            raise ModelError(
                f"what to go on from has other labels ({labelling.reads}, not "
                f"{state.labels.labelling.reads}): resume with the same ones"
            )
        ends, environments = list(before.ends), list(before.places) or [0] * len(traces)
        checkpoint = before.point or first_checkpoint(state, count)
        count_before = len(checkpoint.open)
        if before.point is None:
            count_before = max(environments, default=0) + 1
        if count_before != count:  # open episodes are truncated
            if len(ends) < len(traces):
                warnings.warn(
                    f"{amount(count_before, 'environment')} side by side before, {count} now: "
                    f"what was seen stays, and episodes that were under way count as cut",
                    ResumeWarning,
                    stacklevel=3,
                )
            ends += [TRUNCATED] * (len(traces) - len(ends))
            environments = [0] * len(traces)
            checkpoint = checkpoint_of_closed(state, checkpoint, traces, labelling, count)
        fits = checkpoint.closed <= len(ends) <= len(traces) == len(environments)
        if not (fits and set(environments) <= set(range(count))):
            raise ModelError("what to go on from is damaged: its episodes do not fit its traces")
        log = restored_log(checkpoint, traces, ends, environments, state.buffer.actions)
        restore(state, checkpoint, log)
        self.history = list(before.history[: checkpoint.rounds])
        self.checkpoint, self.resets = before.point, checkpoint.resets
        self.reset_of = {index: stored.reset for index, stored in enumerate(checkpoint.open)}
        if state.buffer.steps and state.hypothesis.tables is None:  # environments were closed
            state.hypothesis.relearn(())
            state.rebuild()
            self._make_checkpoint()
        self._schedule_checkpoint()
        try:
            LogReplay(self, log).replay()
        except TraceError as error:
            raise self._failure(error, before) from error

    def run_stochastic(self, solver: StochasticSolver, reason: str) -> Solution:
        """Continue in a random world, batch by batch."""
        with stop_requests() as is_interrupted:
            while True:
                plan = solver.infer_plan()
                self.history.append(solver.round(plan))
                if self.progress is not None:
                    self.progress(self.history[-1])
                solution = self._saved(self._stochastic_solution(solver, plan, reason))
                is_good = solver.gap(plan) <= self.state.config.target
                if is_good or solver.traces.steps >= self.budget or is_interrupted():
                    return solution
                try:
                    solver.explore(plan, self.budget, is_interrupted)
                except TraceError as error:
                    failed = self._stochastic_solution(solver, plan, reason, str(error))
                    raise self._failure(error, failed) from error

    def _stochastic_solution(
        self, solver: StochasticSolver, plan: Plan, reason: str, failure: str | None = None
    ) -> Solution:
        return Solution(
            plan,
            plan.machines,
            solver.traces,
            tuple(self.history),
            solver.statement(plan, reason, self.state.truncated_episodes, failure),
            self.explorer.seed,
            self.explorer.reward_range,
            world=self.world,
        )
