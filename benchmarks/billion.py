"""A folder of Parquet files with up to a billion steps: inferred from, and read by PyArrow.

The files are logs of a random machine, a million steps each. Two processes write them; with
`--keep` they stay, and a later call continues. Each reader runs in a process of its own, which
reports its times and its peak memory. `--stages` measures the stages of reading one shard.
"""

import argparse
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from large_logs import READERS, ROLES, Log, measured

LOG = Log(inputs=4)

PYARROW = """
for file in source:
    table = pyarrow.parquet.read_table(file, columns=["run", "time", "input", "answer"])
    steps += table.num_rows
    del table
"""


def write_log(folder: Path, shards: int) -> None:
    """Write the first shards of the log that do not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(2) as writers:
        list(writers.map(partial(LOG.write, folder), range(shards), chunksize=4))


def stages(folder: Path, shards: int = 6, rounds: int = 3) -> dict[str, float]:
    """Return the median CPU milliseconds of each stage per million steps."""
    import resolvent as rs
    from resolvent.replay.coded_shard import CodedShard
    from resolvent.replay.replaying import MachineTables, replay_shard
    from resolvent.replay.scan import Pool, digested
    from resolvent.traces.scan.layouts import Layout

    files = sorted(folder.glob("*.parquet"))[:shards]
    scanned = rs.scan_traces(files, **ROLES)
    result = rs.infer(scanned)
    alphabets = result.standing.corpus.alphabets
    tables = MachineTables.of(result.machines, alphabets)
    times: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        before = time.process_time()
        result = work()
        times.setdefault(name, []).append((time.process_time() - before) * 1e3)
        return result

    for number in [*range(len(files))] * rounds:
        timed("PyArrow reads all columns", lambda at=number: pq.read_table(files[at]))
        layout: Layout = scanned._layout
        for again, layout in enumerate((scanned._layout, scanned._layout.without_order())):
            name = "second" if again else "first"
            rows = timed(
                f"{name} pass: reading",
                lambda at=number, layout=layout: scanned._shards.read(at, layout.columns),
            )
            traces, _ = timed(
                f"{name} pass: coding", lambda rows=rows, layout=layout: layout.traces(rows, print)
            )
            shard = CodedShard.among(0, traces, alphabets, {})
            timed(f"{name} pass: checking codes", lambda shard=shard: shard.columns)
            timed(f"{name} pass: keys", lambda shard=shard: shard.key)
        timed("first pass: digest", lambda shard=shard: digested(shard))
        timed("first pass: pool", lambda shard=shard: Pool.of(shard, 1_000_000, 0, (0, 50_000)))
        timed("second pass: ranks", lambda shard=shard: shard.rank)
        timed("second pass: replay", lambda shard=shard: replay_shard(tables, shard))
        columns = list(shard.codes.values())
        timed("a sum of the replayed columns", lambda columns=columns: [c.sum() for c in columns])
    bytes_a_step = sum(codes.itemsize for codes in shard.codes.values())
    print(f"replay reads {bytes_a_step} bytes per step")
    return {name: float(np.median(measurements)) for name, measurements in times.items()}


def compare(folder: Path, shards: int) -> float:
    """Measure both readers of the first shards; return the CPU seconds of `infer` per step."""
    cpu: dict[str, float] = {}
    files = 'sorted(Path(sys.argv[1]).glob("*.parquet"))[: int(sys.argv[2])]'
    for name, code in (("pyarrow", PYARROW), ("infer", READERS["infer"])):
        figures = measured(code, files, str(folder), str(shards))
        million, cpu[name] = figures["steps"] / 1e6, figures["cpu"]
        print(
            f"{million:6.0f} million steps, {name:8} {figures['cpu'] / million * 1e3:7.1f} CPU ms "
            f"and {figures['seconds'] / million * 1e3:7.1f} ms per million, "
            f"{figures['gigabytes']:.2f} GB, states {figures['states']}",
            flush=True,
        )
    print(f"infer takes {cpu['infer'] / cpu['pyarrow']:.2f} times the CPU of PyArrow", flush=True)
    return cpu["infer"] / million / 1e6


def main() -> None:
    """Write the missing shards, and read a tenth of them and all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=int, default=1000, help="steps, in millions")
    parser.add_argument("--folder", type=Path, default=Path("artifacts/billion"))
    parser.add_argument("--keep", action="store_true", help="do not delete the files")
    parser.add_argument("--stages", action="store_true", help="the stages of reading a shard")
    options = parser.parse_args()
    write_log(options.folder, options.millions)
    size = sum(path.stat().st_size for path in options.folder.glob("*.parquet"))
    print(f"{options.millions} files of a million steps, {size / 1e9:.2f} GB", flush=True)
    if options.stages:
        for name, milliseconds in stages(options.folder).items():
            print(f"{milliseconds:7.1f} ms per million steps: {name}")
    sizes = sorted({max(options.millions // 10, 1), options.millions})
    per_step = [compare(options.folder, shards) for shards in sizes]
    print(f"a step of ten times as many takes {per_step[-1] / per_step[0]:.2f} times as long")
    if not options.keep:
        shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
