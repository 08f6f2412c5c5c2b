"""Ten million noisy steps in a folder of Parquet files: seconds, memory, and if it is right.

Walks at random through a world of the paper's appendix (25×25, TM 7, RM 2) in which a twentieth
of all actions slips, a million steps a file, and infers both machines from the folder in a
process of its own. A machine is right if its moves are the true ones, state for state.
`make benchmark NAME=noise_folder`; --most 1 stops at a million steps.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gymnasium as gym

import resolvent as rs
from noise import Kind, noisy, whole_traces

SHARD = 1_000_000


def main() -> None:
    """Measure each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10, help="millions of steps at most")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those there")
    parser.add_argument("--world", type=int, default=0, help="the seed of the world")
    parser.add_argument("--slip", type=float, default=0.05, help="the share of actions that slip")
    parser.add_argument("--infer", action="store_true", help="from the folder, here and now")
    given = parser.parse_args()
    if given.infer:
        print(json.dumps(inferred(given.folder, given.world)))
        return
    header = ("steps", "traces", "TM", "RM", "noise", "learned", "CPU s", "seconds", "GB", "right")
    print("".join(f"{name:>12}" for name in header))
    with tempfile.TemporaryDirectory() as temporary:
        for size in (size for size in (1, 10) if size <= given.most):
            folder = (given.folder or Path(temporary)) / f"{size}-million"
            write(folder, size, given.world, Kind(SHARD, slip=given.slip))
            found = measured(folder, given.world)
            print("".join(f"{found[name]:>12}" for name in header), flush=True)


def write(folder: Path, millions: int, world: int, kind: Kind) -> None:
    """Write files of a million noisy steps each, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    env = gym.make("resolvent/RandomWorld-v0", world_seed=world)
    for number in range(millions):
        file = folder / f"part-{number:03}.parquet"
        if not file.exists():
            noisy(whole_traces(env, kind.steps, SHARD * number), kind, number).save(file)


def measured(folder: Path, world: int) -> dict[str, object]:
    """Infer in a process of its own, for the sake of its peak memory."""
    command = [sys.executable, __file__, "--infer", "--folder", folder, "--world", str(world)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def inferred(folder: Path, world: int) -> dict[str, object]:
    """Infer both machines from a folder, and say what that took."""
    __import__("pyarrow.parquet")  # what starting takes is not what inferring takes
    started, busy = time.perf_counter(), time.process_time()
    result = rs.infer(rs.scan_traces(folder), noise="auto")
    busy, seconds = time.process_time() - busy, time.perf_counter() - started
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    truth = gym.make("resolvent/RandomWorld-v0", world_seed=world).unwrapped.machines()
    right = [same_moves(result.machines[kind], truth[kind]) for kind in truth]
    return {
        "steps": f"{result.steps:,}",
        "traces": f"{result.traces:,}",
        "TM": result.transition.states,
        "RM": result.reward.states,
        "noise": f"{result.machines.transition.noise:.4f}",
        "learned": result.refinement.traces,
        "CPU s": round(busy, 1),
        "seconds": round(seconds, 1),
        "GB": round(gigabytes, 2),
        "right": "both" if all(right) else f"{sum(right)} of 2",
    }


def same_moves(found: rs.Machine, truth: rs.Machine) -> bool:
    """Walk both along all labels that the truth can read: states must pair up one to one."""
    queue = [(0, 0)]
    pairs = set(queue)
    for one, other in queue:
        for label in found.labels:
            pair = found.step(one, label), truth.step(other, label)
            if rs.UNSEEN not in pair and pair not in pairs:
                pairs.add(pair)
                queue.append(pair)
    ones, others = zip(*pairs, strict=True)
    return len(pairs) == len(set(ones)) == len(set(others)) == truth.states


if __name__ == "__main__":
    main()
