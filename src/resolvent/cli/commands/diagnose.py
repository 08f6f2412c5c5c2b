"""`resolvent diagnose`: a file of traces → what stands in the way of machines that hold."""

from typing import Annotated

from resolvent.cli.options import (
    Json,
    Outputs,
    choice,
    columns_to_read,
    names_in,
)
from resolvent.cli.places import Place, opened
from resolvent.cli.printing import name_text, print_json, saying_warnings
from resolvent.cli.tables import TableOptions, takes_table
from resolvent.evaluation.diagnosis.diagnostics import diagnose as findings_in
from resolvent.preprocess.labeling import LABEL_ORIGINS
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.io.formats import FORMATS
from resolvent.traces.scan.listing import uri_text
from resolvent.viz.terminal import ProgressBar


@takes_table()
def diagnose(
    source: Place,
    table: TableOptions,
    outputs: Outputs = None,
    labels: Annotated[
        str,
        choice(
            "--labels",
            (*LABEL_ORIGINS, "auto"),
            "What a label is made of: those of TRACES, or what is seen and done.",
        ),
    ] = "given",
    timing: Annotated[
        str | None,
        choice(
            "--timing",
            LabelTiming,
            "Which labels are read before a step is answered.",
            show_default="what fits the labels",
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        str | None, choice("--format", FORMATS, "Read TRACES as this, not as its content says.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what traces are like before anything is inferred from them, and what to do about it.

    An error stands for traces that `infer` refuses, a warning for machines that will fail on
    fresh traces or mean less than they seem to. The exit code is 0 whatever is found.
    """
    named = names_in(outputs)
    columns = columns_to_read(named or ())
    with ProgressBar() as bar, saying_warnings():
        traces = opened(source, table, columns, bar, format=format)
        found = findings_in(traces, outputs=named, labels=labels, timing=timing)
    if json:
        print_json(found.as_dict())
    else:
        print(f"{name_text(uri_text(source))}: {found}")
