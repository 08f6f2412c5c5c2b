"""`resolvent solve`: an environment → the best way to act, or what is still open, in a folder."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from resolvent.cli.environments import Environment, Imports, Settings, make_environment
from resolvent.cli.options import Gamma, Json, MaxSteps, RewardRange, choice
from resolvent.cli.printing import command, name_text, print_json, saying_warnings
from resolvent.cli.targets import check_folder
from resolvent.display.progress import ProgressBar
from resolvent.errors import OptionError
from resolvent.exploring import Round, Solved
from resolvent.exploring.folders import recover
from resolvent.exploring.solved import ABOUT, MACHINES, TRACES
from resolvent.exploring.solving import solve as solve_environment
from resolvent.traces.labelling import LABELLINGS
from resolvent.wording import listed


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
            ("auto", *LABELLINGS),
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
    check_folder(output)
    before = None
    recover(output)
    if (output / ABOUT).exists():
        if not resume:
            raise OptionError(f"{output} holds what `solve` found before: give --resume to go on")
        before = Solved.load(output)
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
                progress=lambda now: bar.show(
                    _line(environment, now), now.steps / budget, stage="solving", steady=False
                ),
            )
        finally:
            world.close()
    if json:
        print_json({"environment": environment, **solved.as_dict(), "output": str(output)})
    else:
        print(solved)
        print(f"\nwrote {name_text(output)}")
        again = ("--resume", "--budget", str(2 * budget))
        if solved.statement.kind in ("budget", "interrupted"):
            print(f"\nnext: {command('solve', environment, '-o', output, *again)}")
        else:
            files = output / MACHINES, output / TRACES
            print(f"\nnext: {command('report', *files, '-o', 'report.html')}")
    if solved.statement.kind == "interrupted":
        raise typer.Exit(130)


def _line(environment: str, now: Round) -> str:
    """Say in one line how far it is, and what it is after."""
    bound = "" if now.bound is None else f" (at most {now.value + now.bound:.4g})"
    states = listed([f"{size} {kind}" for kind, size in now.states.items()]) or "no"
    after = f"; after {now.after}" if now.after else ""
    return (
        f"solving {environment}: {now.steps:,} steps, {states} states, "
        f"worth {now.value:.4g}{bound}{after}"
    )
