"""What benchmarks of large logs share: runs of a machine, and processes that go through them.

Each way of going through a log runs in a process of its own, which says how long it took, by the
processor and by the clock, and its peak of memory.
"""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LENGTH = 100
"""Steps of a run."""

OURS = {
    "scan": """
import resolvent as rs
for traces in rs.scan_traces(place, episode="run", order="time", input="input", output="answer"):
    steps += traces.steps
""",
    "infer": """
import resolvent as rs
scanned = rs.scan_traces(place, episode="run", order="time", input="input", output="answer")
result = rs.infer(scanned)
steps, states = result.steps, result.machines["answer"].states
""",
}
"""Ways to go through the log at a `place`; each counts `steps`."""

_MEASURED = """
import json, sys, time
from pathlib import Path
place, steps, states = {place}, 0, None
import numpy, pyarrow.parquet, resolvent
before = time.perf_counter(), time.process_time()
{way}
print(json.dumps({{
    "steps": steps,
    "states": states,
    "seconds": time.perf_counter() - before[0],
    "cpu": time.process_time() - before[1],
    # What getrusage says would include the parent, of which this process is a copy.
    "gigabytes": int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1e6,
}}))
"""


def measured(way: str, place: str, *arguments: str) -> dict[str, Any]:
    """Go through a log in a process of its own, and return what that took.

    `place` is an expression of Python, in which the arguments are `sys.argv[1:]`.
    """
    run = subprocess.run(
        [sys.executable, "-c", _MEASURED.format(way=way, place=place), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(run.stdout))


class Log:
    """A machine of 12 states that answers so many inputs, always the same one."""

    def __init__(self, inputs: int, states: int = 12) -> None:
        self.inputs = inputs
        self.moves = np.random.default_rng(1).integers(states, size=(states, inputs))
        self.answers = np.random.default_rng(2).integers(4, size=(states, inputs))
        self.names = pa.array([f"input-{number}" for number in range(inputs)])

    def runs(self, random: np.random.Generator, runs: int) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the inputs and answers of runs, one after the other."""
        given = random.integers(self.inputs, size=(LENGTH, runs))
        state = np.zeros(runs, np.int64)
        answers = np.empty_like(given)
        for step in range(LENGTH):
            answers[step] = self.answers[state, given[step]]
            state = self.moves[state, given[step]]
        codes = pa.array(given.T.ravel().astype(np.int32))
        names = pa.DictionaryArray.from_arrays(codes, self.names).cast(pa.string())
        return names, answers.T.ravel()
