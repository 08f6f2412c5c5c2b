"""`resolvent solve` is killed at random moments and resumed: the files are the same bytes.

Each trial solves a world in a process of its own, which gets SIGKILL after a random share of the
CPU time of a whole solve, up to three times; the next process resumes from the folder if it has a
checkpoint. In the end machines, traces and policy are compared with those of an undisturbed solve,
byte by byte.
"""

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from resolvent import Solution

WORLDS = {
    "House": ("resolvent/House-v0",),
    "TMaze": ("resolvent/TMaze-v0", "--set", "length=30"),
    "PhaseGrid3": ("resolvent/PhaseGrid3-v0",),
}

COUNTS = Path(__file__).with_name("solve_kills.json")
"""Of the last run; `make benchmark NAME=reliability` shows them."""

FILES = ("machines.json", "traces.jsonl", "policy.json")
MOST_KILLS = 3


@dataclass
class Trial:
    """One solve with kills, and what came of it."""

    world: str
    kills: int = 0
    resumes: int = 0
    same: bool = False
    leftovers: list[str] = field(default_factory=list)


def solve(world: str, folder: Path, seed: int) -> subprocess.Popen[bytes]:
    """Begin to solve a world in a process of its own, from what the folder holds, if anything."""
    command = [sys.executable, "-m", "resolvent", "solve", *WORLDS[world], "--seed", str(seed)]
    command += ["-o", str(folder), "--json"]
    if any(folder.parent.glob(f".{folder.name}.*.old")) or (folder / "solved.json").exists():
        command.append("--resume")
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a process once it has used so much time; return whether it was still at work."""
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            used = sum(watched.cpu_times()[:2])
        except psutil.Error:
            break
        if used >= seconds:
            process.kill()
            break
        time.sleep(0.002)
    process.communicate()
    return process.returncode == -9


def whole(world: str, seed: int, folder: Path) -> tuple[list[str], float]:
    """Solve a world without a kill; return what it wrote, and how much time it used."""
    before = psutil.Process().cpu_times()
    _finish(solve(world, folder, seed))
    after = psutil.Process().cpu_times()
    used = after.children_user + after.children_system
    return digests(folder), used - before.children_user - before.children_system


def digests(folder: Path) -> list[str]:
    """Return a digest of each file that has to be the same."""
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES]


def _finish(process: subprocess.Popen[bytes]) -> None:
    _, stderr = process.communicate()
    if process.returncode:
        raise RuntimeError(f"solve ended with {process.returncode}: {stderr.decode()[-2000:]}")


def trial(world: str, seed: int, draw: random.Random, wanted: list[str], used: float) -> Trial:
    """Solve a world with kills, and compare."""
    done = Trial(world)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "solved"
        for _ in range(draw.randint(1, MOST_KILLS)):
            # Most of a short solve goes into imports, where a kill shows little.
            if kill_after(solve(world, folder, seed), used * draw.uniform(0.5, 1.0)):
                done.kills += 1
            done.resumes += (folder / "solved.json").exists()
        if not (folder / "solved.json").exists() or _is_open(folder):
            _finish(solve(world, folder, seed))
        done.same = digests(folder) == wanted
        Solution.load(folder)  # whoever reads it next removes what a kill at the last moment left
        done.leftovers = [path.name for path in Path(place).iterdir() if path != folder]
    return done


def _is_open(folder: Path) -> bool:
    """Whether a killed process wrote last."""
    solution = json.loads((folder / "solved.json").read_bytes())
    return solution["guarantee"]["reason"] == "interrupted"


def main() -> int:
    """Run all trials, and say how many ended as they should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solves", type=int, default=50)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=COUNTS, help="where to keep the counts")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    wanted: dict[tuple[str, int], tuple[list[str], float]] = {}
    trials = []
    for number in range(options.solves):
        world = options.worlds[number % len(options.worlds)]
        case = world, options.seed + number // len(options.worlds) % 2
        if case not in wanted:
            with tempfile.TemporaryDirectory() as place:
                wanted[case] = whole(*case, Path(place) / "whole")
        trials.append(trial(*case, draw, *wanted[case]))
        trial_done = trials[-1]
        print(
            f"{number + 1:3} {world:12} seed {case[1]}: {trial_done.kills} kills, {trial_done.resumes} resumes, "
            f"{'the same' if trial_done.same else 'NOT THE SAME'}"
            f"{', left behind: ' + ', '.join(trial_done.leftovers) if trial_done.leftovers else ''}",
            flush=True,
        )
    counts = {
        "solves": len(trials),
        "same": sum(trial_done.same for trial_done in trials),
        "kills": sum(trial_done.kills for trial_done in trials),
        "resumes": sum(trial_done.resumes for trial_done in trials),
        "leftovers": sum(len(trial_done.leftovers) for trial_done in trials),
    }
    options.output.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    print(
        f"{counts['same']} of {counts['solves']} solves with {counts['kills']} kills and "
        f"{counts['resumes']} resumes ended in the same bytes"
    )
    return 0 if counts["same"] == counts["solves"] and not counts["leftovers"] else 1


if __name__ == "__main__":
    sys.exit(main())
