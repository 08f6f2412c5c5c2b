"""`resolvent solve`: an environment → the best way to act, or what is still open, in a folder."""

import sys
from contextlib import redirect_stdout
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.folders import recover
from resolvent.cli.environments import Environment, Imports, Settings, make_environment
from resolvent.cli.options import Gamma, Json, MaxSteps, RewardRange, choice
from resolvent.cli.printing import command, name_text, print_json, saying_warnings
from resolvent.cli.targets import check_folder
from resolvent.errors import OptionError
from resolvent.exploration.solution import ABOUT, MACHINES, TRACES, Round, Solution
from resolvent.exploration.solve import solve as solve_environment
from resolvent.preprocess.labeling import LABEL_ORIGINS
from resolvent.viz.terminal import ProgressBar


def solve(
    environment: Environment,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where to keep machines, traces, the policy and why it stopped; also when it is "
            "interrupted.",
            show_default=False,
        ),
    ],
    settings: Settings = None,
    imports: Imports = None,
    budget: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many steps to take at most.")
    ] = 100_000,
    target: Annotated[
        float,
        typer.Option(metavar="X", min=0, help="How far below the best the plan may be at most."),
    ] = 0.0,
    gamma: Gamma = 0.95,
    reward_range: RewardRange = None,
    labels: Annotated[
        str,
        choice(
            "--labels",
            ("auto", *LABEL_ORIGINS),
            "What a label is made of: given by the environment, or what is seen and done; auto "
            "takes those given, if there are any.",
        ),
    ] = "auto",
    states: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="How many states the world may have at most: longer words of labels are tested.",
            show_default="as many as are found",
        ),
    ] = None,
    noise: Annotated[
        str,
        choice(
            "--noise",
            ("auto", "none"),
            "What to do about a world that turns out to be random: go on with chances, or stop.",
        ),
    ] = "auto",
    max_steps: MaxSteps = None,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="The same seed gives the same result.")
    ] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from what the folder holds.")
    ] = False,
    json: Json = False,
) -> None:
    """Explore an environment on purpose until nothing better is possible, and say why it stops.

    Ctrl-C keeps everything: --resume goes on from there.
    """
    said = dict(locals())
    check_folder(output)
    before = None
    recover(output)
    if (output / ABOUT).exists():
        if not resume:
            raise OptionError(f"{output} holds what `solve` found before: give --resume to go on")
        before = Solution.load(output)
    elif resume:
        raise OptionError(f"--resume: {output} holds nothing to go on from")
    # Environments may print what they like; standard output is for the result.
    with redirect_stdout(sys.stderr), ProgressBar() as bar, saying_warnings():
        world = make_environment(environment, settings, imports)
        try:
            solved = solve_environment(
                world,
                labels=labels,
                budget=budget,
                target=target,
                states="found" if states is None else states,
                gamma=gamma,
                reward_range=reward_range,
                noise=noise,  # type: ignore[arg-type]
                max_steps=max_steps,
                seed=seed,
                resume=before,
                folder=output,
                progress=lambda now: bar.show(_line(now), None, stage="solving"),
            )
        finally:
            world.close()
    if json:
        print_json({"environment": environment, **solved.as_dict(), "output": str(output)})
    else:
        print(solved)
        print(f"\nwrote {name_text(output)}")
        if solved.statement.kind in ("budget", "interrupted"):
            said["budget"] = 2 * budget if solved.statement.kind == "budget" else budget
            again = (*_given(said), "--resume")
            print(f"\nnext: {command('solve', environment, '-o', output, *again)}")
        elif solved.statement.kind == "readings":
            found = "-o", "machines.json", "--labels", "auto", "--discretise", "auto"
            print(f"\nnext: {command('infer', output / TRACES, *found)}")
        else:
            files = output / MACHINES, output / TRACES
            print(f"\nnext: {command('report', *files, '-o', 'report.html')}")
    if solved.statement.kind == "interrupted":
        raise typer.Exit(130)


_ONCE_MORE = {
    "settings": "--set",
    "imports": "--import",
    "budget": "--budget",
    "target": "--target",
    "gamma": "--gamma",
    "reward_range": "--reward-range",
    "labels": "--labels",
    "states": "--states",
    "noise": "--noise",
    "max_steps": "--max-steps",
}
"""What whoever resumes has to say again, if it was said."""


def _given(said: dict[str, Any]) -> list[str]:
    """Return the options that were given, as they are typed.

    >>> _given({**dict.fromkeys(_ONCE_MORE), "settings": ["length=5"], "reward_range": (0.0, 2.5)})
    ['--set', 'length=5', '--reward-range', '0.0', '2.5']
    """
    typed: list[str] = []
    for name, option in _ONCE_MORE.items():
        value = said[name]
        if value is None or value == signature(solve).parameters[name].default:
            continue
        if isinstance(value, list):
            typed += [word for one in value for word in (option, one)]
        else:
            values = value if isinstance(value, tuple) else (value,)
            typed += [option, *map(str, values)]
    return typed


def _line(now: Round) -> str:
    """Say in one line how far it is, and what it wants to know.

    >>> _line(Round(96, 3, {"transition": 1, "reward": 3}, 0.57, 14.0, "whether the plan holds"))
    '96 steps, 1 × 3 states, worth 0.57 (at most 14.6), asks whether the plan holds'
    """
    bound = "" if now.bound is None else f" (at most {now.value + now.bound:.3g})"
    states = " × ".join(map(str, now.states.values())) or "no"
    asks = ""
    if now.after:
        asks = f", asks {now.after}" if now.after.startswith(_WORDS) else f", wants {now.after}"
    return f"{now.steps:,} steps, {states} states, worth {now.value:.3g}{bound}{asks}"


_WORDS = ("whether", "where", "which", "what", "how")
