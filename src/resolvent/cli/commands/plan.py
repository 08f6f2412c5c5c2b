"""`resolvent plan`: machines + traces → a policy, its value, and the next experiment."""

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym

from resolvent._util.text import amount
from resolvent.cli.inputs import (
    TableOptions,
    check_targets,
    files_read,
    note_unused,
    opened,
    takes_table,
)
from resolvent.cli.options import (
    Episodes,
    Imports,
    Json,
    Machines,
    MaxSteps,
    On,
    Seed,
    Settings,
    ShortOutput,
    Traces,
    built_in_worlds,
    choice,
    environment_maker,
    flag,
    option,
    takes,
)
from resolvent.cli.output import (
    command,
    name_text,
    print_json,
    rounded,
    saying_warnings,
    shown_by,
)
from resolvent.machines import load
from resolvent.planning.plan import Plan
from resolvent.planning.plan import plan as plan_for
from resolvent.rl.run_plan import Runs
from resolvent.viz.terminal import Amount, ProgressBar


@takes_table(writes=True)
@takes(
    "options",
    flag(plan_for, "gamma", text="The discount of a reward one step later."),
    flag(
        plan_for,
        "reward_range",
        text="The lowest and highest reward of unknown steps, instead of those of TRACES.",
    ),
    flag(
        plan_for,
        "trust_constants",
        text="Assume an output that was always the same also in states where it was not observed.",
    ),
    flag(plan_for, "confidence", text="The confidence of bounds if outputs are noisy."),
)
def plan(
    machines: Machines,
    traces: Traces,
    table: TableOptions,
    options: dict[str, Any],
    environment: Annotated[
        str | None,
        option(
            "ENV",
            "Execute the plan in this environment: a Gymnasium id, or module:Class.",
            autocompletion=built_in_worlds,
        ),
    ] = None,
    settings: Settings = None,
    imports: Imports = None,
    episodes: Episodes = 100,
    seed: Seed = 0,
    max_steps: MaxSteps = None,
    on_unseen: Annotated[
        str | None,
        choice(
            "--on-unseen",
            ("raise", "random"),
            "In an augmented state that the plan does not know, raise an error or act at random.",
            show_default="raise, or random if outputs are noisy",
        ),
    ] = None,
    output: ShortOutput = None,
    on: On = "threads",
    json: Json = False,
) -> None:
    """Find the best policy from machines and traces, with no further interaction.

    Prints the value that the plan has at least, the most by which another one could be better,
    and the untried step to try next.
    """
    output = table.target(output)
    if output is not None:
        check_targets(output, inputs=(machines, *files_read(traces)))
    stored = load(machines)
    started = time.perf_counter()
    with ProgressBar() as bar, saying_warnings():
        source = opened(traces, table, (), bar)
        note_unused(source, on)
        planning = time.perf_counter()
        result = plan_for(
            stored,
            source,
            **options,
            on=on,
            progress=shown_by(bar),
        )
    seconds = {"read": planning - started, "plan": time.perf_counter() - planning}
    if output is not None:
        result.save(output)
    runs = None
    if environment is not None:
        acting = time.perf_counter()
        runs = _run(
            result,
            environment,
            environment_maker(environment, settings, imports),
            {"episodes": episodes, "seed": seed, "max_steps": max_steps, "on_unseen": on_unseen},
        )
        seconds["run"] = time.perf_counter() - acting
    seconds["total"] = time.perf_counter() - started
    if json:
        print_json(
            {
                **result.as_dict(),
                "traces": result.model.traces,
                "steps": result.model.steps,
                "run": None if runs is None else runs.as_dict(),
                "output": None if output is None else str(output),
                "seconds": rounded(seconds),
            }
        )
        return
    _print_plan(result, runs, environment, output)
    if environment is None and (result.is_optimal or result.confidence is not None):
        print(f"\nnext: {command('plan', machines, traces, '--environment', 'ENV')}")


def _run(
    result: Plan,
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
            return result.run(world, **options, progress=acting)
        finally:
            world.close()


def _print_plan(
    result: Plan, runs: Runs | None, environment: str | None, output: Path | None
) -> None:
    print(result)
    if runs is not None:
        print(f"\nin {environment}: {runs}")
    if output is not None:
        print(f"\nwrote {name_text(output)}: {amount(len(result.model), 'augmented state')}")
