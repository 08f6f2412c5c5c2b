"""`resolvent check`: machines + traces → the number of steps they predict right, and evidence."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.text import amount, visible
from resolvent.cli.inputs import TableOptions, columns_of, note_unused, opened, takes_table
from resolvent.cli.options import Json, On, Traces
from resolvent.cli.options import Machines as MachinesFile
from resolvent.cli.output import print_json, rounded, saying_warnings, shown_by
from resolvent.evaluation.evidence import Evidence
from resolvent.inference.evidence import evidence as evaluate
from resolvent.machines import Machines, MachineScore, Score, load
from resolvent.replay import score_of, score_shards
from resolvent.traces import TraceDataset, TraceSet
from resolvent.viz.terminal import Amount, ProgressBar

_ROWS = 10


@takes_table()
def check(
    machines: MachinesFile,
    traces: Traces,
    table: TableOptions,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Show the evidence for the machines: how their states differ, which steps are "
            "missing, which trace to collect next, and how often predictions may be wrong.",
        ),
    ] = False,
    on: On = "threads",
    json: Json = False,
) -> None:
    """Replay traces through machines: how many steps do they predict right?

    The exit code is 0 if no prediction is wrong, and 1 if one is, or more than the noise of the
    machines explains, or if a machine predicts no step at all: the traces are of another world.

    A generalized prediction is the only output that was ever observed for its observation and
    action, but in other states. An unseen step is neither right nor wrong. If a state has
    several outputs, the most likely one is the prediction, and log loss measures the
    probability of the outputs that occurred.
    """
    loaded = load(machines)
    with ProgressBar() as bar, saying_warnings():
        started = time.perf_counter()
        source = opened(traces, table, columns_of(loaded), bar)
        note_unused(source, on)
        checked = _check(loaded, source, evidence, on, bar, started)
    if json:
        print_json(checked.figures())
    else:
        _print_score(checked)
        if checked.evidence is not None:
            print(f"\n{checked.evidence}")
    if checked.without_predictions or any(map(checked.is_wrong, checked.machines)):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Checked:
    """The score of machines on traces, and the evidence if it was asked for."""

    machines: Machines
    traces: int
    steps: int
    score: Score
    seconds: dict[str, float]
    evidence: Evidence | None = None

    def is_wrong(self, kind: str) -> bool:
        """Return whether a machine is wrong more often than its noise explains, beyond chance.

        If labels do not determine its states, its own probabilities are the expectation.
        """
        score, noise = self.score[kind], self.machines[kind].noise
        predicted = score.all_wrong + score.all_right
        expected, variance = noise * predicted, noise * (1 - noise) * predicted
        if self.machines.state_uncertainty:
            rows = score.calibration
            expected = sum(row.steps * (1 - row.predicted) for row in rows)
            variance = sum(row.steps * row.predicted * (1 - row.predicted) for row in rows)
        return score.all_wrong > expected + 3 * sqrt(variance)

    @property
    def without_predictions(self) -> list[str]:
        """The machines that predict no step of the traces, right or wrong."""
        return [
            kind
            for kind, machine_score in self.score.items()
            if machine_score.unseen and not (machine_score.all_right or machine_score.all_wrong)
        ]

    def figures(self) -> dict[str, Any]:
        """Return the score as JSON values."""
        figures: dict[str, Any] = {
            "traces": self.traces,
            "steps": self.steps,
            **{kind: _figures(machine_score) for kind, machine_score in self.score.items()},
            "seconds": rounded(self.seconds),
        }
        if self.evidence is not None:
            figures["evidence"] = self.evidence.as_dict()
        return figures


def _check(
    machines: Machines,
    traces: TraceSet | TraceDataset,
    evidence: bool,
    on: str,
    bar: ProgressBar,
    started: float,
) -> _Checked:
    """Replay traces; those that were only opened are read shard by shard."""
    read = time.perf_counter()
    seconds = {"read": read - started}
    if evidence:  # it includes the counts of a replay
        evaluation = evaluate(machines, traces, on=on, progress=shown_by(bar))
        scoring = time.perf_counter()
        score = score_of(machines, evaluation.replay)
        seconds["evidence"] = scoring - read
        counts = evaluation.traces, evaluation.steps
    else:
        evaluation, scoring = None, read
        total = score_shards(machines, traces, on, progress=_replaying(traces, bar))
        score, counts = total.score, (total.traces, total.steps)
    done = time.perf_counter()
    seconds |= {"replay": done - scoring, "total": done - started}
    return _Checked(machines, *counts, score, seconds, evaluation)


def _replaying(traces: TraceSet | TraceDataset, bar: ProgressBar) -> Callable[[int], None] | None:
    """Return a listener that shows the number of finished shards."""
    if isinstance(traces, TraceSet):
        return None
    rows, shards = Amount(traces.rows, "rows"), len(traces)
    show = bar.stage(f"replaying {Path(traces.location).name}", rows)
    return lambda done: show(done / shards)


def _figures(score: MachineScore) -> dict[str, Any]:
    first = score.first_mismatch
    return {
        "right": score.right,
        "wrong": score.wrong,
        "assumed_right": score.assumed_right,
        "assumed_wrong": score.assumed_wrong,
        "unseen": score.unseen,
        "log_loss": score.log_loss,
        "first_mismatch": None if first is None else asdict(first),
    }


def _print_score(checked: _Checked) -> None:
    from resolvent.viz.terminal import show, table

    print(f"{amount(checked.traces, 'trace')}, {amount(checked.steps, 'step')}\n")
    score = checked.score
    header = ["", "right", "wrong", "generalized right", "generalized wrong", "unseen"]
    rows = []
    noisy = any(machine.is_noisy for machine in checked.machines.values())
    if noisy:
        header.append("log loss")
    for kind, machine_score in score.items():
        counts = (
            machine_score.right,
            machine_score.wrong,
            machine_score.assumed_right,
            machine_score.assumed_wrong,
            machine_score.unseen,
        )
        loss = "" if machine_score.log_loss is None else f"{machine_score.log_loss:.3f}"
        rows.append(
            [checked.machines[kind].title, *(f"{count:,}" for count in counts), *[loss] * noisy]
        )
    show(table(header, rows, right=range(1, len(header))))
    print()
    if score.perfect:
        print("every step is predicted, and right")
    for machine_score in score.values():
        if machine_score.first_mismatch is not None:
            print(f"first mismatch: {visible(str(machine_score.first_mismatch))}")
    unseen = max(machine_score.unseen for machine_score in score.values())
    if checked.without_predictions:
        titles = " and ".join(checked.machines[kind].title for kind in checked.without_predictions)
        print(f"no step is predicted by the {titles}: are these traces of the same world?")
    elif unseen:
        print(f"{amount(unseen, 'step')} the machines were never shown: infer from more traces")
