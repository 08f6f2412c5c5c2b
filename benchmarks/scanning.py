"""One Parquet file larger than the memory it takes: scanned, inferred from, and read by PyArrow.

The file is the log of a machine of a few states with a column of notes that nobody needs, so that
its size is that of logs people have. Each way of going through it runs in a process of its own,
which says its peak of memory; times are those of its processor, and of the clock.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STATES, INPUTS, LENGTH, GROUP = 12, 6, 100, 1_000_000
MOVES = np.random.default_rng(1).integers(STATES, size=(STATES, INPUTS))
ANSWERS = np.random.default_rng(2).integers(4, size=(STATES, INPUTS))

WAYS = {
    "pyarrow": """
import pyarrow.parquet as pq
file = pq.ParquetFile(path)
for group in range(file.num_row_groups):
    steps += file.read_row_group(group, ["run", "time", "input", "answer"]).num_rows
""",
    "scan": """
import resolvent as rs
for traces in rs.scan_traces(path, episode="run", order="time", input="input", output="answer"):
    steps += traces.steps
""",
    "infer": """
import resolvent as rs
scanned = rs.scan_traces(path, episode="run", order="time", input="input", output="answer")
result = rs.infer(scanned)
steps, states = result.steps, result.machines["answer"].states
""",
}
MEASURED = """
import json, sys, time
path, steps, states = sys.argv[1], 0, None
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


def write_log(path: Path, gigabytes: float) -> None:
    """Write runs of the machine until the file is so large; row groups end within runs."""
    random = np.random.default_rng(0)
    names = np.array([f"input-{number}" for number in range(INPUTS)])
    first, writer, rest = 0, None, None
    while writer is None or path.stat().st_size < gigabytes * 1e9:
        runs = GROUP // LENGTH
        given = random.integers(INPUTS, size=(LENGTH, runs))
        state = np.zeros(runs, np.int64)
        answers = np.empty_like(given)
        for step in range(LENGTH):
            answers[step] = ANSWERS[state, given[step]]
            state = MOVES[state, given[step]]
        notes = pa.array(random.integers(1 << 62, size=GROUP * 4)).cast(pa.string())
        table = pa.table(
            {
                "run": np.repeat(np.arange(first, first + runs), LENGTH),
                "time": np.arange(GROUP, dtype=np.int64) * 1000 + random.integers(1000, size=GROUP),
                "input": pa.DictionaryArray.from_arrays(
                    pa.array(given.T.ravel().astype(np.int32)), names
                ).cast(pa.string()),
                "answer": answers.T.ravel(),
                "note": notes.slice(0, GROUP),
            }
        )
        first += runs
        table = table if rest is None else pa.concat_tables([rest, table])
        writer = writer or pq.ParquetWriter(path, table.schema)
        cut = table.num_rows - LENGTH // 3
        writer.write_table(table.slice(0, cut), row_group_size=GROUP + LENGTH)
        rest = table.slice(cut)
    writer.write_table(rest)
    writer.close()


def measured(way: str, path: Path) -> dict[str, float]:
    """Go through the file in a process of its own, and return what that took."""
    code = MEASURED.format(way=WAYS[way])
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    return dict(json.loads(run.stdout))


def main() -> None:
    """Write the file, and measure each way of going through it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        write_log(path, given.gigabytes)
        file = pq.ParquetFile(path)
        print(
            f"{path.stat().st_size / 1e9:.2f} GB, {file.metadata.num_rows:,} rows in "
            f"{file.num_row_groups} row groups"
        )
        for way in WAYS:
            found = measured(way, path)
            million = found["steps"] / 1e6
            print(
                f"{way:8} {found['seconds'] / million * 1e3:7.1f} ms and "
                f"{found['cpu'] / million * 1e3:7.1f} ms of processor a million steps, "
                f"{found['gigabytes']:.2f} GB, states {found['states']}"
            )


if __name__ == "__main__":
    main()
