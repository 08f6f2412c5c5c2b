"""`resolvent diagnose`: a file of traces → findings that prevent good machines."""

from typing import Any

from resolvent.cli.inputs import (
    LABELING_FLAGS,
    TableOptions,
    columns_to_read,
    opened,
    takes_table,
)
from resolvent.cli.options import Json, Traces, takes
from resolvent.cli.output import name_text, print_json, working
from resolvent.evaluation.diagnosis.diagnose import diagnose as findings_in
from resolvent.traces.scan.listing import uri_text


@takes_table(format=True, damaged=False)
@takes("options", *LABELING_FLAGS)
def diagnose(
    source: Traces, table: TableOptions, options: dict[str, Any], json: Json = False
) -> None:
    """Describe traces, and report problems that would prevent or weaken inference.

    An error means that `infer` refuses the traces; a warning, that machines will fail on new traces
    or mean less than they seem to. The exit code is 0 in any case.
    """
    columns = columns_to_read(options.get("outputs", ()))
    with working() as bar:
        findings = findings_in(opened(source, table, columns, bar), **options)
    if json:
        print_json(findings.as_dict())
    else:
        print(f"{name_text(uri_text(source))}: {findings}")
