"""A folder of Parquet files with up to a billion steps: inferred from, and read by PyArrow.

The files are logs of a machine of a few states, each a shard with runs of its own; they are
written by two processes and stay, with `--keep`, so that a later call goes on where one was
stopped. Each way of going through them runs in a process of its own, which says its peak of
memory; times are those of its processor, and of the clock. `--stages` measures what one shard
costs, stage by stage.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STATES, INPUTS, LENGTH, SHARD = 12, 4, 100, 1_000_000
MOVES = np.random.default_rng(1).integers(STATES, size=(STATES, INPUTS))
ANSWERS = np.random.default_rng(2).integers(4, size=(STATES, INPUTS))
NAMES = pa.array([f"input-{number}" for number in range(INPUTS)])

WAYS = {
    "pyarrow": """
import pyarrow.parquet as pq
for name in sorted(os.listdir(path))[:shards]:
    table = pq.read_table(os.path.join(path, name), columns=["run", "time", "input", "answer"])
    steps += table.num_rows
    del table
""",
    "scan": """
import resolvent as rs
files = [os.path.join(path, name) for name in sorted(os.listdir(path))[:shards]]
for traces in rs.scan_traces(files, episode="run", order="time", input="input", output="answer"):
    steps += traces.steps
""",
    "infer": """
import resolvent as rs
files = [os.path.join(path, name) for name in sorted(os.listdir(path))[:shards]]
scanned = rs.scan_traces(files, episode="run", order="time", input="input", output="answer")
result = rs.infer(scanned)
steps, states = result.steps, result.machines["answer"].states
""",
}
MEASURED = """
import json, os, sys, time
path, shards, steps, states = sys.argv[1], int(sys.argv[2]), 0, None
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


def write_shard(folder: Path, number: int) -> None:
    """Write one file of a million steps, unless it is there; the same whoever writes it."""
    path = folder / f"log-{number:05}.parquet"
    if path.exists():
        return
    random = np.random.default_rng(number)
    runs = SHARD // LENGTH
    given = random.integers(INPUTS, size=(LENGTH, runs))
    state = np.zeros(runs, np.int64)
    answers = np.empty_like(given)
    for step in range(LENGTH):
        answers[step] = ANSWERS[state, given[step]]
        state = MOVES[state, given[step]]
    table = pa.table(
        {
            "run": np.repeat(np.arange(number * runs, (number + 1) * runs), LENGTH),
            "time": np.arange(number * SHARD, (number + 1) * SHARD) * 1000
            + random.integers(1000, size=SHARD),
            "input": pa.DictionaryArray.from_arrays(
                pa.array(given.T.ravel().astype(np.int32)), NAMES
            ).cast(pa.string()),
            "answer": answers.T.ravel(),
        }
    )
    part = path.with_suffix(".part")
    pq.write_table(table, part, compression="zstd")
    os.replace(part, path)  # a file is whole or not there


def write_log(folder: Path, shards: int) -> None:
    """Write the first shards of the log, those that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(2) as writers:
        list(writers.map(partial(write_shard, folder), range(shards), chunksize=4))


def measured(way: str, folder: Path, shards: int) -> dict[str, Any]:
    """Go through the first shards in a process of its own, and return what that took."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURED.format(way=WAYS[way]), str(folder), str(shards)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(run.stdout))
