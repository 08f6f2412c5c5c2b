"""`resolvent check`: machines + traces → the number of steps they predict right, and evidence."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from resolvent._util.records import to_builtins
from resolvent._util.text import amount, visible
from resolvent.cli import flags, inputs, outputs
from resolvent.evaluation.holdout import CalibrationCheck
from resolvent.inference.cross_validation import evidence as evaluate
from resolvent.machines import Machines, MachineScore, Score, load
from resolvent.machines.score import COUNTS
from resolvent.replay.score import score_of, score_shards
from resolvent.traces import TraceDataset, TraceSet
from resolvent.viz.terminal import Amount, ProgressBar, show, table

_HEADER = ["", "right", "wrong", "generalized right", "generalized wrong", "unseen"]
_EVIDENCE = (
    "Show the evidence for the machines: how their states differ, which steps are missing, which "
    "trace to collect next, and how often predictions may be wrong."
)


@inputs.takes_table()
def check(
    machines: flags.Machines,
    traces: flags.Traces,
    table: inputs.TableOptions,
    evidence: Annotated[bool, typer.Option("--evidence", help=_EVIDENCE)] = False,
    on: flags.On = "threads",
    json: flags.Json = False,
) -> None:
    """Replay traces through machines: how many steps do they predict right?

    The exit code is 0 if no prediction is wrong, and 1 if one is (with noisy machines, if more are
    wrong than noise explains), or if a machine predicts no step: the traces are of another
    environment.

    A generalized prediction is the only output that was ever observed for its observation and
    action, but in other states. An unseen step is neither right nor wrong. If a state has
    several outputs, the most likely one is the prediction, and log loss measures the
    probability of the outputs that occurred.
    """
    loaded = load(machines)
    evaluation = None
    started = time.perf_counter()
    with outputs.working() as bar:
        source = inputs.opened(traces, table, inputs.columns_of(loaded), bar, on=on)
        read = scored = time.perf_counter()
        seconds = {"read": read - started}
        if evidence:  # it includes the counts of a replay
            evaluation = evaluate(loaded, source, on=on, progress=outputs.shown_by(bar))
            scored = time.perf_counter()
            seconds["evidence"] = scored - read
            score = score_of(loaded, evaluation.replay)
            counts = {"traces": evaluation.traces, "steps": evaluation.steps}
        else:
            total = score_shards(loaded, source, on, progress=_replaying(source, bar))
            score, counts = total.score, {"traces": total.traces, "steps": total.steps}
        done = time.perf_counter()
        seconds |= {"replay": done - scored, "total": done - started}
    without_predictions = [
        loaded[name].title
        for name, counted in score.items()
        if counted.unseen and not (counted.all_right or counted.all_wrong)
    ]
    if json:
        keys = (*COUNTS, "log_loss", "first_mismatch")
        figures = counts | {name: to_builtins(counted, keys) for name, counted in score.items()}
        evidence_figures = {} if evaluation is None else {"evidence": evaluation}
        outputs.print_json(figures | {"seconds": outputs.rounded(seconds)} | evidence_figures)
    else:
        print(f"{amount(counts['traces'], 'trace')}, {amount(counts['steps'], 'step')}\n")
        _print_score(loaded, score, without_predictions)
        if evaluation is not None:
            print(f"\n{evaluation}")
    if without_predictions or any(_is_wrong(loaded, name, score[name]) for name in score):
        raise typer.Exit(1)


def _is_wrong(machines: Machines, name: str, score: MachineScore) -> bool:
    """Return whether a machine is wrong, or for a noisy one, more often than noise explains."""
    if machines[name].is_noisy or machines.state_uncertainty:
        return not CalibrationCheck.of(score).within_noise
    return score.all_wrong > 0


def _replaying(traces: TraceSet | TraceDataset, bar: ProgressBar) -> Callable[[int], None] | None:
    """Return a listener that shows the number of finished shards."""
    if isinstance(traces, TraceSet):
        return None
    shards = len(traces)
    stage = bar.stage(f"replaying {Path(traces.location).name}", Amount(traces.rows, "rows"))
    return lambda done: stage(done / shards)


def _print_score(machines: Machines, score: Score, without_predictions: list[str]) -> None:
    is_noisy = any(machine.is_noisy for machine in machines.values())
    rows = []
    for name, counted in score.items():
        loss = "" if counted.log_loss is None else f"{counted.log_loss:.3f}"
        counts = (f"{getattr(counted, count):,}" for count in COUNTS)
        rows.append([machines[name].title, *counts, *[loss] * is_noisy])
    header = [*_HEADER, *["log loss"] * is_noisy]
    show(table(header, rows, right=range(1, len(header))))
    print()
    if score.perfect:
        print("every step is predicted, and right")
    for counted in score.values():
        if counted.first_mismatch is not None:
            print(f"first mismatch: {visible(str(counted.first_mismatch))}")
    unseen = max(counted.unseen for counted in score.values())
    if without_predictions:
        titles = " and ".join(without_predictions)
        print(f"no step is predicted by the {titles}: are these traces of the same environment?")
    elif unseen:
        print(f"{amount(unseen, 'step')} without a prediction: infer from more traces")
