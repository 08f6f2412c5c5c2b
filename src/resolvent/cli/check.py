"""`resolvent check`: machines + traces → how many steps they predict right, and why to trust it."""

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from resolvent.cli.options import Json, Machines, Traces
from resolvent.cli.printing import amount, print_json, size
from resolvent.display.progress import ProgressBar
from resolvent.evidence import Evidence, MachineEvidence, Separation, gather
from resolvent.machines import MachinePair, MachineScore, Score, load
from resolvent.machines.drawing import history_text
from resolvent.pipeline import inferring_like
from resolvent.traces import TraceSet, read_traces, symbol_text

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
    pair = load(machines)
    started = time.perf_counter()
    with ProgressBar() as bar:
        replayed = read_traces(traces, progress=bar.stage(f"reading {traces.name}"))
    read = time.perf_counter()
    score = pair.score(replayed)
    done = time.perf_counter()
    seconds = {"read": read - started, "replay": done - read}
    gathered = None
    if evidence:
        gathered = _gather(pair, replayed)
        seconds["evidence"] = time.perf_counter() - done
    seconds["total"] = time.perf_counter() - started
    if json:
        figures = {
            "traces": len(replayed),
            "steps": replayed.steps,
            "transition": _figures(score.transition),
            "reward": _figures(score.reward),
            "seconds": {name: round(value, 6) for name, value in seconds.items()},
        }
        print_json(figures if gathered is None else {**figures, "evidence": gathered.as_dict()})
    else:
        _print_score(score, replayed)
        if gathered is not None:
            _print_evidence(gathered)
    if score.first_mismatch is not None:
        raise typer.Exit(1)


def _gather(pair: MachinePair, traces: TraceSet) -> Evidence:
    """Gather evidence; only machines that were inferred from these traces are inferred again."""
    known = pair.provenance is not None and pair.provenance.traces_sha256 == traces.digest
    return gather(pair, traces, infer=inferring_like(pair) if known else None)


def _figures(score: MachineScore) -> dict[str, Any]:
    first = score.first_mismatch
    return {
        "right": score.right,
        "wrong": score.wrong,
        "unseen": score.unseen,
        "first_mismatch": None if first is None else asdict(first),
    }


def _print_score(score: Score, traces: TraceSet) -> None:
    from resolvent.display.tables import show, table

    print(f"{size(traces)}\n")
    scores = (("Transition Machine", score.transition), ("Reward Machine", score.reward))
    rows = [[name, f"{one.right:,}", f"{one.wrong:,}", f"{one.unseen:,}"] for name, one in scores]
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
    weakest = sorted(one.separations, key=lambda pair: (pair.support, pair.first, pair.second))
    rows = [_separation_row(pair) for pair in weakest[:_ROWS]]
    if rows:
        header = ["states", "told apart by", "asked", "answers", "first seen"]
        show(table(header, rows, right=[2]))
    if len(weakest) > _ROWS:
        print(f"and {amount(len(weakest) - _ROWS, 'pair')} with more support")
    print()
    for line in str(one.completeness).splitlines():
        print(f"  {line}")
    for least in (*one.transitions()[:1], *one.outputs(1)):
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
