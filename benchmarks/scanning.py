"""Logs larger than memory: scanned, inferred from, and read by PyArrow.

The log of a random machine is one Parquet file with a column of notes that nothing reads, as real
logs have them; or with `--millions` a folder of files of a million steps each, which later calls
continue. Each reader runs in a process of its own, which reports its times and its peak memory.
`--stages` measures the stages of reading one file of the folder.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from large_logs import LENGTH, MILLION, READERS, ROLES, Log, measured

FILE_LOG, FOLDER_LOG = Log(inputs=6), Log(inputs=4)


def write_file(path: Path, gigabytes: float) -> None:
    """Write runs of the machine up to a size of the file; row groups end within runs."""
    random = np.random.default_rng(0)
    first, writer, rest = 0, None, None
    runs = MILLION // LENGTH
    while writer is None or path.stat().st_size < gigabytes * 1e9:
        table = FILE_LOG.table(random, first, runs)
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


def write_folder(folder: Path, files: int) -> None:
    """Write the files of the folder that do not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(2) as writers:
        list(writers.map(partial(FOLDER_LOG.write, folder), range(files), chunksize=4))


def compare(source: str, *arguments: str) -> None:
    """Measure the readers of a source, which is an expression of Python."""
    for name, code in READERS.items():
        figures = measured(code, source, *arguments)
        million = figures["steps"] / 1e6
        print(
            f"{million:6.0f} million steps, {name:8}"
            f"{figures['seconds'] / million * 1e3:7.1f} ms and "
            f"{figures['cpu'] / million * 1e3:7.1f} CPU ms per million, "
            f"{figures['gigabytes']:.2f} GB, states {figures['states']}",
            flush=True,
        )


def stages(folder: Path, files: int = 6, rounds: int = 3) -> dict[str, float]:
    """Return the median CPU milliseconds of each stage per million steps."""
    import resolvent as rs
    from resolvent.replay.coded_shard import CodedShard
    from resolvent.replay.replaying import MachineTables, replay_shard
    from resolvent.replay.scan import Pool, digested
    from resolvent.traces.io.table import traces_of_table

    paths = sorted(folder.glob("*.parquet"))[:files]
    scanned = rs.scan_traces(paths, **ROLES)
    result = rs.infer(scanned)
    alphabets = result.inference_state.corpus.alphabets
    tables = MachineTables.of(result.machines, alphabets)
    times: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        before = time.process_time()
        result = work()
        times.setdefault(name, []).append((time.process_time() - before) * 1e3)
        return result

    for number in [*range(len(paths))] * rounds:
        timed("PyArrow reads all columns", lambda at=number: pq.read_table(paths[at]))
        for again, schema in enumerate((scanned._schema, replace(scanned._schema, order=None))):
            name = "second" if again else "first"
            rows = timed(
                f"{name} pass: reading",
                lambda at=number, schema=schema: scanned._shards.read(at, schema.columns),
            )
            traces = timed(
                f"{name} pass: coding",
                lambda rows=rows, schema=schema: traces_of_table(rows.table, schema, rows.location),
            ).traces
            shard = CodedShard.among(0, traces, alphabets, {})
            timed(f"{name} pass: checking codes", lambda shard=shard: shard.columns)
            timed(f"{name} pass: keys", lambda shard=shard: shard.key)
        timed("first pass: digest", lambda shard=shard: digested(shard))
        timed("first pass: pool", lambda shard=shard: Pool.of(shard, 1_000_000, 0, (0, 50_000)))
        timed("second pass: ranks", lambda shard=shard: shard.rank)
        timed("second pass: replay", lambda shard=shard: replay_shard(tables, shard))
        columns = list(shard.codes.values())
        timed("a sum of the replayed columns", lambda columns=columns: [c.sum() for c in columns])
    return {name: float(np.median(measurements)) for name, measurements in times.items()}


def main() -> None:
    """Write the log, and measure each reader."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0, help="size of the one file")
    parser.add_argument("--millions", type=int, help="steps of a folder instead, in millions")
    parser.add_argument("--folder", type=Path, default=Path("artifacts/logs"), help="its path")
    parser.add_argument("--stages", action="store_true", help="the stages of reading a file")
    options = parser.parse_args()
    if options.millions is None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.parquet"
            write_file(path, options.gigabytes)
            groups = pq.ParquetFile(path).num_row_groups
            print(f"{path.stat().st_size / 1e9:.2f} GB in {groups} row groups")
            compare("sys.argv[1]", str(path))
        return
    write_folder(options.folder, options.millions)
    if options.stages:
        for name, milliseconds in stages(options.folder).items():
            print(f"{milliseconds:7.1f} ms per million steps: {name}")
    files = 'sorted(Path(sys.argv[1]).glob("*.parquet"))[: int(sys.argv[2])]'
    for number in sorted({max(options.millions // 10, 1), options.millions}):
        compare(files, str(options.folder), str(number))


if __name__ == "__main__":
    main()
