"""`resolvent collect`: a Gymnasium environment → a file of traces."""

from typing import Annotated

from resolvent.cli.options import (
    LABEL_SOURCES,
    Columns,
    Environment,
    Episodes,
    Imports,
    Json,
    MaxSteps,
    OnIfAsked,
    Seed,
    Settings,
    TracesOutput,
    WrittenFormat,
    choice,
    environment_maker,
)
from resolvent.cli.output import (
    check_trace_target,
    command,
    name_text,
    print_json,
    size,
    working,
)
from resolvent.rl.collect import collect as collect_traces
from resolvent.traces.symbols import label_text
from resolvent.viz.terminal import Amount

_SHOWN = 20
"""Maximum number of labels that are listed; there may be as many as observations."""


def collect(
    environment: Environment,
    output: TracesOutput,
    settings: Settings = None,
    imports: Imports = None,
    episodes: Episodes = 500,
    seed: Seed = 0,
    labels: Annotated[
        str,
        choice(
            LABEL_SOURCES,
            "The source of labels: given by the environment, or made of observations and actions; "
            "auto keeps those given, for `infer --labels auto`.",
            "--labels",
        ),
    ] = "given",
    columns: Columns = None,
    max_steps: MaxSteps = None,
    on: OnIfAsked = None,
    format: WrittenFormat = None,  # noqa: A002
    json: Json = False,
) -> None:
    """Play episodes of random actions in an environment, and write their traces."""
    check_trace_target(output, format)
    with working() as bar:
        traces = collect_traces(
            environment_maker(environment, settings, imports),
            episodes=episodes,
            seed=seed,
            labels=labels,
            columns=columns or (),
            max_steps=max_steps,
            on=on,
            progress=bar.stage(f"collecting in {environment}", Amount(episodes, "episodes")),
        )
    traces.save(output, format=format)
    if json:
        print_json(
            {
                "environment": environment,
                "seed": seed,
                "traces": len(traces),
                "steps": traces.steps,
                "terminated": int(traces.terminated.sum()),
                "observations": len(traces.observations),
                "actions": len(traces.actions),
                "labeling": labels,
                "labels": [sorted(label) for label in traces.labels],
                "columns": list(traces.columns),
                "output": output,
            }
        )
        return
    print(f"wrote {name_text(output)}: {size(traces)}")
    more = len(traces.labels) - _SHOWN
    listed = ", ".join(map(label_text, traces.labels[:_SHOWN]))
    print(f"labels: {listed}{f' and {more:,} more' if more > 0 else ''}")
    flags = () if labels == "given" else ("--labels", labels)
    print(f"\nnext: {command('infer', output, *flags, '-o', 'machines.json')}")
