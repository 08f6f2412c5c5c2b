"""`resolvent infer`: a file of traces → a file of machines, and how they were found."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from resolvent._util.progress import Progress
from resolvent._util.text import amount, short
from resolvent.cli.held_out import HeldOutShare, HeldOutTest, NoHeldOut, held_out_test
from resolvent.cli.options import (
    Damaged,
    Json,
    On,
    Outputs,
    Resume,
    choice,
    columns_to_read,
    names_in,
)
from resolvent.cli.places import Place, files_read, opened, say_what_is_idle
from resolvent.cli.printing import command, name_text, print_json, saying_warnings
from resolvent.cli.tables import TableOptions, takes_table
from resolvent.cli.targets import check_targets
from resolvent.display.merge_lines import log_lines
from resolvent.display.progress import Amount, ProgressBar
from resolvent.errors import OptionError
from resolvent.evaluation.weakness import Weakness, weaknesses
from resolvent.inference.engine import ENGINES
from resolvent.inference.infer import FINDING_EVENTS, infer_with
from resolvent.inference.options import Options
from resolvent.inference.refinement import REFINE_ABOVE
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.replay.corpus import READING
from resolvent.replay.replaying import REPLAYING
from resolvent.samples import LabelTiming
from resolvent.senses import Discretise
from resolvent.traces import TraceFolder, TraceSet
from resolvent.traces.io.formats import FORMATS
from resolvent.traces.labelling import LABELLINGS
from resolvent.traces.scan.listing import place_text

_TOO_MANY_STATES = 500
"""So many are found where traces are few, and then merging takes longer and longer."""

_MOST_WEAK = 100
"""So many weak states of a machine are in the JSON."""

_DEFAULTS = Options()

_REDUCTIONS = "What the paper's ablation switches off"


def _above_zero(seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise typer.BadParameter(f"{seconds:g} is not above 0")
    return seconds


@takes_table(writes=True)
def infer(
    source: Place,
    table: TableOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", metavar="FILE", help="Write the machines here, as JSON.", show_default=False
        ),
    ] = None,
    outputs: Outputs = None,
    labels: Annotated[
        str,
        choice(
            "--labels",
            (*LABELLINGS, "auto"),
            "What machines read as labels: those of the traces; what is seen or done, each as a "
            "label; or the events found in that.",
        ),
    ] = "given",
    noise: Annotated[
        str,
        choice(
            "--noise",
            ("auto", "none"),
            "Where no machines explain all traces: find the most likely ones, and say how much "
            "noise there is; or refuse the traces.",
        ),
    ] = "auto",
    discretise: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Put numbers in observations into intervals: auto for as many as pay, or "
            "quantile, uniform or kmeans with a number of intervals, such as quantile:6.",
            show_default="numbers are taken as they are",
        ),
    ] = None,
    strategy: Annotated[
        str,
        choice(
            "--strategy",
            STRATEGIES,
            "Merge by most evidence, in the paper's order, or by what answers tell, once or with "
            "second thoughts; search for the smallest machine; or prove it the smallest.",
        ),
    ] = _DEFAULTS.strategy.name,
    timing: Annotated[
        str | None,
        choice(
            "--timing",
            LabelTiming,
            "Which labels are read before a step is answered.",
            show_default="current; for labels that are made, current-with-initial",
        ),
    ] = None,
    trivial: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="A label known to change nothing, besides 'no event'; may be given repeatedly. "
            "Without it the traces say which labels change nothing.",
            show_default=False,
        ),
    ] = None,
    reward_digits: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Round rewards to N decimals."),
    ] = _DEFAULTS.reward_digits,
    refine: Annotated[
        bool | None,
        typer.Option(
            "--refine/--no-refine",
            help="Learn from few traces, replay all, add what cannot be explained; by default "
            f"above {REFINE_ABOVE:,} steps.",
            show_default=False,
        ),
    ] = _DEFAULTS.refine,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="The seed of the search.")
    ] = _DEFAULTS.seed,
    effort: Annotated[
        float,
        typer.Option(metavar="X", min=0, help="How much the search may try, 1 being some seconds."),
    ] = _DEFAULTS.effort,
    on: On = "threads",
    resume: Resume = None,
    damaged: Damaged = "refuse",
    held_out: HeldOutShare = None,
    no_held_out: NoHeldOut = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            callback=_above_zero,
            help="Stop after S seconds with the best machines so far, and say which are not "
            "finished; with exit code 3 where files that are gone through in pieces take so long. "
            "What is held out counts; reading traces into memory before, and writing the machines "
            "at the end, do not.",
        ),
    ] = _DEFAULTS.time_limit,
    engine: Annotated[
        str, choice("--engine", ENGINES, "The compiled engine, or the one written to be read.")
    ] = _DEFAULTS.engine,
    format: Annotated[  # noqa: A002
        str | None, choice("--format", FORMATS, "Read TRACES as this, not as its content says.")
    ] = None,
    no_supplement: Annotated[
        bool,
        typer.Option(
            "--no-supplement",
            help="Do not tell the other machines the Transition Machine's state.",
            rich_help_panel=_REDUCTIONS,
        ),
    ] = False,
    keep_redundant: Annotated[
        bool,
        typer.Option(
            "--keep-redundant",
            help="Search also with steps that always have the same outcome.",
            rich_help_panel=_REDUCTIONS,
        ),
    ] = False,
    keep_trivial: Annotated[
        bool,
        typer.Option(
            "--keep-trivial",
            help="Search also with labels taken as trivial.",
            rich_help_panel=_REDUCTIONS,
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Tell on standard error how states were merged, a line a decision.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Infer the machines that explain traces: by default a Transition and a Reward Machine."""
    if keep_trivial and trivial:
        raise OptionError("--keep-trivial and --trivial exclude each other: leave out one")
    if no_held_out and held_out is not None:
        raise OptionError("--held-out and --no-held-out exclude each other: leave out one")
    output = table.target(output)
    if output is not None:
        check_targets(output, inputs=(*files_read(source),))
    options = Options(
        outputs=names_in(outputs),
        discretise=_intervals(discretise),
        noise=noise,  # type: ignore[arg-type]
        labels=labels,  # type: ignore[arg-type]  # Options makes of both what they should be
        strategy=STRATEGIES[strategy],
        timing=timing,  # type: ignore[arg-type]
        trivial=tuple(trivial) if trivial else _DEFAULTS.trivial,
        supplement=not no_supplement,
        remove_redundant=not keep_redundant,
        remove_trivial=not keep_trivial,
        refine=refine,
        reward_digits=reward_digits,
        engine=engine,
        seed=seed,
        effort=effort,
        time_limit=time_limit,
        on=on,
        cache_dir=resume,
    )
    columns = columns_to_read(options.outputs or ())
    with ProgressBar() as bar, saying_warnings():
        started = time.perf_counter()
        traces = opened(
            source,
            table,
            columns,
            bar,
            in_pieces=refine is not False,
            format=format,
            damaged=damaged,
        )
        seconds_reading = time.perf_counter() - started
        # What is in memory is searched by several, if it is searched.
        say_what_is_idle(traces, on if options.strategy.merges else "threads", resume)

        def show(machine: str, now: Progress, again: str = "") -> None:
            _show(bar, options.strategy, machine, now, again)

        started = time.perf_counter()
        if on.startswith("ray") and isinstance(traces, TraceFolder):
            bar.announce(
                f"waiting for Ray{on.removeprefix('ray').replace(':', ' at ', 1)}", at_once=True
            )
        result = infer_with(options, traces, show)
        took = time.perf_counter() - started
        about = _About(took)
        if not no_held_out:
            bar.announce("held out: choosing traces")
            test = held_out_test(
                result,
                traces,
                held_out,
                took,
                lambda machine, now: show(machine, now, "held out: "),
            )
            about = replace(about, held_out=test)
        if isinstance(traces, TraceSet):
            about = replace(about, weak=weaknesses(result.machines, traces))
    if output is not None:
        result.machines.save(output)
    if verbose:
        for line in log_lines(result):
            print(line, file=sys.stderr)
    if json:
        print_json(_figures(result, about, seconds_reading, output))
    else:
        _print_summary(result, about, seconds_reading, source, output)


