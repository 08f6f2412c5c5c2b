"""Methods that fail in many ways, and small experiments made of them."""

import importlib
import os
import time
from pathlib import Path
from typing import Any

from resolvent.machines import EdgeRewardMachine, Guard
from resolvent.machines.io.edge_rewards import Edge
from resolvent.paper.baselines import Outcome
from resolvent.paper.baselines.outcome import Clock
from resolvent.paper.runs import Run, Stopwatch
from resolvent.traces.trace_set import TraceSet
from resolvent.worlds import PhaseGrid


def run(call: str, method: str = "fake", repetition: int = 0, **arguments: Any) -> Run:
    return Run("tiny", "here", method, repetition, globals()[call], arguments)


def answers(stopwatch: Stopwatch, *, value: int = 42, work: float = 0.0) -> dict[str, Any]:
    with stopwatch:
        time.sleep(work)
    return {"status": "found", "value": value}


def sleeps(stopwatch: Stopwatch, *, seconds: float) -> dict[str, Any]:
    with stopwatch:
        time.sleep(seconds)
    return {"status": "found"}


def waits_for(stopwatch: Stopwatch, *, path: str) -> dict[str, Any]:
    with stopwatch:
        while not Path(path).exists():
            time.sleep(0.01)
    return {"status": "found"}


def works(stopwatch: Stopwatch, *, seconds: float) -> dict[str, Any]:
    with stopwatch:
        ends = time.process_time() + seconds
        while time.process_time() < ends:
            pass
    return {"status": "found"}


def misses_a_module(stopwatch: Stopwatch) -> dict[str, Any]:
    importlib.import_module("no_such_solver")
    return {}


def keeps_its_limit(stopwatch: Stopwatch) -> dict[str, Any]:
    """Waits, which costs no CPU time, and works until its own clock has no time left."""
    with stopwatch:
        clock = Clock(stopwatch.time_limit)
        time.sleep(2 * stopwatch.time_limit)
        assert clock.left
        while clock.left:
            pass
    return {"status": "found"}


def evaluates_long(stopwatch: Stopwatch, *, seconds: float) -> dict[str, Any]:
    with stopwatch:
        pass
    time.sleep(seconds)
    return {"status": "found"}


def raises(stopwatch: Stopwatch) -> dict[str, Any]:
    with stopwatch:
        raise ValueError("two\nlines")


def gives_an_object(stopwatch: Stopwatch) -> dict[str, Any]:
    return {"status": "found", "value": object()}


def dies(stopwatch: Stopwatch) -> dict[str, Any]:
    with stopwatch:
        os.kill(os.getpid(), 9)
    return {"status": "found"}


def hoards(stopwatch: Stopwatch) -> dict[str, Any]:
    with stopwatch:
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20)))
            time.sleep(0.001)


def prints(stopwatch: Stopwatch) -> dict[str, Any]:
    with stopwatch:
        print("a solver's banner", flush=True)
        os.write(1, b"and more\n")
    return {"status": "found"}


def truth(traces: TraceSet, *, seed: int, time_limit: float) -> Outcome:
    """A method that knows the answer."""
    return Outcome("truth", "found", 0.0, PhaseGrid(3).machines())


def forgetful(traces: TraceSet, *, seed: int, time_limit: float) -> Outcome:
    """A method that takes the stairs for the whole task."""
    edges = (
        Edge(0, 1, Guard.parse("Stair"), 1.0),
        Edge(0, 0, Guard.parse("!Stair"), 0.0),
    )
    return Outcome("forgetful", "found", 0.0, EdgeRewardMachine(0, frozenset({1}), edges))


def gives_up(traces: TraceSet, *, seed: int, time_limit: float) -> Outcome:
    return Outcome("gives up", "no solution", 0.0, None)
