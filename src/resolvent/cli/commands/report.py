"""`resolvent report`: machines + traces → one HTML page that shows them, for any browser."""

from pathlib import Path
from typing import Annotated

from resolvent.cli.inputs import TableOptions, columns_of, files_read, opened, takes_table
from resolvent.cli.options import Json, Machines, On, ShortOutput, Traces, option
from resolvent.cli.output import check_targets, name_text, print_json, shown_by, working
from resolvent.errors import OptionError
from resolvent.inference.evidence import evidence as evaluate
from resolvent.machines import load


@takes_table(writes=True)
def report(
    machines: Machines,
    traces: Traces,
    table: TableOptions,
    output: ShortOutput = None,
    curve: Annotated[
        Path | None,
        option("FILE", "A learning curve to show: the file of `resolvent train --curve`."),
    ] = None,
    policy: Annotated[
        Path | None,
        option("FILE", "A policy to show: the file of `resolvent train -o` or `plan -o`."),
    ] = None,
    on: On = "threads",
    json: Json = False,
) -> None:
    """Write one HTML page: the machines drawn, traces replayed, and the evidence.

    The page needs no network and no other files. It lists wrong predictions; the exit code of
    `resolvent check` is for scripts.
    """
    from resolvent.viz.report.learning import read_policy, read_returns
    from resolvent.viz.report.page import report as write

    output = table.target(output)
    if output is None:
        raise OptionError("no file to write: add -o FILE.html")
    check_targets(output, inputs=(machines, *files_read(traces), curve, policy))
    loaded = load(machines)
    returns = None if curve is None else read_returns(curve)
    chosen = None if policy is None else read_policy(policy)
    with working() as bar:
        source = opened(traces, table, columns_of(loaded), bar, on=on)
        evidence = evaluate(loaded, source, on=on, progress=shown_by(bar))
        bar.show("writing the page", 0.0)
        write(loaded, source, output, evidence=evidence, policy=chosen, returns=returns)
    if json:
        print_json(
            {
                "output": output,
                "bytes": output.stat().st_size,
                "traces": evidence.traces,
                "steps": evidence.steps,
                "states": {kind: machine.states for kind, machine in loaded.items()},
            }
        )
    else:
        print(f"wrote {name_text(output)}: open it in a browser")
