"""Traces in a Parquet folder larger than memory, exact or with slipping actions.

Writes folders of 1, 10 and 100 million random steps in a 25×25 world, a million steps a file, and
infers both machines from each in a process of its own: seconds and peak memory. With `--slip`,
that share of the actions slips; the machines are then compared with the true ones.
"""

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import gymnasium as gym
from large_logs import MILLION, measured

import resolvent as rs
from noise import Kind, noisy, whole_traces

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from worlds import random_world

WORLD_SEED, NOISY_WORLD_SEED = 28, 0
MEAN_LENGTH = 235

INFER = """
result = resolvent.infer(resolvent.scan_traces(source))
steps, states = result.steps, [machine.states for machine in result.machines.values()]
more = {"traces": result.traces, "rounds": result.refinement.rounds,
        "learned": result.refinement.traces}
result.machines.save(sys.argv[2])
"""
HEADER = ("steps", "traces", "TM/RM", "rounds", "learned", "CPU s", "seconds", "s/million", "GB")


def main() -> None:
    """Measure each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=100, help="millions of steps at most")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those there")
    parser.add_argument("--slip", type=float, default=0.0, help="the share of actions that slip")
    options = parser.parse_args()
    sizes = [size for size in (1, 10, 100) if size <= options.most]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        started = time.perf_counter()
        write(folder / "all", max(sizes), options.slip)
        print(f"{max(sizes)} million steps written in {time.perf_counter() - started:.0f} s\n")
        header = (*HEADER, "noise", "right") if options.slip else HEADER
        print("".join(f"{name:>13}" for name in header))
        for size in sizes:
            machines = folder / f"machines-{size}.json"
            figures = measured(INFER, "sys.argv[1]", str(linked(folder, size)), str(machines))
            row = [
                f"{figures['steps']:,}",
                f"{figures['traces']:,}",
                "/".join(map(str, figures["states"])),
                figures["rounds"],
                figures["learned"],
                f"{figures['cpu']:.2f}",
                f"{figures['seconds']:.2f}",
                f"{figures['seconds'] / figures['steps'] * 1e6:.3f}",
                f"{figures['gigabytes']:.2f}",
            ]
            if options.slip:
                row += [f"{rs.load(machines).transition.noise:.4f}", correct(rs.load(machines))]
            print("".join(f"{cell!s:>13}" for cell in row), flush=True)


def write(folder: Path, millions: int, slip: float = 0.0) -> None:
    """Write files of a million steps each, unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    if slip:
        env = gym.make("resolvent/RandomWorld-v0", world_seed=NOISY_WORLD_SEED)
        kind = Kind(MILLION, slip=slip)
    else:
        rollouts = partial(random_world(WORLD_SEED).rollouts, MILLION // MEAN_LENGTH)
    for number in range(millions):
        file = folder / f"part-{number:03}.parquet"
        if file.exists():
            continue
        if slip:
            noisy(whole_traces(env, MILLION, MILLION * number), kind, number).save(file)
        else:
            rollouts(seed=number).save(file)


def linked(folder: Path, size: int) -> Path:
    """Return a folder with the first files only."""
    part = folder / f"first-{size}"
    part.mkdir(exist_ok=True)
    for file in sorted((folder / "all").glob("*.parquet"))[:size]:
        target = part / file.name
        if not target.exists():
            target.hardlink_to(file)
    return part


def correct(machines: rs.Machines) -> str:
    """Return how many of the machines have the transitions of the true ones."""
    env = gym.make("resolvent/RandomWorld-v0", world_seed=NOISY_WORLD_SEED)
    truth = env.unwrapped.machines()
    correct = [have_same_transitions(machines[name], truth[name]) for name in truth]
    return "both" if all(correct) else f"{sum(correct)} of 2"


def have_same_transitions(machine: rs.Machine, truth: rs.Machine) -> bool:
    """Walk both along all labels that the true machine reads: states must pair up one to one."""
    queue = [(0, 0)]
    pairs = set(queue)
    for state, true_state in queue:
        for label in machine.labels:
            pair = machine.step(state, label), truth.step(true_state, label)
            if rs.UNSEEN not in pair and pair not in pairs:
                pairs.add(pair)
                queue.append(pair)
    states, true_states = zip(*pairs, strict=True)
    return len(pairs) == len(set(states)) == len(set(true_states)) == truth.states


if __name__ == "__main__":
    main()
