"""Threads, processes and Ray on the same shards, in turns.

Writes Parquet files of a million steps each, scans and replays them with each kind of workers in
turn, and prints the best of several runs: wall-clock time, and CPU time of this process, of the
workers and of Ray beside them. The time to start is separate.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from scaling import write

import resolvent as rs
from resolvent._util.parallel import Processes, Threads
from resolvent._util.ray import Ray
from resolvent.replay.corpus import Corpus
from resolvent.replay.replaying import replay


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=int, default=20, help="millions of steps")
    parser.add_argument("--turns", type=int, default=3, help="how often each is measured")
    parser.add_argument("--cores", type=int, default=2, help="threads, processes, tasks at a time")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        write(folder, options.millions)
        compare(folder, options.cores, options.turns)


def compare(folder: Path, cores: int, turns: int) -> None:
    """Go through a folder with each kind of workers in turn."""
    machines = rs.infer(rs.scan_traces(folder)).machines
    kinds = {"threads": Threads(cores), "processes": Processes(cores), "ray": Ray()}
    for name, workers in kinds.items():
        started, used = time.perf_counter(), sum(processor().values())
        workers.map_reduce(len, ["a", "b"], int.__add__, called="starting")
        seconds = time.perf_counter() - started
        print(
            f"{name}: begun in {seconds:.1f} s, {sum(processor().values()) - used:.1f} of processor"
        )
    best: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    for turn in range(turns + 1):
        for name, workers in kinds.items():
            before, started = processor(), time.perf_counter()
            corpus = Corpus(rs.scan_traces(folder), workers=workers)
            replay(machines, corpus)
            usage = {"clock": time.perf_counter() - started}
            usage |= {kind: used - before[kind] for kind, used in processor().items()}
            if turn:  # the first one loads what the others have
                best[name].append(
                    {kind: seconds / corpus.steps * 1e9 for kind, seconds in usage.items()}
                )
    print(f"\n{'ms a million steps':>18}" + "".join(f"{kind:>10}" for kind in best["ray"][0]))
    for name, measured in best.items():
        least = (min(measurement[kind] for measurement in measured) for kind in measured[0])
        print(f"{name:>18}" + "".join(f"{number:>10.0f}" for number in least))

    def clock(name: str) -> float:
        return min(measurement["clock"] for measurement in best[name])

    ratio = clock("ray") / clock("threads")
    print(f"\nRay takes {ratio:.2f} times as long as threads")
    for workers in kinds.values():
        workers.close()


def processor() -> dict[str, float]:
    """Return the seconds of processor that this process and those it began have used."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                figures = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            children.setdefault(int(figures[1]), []).append(int(entry.name))
            used[int(entry.name)] = sum(map(int, figures[11:13])) / os.sysconf("SC_CLK_TCK")
    usage = {"here": used[os.getpid()], "working": 0.0, "beside": 0.0}
    waiting = list(children.get(os.getpid(), ()))
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, ())
        usage["working" if _works(process) else "beside"] += used.get(process, 0.0)
    return usage


def _works(process: int) -> bool:
    try:
        text = Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return False
    return "ray::" in text or "spawn_main" in text


if __name__ == "__main__":
    main()
