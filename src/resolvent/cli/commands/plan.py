"""`resolvent plan`: machines + traces → a policy, its value, and the next experiment."""

import time
from contextlib import closing
from typing import Annotated, Any

from resolvent._util.text import amount
from resolvent.cli import flags, inputs, outputs
from resolvent.machines import load
from resolvent.planning.plan import plan as plan_for
from resolvent.viz.terminal import Amount

_OPTIONS = {
    "gamma": "The discount of a reward one step later.",
    "reward_range": "The lowest and highest reward of unknown steps, instead of those of TRACES.",
    "trust_constants": "Assume an output that was always the same also in states where it was not "
    "observed.",
    "confidence": "The confidence of bounds if outputs are noisy.",
}
_UNSEEN = "In an augmented state that the plan does not know, raise an error or act at random."
_DEFAULT = "raise, or random if outputs are noisy"
_ENVIRONMENT = "Execute the plan in this environment: a Gymnasium id, or module:Class."


@inputs.takes_table(writes=True)
@flags.takes("options", *(flags.flag(plan_for, name, text=text) for name, text in _OPTIONS.items()))
def plan(
    machines: flags.Machines,
    traces: flags.Traces,
    table: inputs.TableOptions,
    options: dict[str, Any],
    environment: Annotated[
        str | None, flags.option("ENV", _ENVIRONMENT, autocompletion=flags.world_ids)
    ] = None,
    settings: flags.Settings = None,
    imports: flags.Imports = None,
    episodes: flags.Episodes = 100,
    seed: flags.Seed = 0,
    max_steps: flags.MaxSteps = None,
    on_unseen: Annotated[
        str | None, flags.option("NAME", _UNSEEN, names=("raise", "random"), show_default=_DEFAULT)
    ] = None,
    output: flags.ShortOutput = None,
    on: flags.On = "threads",
    json: flags.Json = False,
) -> None:
    """Find the best policy from machines and traces, with no further interaction.

    Prints the value that the plan has at least, the most by which another one could be better,
    and the untried step to try next.
    """
    output = table.target(output)
    if output is not None:
        outputs.check_targets(output, inputs=(machines, *inputs.files_read(traces)))
    loaded = load(machines)
    runs = None
    started = time.perf_counter()
    with outputs.working() as bar:
        source = inputs.opened(traces, table, (), bar, on=on)
        read = time.perf_counter()
        result = plan_for(loaded, source, **options, on=on, progress=outputs.shown_by(bar))
        planned = time.perf_counter()
        seconds = {"read": read - started, "plan": planned - read}
        if output is not None:
            result.save(output)
        if environment is not None:
            with closing(flags.environment_maker(environment, settings, imports)()) as env:
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
        figures |= {"run": runs, "output": output, "seconds": outputs.rounded(seconds)}
        outputs.print_json(figures)
        return
    print(result)
    if runs is not None:
        print(f"\nin {environment}: {runs}")
    if output is not None:
        size = amount(len(result.model), "augmented state")
        print(f"\nwrote {outputs.name_text(output)}: {size}")
    if environment is None and (result.is_optimal or result.confidence is not None):
        again = outputs.command("plan", machines, traces, "--environment", "ENV")
        print(f"\nnext: {again}")
