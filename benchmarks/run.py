"""List the benchmarks, run one by its name, or compare this checkout with another one.

`make benchmarks` lists them; `make benchmark NAME=solving ARGS="--budget 5000"` runs one.
`--against PATH` runs it alternately here and in another checkout, and prints the ratios.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Benchmark(NamedTuple):
    """A script with the arguments of a full run, its purpose, and the duration on two cores."""

    command: str
    shows: str
    duration: str


GROUPS: dict[str, dict[str, Benchmark]] = {
    "Speed and memory": {
        "pipeline": Benchmark(
            "pipeline.py",
            "reading and inference beside json.loads, the paper's ablation, native beside Python",
            "2 minutes",
        ),
        "peers": Benchmark(
            "pipeline.py --part peers",
            "both machines beside AALpy on the same samples",
            "5 minutes",
        ),
        "updates": Benchmark(
            "updates.py", "the cost of one more trace, the first time and the sixtieth", "1 minute"
        ),
        "startup": Benchmark(
            "startup.py", "import and --help, beside Python alone and NumPy", "20 seconds"
        ),
        "wrappers": Benchmark("wrappers.py", "the cost of a wrapper for each step", "1 minute"),
        "walks": Benchmark(
            "walks.py", "the functions and packages that an inference and a solve pass", "1 minute"
        ),
        "scaling": Benchmark(
            "scaling.py", "1, 10 and 100 million steps from a folder; 200 MB of disk", "1 minute"
        ),
        "scanning": Benchmark(
            "scanning.py", "one Parquet file of 2 GB, beside PyArrow; 2 GB of disk", "2 minutes"
        ),
        "billion": Benchmark(
            "billion.py --stages", "a billion steps in a thousand files; 3 GB of disk", "30 minutes"
        ),
        "workers": Benchmark(
            "workers.py", "threads, processes and Ray on the same files", "5 minutes"
        ),
        "cluster_costs": Benchmark(
            "cluster_costs.py",
            "a cost model of passes over traces: predicted, measured, projected to clusters",
            "10 minutes",
        ),
        "report": Benchmark(
            "report.py", "a report of 300 states and 100,000 traces in a browser", "2 minutes"
        ),
    },
    "Inference": {
        "recovery": Benchmark(
            "recovery.py --output benchmarks/recovery.json",
            "random steps until the true machines are inferred, by strategy",
            "50 minutes",
        ),
        "mealy": Benchmark(
            "mealy.py --peers",
            "random Mealy machines of up to 1,000 states, and AALpy",
            "5 minutes",
        ),
        "bank": Benchmark(
            "bank.py", "models of protocols, all strategies and AALpy: docs/bank.md", "hours"
        ),
        "criterion": Benchmark(
            "criterion.py",
            "the shortest or the smallest of several consistent machines: the true one?",
            "10 minutes",
        ),
        "no_labels": Benchmark(
            "no_labels.py",
            "worlds without labels: the events found, and from how many steps",
            "30 minutes",
        ),
        "foreign": Benchmark(
            "foreign/table.py",
            "environments and logs of other projects: docs/foreign.md",
            "10 minutes",
        ),
    },
    "Noise": {
        "noise": Benchmark(
            "noise.py", "how often noisy traces give the true machines", "10 minutes"
        ),
        "hidden": Benchmark(
            "hidden.py", "noisy labels where observations do not reveal the state", "10 minutes"
        ),
        "noise_peers": Benchmark(
            "noise_peers.py",
            "the same traces for ALERGIA, GSM and an input-output HMM",
            "15 minutes",
        ),
        "noise_folder": Benchmark(
            "scaling.py --most 10 --slip 0.05",
            "ten million noisy steps from a folder; 25 MB of disk",
            "30 seconds",
        ),
        "slip_worlds": Benchmark(
            "slip_worlds.py",
            "machines in worlds with slipping actions, and the true value of plans",
            "10 minutes",
        ),
        "foreign_noise": Benchmark(
            "foreign/noisy.py",
            "stochastic environments of other projects: docs/foreign-noise.md",
            "10 minutes",
        ),
    },
    "Reinforcement learning": {
        "policy": Benchmark("policy.py", "Q-learning with and without the machines", "10 minutes"),
        "shaping": Benchmark(
            "shaping.py",
            "counterfactual experience, shaped rewards and online inference; needs PyTorch",
            "30 minutes",
        ),
        "rivals_search": Benchmark(
            "rivals/search.py",
            "hyperparameters of the networks of `rivals`; needs PyTorch",
            "10 minutes",
        ),
        "rivals": Benchmark(
            "rivals/run.py",
            "LRM, JIRP, recurrent PPO and frame stacking: docs/rivals.md; needs PyTorch",
            "1 hour",
        ),
    },
    "Exploration": {
        "solving": Benchmark(
            "solving.py -o benchmarks/solving.json",
            "steps until a plan is optimal, beside random exploration: docs/solving.md",
            "1 hour",
        ),
        "solved_worlds": Benchmark(
            "solved_worlds.py",
            "memory tasks of other projects: docs/solved-worlds.md",
            "30 minutes",
        ),
        "claims": Benchmark(
            "claims.py", "how often a plan is called optimal and is not, in random worlds", "hours"
        ),
        "rounds": Benchmark(
            "rounds.py", "the cost of a round of exploration after 100,000 steps", "5 minutes"
        ),
    },
    "Reliability": {
        "small_machines": Benchmark(
            "small_machines.py", "a million random machines against the laws; resumable", "hours"
        ),
        "faults": Benchmark(
            "faults.py --output benchmarks/faults.json",
            "commands killed, on full disks, on changing files, two at the same time",
            "30 minutes",
        ),
        "interrupts": Benchmark(
            "interrupts.py --output benchmarks/interrupts.json",
            "Ctrl-C at random moments of every long command",
            "30 minutes",
        ),
        "kills": Benchmark(
            "kills.py", "Ray nodes, workers and drivers killed during inference", "8 minutes"
        ),
        "solve_kills": Benchmark(
            "solve_kills.py", "`resolvent solve` killed and resumed 50 times", "10 minutes"
        ),
        "reliability": Benchmark(
            "reliability.py", "docs/reliability.md from the counts of the others", "1 second"
        ),
    },
}
BENCHMARKS = {name: one for group in GROUPS.values() for name, one in group.items()}

SINGLE_THREADED = ("claims", "rounds", "small_machines")
"""Benchmarks of many short calls, in which more threads of OpenMP only cost time."""


def listing() -> str:
    """Return the table of all benchmarks."""
    lines = []
    for title, group in GROUPS.items():
        lines += [f"\n{title}"]
        lines += [f"  {name:<15}{one.duration:>11}  {one.shows}" for name, one in group.items()]
    return "\n".join(lines[0].split("\n")[1:] + lines[1:])


def command_of(name: str, arguments: list[str]) -> list[str]:
    """Return the script and its arguments, by default those of a full run."""
    script, *usual = BENCHMARKS[name].command.split()
    return [script, *(arguments or usual)]


def main() -> int:
    """List the benchmarks, run one, or compare two checkouts."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, metavar="NAME")
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout, with .venv")
    parser.add_argument("--rounds", type=int, default=5, help="runs in each checkout")
    options, arguments = parser.parse_known_args()
    if options.name is None:
        print(listing())
        return 0
    if options.name in SINGLE_THREADED:
        os.environ["OMP_NUM_THREADS"] = "1"
    script, *arguments = command_of(options.name, arguments)
    if options.against is not None:
        from against import compare

        return compare(script, arguments, HERE.parent, options.against.resolve(), options.rounds)
    return subprocess.run([sys.executable, HERE / script, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