@dataclass(frozen=True)
class _About:
    """What is said of machines without being asked: how they foretell, and what is weak.

    Inferring them `took` so many seconds.
    """

    took: float
    held_out: HeldOutTest = field(default_factory=HeldOutTest)
    weak: Mapping[str, Weakness] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """Return it as JSON values, by machine."""
        weak = {kind: one.as_dict(_MOST_WEAK) for kind, one in self.weak.items()}
        return {**self.held_out.figures(), "weak": weak}

    def lines(self) -> list[str]:
        """Say it for people."""
        lines = self.held_out.lines()
        for kind, one in self.weak.items():
            name = f" ({short(kind)} machine)" if len(self.weak) > 1 else ""
            lines += [line if line[0] == " " else f"weak{name}: {line}" for line in one.lines()]
        return lines


def _intervals(how: str | None) -> Discretise | Literal["auto"] | None:
    """Return how numbers are put into intervals, by what a user writes.

    >>> _intervals("uniform:4")
    Discretise('uniform', bins=4)
    """
    if how is None or how == "auto":
        return how  # type: ignore[return-value]
    method, colon, count = how.partition(":")
    if colon and not count.isdecimal():
        raise OptionError(f"--discretise {how}: write a number of intervals, as in quantile:6")
    return Discretise(method, int(count)) if colon else Discretise(method)


