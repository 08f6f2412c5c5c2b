"""`resolvent plan`: machines + traces → the best way to act, what it is worth, what to try next."""

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import typer

from resolvent._util.text import amount
from resolvent.cli.environments import Imports, Settings, built_in_worlds, make_environment
from resolvent.cli.gathering import shown_by
from resolvent.cli.options import (
    Damaged,
    Gamma,
    Json,
    Machines,
    MaxSteps,
    On,
    RewardRange,
    choice,
)
from resolvent.cli.places import Place, files_read, opened, say_what_is_idle
from resolvent.cli.printing import command, name_text, print_json, saying_warnings
from resolvent.cli.tables import TableOptions, takes_table
from resolvent.cli.targets import check_targets
from resolvent.machines import load
from resolvent.planning.plan import Plan
from resolvent.planning.plan import plan as plan_for
from resolvent.rl.run_plan import Runs
from resolvent.viz.terminal import Amount, ProgressBar


@takes_table(writes=True)
def plan(
    machines: Machines,
    traces: Place,
    table: TableOptions,
    gamma: Gamma = 0.95,
    reward_range: RewardRange = None,
    trust_constants: Annotated[
        bool,
        typer.Option(
            "--trust-constants",
            help="Believe an answer that was always the same also in states where no trace asks.",
        ),
    ] = False,
    confidence: Annotated[
        float,
        typer.Option(metavar="P", help="How sure bounds are to be where answers are noisy."),
    ] = 0.95,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="ENV",
            help="Act by the plan in this environment: a Gymnasium id, or module:Class.",
            autocompletion=built_in_worlds,
            show_default=False,
        ),
    ] = None,
    settings: Settings = None,
    imports: Imports = None,
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", metavar="N", min=1, help="How many episodes to act.")
    ] = 100,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="The same seed gives the same episodes.")
    ] = 0,
    max_steps: MaxSteps = None,
    on_unseen: Annotated[
        str | None,
        choice(
            "--on-unseen",
            ("raise", "random"),
            "What to do where the plan knows nothing.",
            show_default="raise, or random if answers are noisy",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            metavar="FILE",
            help="Write the policy here, as JSON: what to do in every situation.",
            show_default=False,
        ),
    ] = None,
    on: On = "threads",
    damaged: Damaged = "refuse",
    json: Json = False,
) -> None:
    """Find the best way to act from machines and traces, with no further interaction.

    Says what the plan is worth at least, by how much another could be better at
    most, and which step nobody has taken is worth trying next.
    """
    output = table.target(output)
    if output is not None:
        check_targets(output, inputs=(machines, *files_read(traces)))
    stored = load(machines)
    started = time.perf_counter()
    with ProgressBar() as bar, saying_warnings():
        given = opened(traces, table, (), bar, damaged=damaged)
        say_what_is_idle(given, on)
        planning = time.perf_counter()
        found = plan_for(
            stored,
            given,
            gamma=gamma,
            reward_range=reward_range,
            trust_constants=trust_constants,
            confidence=confidence,
            on=on,
            progress=shown_by(bar),
        )
    seconds = {"read": planning - started, "plan": time.perf_counter() - planning}
    if output is not None:
        found.save(output)
    runs = None
    if environment is not None:
        acting = time.perf_counter()
        runs = _run(
            found,
            environment,
            lambda: make_environment(environment, settings, imports),
            {"episodes": episodes, "seed": seed, "max_steps": max_steps, "on_unseen": on_unseen},
        )
        seconds["run"] = time.perf_counter() - acting
    seconds["total"] = time.perf_counter() - started
    if json:
        print_json(
            {
                **found.as_dict(),
                "traces": found.model.traces,
                "steps": found.model.steps,
                "run": None if runs is None else runs.as_dict(),
                "output": None if output is None else str(output),
                "seconds": {name: round(value, 6) for name, value in seconds.items()},
            }
        )
        return
    _print_plan(found, runs, environment, output)
    if environment is None and (found.is_optimal or found.confidence is not None):
        print(f"\nnext: {command('plan', machines, traces, '--environment', 'ENV')}")


def _run(
    found: Plan,
    environment: str,
    make: Callable[[], gym.Env[Any, Any]],
    options: dict[str, Any],
) -> Runs:
    # Environments may print what they like; standard output is for the result.
    with redirect_stdout(sys.stderr), ProgressBar() as bar:
        world = make()
        try:
            episodes = Amount(options["episodes"], "episodes")
            acting = bar.stage(f"acting in {environment}", episodes)
            return found.run(world, **options, progress=acting)
        finally:
            world.close()


def _print_plan(
    found: Plan, runs: Runs | None, environment: str | None, output: Path | None
) -> None:
    print(found)
    if runs is not None:
        print(f"\nin {environment}: {runs}")
    if output is not None:
        print(f"\nwrote {name_text(output)}: {amount(len(found.model), 'situation')}")
