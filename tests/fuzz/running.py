"""Many inputs, tried in processes of their own under limits; counts and failing inputs are kept."""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from fuzz.targets import Reader, Target, targets
from fuzz.trying import CORPUS, Outcome, attempt, attempt_files, files_of
from resolvent._util.files import atomic_write

TESTS = Path(__file__).parents[1]

SECONDS = 5.0
"""Of processor time, for one input: more is a failure."""

HANGING = 120.0
"""Seconds on the clock after which an input that uses no processor counts as hanging."""

MEMORY = 4 << 30
"""Bytes of address space that a process has."""

SLICE = 1.0
"""Seconds that one target is tried for before the next one has its turn."""

KEPT = 3
"""Failing inputs kept of each place that failed."""


@dataclass
class Counts:
    """What was tried over all runs, by target, and how it ended.

    `tried` says for each seed how many inputs of each target there were, so that a later run
    with the same seed goes on with others. Failures whose inputs no longer fail are `fixed`.
    """

    outcomes: dict[str, dict[str, int]] = field(default_factory=dict)
    tried: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    fixed: dict[str, dict[str, Any]] = field(default_factory=dict)
    cpu_seconds: float = 0.0

    @classmethod
    def read(cls, path: Path) -> "Counts":
        """Read counts, or begin with none."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def write(self, path: Path) -> None:
        """Write counts, whole or not at all."""
        with atomic_write(path) as file:
            file.write((json.dumps(vars(self), indent=1, sort_keys=True) + "\n").encode())

    def try_again(self, fails: Callable[[str], bool]) -> None:
        """Move failures to those that were fixed, if no command that replays one `fails` now."""
        for place, known in list(self.failures.items()):
            if any(map(fails, known["replay"])):
                continue
            self.fixed[place] = self.failures.pop(place)
            outcomes = self.outcomes[place.partition(":")[0]]
            outcomes["failed"] -= known["times"]
            outcomes["fixed"] = outcomes.get("fixed", 0) + known["times"]

    @property
    def inputs(self) -> int:
        """How many inputs there were."""
        return sum(sum(one.values()) for one in self.outcomes.values())

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return sum(one.get("failed", 0) for one in self.outcomes.values())


def limit(memory: int = MEMORY) -> None:
    """Take address space from this process, and no longer wait for a debugger or core file."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def timed(seconds: float) -> None:
    """Let this process be ended when it has used so much more processor time; 0 for never."""
    # The default action of the signal ends the process, whatever it is in the middle of.
    signal.setitimer(signal.ITIMER_PROF, seconds)


def work(names: list[str], seed: int, first: dict[str, int], place: Any, pipe: Any) -> None:
    """Try inputs of all targets in turns, for ever; called in a process of its own.

    What is being tried stands in `place`: the target's number and the input's. Results go
    through `pipe` at the end of each turn.
    """
    known = targets()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_fast_folder()))
    os.chdir(tempfile.mkdtemp(prefix="fuzz-", dir=_fast_folder()))
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 -- until the process ends
    limit()
    while True:
        for which, name in enumerate(names):
            target = known[name]
            counted: Counter[str] = Counter()
            failures: list[tuple[int, str, str]] = []
            timed(30.0)  # what valid inputs are made of is made when it is first needed
            attempt(target, seed, first[name], folder)
            began = time.process_time()
            while time.process_time() - began < SLICE:
                number = first[name]
                first[name] += 1
                place[0], place[1] = which, number
                timed(SECONDS)
                outcome = attempt(target, seed, number, folder)
                counted[outcome.kind] += 1
                if outcome.kind == "failed":
                    failures.append((number, outcome.where, outcome.text))
                    if len(failures) > 200:
                        break
            timed(0)
            pipe.send((name, first[name], dict(counted), failures, time.process_time() - began))


