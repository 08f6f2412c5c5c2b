"""`resolvent plan`: machines + traces → a policy, its value, and the next experiment."""

import time
from contextlib import closing
from typing import Annotated, Any

from resolvent._util.text import amount
from resolvent.cli.inputs import TableOptions, files_read, opened, takes_table
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
    check_targets,
    command,
    name_text,
    print_json,
    rounded,
    shown_by,
    working,
)
from resolvent.machines import load
from resolvent.planning.plan import plan as plan_for
from resolvent.viz.terminal import Amount


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
            ("raise", "random"),
            "In an augmented state that the plan does not know, raise an error or act at random.",
            "--on-unseen",
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
    loaded = load(machines)
    runs = None
    started = time.perf_counter()
    with working() as bar:
        source = opened(traces, table, (), bar, on=on)
        read = time.perf_counter()
        result = plan_for(loaded, source, **options, on=on, progress=shown_by(bar))
        planned = time.perf_counter()
        seconds = {"read": read - started, "plan": planned - read}
        if output is not None:
            result.save(output)
        if environment is not None:
            with closing(environment_maker(environment, settings, imports)()) as env:
                runs = result.run(
                    env,
                    episodes=episodes,
                    seed=seed,
                    max_steps=max_steps,
                    on_unseen=on_unseen,  # type: ignore[arg-type]
                    progress=bar.stage(f"acting in {environment}", Amount(episodes, "episodes")),
                )
            seconds["run"] = time.perf_counter() - planned
    seconds["total"] = time.perf_counter() - started
    if json:
        figures = result.as_dict() | {"traces": result.model.traces, "steps": result.model.steps}
        figures["run"] = None if runs is None else runs.as_dict()
        print_json(figures | {"output": output, "seconds": rounded(seconds)})
        return
    print(result)
    if runs is not None:
        print(f"\nin {environment}: {runs}")
    if output is not None:
        print(f"\nwrote {name_text(output)}: {amount(len(result.model), 'augmented state')}")
    if environment is None and (result.is_optimal or result.confidence is not None):
        print(f"\nnext: {command('plan', machines, traces, '--environment', 'ENV')}")
