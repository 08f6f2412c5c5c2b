"""`resolvent infer`: a file of traces → a file of machines, and how they were inferred."""

import time
from functools import partial
from typing import Annotated, Any

from resolvent._util.parallel import Progress
from resolvent._util.records import builtin
from resolvent._util.text import amount, descriptions, short
from resolvent.cli import flags, inputs, outputs
from resolvent.errors import OptionError
from resolvent.evaluation.weakness import weaknesses
from resolvent.inference.cross_validation import MAX_SECONDS, SHARE, holdout_if_fast
from resolvent.inference.held_out import HoldoutScore
from resolvent.inference.infer import DISCOVERING_LABELS, infer_with
from resolvent.inference.infer import infer as infer_traces
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import ENGINES, STRATEGIES, Strategy
from resolvent.inference.summary import MACHINE_COLUMNS, facts_of, machine_rows
from resolvent.inference.validation import cross_validated
from resolvent.preprocess.discretize import Discretizer
from resolvent.replay.corpus import REPLAYING
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.scan.listing import uri_text
from resolvent.viz.terminal import Amount, ProgressBar, show, table

_TOO_MANY_STATES = 500  # suggests too few traces: merging takes longer and longer
_MOST_WEAK = 100  # maximum number of weak states of a machine in the JSON

_RARE = {
    "discretize": "Intervals for numbers in observations: auto, or quantile, uniform or kmeans "
    "with their number, such as quantile:6.",
    **{
        name: flags.first_sentence(descriptions(InferenceOptions)[name])
        for name in ("effort", "refine")
    },
    "held_out": f"Share of the traces to test on, after inferring once more without them; 0 for "
    f"none. By default {SHARE:g}, unless inferring took more than {MAX_SECONDS:.0f} seconds.",
}
"""Options without a flag, given by `--set`, with their descriptions."""

_left_out = partial(
    flags.flag, InferenceOptions, negated=True, panel="Steps of the paper's algorithm to leave out"
)
_NO_SUPPLEMENT = "Do not pair observations with Transition Machine states for the other machines."
_REDUNDANT = "Keep queries (an observation and an action) whose output is always the same."
_RARE_TEXT = "\n\n".join(
    ["A rarer option; repeatable.", *(f"{name}: {text}" for name, text in _RARE.items())]
)


@inputs.takes_table(writes=True)
@flags.takes(
    "options",
    *inputs.LABELING_FLAGS,
    flags.flag(infer_traces, "noise"),
    flags.flag(infer_traces, "strategy", names=STRATEGIES),
    flags.flag(InferenceOptions, "trivial", kind=list[str], metavar="LABEL"),
    flags.flag(InferenceOptions, "reward_digits", min=0),
    flags.flag(InferenceOptions, "seed"),
    flags.flag(InferenceOptions, "time_limit"),
    flags.flag(InferenceOptions, "engine", names=ENGINES),
    flags.flag(InferenceOptions, "on", metavar="WORKERS"),
    flags.flag(InferenceOptions, "cache_dir", metavar="FOLDER"),
    _left_out("supplement", "--no-supplement", text=_NO_SUPPLEMENT),
    _left_out("remove_redundant", "--keep-redundant", text=_REDUNDANT),
    _left_out("remove_trivial", "--keep-trivial", text="Keep labels that change no state."),
)
def infer(
    source: flags.Traces,
    table: inputs.TableOptions,
    options: dict[str, Any],
    output: flags.ShortOutput = None,
    rare: Annotated[list[str] | None, flags.option("NAME=VALUE", _RARE_TEXT, "--set")] = None,
    json: flags.Json = False,
) -> None:
    """Infer the machines that explain traces: by default a Transition and a Reward Machine."""
    if "remove_trivial" in options and "trivial" in options:
        raise OptionError("--keep-trivial and --trivial exclude each other: leave out one")
    settings = dict(map(_rare_setting, rare or ()))
    share = settings.pop("held_out", None)
    output = table.target(output)
    if output is not None:
        outputs.check_targets(output, inputs=(*inputs.files_read(source),))
    chosen = InferenceOptions(**options, **settings)
    on = str(chosen.on)
    columns = inputs.columns_to_read(chosen.outputs or ())
    with outputs.working() as bar:
        started = time.perf_counter()
        traces = inputs.opened(
            source,
            table,
            columns,
            bar,
            in_shards=chosen.refine is not False,
            # Searches in memory run side by side as well.
            on=on if chosen.strategy.merges else "threads",
            cache_dir=options.get("cache_dir"),
        )
        read = time.perf_counter()
        if on.startswith("ray") and isinstance(traces, TraceDataset):
            address = on.removeprefix("ray").replace(":", " at ", 1)
            bar.announce(f"waiting for Ray{address}", at_once=True)
        show_stage = partial(_show_stage, bar, chosen.strategy)
        result = infer_with(chosen, traces, show_stage)
        inferred = time.perf_counter()
        held_out: HoldoutScore | str | None = None
        if share != 0:
            bar.announce("held out: choosing traces")
            result = cross_validated(result, infer_with)
            show_test = partial(show_stage, prefix="held out: ")
            held_out = holdout_if_fast(result, traces, share, inferred - read, show_test)
        tested = time.perf_counter()
        weak = weaknesses(result.machines, traces) if isinstance(traces, TraceSet) else {}
    if output is not None:
        result.machines.save(output)
    if json:
        figures = result.as_dict()
        measured = {"held_out": tested - inferred, "total": tested - started}
        seconds = {"read": read - started} | figures["seconds"] | measured
        score = held_out if isinstance(held_out, HoldoutScore) else None
        figures |= {
            "held_out": score,
            "held_out_part": builtin(score and score.part),
            "held_out_skipped": held_out if isinstance(held_out, str) else None,
            "weak": {name: builtin(list(found.weak[:_MOST_WEAK])) for name, found in weak.items()},
            "seconds": outputs.rounded(seconds),
            "output": output,
        }
        outputs.print_json(figures)
        return
    print(f"{outputs.name_text(uri_text(source))}: ", end="")
    _print_summary(result)
    if held_out is not None:
        is_tested = isinstance(held_out, HoldoutScore)
        print(f"{'held out':<19} {held_out if is_tested else f'nothing, {held_out}'}")
    for name, weakness in weak.items():
        machine = f"{short(name)} machine: " if len(weak) > 1 else ""
        for line in weakness.lines():
            print(line if line[0] == " " else f"{'weak':<19} {machine}{line}")
    print(f"read in {read - started:.3f} s, {tested - started:.3f} s in all")
    _print_notes(result, held_out)
    if output is None:
        print("\nnothing was written: add -o machines.json to keep the machines")
        return
    print(f"\nwrote {outputs.name_text(output)}")
    print(f"next: {outputs.command('show', output)}")
    print(f"      {outputs.command('check', output)} OTHER_TRACES")


