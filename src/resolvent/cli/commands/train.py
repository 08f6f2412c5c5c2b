"""`resolvent train`: a Gymnasium environment → a policy learned by trying, and how it went."""

import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import typer

from resolvent._util.text import amount
from resolvent.cli.environments import Environment, Imports, Settings, make_environment
from resolvent.cli.options import Json, MaxSteps, choice
from resolvent.cli.printing import command, name_text, print_json
from resolvent.cli.targets import check_targets
from resolvent.cli.training_report import TrainingReport
from resolvent.errors import OptionError
from resolvent.machines import load
from resolvent.planning.model import Model
from resolvent.rl.q_table import check_curve_name
from resolvent.rl.tabular import TabularView, tabular_view
from resolvent.rl.trainer import ENGINES
from resolvent.rl.trainer import q_learning as learn
from resolvent.rl.wrappers.augment import AugmentObservation
from resolvent.traces import read_traces
from resolvent.viz.curves import check_picture_name, draw_curves, import_matplotlib
from resolvent.viz.terminal import Amount, ProgressBar

_FROM_A_MODEL = "What the machines' model can add"


def train(
    environment: Environment,
    machines: Annotated[
        Path | None,
        typer.Option(
            metavar="MACHINES",
            help="Show the learner the states of these machines, which `resolvent infer` wrote.",
            show_default=False,
        ),
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, help="Show the learner the last K observations instead."),
    ] = None,
    settings: Settings = None,
    imports: Imports = None,
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", metavar="N", min=1, help="How many to learn from.")
    ] = 1500,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="The same seed gives the same policy.")
    ] = 0,
    alpha: Annotated[
        float, typer.Option(metavar="X", min=0, max=1, help="How far a value moves at each step.")
    ] = 0.1,
    gamma: Annotated[
        float,
        typer.Option(metavar="X", min=0, max=1, help="The discount of what comes a step later."),
    ] = 0.95,
    epsilon: Annotated[
        float,
        typer.Option(metavar="X", min=0, max=1, help="How often an action is random, at first."),
    ] = 0.3,
    epsilon_decay: Annotated[
        float,
        typer.Option(
            metavar="X", min=0, max=1, help="What that is multiplied by after each episode."
        ),
    ] = 0.995,
    epsilon_min: Annotated[
        float, typer.Option(metavar="X", min=0, max=1, help="What it never falls below.")
    ] = 0.01,
    initial_value: Annotated[
        float, typer.Option(metavar="X", help="What every action is taken to be worth at first.")
    ] = 0.0,
    max_steps: MaxSteps = None,
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACES",
            help="Traces of the environment, from which the model is built.",
            show_default=False,
            rich_help_panel=_FROM_A_MODEL,
        ),
    ] = None,
    counterfactual: Annotated[
        bool,
        typer.Option(
            "--counterfactual",
            help="Learn from each step also what it does in other states of the machines.",
            rich_help_panel=_FROM_A_MODEL,
        ),
    ] = False,
    shaping: Annotated[
        bool,
        typer.Option(
            "--shaping",
            help="Pay for moving to more promising states of the machines.",
            rich_help_panel=_FROM_A_MODEL,
        ),
    ] = False,
    evaluate_every: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="In a built-in world, note in the curve what the policy is worth after every N "
            "episodes.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str, choice("--engine", ENGINES, "Step the environment, or play on its tables.")
    ] = "auto",
    curve: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the learning curve here: .csv or .json.", show_default=False
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the learning curve here: .svg or .png.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the policy here, as JSON.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Learn to act in an environment by tabular Q-learning, as in the paper.

    With --machines the learner sees observation, Transition Machine state and
    Reward Machine state; without, only what the environment shows.
    """
    _check_options(machines, stack, traces, counterfactual, shaping)
    _check_targets(curve, picture, output, inputs=(machines, traces))
    # Environments may print what they like; standard output is for the result.
    with redirect_stdout(sys.stderr), ProgressBar() as bar:
        plain = make_environment(environment, settings, imports)
        try:
            env = _in_view(plain, machines, stack)
            model = _model(env, traces, bar) if counterfactual or shaping else None
            started = time.perf_counter()
            learned = learn(
                env,
                episodes=episodes,
                seed=seed,
                alpha=alpha,
                gamma=gamma,
                epsilon=epsilon,
                epsilon_decay=epsilon_decay,
                epsilon_min=epsilon_min,
                initial_value=initial_value,
                max_steps=max_steps,
                model=model,
                counterfactual=counterfactual,
                shaping=shaping,
                engine=engine,  # type: ignore[arg-type]
                evaluate_every=evaluate_every,
                progress=bar.stage(f"learning in {environment}", Amount(episodes, "episodes")),
            )
            seconds = time.perf_counter() - started
            found = learned.evaluate(env, seed=seed, max_steps=max_steps or 10_000)
            optimum = _optimum(env, gamma)
        finally:
            plain.close()
    if output is not None:
        learned.save(output)
    if curve is not None:
        learned.save_curve(curve)
    if picture is not None:
        draw_curves(
            picture,
            {environment: [learned.curve]},
            measure="return" if optimum is None else "discounted return",
            optimum=optimum,
            title=environment,
        )
    report = TrainingReport(learned, found, optimum, seconds)
    if json:
        files = {"output": output, "curve": curve, "picture": picture}
        named = {name: None if path is None else str(path) for name, path in files.items()}
        print_json({"environment": environment, "seed": seed, **report.as_dict(), **named})
        return
    seen = "what it shows"
    if machines is not None:
        seen = f"what it shows and the states of {name_text(machines)}"
    elif stack is not None:
        seen = f"its last {amount(stack, 'observation')}"
    print(f"{environment}, by {seen}\n")
    print(report)
    written = [name_text(path) for path in (output, curve, picture) if path is not None]
    if written:
        print(f"\nwrote {', '.join(written)}")
    if machines is None and stack is None:
        print(f"\nwith memory: {command('train', environment, '--machines', 'machines.json')}")


def _check_options(
    machines: Path | None,
    stack: int | None,
    traces: Path | None,
    counterfactual: bool,
    shaping: bool,
) -> None:
    if machines is not None and stack is not None:
        raise OptionError("--machines and --stack exclude each other: leave out one")
    for flag, given in (("--counterfactual", counterfactual), ("--shaping", shaping)):
        if given and (machines is None or traces is None):
            raise OptionError(f"{flag} needs a model: give --machines and --traces")


def _check_targets(
    curve: Path | None,
    picture: Path | None,
    output: Path | None,
    *,
    inputs: tuple[Path | None, ...],
) -> None:
    check_targets(curve, picture, output, inputs=inputs)
    if curve is not None:
        check_curve_name(curve)
    if picture is not None:
        check_picture_name(picture)
        import_matplotlib()


def _in_view(env: gym.Env[Any, Any], machines: Path | None, stack: int | None) -> gym.Env[Any, Any]:
    if machines is not None:
        return AugmentObservation(env, load(machines))
    return env if stack is None else gym.wrappers.FrameStackObservation(env, stack)


def _model(env: gym.Env[Any, Any], traces: Path | None, bar: ProgressBar) -> Model | None:
    if traces is None or not isinstance(env, AugmentObservation):
        return None
    read = read_traces(traces, progress=bar.reading(traces))
    return Model.of(env.machines, read)


def _optimum(env: gym.Env[Any, Any], gamma: float) -> float | None:
    """Return what the best policy that sees all of a built-in world is worth over its starts."""
    view = tabular_view(env)
    if not isinstance(view, TabularView) or gamma == 1:
        return None
    tables = view.world.mechanics
    return float(tables.optimal_values(gamma)[tables.starts].mean())
