"""`resolvent report`: machines + traces → one HTML page that shows them, for any browser."""

from pathlib import Path
from typing import Annotated

from resolvent.cli import flags, inputs, outputs
from resolvent.errors import OptionError
from resolvent.inference.cross_validation import evidence as evaluate
from resolvent.machines import load

_CURVE = "A learning curve to show: the file of `resolvent train --curve`."
_POLICY = "A policy to show: the file of `resolvent train -o` or `plan -o`."


@inputs.takes_table(writes=True)
def report(
    machines: flags.Machines,
    traces: flags.Traces,
    table: inputs.TableOptions,
    output: flags.ShortOutput = None,
    curve: Annotated[Path | None, flags.option("FILE", _CURVE)] = None,
    policy: Annotated[Path | None, flags.option("FILE", _POLICY)] = None,
    on: flags.On = "threads",
    json: flags.Json = False,
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
    outputs.check_targets(output, inputs=(machines, *inputs.files_read(traces), curve, policy))
    loaded = load(machines)
    returns = None if curve is None else read_returns(curve)
    chosen = None if policy is None else read_policy(policy)
    with outputs.working() as bar:
        source = inputs.opened(traces, table, inputs.columns_of(loaded), bar, on=on)
        evidence = evaluate(loaded, source, on=on, progress=outputs.shown_by(bar))
        bar.show("writing the page", 0.0)
        write(loaded, source, output, evidence=evidence, policy=chosen, returns=returns)
    if json:
        outputs.print_json(
            {
                "output": output,
                "bytes": output.stat().st_size,
                "traces": evidence.traces,
                "steps": evidence.steps,
                "states": {kind: machine.states for kind, machine in loaded.items()},
            }
        )
    else:
        print(f"wrote {outputs.name_text(output)}: open it in a browser")
