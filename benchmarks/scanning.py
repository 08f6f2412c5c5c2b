"""One Parquet file larger than the memory it takes: scanned, inferred from, and read by PyArrow.

The file is the log of a machine of a few states with a column of notes that nobody needs, so that
its size is that of logs people have. Each way of going through it runs in a process of its own,
which says its peak of memory; times are those of its processor, and of the clock.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from large_logs import LENGTH, OURS, Log, measured

GROUP = 1_000_000
LOG = Log(inputs=6)

WAYS = {
    "pyarrow": """
import pyarrow.parquet as pq
file = pq.ParquetFile(place)
for group in range(file.num_row_groups):
    steps += file.read_row_group(group, ["run", "time", "input", "answer"]).num_rows
""",
    **OURS,
}


def write_log(path: Path, gigabytes: float) -> None:
    """Write runs of the machine until the file is so large; row groups end within runs."""
    random = np.random.default_rng(0)
    first, writer, rest = 0, None, None
    while writer is None or path.stat().st_size < gigabytes * 1e9:
        runs = GROUP // LENGTH
        inputs, answers = LOG.runs(random, runs)
        notes = pa.array(random.integers(1 << 62, size=GROUP * 4)).cast(pa.string())
        table = pa.table(
            {
                "run": np.repeat(np.arange(first, first + runs), LENGTH),
                "time": np.arange(GROUP, dtype=np.int64) * 1000 + random.integers(1000, size=GROUP),
                "input": inputs,
                "answer": answers,
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
            found = measured(WAYS[way], "sys.argv[1]", str(path))
            million = found["steps"] / 1e6
            print(
                f"{way:8} {found['seconds'] / million * 1e3:7.1f} ms and "
                f"{found['cpu'] / million * 1e3:7.1f} ms of processor a million steps, "
                f"{found['gigabytes']:.2f} GB, states {found['states']}"
            )


if __name__ == "__main__":
    main()