def _fast_folder() -> str | None:
    """Return a folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


class Worker:
    """A process that tries inputs, begun again whenever an input ends it."""

    def __init__(self, names: list[str], seed: int, counts: Counts, output: Path) -> None:
        self.names, self.seed, self.counts, self.output = names, seed, counts, output
        self.context = multiprocessing.get_context("spawn")
        self.first = {name: counts.tried.get(str(seed), {}).get(name, 0) for name in names}
        self.begin()

    def begin(self) -> None:
        """Begin a process where the last one stopped."""
        self.place = self.context.Array("q", [0, -1], lock=False)
        self.pipe, theirs = self.context.Pipe(duplex=False)
        given = (self.names, self.seed, dict(self.first), self.place, theirs)
        self.process = self.context.Process(target=work, args=given, daemon=True)
        self.process.start()
        theirs.close()
        self.seen, self.since = (0, -1), time.monotonic()

    def look(self) -> None:
        """Take in what the process found, and notice an input that ended or stopped it."""
        try:
            while self.pipe.poll(0.05):
                self.take(*self.pipe.recv())
        except (EOFError, OSError):
            self.process.join(10)
        now = (self.place[0], self.place[1])
        if now != self.seen:
            self.seen, self.since = now, time.monotonic()
        if self.process.is_alive() and time.monotonic() - self.since > HANGING:
            self.process.kill()
            self.process.join()
        if not self.process.is_alive():
            self.lost(now)
            self.begin()

    def lost(self, place: tuple[int, int]) -> None:
        """Count an input that ended its process; those before it in its turn are tried again."""
        name, number = self.names[place[0]], place[1]
        code = self.process.exitcode or 0
        if number < 0:
            raise SystemExit(f"a process of the fuzzer ended at once, with code {code}")
        why = {
            -signal.SIGPROF: f"takes more than {SECONDS:g} s",
            -signal.SIGKILL: "hangs, or was killed",
        }.get(code, f"ends the process with code {code}")
        self.take(name, number + 1, {"failed": 1}, [(number, f"{name} {why}", why)], 0.0)

    def take(
        self,
        name: str,
        first: int,
        counted: dict[str, int],
        failures: list[tuple[int, str, str]],
        seconds: float,
    ) -> None:
        """Add what one turn came to."""
        self.first[name] = first
        self.counts.tried.setdefault(str(self.seed), {})[name] = first
        outcomes = self.counts.outcomes.setdefault(name, {})
        for kind, times in counted.items():
            outcomes[kind] = outcomes.get(kind, 0) + times
        self.counts.cpu_seconds = round(self.counts.cpu_seconds + seconds, 1)
        for number, where, text in failures:
            known = self.counts.failures.setdefault(f"{name}: {where}", {"times": 0, "replay": []})
            known["times"] += 1
            if len(known["replay"]) < KEPT:
                known["replay"].append(replay_command(name, self.seed, number))
                keep(self.output, name, self.seed, number, text)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


def replay_command(name: str, seed: int, number: int) -> str:
    """Return the command that tries one input again."""
    return f"PYTHONPATH=tests python -m fuzz --target {name} --seed {seed} --number {number}"


def fails_again(replay: str) -> bool:
    """Try an input again in a process of its own; say whether it fails."""
    _, _, arguments = replay.partition(" -m fuzz ")
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "fuzz", *arguments.split()]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return done.returncode != 0


def keep(output: Path, name: str, seed: int, number: int, text: str) -> None:
    """Write a failing input, what it did, and how to try it again."""
    folder = output / f"{name}-{seed}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    target = targets()[name]
    if isinstance(target, Reader):
        for file, content in files_of(target, seed, number).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
    (folder / "what-happened.txt").write_text(
        f"{replay_command(name, seed, number)}\n\n{text}\n", encoding="utf-8", errors="replace"
    )


def few(names: list[str], seed: int, inputs: int, *, limited: bool = True) -> Counts:
    """Try so many inputs of each target in this process, and all files of the corpus first."""
    known, counts = targets(), Counts()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_fast_folder()))
    elsewhere = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_fast_folder()))
    os.chdir(elsewhere)
    if limited:
        limit()
    try:
        for name in names:
            kept = _tried_again(known[name], folder)
            timed(30.0 if limited else 0.0)
            outcomes = (attempt(known[name], seed, number, folder) for number in range(inputs))
            for number, outcome in enumerate(chain(kept, outcomes), -len(kept)):
                timed(SECONDS if limited else 0.0)
                told = counts.outcomes.setdefault(name, {})
                told[outcome.kind] = told.get(outcome.kind, 0) + 1
                if outcome.kind == "failed":
                    known_of = {"times": 1, "replay": [replay_command(name, seed, number)]}
                    counts.failures[f"{name}: {outcome.where}: {outcome.text[-400:]}"] = known_of
    finally:
        timed(0)
        shutil.rmtree(folder)
        shutil.rmtree(elsewhere)
    counts.cpu_seconds = round(time.process_time(), 1)
    return counts


def _tried_again(target: Target, folder: Path) -> list[Outcome]:
    """Try the files of the corpus that are for a reader: a folder of files for each input."""
    if not isinstance(target, Reader):
        return []
    found = []
    for place in sorted((CORPUS / target.name).glob("*")):
        files = {
            str(one.relative_to(place)): one.read_bytes()
            for one in sorted(place.rglob("*"))
            if one.is_file()
        }
        timed(30.0)
        found.append(attempt_files(target, files, folder))
    return found


def run(
    names: list[str], seed: int, seconds: float, processes: int, path: Path, output: Path
) -> Counts:
    """Try inputs for so many seconds, in so many processes with seeds of their own.

    What failed in earlier runs is tried again first.
    """
    counts = Counts.read(path)
    counts.try_again(fails_again)
    began = kept = time.monotonic()
    # Processes share no inputs: each has every so many of the seeds.
    workers = [Worker(names, seed * processes + one, counts, output) for one in range(processes)]
    try:
        while time.monotonic() - began < seconds:
            for worker in workers:
                worker.look()
            if time.monotonic() - kept > 15:
                kept = time.monotonic()
                counts.write(path)
    finally:
        for worker in workers:
            worker.end()
        counts.write(path)
    return counts
