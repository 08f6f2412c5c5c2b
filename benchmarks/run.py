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
    """A script with the arguments of a full run, its duration on two cores, and what it shows."""

    command: str
    duration: str
    shows: str


TABLE = """
Speed and memory
  pipeline | pipeline.py | 2 minutes | reading and inference beside json.loads, the paper's ablation, native beside Python
  peers | pipeline.py --part peers | 5 minutes | both machines beside AALpy on the same samples
  updates | updates.py | 1 minute | the cost of one more trace, the first time and the sixtieth
  startup | startup.py | 20 seconds | import and --help, beside Python alone and NumPy
  wrappers | wrappers.py | 1 minute | the cost of a wrapper for each step
  walks | walks.py | 1 minute | the functions and packages that an inference and a solve pass
  scaling | scaling.py | 1 minute | 1, 10 and 100 million steps from a folder; 200 MB of disk
  scanning | scanning.py | 2 minutes | one Parquet file of 2 GB, beside PyArrow; 2 GB of disk
  billion | billion.py --stages | 30 minutes | a billion steps in a thousand files; 3 GB of disk
  workers | workers.py | 5 minutes | threads, processes and Ray on the same files
  cluster_costs | cluster_costs.py | 10 minutes | a cost model of passes over traces: predicted, measured, projected to clusters
  report | report.py | 2 minutes | a report of 300 states and 100,000 traces in a browser
Inference
  recovery | recovery.py --output benchmarks/recovery.json | 50 minutes | random steps until the true machines are inferred, by strategy
  mealy | mealy.py --peers | 5 minutes | random Mealy machines of up to 1,000 states, and AALpy
  bank | bank.py | hours | models of protocols, all strategies and AALpy: docs/bank.md
  criterion | criterion.py | 10 minutes | the shortest or the smallest of several consistent machines: the true one?
  no_labels | no_labels.py | 30 minutes | worlds without labels: the events found, and from how many steps
  foreign | foreign/table.py | 10 minutes | environments and logs of other projects: docs/foreign.md
Noise
  noise | noise.py | 10 minutes | how often noisy traces give the true machines
  hidden | hidden.py | 10 minutes | noisy labels where observations do not reveal the state
  noise_peers | noise_peers.py | 15 minutes | the same traces for ALERGIA, GSM and an input-output HMM
  noise_folder | scaling.py --most 10 --slip 0.05 | 30 seconds | ten million noisy steps from a folder; 25 MB of disk
  slip_worlds | slip_worlds.py | 10 minutes | machines in worlds with slipping actions, and the true value of plans
  foreign_noise | foreign/noisy.py | 10 minutes | stochastic environments of other projects: docs/foreign-noise.md
Reinforcement learning
  policy | policy.py | 10 minutes | Q-learning with and without the machines
  shaping | shaping.py | 30 minutes | counterfactual experience, shaped rewards and online inference; needs PyTorch
  rivals_search | rivals/search.py | 10 minutes | hyperparameters of the networks of `rivals`; needs PyTorch
  rivals | rivals/run.py | 1 hour | LRM, JIRP, recurrent PPO and frame stacking: docs/rivals.md; needs PyTorch
Exploration
  solving | solving.py -o benchmarks/solving.json | 1 hour | steps until a plan is optimal, beside random exploration: docs/solving.md
  solved_worlds | solved_worlds.py | 30 minutes | memory tasks of other projects: docs/solved-worlds.md
  claims | claims.py | hours | how often a plan is called optimal and is not, in random worlds
  rounds | rounds.py | 5 minutes | the cost of a round of exploration after 100,000 steps
Reliability
  small_machines | small_machines.py | hours | a million random machines against the laws; resumable
  faults | faults.py --output benchmarks/faults.json | 30 minutes | commands killed, on full disks, on changing files, two at the same time
  interrupts | interrupts.py --output benchmarks/interrupts.json | 30 minutes | Ctrl-C at random moments of every long command
  kills | kills.py | 8 minutes | Ray nodes, workers and drivers killed during inference
  solve_kills | solve_kills.py | 10 minutes | `resolvent solve` killed and resumed 50 times
  reliability | reliability.py | 1 second | docs/reliability.md from the counts of the others
"""
"""Each benchmark: name, command, duration, purpose; indented below the title of its group."""

BENCHMARKS = {
    name: Benchmark(*rest)
    for line in TABLE.splitlines()
    if line.startswith("  ")
    for name, *rest in [line.strip().split(" | ")]
}

SINGLE_THREADED = ("claims", "rounds", "small_machines")
"""Benchmarks of many short calls, in which more threads of OpenMP only cost time."""


def listing() -> str:
    """Return the table without the commands."""
    lines = []
    for line in TABLE.strip().splitlines():
        name = line.strip().split(" | ")[0]
        if name in BENCHMARKS:
            _, duration, shows = BENCHMARKS[name]
            lines.append(f"  {name:<15}{duration:>11}  {shows}")
        else:
            lines += ["", line]
    return "\n".join(lines[1:])


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
