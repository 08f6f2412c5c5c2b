"""`resolvent report`: machines + traces → one HTML page that shows them, for any browser."""

from pathlib import Path
from typing import Annotated

import typer

from resolvent.cli.gathering import gathered
from resolvent.cli.options import (
    Damaged,
    Json,
    Machines,
    On,
    columns_of,
)
from resolvent.cli.places import Place, files_read, opened, say_what_is_idle
from resolvent.cli.printing import name_text, print_json, saying_warnings
from resolvent.cli.tables import TableOptions, takes_table
from resolvent.cli.targets import check_targets
from resolvent.errors import OptionError
from resolvent.machines import load
from resolvent.viz.terminal import ProgressBar


@takes_table(writes=True)
def report(
    machines: Machines,
    traces: Place,
    table: TableOptions,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="Where to write: .html.", show_default="required"),
    ] = None,
    curve: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Show a learning curve: the file of `resolvent train --curve`.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Show a policy: the file of `resolvent train -o` or `resolvent plan -o`.",
            show_default=False,
        ),
    ] = None,
    on: On = "threads",
    damaged: Damaged = "refuse",
    json: Json = False,
) -> None:
    """Write one HTML page: the machines drawn, traces replayed, and the evidence.

    The page needs no network and nothing beside it. Whatever the machines
    predict wrong, it shows; `resolvent check` tells by its exit code.
    """
    from resolvent.viz.report.learning import read_policy, read_returns
    from resolvent.viz.report.page import report as write

    output = table.target(output)
    if output is None:
        raise OptionError("nothing says where to write: name a file, -o FILE.html")
    check_targets(output, inputs=(machines, *files_read(traces), curve, policy))
    loaded = load(machines)
    returns = None if curve is None else read_returns(curve)
    chosen = None if policy is None else read_policy(policy)
    with ProgressBar() as bar, saying_warnings():
        given = opened(traces, table, columns_of(loaded), bar, damaged=damaged)
        say_what_is_idle(given, on)
        evidence = gathered(loaded, given, on, bar)
        bar.show("writing the page", 0.0)
        write(loaded, given, output, evidence=evidence, policy=chosen, returns=returns)
    if json:
        print_json(
            {
                "output": str(output),
                "bytes": output.stat().st_size,
                "traces": evidence.traces,
                "steps": evidence.steps,
                "states": {kind: machine.states for kind, machine in loaded.items()},
            }
        )
    else:
        print(f"wrote {name_text(output)}: open it in a browser")
