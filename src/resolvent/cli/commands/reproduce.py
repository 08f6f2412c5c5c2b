"""`resolvent reproduce`: the paper's experiments → a folder of results, tables and figures."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.files import link_target
from resolvent._util.records import to_builtins
from resolvent._util.text import amount
from resolvent.cli import flags, outputs
from resolvent.paper.experiments import EXPERIMENTS, METHODS
from resolvent.paper.report import problems, write_report
from resolvent.paper.reproduce import Store
from resolvent.paper.reproduce import reproduce as run_all
from resolvent.paper.reproduce import settings as chosen_settings
from resolvent.paper.runs import Run
from resolvent.paper.tables import tables
from resolvent.viz.terminal import Amount, ProgressBar, show, table

_EXPERIMENTS = f"The experiments to run: {', '.join(EXPERIMENTS)}; all if none is named."
_METHODS = f"A baseline to run, instead of all; repeatable: {', '.join(METHODS)}."
_QUICK = "Minutes instead of hours: short limits, few repetitions."
_LIMIT, _SECONDS = "Processor seconds of each run.", "1800, or 20 with --quick"
_REPEAT = "Number of repetitions, each with its own seed."
_TIMES = "3, and 10 of the learning curve; 1 and 3 with --quick"


def reproduce(
    experiments: Annotated[
        list[str] | None,
        flags.option(
            "EXPERIMENT", _EXPERIMENTS, names=EXPERIMENTS, kind=typer.Argument, show_default=False
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=_QUICK)] = False,
    time_limit: Annotated[float | None, flags.option("S", _LIMIT, show_default=_SECONDS)] = None,
    repetitions: Annotated[int | None, flags.option("N", _REPEAT, show_default=_TIMES)] = None,
    methods: Annotated[
        list[str] | None, flags.option("NAME", _METHODS, "--method", names=METHODS)
    ] = None,
    output: Annotated[
        Path, flags.option("FOLDER", "The folder for the results.", "--output", "-o")
    ] = Path("results"),
    json: flags.Json = False,
) -> None:
    """Run the paper's experiments again, and compare the results with its figures.

    Each run is saved when it is done: after an interruption the same command continues. Runs that
    reach a limit, fail or are not installed are recorded as such; a run that reached a limit the
    first time is not repeated.
    """
    link_target(output)
    settings = chosen_settings(quick=quick, time_limit=time_limit, repetitions=repetitions)
    options = {"quick": quick, "time_limit": time_limit, "repetitions": repetitions}
    words = outputs.option_words(options)
    store = Store(output, asdict(settings), " ".join(["resolvent", "reproduce", *words]))
    log = sys.stderr if json else sys.stdout
    with ProgressBar() as bar:

        def progress(done: int, of: int, run: Run) -> None:
            bar.show(str(run), done / of, of=Amount(of, "runs"), stage="runs")

        def finished(done: int, of: int, run: Run, record: dict[str, Any]) -> None:
            bar.clear()
            print(f"[{done}/{of}] {run}: {_outcome_text(record)}", file=log, flush=True)

        try:
            results = run_all(
                store,
                settings,
                dict.fromkeys(experiments or EXPERIMENTS),
                methods=methods or None,
                progress=progress,
                finished=finished,
            )
        except KeyboardInterrupt:
            words += [*outputs.option_words({"method": methods}), *(experiments or ())]
            again = outputs.command("reproduce", *words, "-o", output)
            bar.clear()
            print(f"resolvent: finished runs are kept; to continue: {again}", file=sys.stderr)
            raise
    written = write_report(output, results)
    if json:
        names = ("title", "note", "header", "rows")
        outputs.print_json(
            {
                "about": results.about,
                "runs": len(results.records),
                "tables": [to_builtins(paper_table, names) for paper_table in tables(results)],
                "output": output,
                "files": written,
            }
        )
        return
    for paper_table in tables(results):
        header, *rows = paper_table.brief()
        print(f"\n{paper_table.title}\n")
        show(table(header, rows, right=range(1, len(header))))
    for line in problems(results):
        print(f"did not run: {line}")
    files = ", ".join(map(outputs.name_text, written))
    print(f"\n{amount(len(results.records), 'run')}; wrote {files}")


def _outcome_text(record: dict[str, Any]) -> str:
    """Return the outcome of a run as text."""
    parts = [str(record["status"])]
    if record["status"] in ("error", "not installed"):
        parts.append(str(record["error"]))
    if "seconds" in record:
        parts.append(f"{record['seconds']:.3g} s")
    if "correctness" in record:
        parts.append(f"{amount(record['states'], 'state')}, {record['correctness']}")
    return ", ".join(parts)
