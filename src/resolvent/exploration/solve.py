"""An environment → the best way to act in it, with a proof or with what is still open."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from resolvent.arguments import check_arguments, shown
from resolvent.errors import ContradictoryTraces, OptionError
from resolvent.exploration.environment import EnvironmentId
from resolvent.exploration.explorer import Explorer
from resolvent.exploration.run import Listener, SolveRun
from resolvent.exploration.runner import made_environment
from resolvent.exploration.solution import Solved
from resolvent.exploration.stochastic import StochasticSolver
from resolvent.options import Options
from resolvent.samples import LabelTiming
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.naming import AnyEnv


def solve(
    env: AnyEnv | str | Callable[[], AnyEnv],
    *,
    labels: str | Labelling = "auto",
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
    resume: Solved | str | Path | None = None,
    folder: str | Path | None = None,
    progress: Listener | None = None,
) -> Solved:
    """Find the best way to act in an environment: explore on purpose, learn its memory, plan.

    It goes where something is worth knowing, repairs the machines whenever a step surprises
    them, and stops when nothing better is possible in any world that agrees with what was
    seen and has the states that were found; or says what is still open.

    Args:
        env: The environment, or its Gymnasium id, or a function that makes it. The environments
            of a `VectorEnv` are played side by side, and what one shows, all know.
        labels: Where labels come from; "auto" takes those that the environment tells, and
            otherwise makes them of what is seen, or of what is seen and done, or finds few events
            among these where there would be too much to test. Else as in `collect`.
        label_of: A function that makes labels, as in `collect`.
        name_of: A function that names observations, as in `collect`.
        timing: Which labels are read before a step is answered. By default all but the first,
            and the first as well where that is needed.
        budget: How many steps to take at most.
        target: How far below the best the plan may be, at most, from any of the starts.
        states: "found", or how many states the world may have at most: then words of so many
            more labels are read before anything is called optimal.
        gamma: What a reward one step later is worth.
        reward_range: What a step nobody has taken may pay, if other than was ever paid.
        noise: What to do about a world that turns out to be random. "auto": go on with machines
            that say how often what comes, whose plan holds with a confidence. "none": raise
            `ContradictoryTraces`, which says what was seen; a folder keeps all of it.
        confidence: How sure bounds are to be in a random world.
        max_steps: After how many steps an episode is cut; by default the environment's limit,
            or 2,000 where it has none.
        seed: Which all episodes follow from: the same one gives the same result.
        resume: What an earlier call gave, or the folder it wrote, to go on from.
        folder: Where to keep what was found so far, now and then and when it is interrupted.
        progress: Called now and then with how far it is.

    Raises:
        EnvironmentFailed: when the environment raises, or gives what no step can give. What was
            found until then is its `solved`, and in the folder.
        ContradictoryTraces: when the world turns out to be random, with `noise="none"`.

    >>> import resolvent as rs
    >>> solved = rs.solve("resolvent/House-v0")
    >>> solved.optimal, solved.states, round(solved.value, 4)
    (True, {'transition': 2, 'reward': 2}, 0.7738)
    >>> print(solved.plan.run(rs.environments.House(), episodes=3))
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
    made, own = made_environment(env)
    try:
        world = EnvironmentId.of(made)
        if isinstance(resume, str | Path):
            resume = Solved.load(resume)
        if resume is not None and resume.world is not None:
            world.check(resume.world)
        explorer = Explorer(
            made,
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
        solving = SolveRun(made, explorer, budget, max_steps, folder, progress, world)
        go_on_by_chance = partial(
            _by_chance,
            solving,
            timing=timing,
            confidence=confidence,
            label_of=label_of,
            name_of=name_of,
        )
        if resume is not None and resume.statement.kind == "chance":
            return go_on_by_chance(resume)
        try:
            if resume is not None:
                solving.resume(resume)
            solved = solving.run()
            if solved.statement.contradiction is None or noise == "none":
                return solved
            return go_on_by_chance(solved)
        except ContradictoryTraces as contradiction:
            if noise == "none":
                solving.keep_traces()
                raise
            return go_on_by_chance(contradiction)
    finally:
        if own:
            made.close()


def _by_chance(
    solving: SolveRun,
    known: Solved | ContradictoryTraces,
    *,
    timing: LabelTiming | str | None,
    confidence: float,
    label_of: Callable[..., Any] | None,
    name_of: Callable[[Any], Any] | None,
) -> Solved:
    """Go on in a world that is random, from what was found or from two steps that show it."""
    explorer = solving.explorer
    if isinstance(known, Solved):
        traces, why = known.traces, known.statement.contradiction or ""
        labelling = known.machines.senses.labelling
    else:
        traces, why = explorer.traces(), str(known).split(";")[0]
        labelling = explorer.labelling
    with solving.playing.one() as env:
        chance = StochasticSolver(
            env,
            Options(noise="auto", labels=labelling, timing=timing, seed=explorer.seed),  # type: ignore[arg-type]
            traces,
            gamma=explorer.gamma,
            reward_range=explorer.reward_range,
            confidence=confidence,
            limit=solving.limit,
            label_of=label_of,
            name_of=name_of,
            actions=explorer._values,
        )
        return solving.by_chance(chance, why)
