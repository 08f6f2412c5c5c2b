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
    """The duration of a full run on two cores, what it shows, and its script with arguments."""

    duration: str
    shows: str
    command: str


TABLE = """
Speed and memory
  pipeline | 2 minutes | reading and inference beside json.loads, the ablation table, both engines
  peers | 5 minutes | both machines beside AALpy on the same samples | pipeline.py --part peers
  updates | 1 minute | the cost of one more trace, the first time and the sixtieth
  startup | 20 seconds | import and --help, beside Python alone and NumPy
  wrappers | 1 minute | the cost of a wrapper for each step
  walks | 1 minute | the functions and packages that an inference and a solve pass
  scaling | 1 minute | 1, 10 and 100 million steps from a folder; 200 MB of disk
  scanning | 2 minutes | one Parquet file of 2 GB, beside PyArrow; 2 GB of disk
  billion | 30 minutes | a billion steps in a thousand files; 3 GB of disk | scanning.py --millions 1000 --stages
  workers | 5 minutes | threads, processes and Ray on the same files
Inference
  recovery | 50 minutes | random steps until the true machines are inferred
  mealy | 5 minutes | random Mealy machines of up to 1,000 states, and AALpy | mealy.py --peers
  bank | hours | models of protocols, all strategies and AALpy: docs/bank.md
  criterion | 10 minutes | which of several consistent machines is the true one
  warnings | 15 minutes | wrong machines with a warning, and right ones, from too little data | warned.py
  no_labels | 30 minutes | worlds without labels: the events found, and from how many steps
  foreign | 10 minutes | environments and logs of others: docs/foreign.md | foreign/table.py
Noise
  noise | 10 minutes | how often noisy traces give the true machines
  hidden | 10 minutes | noisy labels where observations do not reveal the state
  noise_peers | 15 minutes | the same traces for ALERGIA, GSM and an input-output HMM
  noise_folder | 30 seconds | ten million noisy steps from a folder | scaling.py --most 10 --slip 0.05
  slip_worlds | 10 minutes | machines in worlds with slipping actions, the value of their plans
  foreign_noise | 10 minutes | stochastic environments of others: docs/foreign-noise.md | foreign/noisy.py
Reinforcement learning
  policy | 10 minutes | Q-learning with and without the machines
  shaping | 30 minutes | counterfactual steps, shaped rewards, online inference; PyTorch
  rivals_search | 10 minutes | hyperparameters of the networks of `rivals`; PyTorch | rivals/search.py
  rivals | 1 hour | LRM, JIRP, recurrent PPO, frame stacking: docs/rivals.md; PyTorch | rivals/run.py
Exploration
  solving | 1 hour | steps until a plan is optimal: docs/solving.md | solving.py -o benchmarks/solving.json
  pomdps | 20 minutes | classic POMDPs: what plans are paid beside the optimum: docs/pomdps.md
  solved_worlds | 30 minutes | memory tasks of other projects: docs/solved-worlds.md
  claims | hours | how often a plan is called optimal and is not, in random worlds
  calibration | 1 hour | values, intervals and claims of `solve` beside what its plans are worth
  rounds | 5 minutes | the cost of a round of exploration after 100,000 steps
Reliability
  small_machines | hours | a million random machines against the laws; resumable
  faults | 30 minutes | commands killed, on full disks, on changing files | faults.py --output benchmarks/faults.json
  interrupts | 30 minutes | Ctrl-C at random moments of long commands | interrupts.py --output benchmarks/interrupts.json
  kills | 8 minutes | Ray nodes, workers and drivers killed during inference
  solve_kills | 10 minutes | `resolvent solve` killed and resumed 50 times
  reliability | 1 second | docs/reliability.md from the counts of the others
"""
"""Each benchmark: name, duration, purpose, and the command if it is not `name.py` alone."""

BENCHMARKS = {
    name: Benchmark(*rest, *([f"{name}.py"] if len(rest) == 2 else []))
    for line in TABLE.splitlines()
    if line.startswith("  ")
    for name, *rest in [line.strip().split(" | ")]
}

SINGLE_THREADED = ("calibration", "claims", "rounds", "small_machines")
"""Benchmarks of many short calls, in which more threads of OpenMP only cost time."""


def listing() -> str:
    """Return the table without the commands."""
    lines = []
    for line in TABLE.strip().splitlines():
        name = line.strip().split(" | ")[0]
        if name in BENCHMARKS:
            benchmark = BENCHMARKS[name]
            lines.append(f"  {name:<15}{benchmark.duration:>11}  {benchmark.shows}")
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
