"""`resolvent diagnose`: a file of traces → findings that prevent good machines."""

from typing import Any

from resolvent.cli import flags, inputs, outputs
from resolvent.evaluation.diagnosis.diagnose import diagnose as findings_in
from resolvent.traces.scan.listing import uri_text


@inputs.takes_table()
@flags.takes("options", *inputs.LABELING_FLAGS)
def diagnose(
    source: flags.Traces,
    table: inputs.TableOptions,
    options: dict[str, Any],
    json: flags.Json = False,
) -> None:
    """Describe traces, and report problems that would prevent or weaken inference.

    An error means that `infer` refuses the traces; a warning, that machines will fail on new traces
    or mean less than they seem to. The exit code is 0 in any case.
    """
    columns = inputs.columns_to_read(options.get("outputs", ()))
    with outputs.working() as bar:
        findings = findings_in(inputs.opened(source, table, columns, bar), **options)
    if json:
        outputs.print_json(findings.as_dict())
    else:
        print(f"{outputs.name_text(uri_text(source))}: {findings}")
