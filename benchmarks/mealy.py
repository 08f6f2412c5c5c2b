"""Random Mealy machines of 10 to 1,000 states: time of inference, and whether it is exact.

Machines have 10 inputs and 2 to 10 outputs; random walks restart after 50 to 100 steps, with 300
steps for each input of each state. An input is both the action and the label that is read after
it; the output is the column to predict. `--peers` runs AALpy's RPNI on the same walks, up to 100
states and 120 CPU seconds.
"""

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import resolvent as rs

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from mealy_machine import Mealy

STATES = (10, 30, 100, 300, 1_000)
INPUTS = 10
STEPS_PER_MOVE = 300
LARGEST_FOR_PEERS, SEEDS_FOR_PEERS, SECONDS_FOR_PEERS = 100, 2, 120


def timed(traces: rs.TraceSet, **options: Any) -> tuple[rs.InferenceResult, float, float]:
    """Infer, and return the result and what it took: CPU seconds and seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = rs.infer(traces, options=rs.InferenceOptions(outputs=["output"], **options))
    return result, time.process_time() - cpu, time.perf_counter() - wall


def aalpy_seconds(machine: Mealy, steps: int, seed: int) -> float:
    """Return the CPU seconds of AALpy's RPNI on the same walks, at most `SECONDS_FOR_PEERS`."""
    from bank_contenders import CONTENDERS

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_FOR_PEERS)
    try:
        return CONTENDERS["AALpy RPNI"](machine, machine.walks(steps, seed))[1]
    except TimeoutError:
        return float(SECONDS_FOR_PEERS)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def scaling(sizes: list[int], seeds: int, peers: bool, options: dict[str, Any]) -> None:
    """Print how long machines of growing size take."""
    timed(Mealy.drawn(10, 0).traces(1_000, 0))  # what is imported late is imported now
    print(f"{'states':>7}{'steps':>11}{'exact':>7}{'CPU s':>9}{'seconds':>9}", end="")
    print(f"{'AALpy':>9}{'ratio':>8}" if peers else "")
    for states in sizes:
        steps = STEPS_PER_MOVE * states * INPUTS
        cpu, wall, exact, theirs = [], [], 0, []
        for seed in range(seeds):
            machine = Mealy.drawn(states, seed)
            result, *seconds = timed(machine.traces(steps, seed), **options)
            cpu.append(seconds[0])
            wall.append(seconds[1])
            exact += machine.is_found(result.machines["output"])
            if peers and states <= LARGEST_FOR_PEERS and seed < SEEDS_FOR_PEERS:
                theirs.append(aalpy_seconds(machine, steps, seed))
        ours = np.median(cpu)
        beside = f"{np.median(theirs):>9.2f}{np.median(theirs) / ours:>8.0f}" if theirs else ""
        print(
            f"{states:>7}{steps:>11,}{exact:>5}/{seeds}{ours:>9.2f}{np.median(wall):>9.2f}{beside}",
            flush=True,
        )


def idle_labels(options: dict[str, Any]) -> None:
    """Print what judging labels costs where most of them change nothing."""
    machine = Mealy.drawn(20, 0, inputs=100, idle=90)
    traces = machine.traces(300_000, 0)
    times = {}
    choices: tuple[Any, ...] = ([], "auto")
    for trivial in choices:
        result, times[str(trivial)], _ = timed(traces, **{**options, "trivial": trivial})
        is_exact = machine.is_found(result.machines["output"])
        print(f"100 labels, 90 idle, {trivial=}: {times[str(trivial)]:.2f} CPU s, exact {is_exact}")
    print(f"judging makes it {times['auto'] / times['[]']:.2f} times as long")


def million(options: dict[str, Any]) -> None:
    """Print how long a million steps of a machine of 50 states take."""
    machine = Mealy.drawn(50, 0)
    result, cpu, wall = timed(machine.traces(1_000_000, 0), **options)
    is_exact = machine.is_found(result.machines["output"])
    print(f"1,000,000 steps of 50 states: {cpu:.2f} CPU s, {wall:.2f} s, exact {is_exact}")


def main() -> None:
    """Run all parts, or the one asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, nargs="*", default=list(STATES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part", choices=["scaling", "million", "idle"])
    parser.add_argument("--peers", action="store_true", help="AALpy as well")
    parser.add_argument("--strategy", help="other than the default")
    parser.add_argument("--all-at-once", action="store_true", help="with refine=False")
    options = parser.parse_args()
    inference: dict[str, Any] = {"strategy": options.strategy} if options.strategy else {}
    if options.all_at_once:
        inference["refine"] = False
    if options.part in (None, "scaling"):
        scaling(options.states, options.seeds, options.peers, inference)
    if options.part in (None, "million"):
        million(inference)
    if options.part in (None, "idle"):
        idle_labels(inference)


if __name__ == "__main__":
    main()
