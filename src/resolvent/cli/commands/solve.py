"""`resolvent solve`: an environment → the best policy, or the open queries, in a folder."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.files import recover
from resolvent.cli import flags, outputs
from resolvent.errors import OptionError
from resolvent.exploration.solution import ABOUT, MACHINES, TRACES, Round, Solution
from resolvent.exploration.solve import solve as solve_environment

_STATES = (
    "Maximum number of states of a machine, if more than are found: longer sequences of labels are "
    "tested then."
)
_NOISE = "In a random world: continue with probabilities (auto), or stop (none)."
_FOLDER = "The folder for machines, traces and the policy, also after an interruption."
_FLAGS = (
    flags.flag(solve_environment, "labels", names=flags.LABEL_SOURCES),
    *flags.declared(solve_environment, "budget", "target"),
    flags.flag(solve_environment, "states", text=_STATES),
    *flags.declared(solve_environment, "gamma", "reward_range"),
    flags.flag(solve_environment, "noise", text=_NOISE),
    *flags.declared(solve_environment, "max_steps", "seed"),
)
_DEFAULTS = {parameter.name: parameter.default for parameter in _FLAGS}


@flags.takes("options", *_FLAGS)
def solve(
    environment: flags.Environment,
    output: Annotated[Path, flags.option("FOLDER", _FOLDER, "--output", "-o")],
    options: dict[str, Any],
    settings: flags.Settings = None,
    imports: flags.Imports = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the contents of the folder.")
    ] = False,
    json: flags.Json = False,
) -> None:
    """Explore an environment until no policy is provably better, and say why it stops.

    Ctrl-C keeps all results; --resume continues from there.
    """
    previous = None
    recover(output)
    if (output / ABOUT).exists():
        if not resume:
            raise OptionError(f"{output} holds earlier results: add --resume to continue")
        previous = Solution.load(output)
    elif resume:
        raise OptionError(f"--resume: {output} holds no results to continue from")
    make = flags.environment_maker(environment, settings, imports)
    with outputs.working() as bar, closing(make()) as env:
        solved = solve_environment(
            env,
            **options,
            resume=previous,
            folder=output,
            progress=lambda now: bar.show(_line(now), None, stage="solving"),
        )
    if json:
        outputs.print_json({"environment": environment, **solved.as_dict(), "output": output})
    else:
        print(solved)
        print(f"\nwrote {outputs.name_text(output)}")
        if solved.guarantee.reason in ("budget", "interrupted"):
            more = 2 if solved.guarantee.reason == "budget" else 1
            again = options | {"budget": more * options["budget"]}
            changed = {name: value for name, value in again.items() if value != _DEFAULTS[name]}
            changed.pop("seed", None)  # the folder has it
            values = {"set": settings, "import": imports, **changed, "resume": True}
            words = ["solve", environment, "-o", output, *outputs.option_words(values)]
        elif solved.guarantee.reason == "continuous":
            arguments = "-o", "machines.json", "--labels", "auto", "--set", "discretize=auto"
            words = ["infer", output / TRACES, *arguments]
        else:
            words = ["report", output / MACHINES, output / TRACES, "-o", "report.html"]
        print(f"\nnext: {outputs.command(*words)}")
    if solved.guarantee.reason == "interrupted":
        raise typer.Exit(130)


def _line(now: Round) -> str:
    """Return one line about the progress."""
    bound = "" if now.bound is None else f" (at most {now.value + now.bound:.3g})"
    states = " × ".join(map(str, now.states.values())) or "no"
    test = f", next: {now.after}" if now.after else ""
    return f"{now.steps:,} steps, {states} states, value {now.value:.3g}{bound}{test}"
