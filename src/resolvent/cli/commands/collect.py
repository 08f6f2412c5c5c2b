"""`resolvent collect`: a Gymnasium environment → a file of traces."""

from pathlib import Path
from typing import Annotated

from resolvent.cli import flags, outputs
from resolvent.rl.collect import collect as collect_traces
from resolvent.traces.symbols import label_text
from resolvent.viz.terminal import Amount

_SHOWN = 20  # maximum number of labels that are listed, of as many as observations

_LABELS = (
    "The source of labels: given by the environment, or made of observations and actions; auto "
    "keeps those given, for `infer --labels auto`."
)


def collect(
    environment: flags.Environment,
    output: Annotated[Path, flags.option("FILE", flags.TRACES_FILE, "--output", "-o")],
    settings: flags.Settings = None,
    imports: flags.Imports = None,
    episodes: flags.Episodes = 500,
    seed: flags.Seed = 0,
    labels: Annotated[str, flags.option("NAME", _LABELS, names=flags.LABEL_SOURCES)] = "given",
    columns: flags.Columns = None,
    max_steps: flags.MaxSteps = None,
    on: flags.OnIfAsked = None,
    format: flags.WrittenFormat = None,  # noqa: A002
    json: flags.Json = False,
) -> None:
    """Play episodes of random actions in an environment, and write their traces."""
    outputs.check_trace_target(output, format)
    with outputs.working() as bar:
        traces = collect_traces(
            flags.environment_maker(environment, settings, imports),
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
        outputs.print_json(
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
    print(f"wrote {outputs.name_text(output)}: {outputs.size(traces)}")
    more = len(traces.labels) - _SHOWN
    listed = ", ".join(map(label_text, traces.labels[:_SHOWN]))
    print(f"labels: {listed}{f' and {more:,} more' if more > 0 else ''}")
    options = () if labels == "given" else ("--labels", labels)
    print(f"\nnext: {outputs.command('infer', output, *options, '-o', 'machines.json')}")
