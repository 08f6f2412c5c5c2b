"""`resolvent collect`: a Gymnasium environment → a file of traces."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from resolvent.cli.environments import Environment, Imports, Settings, named_environment
from resolvent.cli.options import Json, MaxSteps, OnIfAsked, choice
from resolvent.cli.printing import command, name_text, print_json, size
from resolvent.cli.targets import check_trace_target
from resolvent.preprocess.labeling import LABEL_ORIGINS
from resolvent.rl.collect import collect as collect_traces
from resolvent.traces.io.formats import FORMATS
from resolvent.traces.symbols import Label, label_text
from resolvent.viz.terminal import Amount, ProgressBar

_SHOWN = 20


def collect(
    environment: Environment,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write: .parquet, .jsonl, .jsonl.gz, .jsonl.zst, or "
            "minari:NAMESPACE/NAME-v0.",
            show_default=False,
        ),
    ],
    settings: Settings = None,
    imports: Imports = None,
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", metavar="N", min=1, help="How many episodes to play.")
    ] = 500,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="The same seed gives the same traces.")
    ] = 0,
    labels: Annotated[
        str,
        choice(
            "--labels",
            (*LABEL_ORIGINS, "auto"),
            "What a label is made of: given by the environment, or what is seen and done; with "
            "auto given if it is, for `infer --labels auto` finds events by itself.",
        ),
    ] = "given",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="NAME",
            help='Keep info["NAME"] after every step as a further column; repeatable.',
            show_default=False,
        ),
    ] = None,
    max_steps: MaxSteps = None,
    on: OnIfAsked = None,
    format: Annotated[  # noqa: A002
        str | None, choice("--format", FORMATS, "Write this format, whatever the file's name.")
    ] = None,
    json: Json = False,
) -> None:
    """Play random actions in an environment and write what happened."""
    check_trace_target(output, format)
    # Environments may print what they like; standard output is for the result.
    with redirect_stdout(sys.stderr), ProgressBar() as bar:
        traces = collect_traces(
            named_environment(environment, settings, imports),
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
                "labelling": labels,
                "labels": [sorted(label) for label in traces.labels],
                "columns": list(traces.columns),
                "output": str(output),
            }
        )
        return
    print(f"wrote {name_text(output)}: {size(traces)}")
    print(f"labels seen: {_some(traces.labels)}")
    made = () if labels == "given" else ("--labels", labels)
    print(f"\nnext: {command('infer', output, *made, '-o', 'machines.json')}")


def _some(labels: Sequence[Label]) -> str:
    """List labels, of which there may be as many as observations."""
    named = ", ".join(map(label_text, labels[:_SHOWN]))
    more = len(labels) - _SHOWN
    return f"{named} and {more:,} more" if more > 0 else named
