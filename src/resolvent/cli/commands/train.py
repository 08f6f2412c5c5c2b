"""`resolvent train`: a Gymnasium environment → a policy learned by trying, and how it went."""

import math
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym

from resolvent._util.text import amount
from resolvent.cli import flags, outputs
from resolvent.errors import OptionError
from resolvent.machines import load
from resolvent.planning.model import Model
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.q_table import Curve, QTable, check_curve_name
from resolvent.rl.tabular import Evaluation, TabularView, tabular_view
from resolvent.rl.trainer import q_learning as learn
from resolvent.traces import read_traces
from resolvent.viz.curves import check_picture_name, draw_curve, import_matplotlib
from resolvent.viz.terminal import Amount

_FROM_A_MODEL = "With a model of the machines and traces"

_EPISODES_AVERAGED = 100
"""Number of first and of last episodes that are averaged."""


@flags.takes(
    "options",
    flags.flag(learn, "episodes", "--episodes", "-n"),
    flags.flag(learn, "seed", text="The same seed gives the same policy."),
    *flags.declared(learn, "alpha", "gamma", "epsilon", "epsilon_decay", "epsilon_min"),
    *flags.declared(learn, "max_steps", "engine", "evaluate_every"),
    flags.flag(learn, "counterfactual", panel=_FROM_A_MODEL),
    flags.flag(learn, "shaping", panel=_FROM_A_MODEL),
)
def train(
    environment: flags.Environment,
    options: dict[str, Any],
    machines: Annotated[
        Path | None,
        flags.option(
            "FILE",
            "Show the learner the states of these machines, which `resolvent infer -o` wrote.",
        ),
    ] = None,
    stack: Annotated[
        int | None,
        flags.option("K", "Show the learner the last K observations instead.", min=1),
    ] = None,
    settings: flags.Settings = None,
    imports: flags.Imports = None,
    traces: Annotated[
        Path | None,
        flags.option(
            "FILE",
            "Traces of the environment, to build the model from.",
            rich_help_panel=_FROM_A_MODEL,
        ),
    ] = None,
    curve: Annotated[
        Path | None, flags.option("FILE", "The file to write the learning curve to: .csv or .json.")
    ] = None,
    picture: Annotated[
        Path | None, flags.option("FILE", "The file to draw the learning curve in: .svg or .png.")
    ] = None,
    output: flags.Output = None,
    json: flags.Json = False,
) -> None:
    """Learn to act in an environment by tabular Q-learning, as in the paper.

    With --machines the learner observes the states of the machines as well; without, only the
    observations of the environment.
    """
    needs_model = options["counterfactual"] or options["shaping"]
    if machines is not None and stack is not None:
        raise OptionError("--machines and --stack exclude each other: leave out one")
    if needs_model and (machines is None or traces is None):
        name = "counterfactual" if options["counterfactual"] else "shaping"
        raise OptionError(f"--{name} needs a model: give --machines and --traces")
    outputs.check_targets(curve, picture, output, inputs=(machines, traces))
    if curve is not None:
        check_curve_name(curve)
    if picture is not None:
        check_picture_name(picture)
        import_matplotlib()
    episodes, seed = options["episodes"], options["seed"]
    make = flags.environment_maker(environment, settings, imports)
    with outputs.working() as bar, closing(make()) as plain:
        env = _in_view(plain, machines, stack)
        model = None
        if needs_model and traces is not None and isinstance(env, AugmentObservation):
            model = Model.of(env.machines, read_traces(traces, progress=bar.reading(traces)))
        started = time.perf_counter()
        progress = bar.stage(f"learning in {environment}", Amount(episodes, "episodes"))
        learned = learn(env, model=model, **options, progress=progress)
        seconds = time.perf_counter() - started
        evaluation = learned.evaluate(env, seed=seed, max_steps=options.get("max_steps", 10_000))
        optimum = _optimum(env, options["gamma"])
    if output is not None:
        learned.save(output)
    if curve is not None:
        learned.save_curve(curve)
    if picture is not None:
        draw_curve(picture, learned.curve, title=environment, optimum=optimum)
    figures = _figures(learned, evaluation, optimum)
    if json:
        files = {"output": output, "curve": curve, "picture": picture}
        figures = {"environment": environment, "seed": seed, **figures}
        outputs.print_json(figures | {"seconds": round(seconds, 6)} | files)
        return
    seen = "its observations"
    if machines is not None:
        seen = f"its observations and the states of {outputs.name_text(machines)}"
    elif stack is not None:
        seen = f"its last {amount(stack, 'observation')}"
    print(f"{environment}, learned from {seen}\n")
    _print_figures(figures, evaluation, seconds)
    written = [outputs.name_text(path) for path in (output, curve, picture) if path is not None]
    if written:
        print(f"\nwrote {', '.join(written)}")
    if machines is None and stack is None:
        again = outputs.command("train", environment, "--machines", "machines.json")
        print(f"\nwith memory: {again}")