def _rare_setting(text: str) -> tuple[str, Any]:
    """Return an option of `--set` with its value."""
    name, value = flags.setting(text)
    if name == "held_out":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise OptionError(f"--set {text}: give a share of the traces, from 0 to below 1")
    elif name not in _RARE:
        raise OptionError(
            f"--set {text}: there is no option {name}: choose one of {', '.join(_RARE)}"
        )
    elif name == "discretize" and isinstance(value, str) and value != "auto":
        method, colon, number = value.partition(":")
        if colon and not number.isdecimal():
            raise OptionError(f"discretize={value}: write a number of intervals, as quantile:6")
        return name, Discretizer(method, int(number)) if colon else Discretizer(method)
    return name, value


def _show_stage(
    bar: ProgressBar, strategy: Strategy, stage: str, now: Progress, prefix: str = ""
) -> None:
    """Show the progress of a stage, which is named by the machine searched for, if any."""
    of: Amount | None = None
    if stage in outputs.SHARD_STAGES:
        if stage == REPLAYING:
            stage = f"{stage}, round {now.round}"
        text, of = outputs.shard_progress(stage, now)
    elif stage == DISCOVERING_LABELS:
        text = "looking for events"
    elif now.total == 0:
        text = f"{stage} machine, building its prefix tree"
    else:
        text = f"{stage} machine, {amount(now.states, 'state')}"
        if strategy.merges:
            of = Amount(now.total, "nodes")
            if now.states > _TOO_MANY_STATES:
                text = f"{now.states:,} states? try --strategy search"
    # The duration of a proof cannot be estimated.
    bar.show(prefix + text, now.fraction, of=of, stage=prefix + stage, steady=not strategy.proves)


def _print_summary(result: InferenceResult) -> None:
    print(f"{amount(result.traces, 'trace')}, {amount(result.steps, 'step')}\n")
    header = ["", *MACHINE_COLUMNS[1:]]
    show(table(header, machine_rows(result), right=range(1, len(header))))
    print()
    is_derived = not result.machines.preprocessor.labeling.is_given
    if is_derived:
        print(f"events derived from observations and actions\n{result.events}")
    for name, text in facts_of(result):
        if not (is_derived and name == "labels"):  # there may be thousands
            print(f"{name:<19} {text}")


def _print_notes(result: InferenceResult, held_out: HoldoutScore | str | None) -> None:
    if list(result.machines) == ["transition"] and result.options.outputs is None:
        print("note: the traces have no rewards, so there is no Reward Machine")
    most = max(statistics.states for statistics in result.statistics.values())
    is_scarce = result.options.strategy.merges and most > 4 and result.steps < 100_000
    is_all_right = isinstance(held_out, HoldoutScore) and not any(
        machine.score.all_wrong for machine in held_out.values()
    )
    if is_scarce and not (is_all_right or result.unfinished):
        harder = "--set effort=10" if result.options.strategy.searches else "--strategy search"
        print(
            f"few traces for this number of states: more traces or {harder} may give fewer states"
        )
    for warning in result.warnings:
        print(warning)
