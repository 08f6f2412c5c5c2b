"""`resolvent convert`: a file of traces → the same traces in another format."""

from pathlib import Path
from typing import Annotated

import typer

from resolvent.cli.options import Json, Traces, choice
from resolvent.cli.printing import name_text, print_json, size
from resolvent.cli.tables import TableOptions, takes_table
from resolvent.cli.targets import check_trace_target
from resolvent.traces.io.formats import FORMATS
from resolvent.viz.terminal import ProgressBar


@takes_table()
def convert(
    source: Traces,
    table: TableOptions,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Where to write: .parquet, .jsonl, .jsonl.gz, .jsonl.zst, or "
            "minari:NAMESPACE/NAME-v0.",
            show_default=False,
        ),
    ],
    format: Annotated[  # noqa: A002
        str | None, choice("--format", FORMATS, "Write this format, whatever the name of OUT.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            metavar="NAME",
            help="Read this column of a table, key of JSON lines or info of a Minari "
            "dataset as a further column; repeatable.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write traces in another format; that of TRACES is recognised by its content."""
    check_trace_target(target, format, source)
    with ProgressBar() as bar:
        traces = table.read(source, columns or (), bar.reading(source))
    traces.save(target, format=format)
    if json:
        print_json(
            {
                "input": str(source),
                "output": str(target),
                "traces": len(traces),
                "steps": traces.steps,
            }
        )
        return
    print(f"wrote {name_text(target)}: {size(traces)}")
