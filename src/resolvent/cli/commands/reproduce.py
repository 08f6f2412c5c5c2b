"""`resolvent reproduce`: the paper's experiments → a folder of results, tables and figures."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.text import amount
from resolvent.cli.inputs import check_folder
from resolvent.cli.options import Json, OnIfAsked, option
from resolvent.cli.output import command, name_text, print_json
from resolvent.paper.experiments import EXPERIMENTS, METHODS
from resolvent.paper.report import problems, write_report
from resolvent.paper.reproduce import reproduce as run_all
from resolvent.paper.reproduce import settings as chosen_settings
from resolvent.paper.runs import Run
from resolvent.paper.store import Store
from resolvent.paper.tables import tables
from resolvent.viz.terminal import Amount, ProgressBar, show, table


def _check_experiments(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if name not in EXPERIMENTS:
            raise typer.BadParameter(f"'{name}' is not one of {', '.join(EXPERIMENTS)}")
    return names


def _check_methods(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if name not in METHODS:
            raise typer.BadParameter(f"'{name}' is not one of {', '.join(METHODS)}")
    return names


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help=f"The experiments to run: {', '.join(EXPERIMENTS)}; all if none is named.",
            callback=_check_experiments,
            autocompletion=lambda: list(EXPERIMENTS),
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Minutes instead of hours: short limits, few repetitions."),
    ] = False,
    time_limit: Annotated[
        float | None,
        option("S", "Processor seconds of each run.", show_default="1800, or 20 with --quick"),
    ] = None,
    repetitions: Annotated[
        int | None,
        option(
            "N",
            "Number of repetitions, each with its own seed.",
            show_default="3, and 10 of the learning curve; 1 and 3 with --quick",
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        option(
            "NAME",
            f"A baseline to run, instead of all; repeatable: {', '.join(METHODS)}.",
            "--method",
            callback=_check_methods,
            autocompletion=lambda: list(METHODS),
        ),
    ] = None,
    output: Annotated[
        Path,
        option("FOLDER", "The folder for the results.", "--output", "-o"),
    ] = Path("results"),
    on: OnIfAsked = None,
    json: Json = False,
) -> None:
    """Run the paper's experiments again, and compare the results with its figures.

    Each run is saved when it is done: after an interruption the same command continues. Runs that
    reach a limit, fail or are not installed are recorded as such; a run that reached a limit the
    first time is not repeated. With --on runs share the machine, and take longer than alone.
    """
    check_folder(output)
    settings = chosen_settings(quick=quick, time_limit=time_limit, repetitions=repetitions)
    words = [
        "reproduce",
        *(["--quick"] if quick else []),
        *([] if time_limit is None else ["--time-limit", f"{time_limit:g}"]),
        *([] if repetitions is None else ["--repetitions", str(repetitions)]),
    ]
    again_with = [word for name in methods or () for word in ("--method", name)]
    again_with += [] if on is None else ["--on", on]
    store = Store(output, asdict(settings), " ".join(["resolvent", *words]))
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
                on=on,
                progress=progress,
                finished=finished,
            )
        except KeyboardInterrupt:
            again = command(*words, *again_with, *(experiments or ()), "-o", output)
            bar.clear()
            print(f"resolvent: finished runs are kept; to continue: {again}", file=sys.stderr)
            raise
    written = write_report(output, results)
    if json:
        content = {"tables": [_as_dict(paper_table) for paper_table in tables(results)]}
        files = {"output": str(output), "files": [str(path) for path in written]}
        print_json({"about": results.about, "runs": len(results.records), **content, **files})
        return
    for paper_table in (full.for_terminals() for full in tables(results)):
        print(f"\n{paper_table.title}\n")
        show(table(paper_table.header, paper_table.rows, right=range(1, len(paper_table.header))))
    for line in problems(results):
        print(f"did not run: {line}")
    print(f"\n{amount(len(results.records), 'run')}; wrote {', '.join(map(name_text, written))}")


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


def _as_dict(result: Any) -> dict[str, Any]:
    return {
        "title": result.title,
        "note": result.note,
        "header": result.header,
        "rows": result.rows,
    }