def _may_be_scarce(result: InferenceResult, about: _About) -> bool:
    """Whether a stronger search is worth a try: merging errs when evidence is thin."""
    if about.held_out.is_all_right or result.unfinished:
        return False
    most = max(one.states for one in result.statistics.values())
    return result.options.strategy.merges and most > 4 and result.steps < 100_000


def _show(
    bar: ProgressBar, strategy: Strategy, machine: str, now: Progress, again: str = ""
) -> None:
    """Show how far the search for a machine is; `again` says that it is not the first one."""
    if machine in (READING, REPLAYING):
        if machine == REPLAYING:
            machine = f"{machine}, round {now.round}"
        text = f"{machine}: {now.done:,} of {amount(now.total, 'piece')}"
        of = Amount(now.steps, "steps") if now.steps else None
    elif machine == FINDING_EVENTS:
        text, of = "looking for events", None
    elif now.total == 0:
        text, of = f"{machine} machine, building its prefix tree", None
    else:
        text = f"{machine} machine, {amount(now.states, 'state')}"
        if strategy.merges and now.states > _TOO_MANY_STATES:
            text = f"{now.states:,} states? try --strategy search"
        of = Amount(now.total, "nodes") if strategy.merges else None
    fraction = now.fraction
    # How long a proof will take nobody can tell.
    bar.show(again + text, fraction, of=of, stage=again + machine, steady=not strategy.proves)


def _figures(
    result: InferenceResult, about: _About, reading: float, output: Path | None
) -> dict[str, object]:
    figures = result.as_dict()
    again = about.held_out.seconds
    total = reading + about.took + again
    seconds = {"read": round(reading, 6), **figures["seconds"], "held_out": round(again, 6)}
    seconds["total"] = round(total, 6)
    return {
        **figures,
        **about.figures(),
        "seconds": seconds,
        "output": None if output is None else str(output),
    }


def _proven(states: int, least: int | None) -> str:
    """Say how many states are proven to be needed.

    >>> _proven(7, 6), _proven(7, 7), _proven(7, None)
    ('at least 6', 'all', '')
    """
    if least is None:
        return ""
    return "all" if least >= states else f"at least {least:,}"


def _print_summary(
    result: InferenceResult, about: _About, reading: float, source: str, output: Path | None
) -> None:
    from resolvent.display.tables import show, table

    found = f"{amount(result.traces, 'trace')}, {amount(result.steps, 'step')}"
    print(f"{name_text(place_text(source))}: {found}\n")
    rows = []
    for kind, one in result.statistics.items():
        numbers = (one.prefix_tree_nodes, one.merges)
        rows.append(
            [
                result.machines[kind].title,
                f"{one.states:,}",
                _proven(one.states, result.lower_bounds.get(kind)),
                *(f"{number:,}" for number in numbers),
                f"{one.seconds:.3f}",
            ]
        )
    header = ["", "states", "proven", "prefix tree", "merges", "seconds"]
    show(table(header, rows, right=range(1, 6)))
    print()
    if result.machines.senses.labelling.is_given:
        for line in result.trivial_labels():
            print(f"labels {line}")
    else:
        print(f"events, made of what is seen and done\n{result.events}")
    for kind, certificate in result.certificates.items():
        print(f"{result.machines[kind].title}: {certificate}")
    for line in result.tried_text():
        print(f"tried: {line}")
    for line in result.ran_text():
        print(f"side by side: {line}")
    for line in result.noise_text():
        print(f"noise: {line}")
    print(f"learned from {result.learned_from}")
    for line in about.lines():
        print(line)
    total = reading + about.took + about.held_out.seconds
    print(f"read in {reading:.3f} s, {total:.3f} s in all")
    if result.machines.termination.ambiguous:
        print(f"note: {result.machines.termination}")
    if list(result.machines) == ["transition"] and result.options.outputs is None:
        print("note: the traces have no rewards, so there is no Reward Machine")
    if _may_be_scarce(result, about):
        harder = "--effort 10" if result.options.strategy.searches else "--strategy search"
        print(f"few traces for so many states: with more of them or {harder} there may be fewer")
    for warning in result.warnings:
        print(warning)
    if output is None:
        print("\nnothing was written: add -o machines.json to keep the machines")
        return
    print(f"\nwrote {name_text(output)}")
    print(f"next: {command('show', output)}")
    print(f"      {command('check', output)} OTHER_TRACES")
