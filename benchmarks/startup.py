"""The time of `import resolvent` and `resolvent --help`, beside Python alone and NumPy.

Each is a process of its own, run in turns; the figures are the least CPU seconds of all runs, and
their ratios to `python -c pass` and `import numpy`. The exit code is 1 if a bar is missed.
"""

import argparse
import os
import subprocess
import sys
from resource import RUSAGE_CHILDREN, getrusage

HELP = "from resolvent.cli import main; main(['--help'])"
PROCESSES = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    "import gymnasium": "import gymnasium",
    "import resolvent": "import resolvent",
    "resolvent --help": HELP,
    "resolvent infer --help": "from resolvent.cli import main; main(['infer', '--help'])",
    "from resolvent import infer": "from resolvent import infer",
    "all public names": "from resolvent import *",
}
BARS = {"import resolvent": 0.3, "resolvent --help": 0.15}  # seconds on an idle machine


def seconds(code: str) -> float:
    """Return how much processor time a fresh Python takes that runs this code."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="how often each is run")
    runs = parser.parse_args().runs
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages are compiled
    for code in PROCESSES.values():
        seconds(code)
    turns = [{name: seconds(code) for name, code in PROCESSES.items()} for _ in range(runs)]
    least = {name: min(turn[name] for turn in turns) for name in PROCESSES}
    python, numpy = least["python -c pass"], least["import numpy"]
    print(f"{'':<28} {'seconds':>8} {'× python':>9} {'× numpy':>8} {'bar':>6}")
    for name, seconds_used in least.items():
        bar = f"{BARS[name]:g}" if name in BARS else ""
        ratios = f"{seconds_used / python:>9.1f} {seconds_used / numpy:>8.2f}"
        print(f"{name:<28} {seconds_used:>8.3f} {ratios} {bar:>6}")
    missed = [name for name, bar in BARS.items() if least[name] > bar]
    for name in missed:
        print(f"{name} takes longer than {BARS[name]:g} s")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
