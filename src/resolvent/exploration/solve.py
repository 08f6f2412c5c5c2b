"""Solve an environment: explore it, learn its memory, and plan.

Input: an environment. Output: a `Solution` with the plan and what is guaranteed of it.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from resolvent._util.validation import check_arguments, shown
from resolvent.errors import ContradictoryTraces, OptionError
from resolvent.exploration.environment import EnvironmentId, made_environment
from resolvent.exploration.explorer import Explorer
from resolvent.exploration.run import Listener, SolveRun
from resolvent.exploration.solution import Solution
from resolvent.exploration.stochastic import StochasticSolver
from resolvent.inference.options import InferenceOptions
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.env import AnyEnv


def solve(
    env: AnyEnv | str | Callable[[], AnyEnv],
    *,
    labels: str | LabelingFunction = "auto",
    label_of: Callable[..., Any] | None = None,
    name_of: Callable[[Any], Any] | None = None,
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
        label_of: A function that makes labels, as in `collect`.
        name_of: A function that names observations, as in `collect`.
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
            `solved`, and the folder, have the result until then.
        ContradictoryTraces: when the world turns out to be random, with `noise="none"`.

    >>> import resolvent as rs
    >>> solved = rs.solve("resolvent/House-v0")
    >>> solved.optimal, solved.states, round(solved.value, 4)
    (True, {'transition': 2, 'reward': 2}, 0.7738)
    >>> print(solved.plan.run(rs.worlds.House(), episodes=3))
    3 episodes: mean return 1 (discounted 0.7738), mean length 6; 3 ended, 0 were cut
    """
    check_arguments(solve, locals(), leaving=["env"])
    if budget < 1:
        raise OptionError(f"budget={budget}: allow at least one step")
    if max_steps is not None and max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step")
    if noise not in ("auto", "none"):
        raise OptionError(f"noise={shown(noise)}: use 'auto' or 'none'")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence}: use a number above 0 and below 1")
    instance, own = made_environment(env)
    try:
        world = EnvironmentId.of(instance)
        if isinstance(resume, str | Path):
            resume = Solution.load(resume)
        if resume is not None and resume.world is not None:
            world.check(resume.world)
        explorer = Explorer(
            instance,
            labels=labels,
            label_of=label_of,
            name_of=name_of,
            timing=timing,
            gamma=gamma,
            reward_range=reward_range,
            target=target,
            states=states,
            seed=seed if resume is None else resume.seed,
        )
        run = SolveRun(instance, explorer, budget, max_steps, folder, progress, world)
        solve_stochastic = partial(
            _solve_stochastic,
            run,
            timing=timing,
            confidence=confidence,
            label_of=label_of,
            name_of=name_of,
        )
        if resume is not None and resume.statement.kind == "chance":
            return solve_stochastic(resume)
        try:
            if resume is not None:
                run.resume(resume)
            solution = run.run()
            if solution.statement.contradiction is None or noise == "none":
                return solution
            return solve_stochastic(solution)
        except ContradictoryTraces as contradiction:
            if noise == "none":
                run.keep_traces()
                raise
            return solve_stochastic(contradiction)
    finally:
        if own:
            instance.close()


def _solve_stochastic(
    run: SolveRun,
    before: Solution | ContradictoryTraces,
    *,
    timing: LabelTiming | str | None,
    confidence: float,
    label_of: Callable[..., Any] | None,
    name_of: Callable[[Any], Any] | None,
) -> Solution:
    """Go on in a random world, from a solution or from two steps that show it to be random."""
    explorer = run.explorer
    if isinstance(before, Solution):
        traces, reason = before.traces, before.statement.contradiction or ""
        labelling = before.machines.senses.labelling
    else:
        traces, reason = explorer.traces(), str(before).split(";")[0]
        labelling = run.state.labels.labelling
    options = InferenceOptions(noise="auto", labels=labelling, timing=timing, seed=explorer.seed)  # type: ignore[arg-type]
    with run.runner.single_env() as env:
        solver = StochasticSolver(
            env,
            options,
            traces,
            gamma=explorer.gamma,
            reward_range=explorer.reward_range,
            confidence=confidence,
            limit=run.limit,
            label_of=label_of,
            name_of=name_of,
            actions=explorer.action_values,
        )
        return run.run_stochastic(solver, reason)