def _figures(learned: QTable, evaluation: Evaluation, optimum: float | None) -> dict[str, Any]:
    """Return the figures of the training as JSON values."""

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "episodes": len(learned.curve),
        "steps": int(learned.curve.steps.sum()),
        "observations": len(learned.observations),
        "engine": learned.engine,
        "first": _means(learned.curve, slice(_EPISODES_AVERAGED)),
        "last": _means(learned.curve, slice(-_EPISODES_AVERAGED, None)),
        "evaluation": {
            "value": finite(evaluation.value),
            "ended": evaluation.ended,
            "exact": evaluation.exact,
            "optimum": optimum,
        },
        "evaluations": [
            asdict(each) | {"value": finite(each.value)} for each in learned.evaluations
        ],
    }


def _means(curve: Curve, part: slice) -> dict[str, Any]:
    return {
        "episodes": len(curve.returns[part]),
        "return": float(curve.returns[part].mean()),
        "discounted_return": float(curve.discounted_returns[part].mean()),
        "steps": float(curve.steps[part].mean()),
    }


def _print_figures(figures: dict[str, Any], evaluation: Evaluation, seconds: float) -> None:
    rows = []
    for name in ("first", "last"):
        means = figures[name]
        text = f"mean return {means['return']:.4g}, mean length {means['steps']:.4g}"
        rows.append((f"{name} {amount(means['episodes'], 'episode')}", text))
    method = "exactly, over all starts" if evaluation.exact else "in 100 episodes"
    value = f"{evaluation.value:.4g} discounted, {method}"
    if figures["evaluation"]["optimum"] is not None:
        value += f"; the best possible is {figures['evaluation']['optimum']:.4g}"
    if evaluation.ended < 1:
        what = "of starts never end" if evaluation.exact else "of them were truncated"
        value += f"; {1 - evaluation.ended:.0%} {what}"
    rate = f"{figures['steps'] / seconds:,.0f} steps a second, {figures['engine']} engine"
    rows += [
        ("value of the policy", value),
        ("duration", f"{amount(figures['steps'], 'step')}, {seconds:.2f} s ({rate})"),
        ("observations", f"{figures['observations']:,}"),
    ]
    for name, text in rows:
        print(f"{name:<20} {text}")


def _in_view(env: gym.Env[Any, Any], machines: Path | None, stack: int | None) -> gym.Env[Any, Any]:
    if machines is not None:
        return AugmentObservation(env, load(machines))
    return env if stack is None else gym.wrappers.FrameStackObservation(env, stack)


def _optimum(env: gym.Env[Any, Any], gamma: float) -> float | None:
    """Return the value of the best policy that sees all of a built-in world, over its starts."""
    view = tabular_view(env)
    if not isinstance(view, TabularView) or gamma == 1:
        return None
    tables = view.world.mechanics
    return float(tables.optimal_values(gamma)[tables.starts].mean())
