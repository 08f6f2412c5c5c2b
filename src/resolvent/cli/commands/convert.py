"""`resolvent convert`: a file of traces → the same traces in another format."""

from pathlib import Path
from typing import Annotated

import typer

from resolvent.cli.inputs import TableOptions, takes_table
from resolvent.cli.options import Columns, Json, Traces, WrittenFormat
from resolvent.cli.output import check_trace_target, name_text, print_json, size, working


@takes_table(damaged=False)
def convert(
    source: Traces,
    table: TableOptions,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="The file to write: .parquet, .jsonl, .jsonl.gz, .jsonl.zst, or "
            "minari:NAMESPACE/NAME-v0.",
            show_default=False,
        ),
    ],
    format: WrittenFormat = None,  # noqa: A002
    columns: Columns = None,
    json: Json = False,
) -> None:
    """Write traces in another format; that of TRACES is recognized by its content."""
    path = Path(source)
    check_trace_target(target, format, path)
    with working() as bar:
        traces = table.read(path, columns or (), bar)
    traces.save(target, format=format)
    if json:
        figures = {"traces": len(traces), "steps": traces.steps}
        print_json({"input": source, "output": target, **figures})
        return
    print(f"wrote {name_text(target)}: {size(traces)}")
