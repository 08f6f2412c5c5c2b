"""Logs of a random Mealy machine, as large as needed, and processes that read them.

Each process reports its CPU seconds, its seconds and its peak memory.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.replaying import MachineTable, MachineTables

MILLION = 1_000_000
LENGTH = 100
"""Steps of a run."""

ROLES: dict[str, Any] = {"episode": "run", "order": "time", "input": "input", "output": "answer"}
"""Columns of a log, as `scan_traces` takes them."""


@dataclass(frozen=True)
class Log:
    """A random Mealy machine and its logs: runs of random inputs, each from the initial state."""

    inputs: int
    states: int = 12

    @property
    def transitions(self) -> NDArray[np.int64]:
        """Next states by state and input."""
        return np.random.default_rng(1).integers(self.states, size=(self.states, self.inputs))

    @property
    def rows(self) -> int:
        """Number of pairs of a state and an input."""
        return self.states * self.inputs

    def table(self, random: np.random.Generator, first_run: int, runs: int) -> pa.Table:
        """Return a number of runs, one after the other."""
        transitions = self.transitions
        outputs = np.random.default_rng(2).integers(4, size=transitions.shape)
        inputs = random.integers(self.inputs, size=(LENGTH, runs))
        state, answers = np.zeros(runs, np.int64), np.empty_like(inputs)
        for step in range(LENGTH):
            answers[step] = outputs[state, inputs[step]]
            state = transitions[state, inputs[step]]
        codes = pa.array(inputs.T.ravel().astype(np.int32))
        names = pa.array([f"input-{number}" for number in range(self.inputs)])
        steps = runs * LENGTH
        time = (first_run * LENGTH + np.arange(steps)) * 1000 + random.integers(1000, size=steps)
        return pa.table(
            {
                "run": np.repeat(np.arange(first_run, first_run + runs), LENGTH),
                "time": time,
                "input": pa.DictionaryArray.from_arrays(codes, names).cast(pa.string()),
                "answer": answers.T.ravel(),
            }
        )

    def write(self, folder: Path, number: int, steps: int = MILLION) -> None:
        """Write one file with a single row group, unless it exists."""
        path = folder / f"log-{number:05}.parquet"
        if path.exists():
            return
        runs = steps // LENGTH
        table = self.table(np.random.default_rng(number), number * runs, runs)
        part = path.with_suffix(".part")
        pq.write_table(table, part, compression="zstd", row_group_size=steps)
        part.replace(path)  # a file is complete or missing

    def folder(self, parent: Path, files: int, steps: int = MILLION) -> Path:
        """Write files, and return their folder."""
        folder = parent / f"{self.states}x{self.inputs}-{files}-{steps}"
        folder.mkdir(exist_ok=True, parents=True)
        for number in range(files):
            self.write(folder, number, steps)
        return folder

    def tables(self, alphabets: Alphabets) -> MachineTables:
        """Return the machine as the core replays it."""
        moves = np.empty((self.states, len(alphabets.labels)), np.int32)
        for code, label in enumerate(alphabets.labels):
            moves[:, code] = np.arange(self.states)  # "no event", before any input
            for name in label:
                moves[:, code] = self.transitions[:, int(name.removeprefix("input-"))]
        column = alphabets.column_number("answer")
        table = MachineTable("answer", moves.ravel(), self.states, column, supplemented=False)
        return MachineTables((table,), LabelTiming.CURRENT)


READERS = {
    "scan": """
for traces in resolvent.scan_traces(source, **roles):
    steps += traces.steps
""",
    "infer": """
result = resolvent.infer(resolvent.scan_traces(source, **roles))
steps, states = result.steps, result.machines["answer"].states
""",
}
"""Python code that reads the log at `source`; it counts `steps`."""

_MEASURED = """
import json, sys, time
from pathlib import Path
import numpy, pyarrow.parquet, resolvent
roles, source, steps, states, more = {roles}, {source}, 0, None, {{}}
before = time.perf_counter(), time.process_time()
{code}
print(json.dumps({{
    "steps": steps,
    "states": states,
    "seconds": time.perf_counter() - before[0],
    "cpu": time.process_time() - before[1],
    # getrusage would include the parent, of which this process is a copy.
    "gigabytes": int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1e6,
}} | more))
"""


def measured(code: str, source: str, *arguments: str) -> dict[str, Any]:
    """Run code that reads a log in a process of its own, and return its measurements.

    `source` is an expression of Python, in which the arguments are `sys.argv[1:]`.
    """
    process = subprocess.run(
        [sys.executable, "-c", _MEASURED.format(code=code, source=source, roles=ROLES), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(process.stdout))
