"""A folder of Parquet files with up to a billion steps: inferred from, and read by PyArrow.

The files are logs of a machine of a few states, each a shard with runs of its own; they are
written by two processes and stay, with `--keep`, so that a later call goes on where one was
stopped. Each way of going through them runs in a process of its own, which says its peak of
memory; times are those of its processor, and of the clock. `--stages` measures what one shard
costs, stage by stage.
"""

import argparse
import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from large_logs import LENGTH, OURS, Log, measured

SHARD = 1_000_000
LOG = Log(inputs=4)

ROLES = {"episode": "run", "order": "time", "input": "input", "output": "answer"}

WAYS = {
    "pyarrow": """
import pyarrow.parquet as pq
for file in place:
    table = pq.read_table(file, columns=["run", "time", "input", "answer"])
    steps += table.num_rows
    del table
""",
    **OURS,
}


def write_shard(folder: Path, number: int) -> None:
    """Write one file of a million steps, unless it is there; the same whoever writes it."""
    path = folder / f"log-{number:05}.parquet"
    if path.exists():
        return
    random = np.random.default_rng(number)
    runs = SHARD // LENGTH
    inputs, answers = LOG.runs(random, runs)
    table = pa.table(
        {
            "run": np.repeat(np.arange(number * runs, (number + 1) * runs), LENGTH),
            "time": np.arange(number * SHARD, (number + 1) * SHARD) * 1000
            + random.integers(1000, size=SHARD),
            "input": inputs,
            "answer": answers,
        }
    )
    part = path.with_suffix(".part")
    pq.write_table(table, part, compression="zstd")
    part.replace(path)  # a file is whole or not there


def write_log(folder: Path, shards: int) -> None:
    """Write the first shards of the log, those that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(2) as writers:
        list(writers.map(partial(write_shard, folder), range(shards), chunksize=4))


def through(way: str, folder: Path, shards: int) -> dict[str, Any]:
    """Go through the first shards in one of the ways, and return what that took."""
    files = 'sorted(Path(sys.argv[1]).glob("*.parquet"))[: int(sys.argv[2])]'
    return measured(WAYS[way], files, str(folder), str(shards))


def stages(folder: Path, shards: int = 6, rounds: int = 3) -> dict[str, float]:
    """Return the median milliseconds of processor that each stage takes of a million steps."""
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
    took: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        before = time.process_time()
        made = work()
        took.setdefault(name, []).append((time.process_time() - before) * 1e3)
        return made

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
        held = list(shard.codes.values())
        timed("a plain pass over what is replayed", lambda held=held: [one.sum() for one in held])
    bytes_a_step = sum(codes.itemsize for codes in shard.codes.values())
    print(f"replay goes through {bytes_a_step} bytes a step")
    return {name: float(np.median(times)) for name, times in took.items()}


def compared(folder: Path, shards: int, ways: list[str]) -> dict[str, dict[str, Any]]:
    """Measure ways of going through the first shards, one after the other; print and return it."""
    found = {}
    for way in ways:
        one = found[way] = through(way, folder, shards)
        million = one["steps"] / 1e6
        print(
            f"{one['steps'] / 1e6:6.0f} million steps, {way:8} "
            f"{one['cpu'] / million * 1e3:7.1f} ms of processor and "
            f"{one['seconds'] / million * 1e3:7.1f} ms a million, {one['gigabytes']:.2f} GB, "
            f"states {one['states']}",
            flush=True,
        )
    ratio = found["infer"]["cpu"] / found["pyarrow"]["cpu"]
    print(f"infer takes {ratio:.2f} times the processor of PyArrow's reading", flush=True)
    return found


def main() -> None:
    """Write the shards that are not there, and go through a tenth of them and through all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=int, default=1000, help="steps, in millions")
    parser.add_argument("--folder", type=Path, default=Path("artifacts/billion"))
    parser.add_argument("--keep", action="store_true", help="leave the files where they are")
    parser.add_argument("--stages", action="store_true", help="what a shard costs, stage by stage")
    parser.add_argument("--json", type=Path, help="where to write what was measured")
    given = parser.parse_args()
    write_log(given.folder, given.millions)
    size = sum(path.stat().st_size for path in given.folder.glob("*.parquet"))
    print(f"{given.millions} files of a million steps, {size / 1e9:.2f} GB", flush=True)
    results: dict[str, Any] = {}
    if given.stages:
        results["stages"] = stages(given.folder)
        for name, milliseconds in results["stages"].items():
            print(f"{milliseconds:7.1f} ms a million steps: {name}")
    sizes = sorted({max(given.millions // 10, 1), given.millions})
    for shards in sizes:
        results[str(shards)] = compared(given.folder, shards, ["pyarrow", "infer"])
    few, many = (
        results[str(shards)]["infer"]["cpu"] / results[str(shards)]["infer"]["steps"]
        for shards in (sizes[0], sizes[-1])
    )
    print(f"a step of ten times as many takes {many / few:.2f} times as long")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if not given.keep:
        shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
