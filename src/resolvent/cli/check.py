"""`resolvent check`: machines + traces → how many steps they predict right."""

import time
from dataclasses import asdict
from typing import Any

import typer

from resolvent.cli.options import Json, Machines, Traces
from resolvent.cli.printing import amount, print_json, size
from resolvent.display.progress import ProgressBar
from resolvent.machines import MachineScore, Score, load
from resolvent.traces import TraceSet, read_traces


def check(machines: Machines, traces: Traces, json: Json = False) -> None:
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
    if json:
        seconds = {"read": read - started, "replay": done - read, "total": done - started}
        print_json(
            {
                "traces": len(replayed),
                "steps": replayed.steps,
                "transition": _figures(score.transition),
                "reward": _figures(score.reward),
                "seconds": {name: round(value, 6) for name, value in seconds.items()},
            }
        )
    else:
        _print_score(score, replayed)
    if score.first_mismatch is not None:
        raise typer.Exit(1)


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
