"""`resolvent train`: a Gymnasium environment → a policy learned by trying, and how it went."""

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym

from resolvent._util.records import builtin, to_builtins
from resolvent._util.text import amount
from resolvent.cli import flags, outputs
from resolvent.errors import OptionError
from resolvent.machines import load
from resolvent.planning.model import Model
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.q_table import Curve, check_curve_name
from resolvent.rl.tabular import Evaluation, TabularView, tabular_view
from resolvent.rl.trainer import q_learning as learn
from resolvent.traces import read_traces
from resolvent.viz.curves import check_picture_name, draw_curve, import_matplotlib
from resolvent.viz.terminal import Amount

_FROM_A_MODEL = "With a model of the machines and traces"
_MACHINES = "Show the learner the states of these machines, which `resolvent infer -o` wrote."
_CURVE = "The file to write the learning curve to: .csv or .json."
_PICTURE = "The file to draw the learning curve in: .svg or .png."
_STACK = "Show the learner the last K observations instead."
_TRACES = "Traces of the environment, to build the model from."
_EPISODES_AVERAGED = 100  # number of first and of last episodes that are averaged


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
    machines: Annotated[Path | None, flags.option("FILE", _MACHINES)] = None,
    stack: Annotated[int | None, flags.option("K", _STACK, min=1)] = None,
    settings: flags.Settings = None,
    imports: flags.Imports = None,
    traces: Annotated[
        Path | None, flags.option("FILE", _TRACES, rich_help_panel=_FROM_A_MODEL)
    ] = None,
    curve: Annotated[Path | None, flags.option("FILE", _CURVE)] = None,
    picture: Annotated[Path | None, flags.option("FILE", _PICTURE)] = None,
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
        env: gym.Env[Any, Any] = plain
        if machines is not None:
            env = AugmentObservation(plain, load(machines))
        elif stack is not None:
            env = gym.wrappers.FrameStackObservation(plain, stack)
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
    steps = int(learned.curve.steps.sum())
    first = _means(learned.curve, slice(_EPISODES_AVERAGED))
    last = _means(learned.curve, slice(-_EPISODES_AVERAGED, None))
    if json:
        keys = "value", "ended", "exact"
        outputs.print_json(
            {
                "environment": environment,
                "seed": seed,
                "episodes": len(learned.curve),
                "steps": steps,
                "observations": len(learned.observations),
                "engine": learned.engine,
                "first": first,
                "last": last,
                "evaluation": to_builtins(evaluation, keys) | {"optimum": optimum},
                "evaluations": builtin(learned.evaluations),
                "seconds": round(seconds, 6),
                "output": output,
                "curve": curve,
                "picture": picture,
            }
        )
        return
    seen = "its observations"
    if machines is not None:
        seen = f"its observations and the states of {outputs.name_text(machines)}"
    elif stack is not None:
        seen = f"its last {amount(stack, 'observation')}"
    print(f"{environment}, learned from {seen}\n")
    for name, means in (("first", first), ("last", last)):
        title = f"{name} {amount(means['episodes'], 'episode')}"
        print(f"{title:<20} mean return {means['return']:.4g}, mean length {means['steps']:.4g}")
    rate = f"{steps / seconds:,.0f} steps a second, {learned.engine} engine"
    print(f"value of the policy  {_value_text(evaluation, optimum)}")
    print(f"duration             {amount(steps, 'step')}, {seconds:.2f} s ({rate})")
    print(f"observations         {len(learned.observations):,}")
    written = [outputs.name_text(path) for path in (output, curve, picture) if path is not None]
    if written:
        print(f"\nwrote {', '.join(written)}")
    if machines is None and stack is None:
        again = outputs.command("train", environment, "--machines", "machines.json")
        print(f"\nwith memory: {again}")


def _means(curve: Curve, part: slice) -> dict[str, Any]:
    return {
        "episodes": len(curve.returns[part]),
        "return": float(curve.returns[part].mean()),
        "discounted_return": float(curve.discounted_returns[part].mean()),
        "steps": float(curve.steps[part].mean()),
    }


def _value_text(evaluation: Evaluation, optimum: float | None) -> str:
    method = "exactly, over all starts" if evaluation.exact else "in 100 episodes"
    text = f"{evaluation.value:.4g} discounted, {method}"
    if optimum is not None:
        text += f"; the best possible is {optimum:.4g}"
    if evaluation.ended < 1:
        what = "of starts never end" if evaluation.exact else "of them were truncated"
        text += f"; {1 - evaluation.ended:.0%} {what}"
    return text


def _optimum(env: gym.Env[Any, Any], gamma: float) -> float | None:
    """Return the value of the best policy that sees all of a built-in world, over its starts."""
    view = tabular_view(env)
    if not isinstance(view, TabularView) or gamma == 1:
        return None
    tables = view.world.mechanics
    return float(tables.optimal_values(gamma)[tables.starts].mean())
