"""`resolvent solve`: an environment → the best policy, or the open queries, in a folder."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.files import recover
from resolvent.cli.inputs import check_folder
from resolvent.cli.options import (
    LABEL_SOURCES,
    Environment,
    Imports,
    Json,
    Settings,
    environment_maker,
    flag,
    flags,
    option,
    takes,
)
from resolvent.cli.output import command, name_text, print_json, saying_warnings
from resolvent.errors import OptionError
from resolvent.exploration.solution import ABOUT, MACHINES, TRACES, Round, Solution
from resolvent.exploration.solve import solve as solve_environment
from resolvent.viz.terminal import ProgressBar

_STATES = (
    "Maximum number of states of a machine, if more than are found: longer sequences of labels are "
    "tested then."
)
_NOISE = "In a random world: continue with probabilities (auto), or stop (none)."
_FLAGS = (
    flag(solve_environment, "labels", choices=LABEL_SOURCES),
    *flags(solve_environment, "budget", "target"),
    flag(solve_environment, "states", text=_STATES),
    *flags(solve_environment, "gamma", "reward_range"),
    flag(solve_environment, "noise", text=_NOISE),
    *flags(solve_environment, "max_steps", "seed"),
)
_DEFAULTS = {parameter.name: parameter.default for parameter in _FLAGS}


@takes("options", *_FLAGS)
def solve(
    environment: Environment,
    output: Annotated[
        Path,
        option(
            "FOLDER",
            "The folder for machines, traces and the policy, also after an interruption.",
            "--output",
            "-o",
        ),
    ],
    options: dict[str, Any],
    settings: Settings = None,
    imports: Imports = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the contents of the folder.")
    ] = False,
    json: Json = False,
) -> None:
    """Explore an environment until no policy is provably better, and say why it stops.

    Ctrl-C keeps everything: --resume goes on from there.
    """
    check_folder(output)
    previous = None
    recover(output)
    if (output / ABOUT).exists():
        if not resume:
            raise OptionError(f"{output} holds what `solve` found before: give --resume to go on")
        previous = Solution.load(output)
    elif resume:
        raise OptionError(f"--resume: {output} holds nothing to go on from")
    # Environments may print what they like; standard output is for the result.
    with redirect_stdout(sys.stderr), ProgressBar() as bar, saying_warnings():
        world = environment_maker(environment, settings, imports)()
        try:
            solved = solve_environment(
                world,
                **options,
                resume=previous,
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
            more = 2 if solved.statement.kind == "budget" else 1
            again = {**options, "budget": more * options["budget"]}
            words = [*_typed({"set": settings, "import": imports, **again}), "--resume"]
            print(f"\nnext: {command('solve', environment, '-o', output, *words)}")
        elif solved.statement.kind == "readings":
            arguments = "-o", "machines.json", "--labels", "auto", "--set", "discretize=auto"
            print(f"\nnext: {command('infer', output / TRACES, *arguments)}")
        else:
            files = output / MACHINES, output / TRACES
            print(f"\nnext: {command('report', *files, '-o', 'report.html')}")
    if solved.statement.kind == "interrupted":
        raise typer.Exit(130)


def _typed(values: dict[str, Any]) -> list[str]:
    """Return options as they are typed, without defaults and the seed, which the folder has.

    >>> _typed({"set": ["length=5"], "reward_range": (0.0, 2.5), "gamma": 0.95})
    ['--set', 'length=5', '--reward-range', '0.0', '2.5']
    """
    words: list[str] = []
    for name, value in values.items():
        if value is None or name == "seed" or value == _DEFAULTS.get(name):
            continue
        flag_name = f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            words += [word for text in value for word in (flag_name, text)]
        else:
            words += [flag_name, *map(str, value if isinstance(value, tuple) else (value,))]
    return words


def _line(now: Round) -> str:
    """Return one line about the state of the search.

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
