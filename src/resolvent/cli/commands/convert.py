"""`resolvent convert`: a file of traces → the same traces in another format."""

from pathlib import Path
from typing import Annotated

import typer

from resolvent.cli import flags, inputs, outputs


@inputs.takes_table(reading=False)
def convert(
    source: flags.Traces,
    table: inputs.TableOptions,
    target: Annotated[
        Path, flags.option("OUT", flags.TRACES_FILE, kind=typer.Argument, show_default=False)
    ],
    format: flags.WrittenFormat = None,  # noqa: A002
    columns: flags.Columns = None,
    json: flags.Json = False,
) -> None:
    """Write traces in another format; that of TRACES is recognized by its content."""
    path = Path(source)
    outputs.check_trace_target(target, format, path)
    with outputs.working() as bar:
        traces = table.read(path, columns or (), bar)
    traces.save(target, format=format)
    if json:
        figures = {"traces": len(traces), "steps": traces.steps}
        outputs.print_json({"input": source, "output": target, **figures})
    else:
        print(f"wrote {outputs.name_text(target)}: {outputs.size(traces)}")
