"""`resolvent train`: a Gymnasium environment → a policy learned by trying, and how it went."""

import math
import sys
import time
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym

from resolvent._util.text import amount
from resolvent.cli.inputs import check_targets
from resolvent.cli.options import (
    Environment,
    Imports,
    Json,
    Output,
    Settings,
    environment_maker,
    flag,
    flags,
    option,
    takes,
)
from resolvent.cli.output import command, name_text, print_json
from resolvent.errors import OptionError
from resolvent.machines import load
from resolvent.planning.model import Model
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.q_table import QTable, check_curve_name
from resolvent.rl.tabular import Evaluation, TabularView, tabular_view
from resolvent.rl.trainer import q_learning as learn
from resolvent.traces import read_traces
from resolvent.viz.curves import check_picture_name, draw_curves, import_matplotlib
from resolvent.viz.terminal import Amount, ProgressBar

_FROM_A_MODEL = "With a model of the machines and traces"


_AT_THE_ENDS = 100
"""Number of first and of last episodes that are averaged."""


@takes(
    "options",
    flag(learn, "episodes", "--episodes", "-n"),
    flag(learn, "seed", text="The same seed gives the same policy."),
    *flags(learn, "alpha", "gamma", "epsilon", "epsilon_decay", "epsilon_min"),
    *flags(learn, "max_steps", "engine", "evaluate_every"),
    flag(learn, "counterfactual", panel=_FROM_A_MODEL),
    flag(learn, "shaping", panel=_FROM_A_MODEL),
)
def train(
    environment: Environment,
    options: dict[str, Any],
    machines: Annotated[
        Path | None,
        option(
            "FILE",
            "Show the learner the states of these machines, which `resolvent infer -o` wrote.",
        ),
    ] = None,
    stack: Annotated[
        int | None,
        option("K", "Show the learner the last K observations instead.", min=1),
    ] = None,
    settings: Settings = None,
    imports: Imports = None,
    traces: Annotated[
        Path | None,
        option(
            "FILE",
            "Traces of the environment, to build the model from.",
            rich_help_panel=_FROM_A_MODEL,
        ),
    ] = None,
    curve: Annotated[
        Path | None, option("FILE", "The file to write the learning curve to: .csv or .json.")
    ] = None,
    picture: Annotated[
        Path | None, option("FILE", "The file to draw the learning curve in: .svg or .png.")
    ] = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Learn to act in an environment by tabular Q-learning, as in the paper.

    With --machines the learner observes the states of the machines as well; without, only the
    observations of the environment.
    """
    episodes, gamma, seed = options["episodes"], options["gamma"], options["seed"]
    counterfactual, shaping = options["counterfactual"], options["shaping"]
    _check_options(machines, stack, traces, counterfactual, shaping)
    _check_targets(curve, picture, output, inputs=(machines, traces))
    # Environments may print what they like; standard output is for the result.
    with redirect_stdout(sys.stderr), ProgressBar() as bar:
        plain = environment_maker(environment, settings, imports)()
        try:
            env = _in_view(plain, machines, stack)
            model = _model(env, traces, bar) if counterfactual or shaping else None
            started = time.perf_counter()
            learned = learn(
                env,
                model=model,
                **options,
                progress=bar.stage(f"learning in {environment}", Amount(episodes, "episodes")),
            )
            seconds = time.perf_counter() - started
            evaluation = learned.evaluate(
                env, seed=seed, max_steps=options.get("max_steps", 10_000)
            )
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
    report = _Report(learned, evaluation, optimum, seconds)
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


@dataclass(frozen=True)
class _Report:
    """The learned values, their evaluation, the optimum if it is known, and the duration."""

    learned: QTable
    evaluation: Evaluation
    optimum: float | None
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        value = self.evaluation.value if math.isfinite(self.evaluation.value) else None
        return {
            "episodes": len(self.learned.curve),
            "steps": int(self.learned.curve.steps.sum()),
            "observations": len(self.learned.observations),
            "engine": self.learned.engine,
            "first": self._mean(slice(_AT_THE_ENDS)),
            "last": self._mean(slice(-_AT_THE_ENDS, None)),
            "evaluation": {
                "value": value,
                "ended": self.evaluation.ended,
                "exact": self.evaluation.exact,
                "optimum": self.optimum,
            },
            "evaluations": [
                asdict(each) | {"value": each.value if math.isfinite(each.value) else None}
                for each in self.learned.evaluations
            ],
            "seconds": round(self.seconds, 6),
        }

    def __str__(self) -> str:
        steps = int(self.learned.curve.steps.sum())
        rate = f"{steps / self.seconds:,.0f} steps a second, {self.learned.engine} engine"
        lines = []
        for name, part in (("first", slice(_AT_THE_ENDS)), ("last", slice(-_AT_THE_ENDS, None))):
            mean = self._mean(part)
            lines.append(
                f"{name + ' ' + amount(mean['episodes'], 'episode'):<20} mean return "
                f"{mean['return']:.4g}, mean length {mean['steps']:.4g}"
            )
        lines += [
            f"{'what was learned':<20} {self._worth()}",
            f"{'it took':<20} {amount(steps, 'step')}, {self.seconds:.2f} s ({rate})",
            f"{'it met':<20} {amount(len(self.learned.observations), 'observation')}",
        ]
        return "\n".join(lines)

    def _mean(self, part: slice) -> dict[str, Any]:
        curve = self.learned.curve
        return {
            "episodes": len(curve.returns[part]),
            "return": float(curve.returns[part].mean()),
            "discounted_return": float(curve.discounted_returns[part].mean()),
            "steps": float(curve.steps[part].mean()),
        }

    def _worth(self) -> str:
        over = "exactly, over all starts" if self.evaluation.exact else "in 100 episodes"
        text = f"is worth {self.evaluation.value:.4g} discounted, {over}"
        if self.optimum is not None:
            text += f"; the best possible is {self.optimum:.4g}"
        if self.evaluation.ended < 1:
            what = "of starts never end" if self.evaluation.exact else "of them were cut"
            text += f"; {1 - self.evaluation.ended:.0%} {what}"
        return text


def _check_options(
    machines: Path | None,
    stack: int | None,
    traces: Path | None,
    counterfactual: bool,
    shaping: bool,
) -> None:
    if machines is not None and stack is not None:
        raise OptionError("--machines and --stack exclude each other: leave out one")
    for name, is_on in (("--counterfactual", counterfactual), ("--shaping", shaping)):
        if is_on and (machines is None or traces is None):
            raise OptionError(f"{name} needs a model: give --machines and --traces")


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
    """Return the value of the best policy that sees all of a built-in world, over its starts."""
    view = tabular_view(env)
    if not isinstance(view, TabularView) or gamma == 1:
        return None
    tables = view.world.mechanics
    return float(tables.optimal_values(gamma)[tables.starts].mean())
