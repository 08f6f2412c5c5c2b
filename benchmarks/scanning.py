"""One Parquet file larger than the memory it takes: scanned, inferred from, and read by PyArrow.

The file is the log of a random machine with a column of notes that nothing reads, as real logs have
them. Each reader runs in a process of its own, which reports its times and its peak memory.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from large_logs import LENGTH, MILLION, READERS, Log, measured

LOG = Log(inputs=6)

PYARROW = """
file = pyarrow.parquet.ParquetFile(source)
for group in range(file.num_row_groups):
    steps += file.read_row_group(group, ["run", "time", "input", "answer"]).num_rows
"""


def write_log(path: Path, gigabytes: float) -> None:
    """Write runs of the machine up to a size of the file; row groups end within runs."""
    random = np.random.default_rng(0)
    first, writer, rest = 0, None, None
    runs = MILLION // LENGTH
    while writer is None or path.stat().st_size < gigabytes * 1e9:
        table = LOG.table(random, first, runs)
        notes = pa.array(random.integers(1 << 62, size=MILLION * 4)).cast(pa.string())
        table = table.append_column("note", notes.slice(0, MILLION))
        first += runs
        table = table if rest is None else pa.concat_tables([rest, table])
        writer = writer or pq.ParquetWriter(path, table.schema)
        rows = table.num_rows - LENGTH // 3
        writer.write_table(table.slice(0, rows), row_group_size=MILLION + LENGTH)
        rest = table.slice(rows)
    writer.write_table(rest)
    writer.close()


def main() -> None:
    """Write the file, and measure each reader."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        write_log(path, options.gigabytes)
        file = pq.ParquetFile(path)
        print(
            f"{path.stat().st_size / 1e9:.2f} GB, {file.metadata.num_rows:,} rows in "
            f"{file.num_row_groups} row groups"
        )
        for name, code in {"pyarrow": PYARROW, **READERS}.items():
            figures = measured(code, "sys.argv[1]", str(path))
            million = figures["steps"] / 1e6
            print(
                f"{name:8} {figures['seconds'] / million * 1e3:7.1f} ms and "
                f"{figures['cpu'] / million * 1e3:7.1f} CPU ms per million steps, "
                f"{figures['gigabytes']:.2f} GB, states {figures['states']}"
            )


if __name__ == "__main__":
    main()
