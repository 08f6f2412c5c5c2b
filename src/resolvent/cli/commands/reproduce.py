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


def reproduce(
    experiments: Annotated[
        list[str] | None,
        flags.option(
            "EXPERIMENT",
            f"The experiments to run: {', '.join(EXPERIMENTS)}; all if none is named.",
            names=EXPERIMENTS,
            kind=typer.Argument,
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Minutes instead of hours: short limits, few repetitions."),
    ] = False,
    time_limit: Annotated[
        float | None,
        flags.option(
            "S", "Processor seconds of each run.", show_default="1800, or 20 with --quick"
        ),
    ] = None,
    repetitions: Annotated[
        int | None,
        flags.option(
            "N",
            "Number of repetitions, each with its own seed.",
            show_default="3, and 10 of the learning curve; 1 and 3 with --quick",
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        flags.option(
            "NAME",
            f"A baseline to run, instead of all; repeatable: {', '.join(METHODS)}.",
            "--method",
            names=METHODS,
        ),
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
    options: dict[str, Any] = {
        "quick": quick,
        "time_limit": time_limit,
        "repetitions": repetitions,
    }
    settings = chosen_settings(**options)
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
