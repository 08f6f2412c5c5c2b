"""`resolvent check`: machines + traces → how many steps they predict right, and why to trust it."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.text import amount, visible
from resolvent.cli.gathering import gathered
from resolvent.cli.options import Damaged, Json, On, columns_of
from resolvent.cli.options import Machines as MachinesFile
from resolvent.cli.places import Place, opened, say_what_is_idle
from resolvent.cli.printing import print_json, saying_warnings
from resolvent.cli.tables import TableOptions, takes_table
from resolvent.evaluation.evidence import Evidence, MachineEvidence
from resolvent.evaluation.separation import Separation
from resolvent.machines import Machines, MachineScore, Score, load
from resolvent.machines.compare import history_text
from resolvent.replay import score_of, score_shards
from resolvent.traces import TraceDataset, TraceSet, symbol_text
from resolvent.viz.terminal import Amount, ProgressBar

_ROWS = 10


@takes_table()
def check(
    machines: MachinesFile,
    traces: Place,
    table: TableOptions,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Show what the traces say about the machines: what tells their states apart, "
            "what is missing, which trace to collect next, how often they may fail.",
        ),
    ] = False,
    on: On = "threads",
    damaged: Damaged = "refuse",
    json: Json = False,
) -> None:
    """Replay traces through machines: how many steps do they predict right?

    Exit code 0 when no prediction is wrong, 1 when one is; of machines with noise, when more
    are than that noise explains. It is 1 also when a machine predicts no step at all: the
    traces are of another world. A prediction is assumed where
    the question had one answer throughout, but was never asked in that state. A step that
    the machines were never shown is unseen: neither right nor wrong. Where a state has more
    than one answer, the most likely one is right, and log loss says how likely the machines
    held what came.
    """
    loaded = load(machines)
    with ProgressBar() as bar, saying_warnings():
        started = time.perf_counter()
        given = opened(traces, table, columns_of(loaded), bar, damaged=damaged)
        say_what_is_idle(given, on)
        checked = _check(loaded, given, evidence, on, bar, started)
    if json:
        print_json(checked.figures())
    else:
        _print_score(checked)
        if checked.evidence is not None:
            _print_evidence(checked.evidence)
    if checked.strangers or any(map(checked.is_wrong, checked.machines)):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Checked:
    """What the command found out."""

    machines: Machines
    traces: int
    steps: int
    score: Score
    seconds: dict[str, float]
    evidence: Evidence | None = None

    def is_wrong(self, kind: str) -> bool:
        """Whether a machine is wrong more often than its noise explains, give or take chance.

        Where labels do not tell the states, it is wrong as often as it said that it may be.
        """
        score, noise = self.score[kind], self.machines[kind].noise
        told = score.all_wrong + score.all_right
        expected, variance = noise * told, noise * (1 - noise) * told
        if self.machines.doubt:
            rows = score.calibration
            expected = sum(row.steps * (1 - row.predicted) for row in rows)
            variance = sum(row.steps * row.predicted * (1 - row.predicted) for row in rows)
        return score.all_wrong > expected + 3 * sqrt(variance)

    @property
    def strangers(self) -> list[str]:
        """The machines that predict no step of the traces, right or wrong."""
        return [
            kind
            for kind, one in self.score.items()
            if one.unseen and not (one.all_right or one.all_wrong)
        ]

    def figures(self) -> dict[str, Any]:
        """Return it as JSON values."""
        figures: dict[str, Any] = {
            "traces": self.traces,
            "steps": self.steps,
            **{kind: _figures(one) for kind, one in self.score.items()},
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
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
    """Replay traces; those that were only opened are read meanwhile, piece by piece."""
    read = time.perf_counter()
    seconds = {"read": read - started}
    if evidence:  # it holds what the replay showed, and that is scored then
        found = gathered(machines, traces, on, bar)
        scoring = time.perf_counter()
        score = score_of(machines, found.shown)
        seconds["evidence"] = scoring - read
        counts = found.traces, found.steps
    else:
        found, scoring = None, read
        known = score_shards(machines, traces, on, progress=_replaying(traces, bar))
        score, counts = known.score, (known.traces, known.steps)
    done = time.perf_counter()
    seconds |= {"replay": done - scoring, "total": done - started}
    return _Checked(machines, *counts, score, seconds, found)


def _replaying(traces: TraceSet | TraceDataset, bar: ProgressBar) -> Callable[[int], None] | None:
    """Return what shows how many pieces are done."""
    if isinstance(traces, TraceSet):
        return None
    rows, pieces = Amount(traces.rows, "rows"), len(traces)
    show = bar.stage(f"replaying {Path(traces.place).name}", rows)
    return lambda done: show(done / pieces)


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
    header = ["", "right", "wrong", "assumed right", "assumed wrong", "unseen"]
    rows = []
    noisy = any(one.is_noisy for one in checked.machines.values())
    if noisy:
        header.append("log loss")
    for kind, one in score.items():
        counts = (one.right, one.wrong, one.assumed_right, one.assumed_wrong, one.unseen)
        loss = "" if one.log_loss is None else f"{one.log_loss:.3f}"
        told = [*(f"{count:,}" for count in counts), *([loss] if noisy else [])]
        rows.append([checked.machines[kind].title, *told])
    show(table(header, rows, right=range(1, len(header))))
    print()
    if score.perfect:
        print("every step is predicted, and right")
    for one in score.values():
        if one.first_mismatch is not None:
            print(f"first mismatch: {visible(str(one.first_mismatch))}")
    unseen = max(one.unseen for one in score.values())
    if checked.strangers:
        titles = " and ".join(checked.machines[kind].title for kind in checked.strangers)
        print(f"no step is predicted by the {titles}: are these traces of the same world?")
    elif unseen:
        print(f"{amount(unseen, 'step')} the machines were never shown: infer from more traces")


def _print_evidence(evidence: Evidence) -> None:
    for one in evidence.values():
        _print_machine(one)
    print("\nUnseen traces")
    print(f"  {evidence.holdout or 'no traces could be held out'}")


def _print_machine(one: MachineEvidence) -> None:
    from resolvent.viz.terminal import show, table

    print(f"\n{one.machine.title}, {amount(one.machine.states, 'state')}")
    rows = [_separation_row(pair) for pair in one.separations.weakest(_ROWS)]
    if rows:
        header = ["states", "told apart by", "asked", "answers", "first seen"]
        show(table(header, rows, right=[2]))
    if one.separations.left_out:
        print(f"what tells states apart is left out: {one.separations.left_out}")
    if len(one.separations) > _ROWS:
        print(f"and {amount(len(one.separations) - _ROWS, 'pair')} with more support")
    print()
    for line in str(one.completeness).splitlines():
        print(f"  {line}")
    for least in (*one.transitions(1), *one.outputs(1)):
        print(f"  least support: {least}")
    for experiment in one.experiments[:3]:
        print(f"  next trace: {experiment}")


def _separation_row(pair: Separation) -> list[str]:
    states = f"{pair.first}, {pair.second}"
    if pair.suffix is None or pair.answers is None:
        return [states, "nothing", "0", "", ""]
    after = f" after {history_text(pair.suffix)}" if pair.suffix else ""
    questions = amount(pair.questions, "question")
    answers = " / ".join(symbol_text(answer.output) for answer in pair.answers)
    places = ", ".join(f"{trace}:{step}" for trace, step in (one.place for one in pair.answers))
    return [states, f"{questions}, as {pair.question}{after}", f"{pair.support:,}", answers, places]
