"""`resolvent collect`: a Gymnasium environment → a file of traces."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Annotated

from resolvent.cli.inputs import check_trace_target
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
from resolvent.cli.output import command, name_text, print_json, size
from resolvent.rl.collect import collect as collect_traces
from resolvent.traces.symbols import Label, label_text
from resolvent.viz.terminal import Amount, ProgressBar

_SHOWN = 20
"""Maximum number of labels that are listed."""


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
            "--labels",
            LABEL_SOURCES,
            "The source of labels: given by the environment, or made of observations and actions; "
            "auto keeps those given, for `infer --labels auto`.",
        ),
    ] = "given",
    columns: Columns = None,
    max_steps: MaxSteps = None,
    on: OnIfAsked = None,
    format: WrittenFormat = None,  # noqa: A002
    json: Json = False,
) -> None:
    """Play random actions in an environment and write what happened."""
    check_trace_target(output, format)
    # Environments may print what they like; standard output is for the result.
    with redirect_stdout(sys.stderr), ProgressBar() as bar:
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
                "output": str(output),
            }
        )
        return
    print(f"wrote {name_text(output)}: {size(traces)}")
    print(f"labels seen: {_some(traces.labels)}")
    flags = () if labels == "given" else ("--labels", labels)
    print(f"\nnext: {command('infer', output, *flags, '-o', 'machines.json')}")


def _some(labels: Sequence[Label]) -> str:
    """List the first of the labels, whose number may be as large as that of observations."""
    named = ", ".join(map(label_text, labels[:_SHOWN]))
    more = len(labels) - _SHOWN
    return f"{named} and {more:,} more" if more > 0 else named
