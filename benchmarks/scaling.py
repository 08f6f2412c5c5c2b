"""Traces from a Parquet folder larger than one would like to hold in memory.

Writes folders of 1, 10 and 100 million steps of the benchmark's 25×25 world, a
million steps a file, and infers both machines from each in a process of its
own: seconds, seconds per million steps, and peak memory. Run with
`make benchmark NAME=scaling`; --most 10 stops at ten million steps.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from worlds import random_world

WORLD_SEED = 28
MEAN_LENGTH = 235

INFER = """
import json, resource, sys, time
import pyarrow.parquet  # what starting takes is not what inferring takes
import resolvent as rs
started = time.perf_counter()
result = rs.infer(rs.scan_traces(sys.argv[1]))
seconds = time.perf_counter() - started
print(json.dumps({
    "steps": result.steps,
    "traces": result.traces,
    "states": [result.transition.states, result.reward.states],
    "rounds": result.refinement.rounds,
    "learned": result.refinement.traces,
    "seconds": seconds,
    "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
}))
"""


def main() -> None:
    """Measure each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=100, help="millions of steps at most")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those there")
    options = parser.parse_args()
    sizes = [size for size in (1, 10, 100) if size <= options.most]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        started = time.perf_counter()
        write(folder / "all", max(sizes))
        print(f"{max(sizes)} million steps written in {time.perf_counter() - started:.0f} s\n")
        header = ("steps", "traces", "TM/RM", "rounds", "learned", "seconds", "s/million", "GB")
        print("".join(f"{name:>13}" for name in header))
        for size in sizes:
            found = measured(linked(folder, size))
            cells = (
                f"{found['steps']:,}",
                f"{found['traces']:,}",
                "/".join(map(str, found["states"])),
                found["rounds"],
                found["learned"],
                f"{found['seconds']:.2f}",
                f"{found['seconds'] / found['steps'] * 1e6:.3f}",
                f"{found['gigabytes']:.2f}",
            )
            print("".join(f"{cell!s:>13}" for cell in cells), flush=True)


def write(folder: Path, millions: int) -> None:
    """Write files of a million steps each, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    world = random_world(WORLD_SEED)
    for number in range(millions):
        file = folder / f"part-{number:03}.parquet"
        if not file.exists():
            world.rollouts(1_000_000 // MEAN_LENGTH, seed=number).save(file)


def linked(folder: Path, size: int) -> Path:
    """Return a folder with the first files only."""
    some = folder / f"first-{size}"
    some.mkdir(exist_ok=True)
    for file in sorted((folder / "all").glob("*.parquet"))[:size]:
        target = some / file.name
        if not target.exists():
            target.hardlink_to(file)
    return some


def measured(folder: Path) -> dict[str, object]:
    """Infer in a process of its own, for the sake of its peak memory."""
    run = subprocess.run(
        [sys.executable, "-c", INFER, str(folder)], check=True, capture_output=True, text=True
    )
    return json.loads(run.stdout)


if __name__ == "__main__":
    main()
