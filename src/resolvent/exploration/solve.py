"""Solve an environment: explore it, learn its memory, and plan.

Input: an environment. Output: a `Solution` with the plan and what is guaranteed of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Literal

from resolvent._util.parallel import stop_requests
from resolvent._util.validation import check_arguments
from resolvent.errors import TraceError
from resolvent.exploration.environment import EnvironmentId, made_environment
from resolvent.exploration.explorer import Explorer
from resolvent.exploration.learner import (
    EncodedStep,
    begin_episode,
    close_episode,
    update,
    verify_if_exhausted,
)
from resolvent.exploration.player import StepSource
from resolvent.exploration.resume import restored_log
from resolvent.exploration.run import Listener, RunOptions, SolveRun
from resolvent.exploration.solution import Solution
from resolvent.exploration.state import LearnerState
from resolvent.exploration.stochastic import explore_random_world
from resolvent.exploration.stopping import Kind, stop_reason
from resolvent.exploration.tests import select_action
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.env import AnyEnv


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

    It goes where a step is worth knowing, repairs the machines whenever a step contradicts them,
    and stops when no plan is better in any world that agrees with all steps and has the states that
    were found; or says what is still open.

    Args:
        env: The environment, its Gymnasium id, or a function that makes it. The environments of a
            `VectorEnv` are played side by side and share all that is learned.
        labels: The source of labels; "auto" takes those of the environment, and otherwise makes
            them of observations, or of actions and observations, or discovers a few events among
            these where there would be too much to test. Else as in `collect`.
        labeling_fn: A function that makes labels, as in `collect`.
        observation_fn: A function that names observations, as in `collect`.
        timing: Which labels are read before a step. By default all but the first, and the first as
            well where that is needed.
        budget: Maximum number of steps.
        target: How far below the optimum the plan may be, at most, from any of the starts.
        states: "found", or the maximum number of states of a machine: then words of as many more
            labels are tested before anything is called optimal.
        gamma: The discount of a reward one step later.
        reward_range: The smallest and largest reward that an unknown step may have, if other than
            those observed.
        noise: What to do in a random world. "auto": go on with machines that have output
            probabilities, whose plan holds with a confidence. "none": raise `ContradictoryTraces`;
            a folder keeps the traces.
        confidence: The confidence of bounds in a random world.
        max_steps: Maximum length of an episode; by default the environment's limit, or 2,000 where
            it has none.
        seed: The seed of all episodes: the same one gives the same result.
        resume: An earlier result, or the folder it wrote, to go on from.
        folder: Where to save the result, now and then and when it is interrupted.
        progress: Called now and then with the present `Round`.

    Raises:
        EnvironmentFailed: when the environment raises, or returns what no step can return. Its
            `solution`, and the folder, have the result so far.
        ContradictoryTraces: when the world turns out to be random, with `noise="none"`.

    >>> import resolvent as rs
    >>> solved = rs.solve("resolvent/House-v0")
    >>> solved.optimal, solved.states, round(solved.value, 4)
    (True, {'transition': 2, 'reward': 2}, 0.7738)
    >>> print(solved.plan.run(rs.worlds.House(), episodes=3))
    3 episodes: mean return 1 (discounted 0.7738), mean length 6; 3 terminated, 0 truncated
    """
    check_arguments(solve, locals(), leaving=["env"])
    options = RunOptions(budget, max_steps, noise, confidence, folder, progress)
    with _open(env) as instance:
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
        return explore(SolveRun(instance, explorer, options, world), previous)


@contextmanager
def _open(env: AnyEnv | str | Callable[[], AnyEnv]) -> Iterator[AnyEnv]:
    """Yield the environment, and close it if it was made here."""
    instance, is_own = made_environment(env)
    try:
        yield instance
    finally:
        if is_own:
            instance.close()


def explore(run: SolveRun, previous: Solution | None = None) -> Solution:
    """Explore until there is a reason to stop; go on with probabilities in a random world."""
    if previous is not None and previous.statement.kind == "chance":
        return explore_random_world(run, previous)
    if previous is not None:
        _replay(run, previous)
    reason = _explore_until_stopped(run)
    conflict = run.state.conflict
    if conflict is not None:
        if run.options.noise == "none":
            run.save_traces()
            raise conflict.error()
        return explore_random_world(run, conflict)
    if reason == "interrupted" and not run.state.steps:
        raise KeyboardInterrupt
    solution = run.saved(run.solution(reason))
    if solution.statement.contradiction is None or run.options.noise == "none":
        return solution
    return explore_random_world(run, solution)


def _replay(run: SolveRun, previous: Solution) -> None:
    """Restore the state of an earlier run."""
    try:
        log = restored_log(run, previous)
        _take_steps(run, log, lambda: stop_reason(run.state, inf))
        if run.state.conflict is None:
            log.finish()
    except TraceError as error:
        raise run.failure(error, previous) from error


def _explore_until_stopped(run: SolveRun) -> Kind | None:
    """Take steps in the environment until there is a reason to stop, and return it."""
    max_steps = run.options.budget - len(run.state.episodes)
    with stop_requests() as is_interrupted:
        try:
            return _take_steps(
                run,
                run.player,
                lambda: stop_reason(run.state, max_steps, is_interrupted=is_interrupted()),
            )
        except TraceError as error:
            raise run.failure(error) from error


def _take_steps(
    run: SolveRun, source: StepSource, find_reason: Callable[[], Kind | None]
) -> Kind | None:
    """Take steps until there is a reason to stop, or until the source has no more of them."""
    state = run.state
    while source.has_next():
        verify_if_exhausted(state)
        reason = find_reason()
        if reason is not None:
            return reason
        if state.labels.changed:
            run.make_checkpoint()
        actions = _select_actions(state, source)
        if actions is not None:
            changed = _learn(state, source.step(actions))
            if state.conflict is None:
                run.after_step(changed=changed, saves=source is run.player)
    return None


def _select_actions(state: LearnerState, source: StepSource) -> dict[int, int] | None:
    """Select an action for every environment; None if an episode is of no more use."""
    resets = source.begin(episode.index for episode in state.episodes if not episode.is_open)
    for episode in state.episodes:
        if episode.action is not None:
            continue
        if not episode.is_open:
            begin_episode(state, episode, resets[episode.index])
        episode.action = source.decide(episode, select_action(state, episode))
        if episode.action is None:
            close_episode(state, episode)
    actions = {
        episode.index: episode.action for episode in state.episodes if episode.action is not None
    }
    return actions if len(actions) == len(state.episodes) else None


def _learn(state: LearnerState, steps: list[EncodedStep]) -> bool:
    """Learn from a step of every environment; return whether the machines changed."""
    changed = False
    for episode, step in zip(state.episodes, steps, strict=True):
        changed |= update(state, episode, step)
        if state.conflict is not None:
            break
    return changed
