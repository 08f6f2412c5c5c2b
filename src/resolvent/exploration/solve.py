"""Solve an environment: explore it, learn its memory, and plan.

Input: an environment. Output: a `Solution` with the plan and what is guaranteed of it.
"""

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Literal

from resolvent._util.parallel import stop_requests
from resolvent._util.validation import check_arguments
from resolvent.errors import TraceError
from resolvent.exploration.checkpoint import ReplayLog
from resolvent.exploration.environment import EnvironmentId
from resolvent.exploration.explorer import Explorer
from resolvent.exploration.learner import begin_episode, close_episode, update, verify_if_exhausted
from resolvent.exploration.run import Listener, RunOptions, SolveRun
from resolvent.exploration.solution import Solution
from resolvent.exploration.stochastic import explore_stochastic
from resolvent.exploration.stopping import StopReason, stop_reason
from resolvent.exploration.tests import select_action
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.collect import opened_environment
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

    It takes the most informative steps, repairs the machines whenever a step contradicts them, and
    stops when no policy is better than the plan in any environment that agrees with all steps and
    has the machine states found, or when the budget is spent.

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
        budget: Maximum number of steps.
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
    options = RunOptions(budget, max_steps, noise, confidence, folder, progress)
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
        return explore(SolveRun(instance, explorer, options, world), previous)


def explore(run: SolveRun, previous: Solution | None = None) -> Solution:
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
    max_steps = run.options.budget - len(run.state.episodes)
    with stop_requests() as is_interrupted:
        try:
            reason = _take_steps(
                run, lambda: stop_reason(run.state, max_steps, is_interrupted=is_interrupted())
            )
        except TraceError as error:
            raise run.failure(error) from error
    conflict = run.state.conflict
    if conflict is not None:
        if run.options.noise == "none":
            run.save_traces()
            raise conflict.error()
        return explore_stochastic(run, conflict)
    if reason == "interrupted" and not run.state.steps:
        raise KeyboardInterrupt
    solution = run.saved(run.solution(reason))
    if solution.guarantee.contradiction is None or run.options.noise == "none":
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
