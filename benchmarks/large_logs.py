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


READERS = {
    "pyarrow": """
for path in [source] if isinstance(source, str) else source:
    file = pyarrow.parquet.ParquetFile(path)
    for group in range(file.num_row_groups):
        steps += file.read_row_group(group, ["run", "time", "input", "answer"]).num_rows
""",
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
