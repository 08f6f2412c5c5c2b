"""Solve an environment: explore it, learn its memory, and plan.

Input: an environment. Output: a `Solution` with the plan and what is guaranteed of it; on the way,
rounds of the history, checkpoints and the folder, from which a later call can resume.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from resolvent._util.parallel import stop_requests
from resolvent._util.text import amount
from resolvent._util.validation import check_arguments, check_at_least
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
    make_checkpoint,
    restore,
)
from resolvent.exploration.environment import EnvironmentId, EpisodePlayer
from resolvent.exploration.explorer import Explorer
from resolvent.exploration.learner import begin_episode, close_episode, update, verify_if_exhausted
from resolvent.exploration.play import learn_from, play_plan, steps_to_play
from resolvent.exploration.solution import TRACES, Round, Solution
from resolvent.exploration.stochastic import explore_stochastic
from resolvent.exploration.stopping import StopReason, guarantee_of, stop_reason
from resolvent.exploration.tests import select_action
from resolvent.exploration.values import ValueBounds
from resolvent.planning.plan import Plan
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.collect import opened_environment
from resolvent.rl.env import AnyEnv
from resolvent.traces import TraceSet

FIRST_CHECKPOINT, NEXT_CHECKPOINT = 500, 1.25  # steps between checkpoints, and their growth
SECONDS_BETWEEN_REPORTS: Final = 0.1
WRITING_SHARE: Final = 0.05  # maximum share of the time spent on writing the folder
MIN_SECONDS_UNWRITTEN: Final = 0.1  # minimum number of seconds before the folder is written
MAX_REVISIONS: Final = 5  # maximum number of times that played episodes are learned from
NEW_ROUND: Final = 1.02  # factor by which steps have to grow between two rounds of the history
Listener: TypeAlias = Callable[[Round], object]


@dataclass(eq=False)
class SolveRun:
    """Notes, reports and saves the progress of learning; the options are those of `solve`."""

    explorer: Explorer
    player: EpisodePlayer
    world: EnvironmentId
    budget: int  # of learning; a share of the user's is left for playing
    noise: str = "auto"
    confidence: float = 0.95
    folder: Path | None = None
    progress: Listener | None = None

    def __post_init__(self) -> None:
        self.state, self.history = self.explorer.state, list[Round]()
        self.full_budget = self.budget
        self.budget -= steps_to_play(self.budget)
        self.checkpoint: Checkpoint | None = None
        count = len(self.state.episodes)
        if self.budget < count:
            raise OptionError(
                f"budget={self.full_budget}: allow at least one step in each of the {count} "
                f"environments"
            )
        self._last_checkpoint, self._many_varying = 0, 1
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
        last = self._last_checkpoint
        is_due = state.steps >= max(last + FIRST_CHECKPOINT, int(NEXT_CHECKPOINT * last))
        if state.labels.changed or (is_free and is_due):
            self.make_checkpoint()
        if saves:
            self._write()
        now = time.monotonic()
        if self.progress is not None and now >= self._reported:
            self._reported = now + SECONDS_BETWEEN_REPORTS
            self.progress(self.present_round(state.values))

    def _plan(self) -> Plan:
        try:
            return self.explorer.plan()
        except ModelError:  # no plan can use labels that are read late
            self.save_traces()
            raise

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
        self._last_checkpoint = state.steps
        self.checkpoint = make_checkpoint(state, self.player, len(self.history))

    def resume(self, previous: Solution) -> ReplayLog:
        """Restore the last checkpoint of an earlier solution; return the steps after it."""
        state, player, traces = self.state, self.player, previous.traces
        labeling = previous.machines.preprocessor.labeling
        if not state.labels.automatic and state.labels.labeling != labeling:
            raise ModelError(
                f"the result to resume from has other labels ({labeling.reads}, not "
                f"{state.labels.labeling.reads}): pass the same labels"
            )
        ends, environments = list(previous.ends), list(previous.places) or [0] * len(traces)
        checkpoint, count = previous.point, len(state.episodes)
        count_before = len(checkpoint.open) if checkpoint else max(environments, default=0) + 1
        if count_before != count:
            if len(ends) < len(traces):
                warnings.warn(
                    f"the earlier run had {amount(count_before, 'environment')}, this one has "
                    f"{count}: all recorded steps are kept, and unfinished episodes count as "
                    f"truncated",
                    ResumeWarning,
                    stacklevel=5,
                )
            ends += [TRUNCATED] * (len(traces) - len(ends))
            environments = [0] * len(traces)
            checkpoint = checkpoint_of_closed(state, checkpoint, traces, labeling)
        elif checkpoint is None:
            checkpoint = make_checkpoint(state, player, 0)
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
        self._last_checkpoint = state.steps
        return log

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
        guarantee = guarantee_of(state, reason, failure)
        plan, traces, point = self._plan(), buffer.traces(), self.checkpoint
        environments = *buffer.environments, *buffer.open_episodes()
        return Solution(
            plan,
            plan.machines,
            traces,
            (*self.history, self.present_round(state.current_bounds())),
            guarantee,
            state.config.seed,
            state.config.reward_range,
            None if point is None else point.with_codes_in(buffer, traces),
            tuple(buffer.ends),
            environments if len(state.episodes) > 1 else (),
            self.world,
        )


def solve(
    env: AnyEnv | str | Callable[[], AnyEnv],
    *,
    labels: str | LabelingFunction = "auto",
    labeling_fn: Callable[..., Any] | None = None,
    observation_fn: Callable[[Any], Any] | None = None,
    timing: LabelTiming | str | None = None,
    budget: int = 100_000,
    target: float = 0.0,
    states: int | Literal["found"] = "found",
    gamma: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    noise: Literal["auto", "none"] = "auto",
    confidence: float = 0.95,
    max_steps: int | None = None,
    seed: int = 0,
    resume: Solution | str | Path | None = None,
    folder: str | Path | None = None,
    progress: Listener | None = None,
) -> Solution:
    """Explore an environment, learn its memory and return the best plan.

    It takes the most informative steps, repairs the machines whenever a step contradicts them, and
    stops when no policy is better than the plan in any environment that agrees with all steps and
    has the machine states found, or when the budget is spent. Then it plays the plan in fresh
    episodes: `paid` is what these return. Episodes that contradict the plan are learned from, as
    long as the budget lasts.

    Args:
        env: The environment, its name as in `collect`, or a function that makes it. The
            environments of a `VectorEnv` are explored at the same time and share all that is
            learned.
        labels: The source of labels; "auto" takes those of the environment, if it has any, and
            else makes them of observations, of actions and observations, or of a few events
            discovered among these, if there would be too much to test. Else as in `collect`.
        labeling_fn: A function that makes labels, as in `collect`.
        observation_fn: A function that names observations, as in `collect`.
        timing: The labels that are read before a step. By default all but the first, and the first
            as well if that is needed.
        budget: Maximum number of steps; a tenth of it is for playing the plan at the end.
        target: Acceptable distance of the plan's value from the optimum, from any of the starts.
        states: "found", or the maximum number of states of a machine: longer label sequences are
            tested then before the plan is called optimal.
        gamma: The discount of a reward one step later.
        reward_range: The smallest and largest reward that an unknown step may have, if other than
            those observed.
        noise: What to do in a stochastic environment. "auto": continue with machines that have
            output probabilities, and a plan with a confidence. "none": raise
            `ContradictoryTraces`; a folder keeps the traces.
        confidence: The confidence of bounds in a stochastic environment.
        max_steps: Maximum length of an episode; by default the environment's limit, or 2,000
            without one.
        seed: The seed of all episodes: equal seeds give equal results.
        resume: An earlier result, or its folder, to continue from.
        folder: A folder for the result, saved regularly and at the end.
        progress: A function that is called regularly with the present `Round`.

    Raises:
        EnvironmentFailed: if the environment raises an error or returns invalid values. Its
            `solution`, and the folder, have the result so far.
        ContradictoryTraces: if the environment is stochastic, with `noise="none"`.

    >>> import resolvent as rs
    >>> solved = rs.solve("resolvent/House-v0")
    >>> solved.optimal, solved.states, round(solved.value, 4)
    (True, {'transition': 2, 'reward': 2}, 0.7738)
    >>> print(solved.plan.run(rs.worlds.House(), episodes=3))
    3 episodes: mean return 1 (discounted 0.7738), mean length 6; 3 terminated, 0 truncated
    """
    check_arguments(solve, locals(), leaving=["env"])
    check_at_least(1, budget=budget, max_steps=max_steps)
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence}: use a number above 0 and below 1")
    folder = None if folder is None else Path(folder)
    with opened_environment(env, "solve") as instance:
        previous = Solution.load(resume) if isinstance(resume, str | Path) else resume
        world = EnvironmentId.of(instance)
        if previous is not None and previous.world is not None:
            world.check(previous.world)
        explorer = Explorer(
            instance,
            labels=labels,
            labeling_fn=labeling_fn,
            observation_fn=observation_fn,
            timing=timing,
            gamma=gamma,
            reward_range=reward_range,
            target=target,
            states=states,
            seed=seed if previous is None else previous.seed,
        )
        player = EpisodePlayer(instance, explorer.state, explorer.encoder, max_steps)
        run = SolveRun(explorer, player, world, budget, noise, confidence, folder, progress)
        return explore(run, previous)


def explore(run: SolveRun, previous: Solution | None = None) -> Solution:
    """Learn and play the plan; learn on if that contradicts it and steps are left."""
    solution, revisions = learn(run, previous), 0
    while (runs := play_plan(run, solution)) is not None:
        solution = replace(solution, paid=runs.paid).contradicted(runs.contradicts)
        are_steps_left = solution.steps + runs.traces.steps < run.budget
        if not runs.contradicts or not are_steps_left or revisions == MAX_REVISIONS:
            return run.saved(solution)
        revisions += 1
        if solution.guarantee.reason == "stochastic":
            traces = TraceSet([*solution.traces, *runs.traces])
            solution = explore_stochastic(run, replace(solution, traces=traces))
        elif learn_from(run, runs.traces):
            solution = learn(run)
        else:
            return run.saved(solution)
    return solution


def learn(run: SolveRun, previous: Solution | None = None) -> Solution:
    """Explore until there is a reason to stop; continue with probabilities if stochastic."""
    if previous is not None and previous.guarantee.reason == "stochastic":
        return explore_stochastic(run, previous)
    if previous is not None:
        try:
            log = run.resume(previous)
            _take_steps(run, lambda: stop_reason(run.state, inf), log)
            if run.state.conflict is None:
                log.finish()
        except TraceError as error:
            raise run.failure(error, previous) from error
    max_steps = run.budget - len(run.state.episodes)
    with stop_requests() as is_interrupted:
        try:
            reason = _take_steps(
                run, lambda: stop_reason(run.state, max_steps, is_interrupted=is_interrupted())
            )
        except TraceError as error:
            raise run.failure(error) from error
    conflict = run.state.conflict
    if conflict is not None:
        if run.noise == "none":
            run.save_traces()
            raise conflict.error()
        return explore_stochastic(run, conflict)
    if reason == "interrupted" and not run.state.steps:
        raise KeyboardInterrupt
    solution = run.saved(run.solution(reason))
    if solution.guarantee.contradiction is None or run.noise == "none":
        return solution
    return explore_stochastic(run, solution)


def _take_steps(
    run: SolveRun, find_reason: Callable[[], StopReason | None], log: ReplayLog | None = None
) -> StopReason | None:
    """Take steps until there is a reason to stop; of a log, until it has no more of them."""
    state = run.state
    while log is None or log.has_next():
        verify_if_exhausted(state)
        reason = find_reason()
        if reason is not None:
            return reason
        if state.labels.changed:
            run.make_checkpoint()
        actions = _select_actions(run, log)
        if actions is None:
            continue
        changed = False
        steps = run.player.step(actions) if log is None else log.step()
        for episode, step in zip(state.episodes, steps, strict=True):
            changed |= update(state, episode, step)
            if state.conflict is not None:
                break
        else:
            run.after_step(changed=changed, saves=log is None)
    return None


def _select_actions(run: SolveRun, log: ReplayLog | None) -> list[int] | None:
    """Select an action for every environment; None if an episode is of no more use."""
    state = run.state
    resets = run.player.begin(episode.index for episode in state.episodes if not episode.is_open)
    for episode in state.episodes:
        if episode.action is not None:
            continue
        if not episode.is_open:
            begin_episode(state, episode, resets[episode.index])
        action = select_action(state, episode)
        episode.action = action if log is None else log.action(episode, action)
        if episode.action is None:
            close_episode(state, episode)
    actions = [episode.action for episode in state.episodes if episode.action is not None]
    return actions if len(actions) == len(state.episodes) else None
