"""`resolvent check`: machines + traces → how many steps they predict right, and why to trust it."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent.cli.gathering import gathered
from resolvent.cli.options import Json, Machines, Traces, is_large_folder
from resolvent.cli.printing import print_json
from resolvent.display.progress import Amount, ProgressBar
from resolvent.errors import OptionError
from resolvent.machines import MachinePair, MachineScore, Score, load
from resolvent.machines.drawing import history_text
from resolvent.traces import TraceFolder, read_traces, scan_traces, symbol_text
from resolvent.trust import Evidence, MachineEvidence, Separation
from resolvent.wording import amount

_ROWS = 10


def check(
    machines: Machines,
    traces: Traces,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Show what the traces say about the machines: what tells their states apart, "
            "what is missing, which trace to collect next, how often they may fail.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Replay traces through machines: how many steps do they predict right?

    Exit code 0 when no prediction is wrong, 1 when one is. A step that the
    machines were never shown is unseen: neither right nor wrong.
    """
    pair = load(machines).as_pair()
    with ProgressBar() as bar:
        if is_large_folder(traces):
            if evidence:
                raise OptionError(
                    f"{traces} is gone through file by file, and evidence needs all traces at "
                    f"once: name one of its files"
                )
            checked = _check_folder(pair, scan_traces(traces), bar)
        else:
            checked = _check_traces(pair, traces, evidence, bar)
    score = checked.score
    if json:
        print_json(checked.figures())
    else:
        _print_score(score, checked.traces, checked.steps)
        if checked.evidence is not None:
            _print_evidence(checked.evidence)
    if score.first_mismatch is not None:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Checked:
    """What the command found out."""

    traces: int
    steps: int
    score: Score
    seconds: dict[str, float]
    evidence: Evidence | None = None

    def figures(self) -> dict[str, Any]:
        """Return it as JSON values."""
        figures: dict[str, Any] = {
            "traces": self.traces,
            "steps": self.steps,
            "transition": _figures(self.score.transition),
            "reward": _figures(self.score.reward),
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
        }
        if self.evidence is not None:
            figures["evidence"] = self.evidence.as_dict()
        return figures


def _check_traces(pair: MachinePair, source: Path, evidence: bool, bar: ProgressBar) -> _Checked:
    started = time.perf_counter()
    traces = read_traces(source, progress=bar.reading(source))
    read = time.perf_counter()
    score = pair.score(traces)
    done = time.perf_counter()
    seconds = {"read": read - started, "replay": done - read}
    found = None
    if evidence:
        found = gathered(pair, traces, bar)
        seconds["evidence"] = time.perf_counter() - done
    seconds["total"] = time.perf_counter() - started
    return _Checked(len(traces), traces.steps, score, seconds, found)


def _check_folder(pair: MachinePair, folder: TraceFolder, bar: ProgressBar) -> _Checked:
    """Go through a folder file by file; what is read is dropped again."""
    started = time.perf_counter()
    score = Score({kind: MachineScore() for kind in pair})
    count, replaying = 0, 0.0
    progress = bar.stage(f"replaying {folder.path.name}", Amount(folder.rows, "rows"))
    for number, traces in enumerate(folder, 1):
        read = time.perf_counter()
        score = score.then(pair.score(traces), count)
        count += len(traces)
        replaying += time.perf_counter() - read
        progress(number / len(folder))
    total = time.perf_counter() - started
    seconds = {"read": total - replaying, "replay": replaying, "total": total}
    return _Checked(count, score.transition.steps, score, seconds)


def _figures(score: MachineScore) -> dict[str, Any]:
    first = score.first_mismatch
    return {
        "right": score.right,
        "wrong": score.wrong,
        "assumed_right": score.assumed_right,
        "assumed_wrong": score.assumed_wrong,
        "unseen": score.unseen,
        "first_mismatch": None if first is None else asdict(first),
    }


def _print_score(score: Score, traces: int, steps: int) -> None:
    from resolvent.display.tables import show, table

    print(f"{amount(traces, 'trace')}, {amount(steps, 'step')}\n")
    scores = (("Transition Machine", score.transition), ("Reward Machine", score.reward))
    rows = [
        [name, f"{one.all_right:,}", f"{one.all_wrong:,}", f"{one.unseen:,}"]
        for name, one in scores
    ]
    show(table(["", "right", "wrong", "unseen"], rows, right=range(1, 4)))
    print()
    if score.perfect:
        print("every step is predicted, and right")
    for _, one in scores:
        if one.first_mismatch is not None:
            print(f"first mismatch: {one.first_mismatch}")
    unseen = max(one.unseen for _, one in scores)
    if unseen:
        print(f"{amount(unseen, 'step')} the machines were never shown: infer from more traces")


def _print_evidence(evidence: Evidence) -> None:
    for one in (evidence.transition, evidence.reward):
        _print_machine(one)
    print("\nUnseen traces")
    print(f"  {evidence.holdout or 'no traces could be held out'}")


def _print_machine(one: MachineEvidence) -> None:
    from resolvent.display.tables import show, table

    print(f"\n{one.machine.kind.capitalize()} Machine, {amount(one.machine.states, 'state')}")
    rows = [_separation_row(pair) for pair in one.separations.weakest(_ROWS)]
    if rows:
        header = ["states", "told apart by", "asked", "answers", "first seen"]
        show(table(header, rows, right=[2]))
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
