"""Methods that behave badly, and small experiments made of them."""

import os
import time
from pathlib import Path
from typing import Any

from resolvent.machines import EdgeRewardMachine
from resolvent.machines.io.edge_rewards import Edge
from resolvent.machines.io.guards import Guard
from resolvent.paper.baselines import Outcome
from resolvent.paper.baselines.clock import Clock as OfMethods
from resolvent.paper.processes import Clock
from resolvent.paper.run import Run
from resolvent.traces.trace_set import TraceSet
from resolvent.worlds import PhaseGrid


def run(call: str, method: str = "fake", repetition: int = 0, **arguments: Any) -> Run:
    return Run("tiny", "here", method, repetition, f"fake_methods:{call}", arguments)


def answers(clock: Clock, *, value: int = 42, work: float = 0.0) -> dict[str, Any]:
    with clock:
        time.sleep(work)
    return {"status": "found", "value": value}


def sleeps(clock: Clock, *, seconds: float) -> dict[str, Any]:
    with clock:
        time.sleep(seconds)
    return {"status": "found"}


def waits_for(clock: Clock, *, path: str) -> dict[str, Any]:
    with clock:
        while not Path(path).exists():
            time.sleep(0.01)
    return {"status": "found"}


def works(clock: Clock, *, seconds: float) -> dict[str, Any]:
    with clock:
        ends = time.process_time() + seconds
        while time.process_time() < ends:
            pass
    return {"status": "found"}


def keeps_its_limit(clock: Clock) -> dict[str, Any]:
    """Waits, which costs nothing, and works until its own clock says that time is up."""
    with clock:
        own = OfMethods(clock.limit)
        time.sleep(2 * clock.limit)
        assert own.left
        while own.left:
            pass
    return {"status": "found"}


def judges_long(clock: Clock, *, seconds: float) -> dict[str, Any]:
    with clock:
        pass
    time.sleep(seconds)
    return {"status": "found"}


def raises(clock: Clock) -> dict[str, Any]:
    with clock:
        raise ValueError("two\nlines")


def gives_an_object(clock: Clock) -> dict[str, Any]:
    return {"status": "found", "value": object()}


def dies(clock: Clock) -> dict[str, Any]:
    with clock:
        os.kill(os.getpid(), 9)
    return {"status": "found"}


def hoards(clock: Clock) -> dict[str, Any]:
    with clock:
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20)))
            time.sleep(0.001)


def prints(clock: Clock) -> dict[str, Any]:
    with clock:
        print("a solver's banner", flush=True)
        os.write(1, b"and more\n")
    return {"status": "found"}


def truth(traces: TraceSet, *, states: int, seed: int, time_limit: float) -> Outcome:
    """A method that knows the answer."""
    return Outcome("truth", "found", 0.0, PhaseGrid(3).machines())


def forgetful(traces: TraceSet, *, states: int, seed: int, time_limit: float) -> Outcome:
    """A method that takes the stairs for the whole task."""
    edges = (
        Edge(0, 1, Guard.parse("Stair"), 1.0),
        Edge(0, 0, Guard.parse("!Stair"), 0.0),
    )
    return Outcome("forgetful", "found", 0.0, EdgeRewardMachine(0, frozenset({1}), edges))


def gives_up(traces: TraceSet, *, states: int, seed: int, time_limit: float) -> Outcome:
    return Outcome("gives up", "no solution", 0.0, None)
