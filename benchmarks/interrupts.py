"""Ctrl-C at any moment in the life of every command that takes time.

`faults.py` forks a process that has imported everything; here each command is started as users
start it. So the signal also comes while Python starts, while modules are imported, and while
Python shuts down. The counts are printed, and kept as JSON.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fault_trials import content_of, parts_in, processor_seconds

WORLD = "resolvent/RandomWorld-v0"
LONG = (
    f"collect {WORLD} -n 100000 -o out.jsonl",
    "infer long.jsonl --set held_out=0 --engine python --keep-redundant --no-supplement -o out.json",
    "infer long.jsonl --strategy search --set effort=50 -o out.json",
    "infer long.jsonl --strategy exact -o out.json",
    "infer long.jsonl --labels auto -o out.json",
    "infer long.parquet -o out.json",
    "check long.json long.parquet --evidence",
    "report long.json long.jsonl -o out.html",
    "diagnose long.jsonl",
    "convert long.jsonl out.jsonl.gz",
    "plan long.json long.jsonl -o out.json",
    f"train {WORLD} -n 1000000 --max-steps 500 -o out.json",
    f"train {WORLD} -n 100000 --max-steps 500 --engine python -o out.json",
    f"solve {WORLD} --budget 1000000 -o out",
    "reproduce ablation --quick -o out",
    "demo",
)
"""Commands that take seconds."""

SHORT = (
    "show long.json -o out.txt",
    "show long.json --format svg --machine transition -o out.svg",
    "check long.json long.jsonl",
    "convert long.jsonl out.parquet",
    "infer long.jsonl --set held_out=0 -o out.json",
    "doctor",
    "--help",
)
"""Commands that end soon."""

COMMANDS = (*LONG, *SHORT)

LONGEST = 6.0
"""Seconds of a command's life within which the signal comes."""

EARLY = 0.3
"""The share of signals that come while a command begins."""

BEGINNING = 0.4
"""Seconds that this takes."""


@dataclass
class Counts:
    """What became of commands, and what of it was wrong."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        waits = sorted(self.seconds)
        return {
            "interrupts": sum(self.outcomes.values()),
            "commands": len(COMMANDS),
            "outcomes": dict(sorted(self.outcomes.items())),
            "median_seconds": round(waits[len(waits) // 2], 3) if waits else None,
            "slowest_to_end": {name: round(took, 3) for name, took in self.slowest.items()},
            "wrong": self.wrong,
        }


def started(words: Sequence[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start a command as a terminal does: with Ctrl-C not ignored, in a group of its own."""
    resolvent = Path(sys.executable).with_name("resolvent")
    with (folder / ".stdout").open("wb") as out, (folder / ".stderr").open("wb") as err:
        return subprocess.Popen(
            [resolvent, *words],
            cwd=folder,
            stdout=out,
            stderr=err,
            start_new_session=True,
            restore_signals=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )


def outcome_of(code: int, stderr: str) -> str:
    """Say in a few words how a command ended.

    Before a line of this package has been run, it is up to Python: the signal ends it, or a
    `KeyboardInterrupt` does, also while it sets itself up, which it calls a fatal error.
    """
    if code == 130 and stderr.endswith("resolvent: interrupted\n") and "Traceback" not in stderr:
        return "said so in a line, exit code 130"
    if code == 0 and "Traceback" not in stderr:
        return "done before"
    if code == -signal.SIGINT and not stderr:
        return "ended by the signal before Python was there"
    modules = set(re.findall(r"/resolvent/([^\"]+)\"", stderr))
    starting = code == -signal.SIGINT or stderr.startswith("Fatal Python error: init")
    if (
        starting
        and "KeyboardInterrupt" in stderr
        and modules <= {"__init__.py", "_util/startup.py"}
    ):
        return "ended by Python before this package could hear it"
    return f"wrong: exit code {code}"


class Trials:
    """All commands in turn, each interrupted at a random moment."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw, self.counts = folder, random.Random(seed), Counts()
        for words in (
            f"collect {WORLD} -n 1500 --max-steps 300 -o long.jsonl",
            "convert long.jsonl long.parquet",
            "infer long.jsonl --set held_out=0 -o long.json",
        ):
            assert started(words.split(), folder).wait() == 0, words
        self.before = content_of(folder)
        self.life = dict.fromkeys(COMMANDS, LONGEST)

    def run(self, most: int, seconds: float) -> None:
        """Interrupt so many commands, or as many as there is time for."""
        started = time.monotonic()
        for number in range(most):
            if time.monotonic() - started < seconds:
                self._interrupt(COMMANDS[number % len(COMMANDS)])

    def _interrupt(self, words: str) -> None:
        began = time.monotonic()
        command = started(words.split(), self.folder)
        early = self.draw.random() < EARLY
        time.sleep(self.draw.uniform(0, BEGINNING if early else self.life[words]))
        if command.poll() is not None:  # later it would be done as well
            self.life[words] = min(self.life[words], time.monotonic() - began)
        used = processor_seconds(command.pid)
        sent = time.monotonic()
        with suppress(ProcessLookupError):
            os.kill(command.pid, signal.SIGINT)
        if command.returncode is None:
            _, status, usage = os.wait4(command.pid, 0)
            command.returncode = os.waitstatus_to_exitcode(status)
            took = usage.ru_utime + usage.ru_stime - used
        else:
            took = 0.0
        waited = time.monotonic() - sent
        with suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
        self._record(words, command.returncode, took, waited)

    def _record(self, words: str, code: int, took: float, waited: float) -> None:
        counts, stderr = self.counts, (self.folder / ".stderr").read_text()
        outcome = outcome_of(code, stderr)
        counts.outcomes[outcome] += 1
        after = content_of(self.folder)
        wrong = [outcome] if outcome.startswith("wrong") else []
        if code == 130:
            counts.seconds.append(waited)
            counts.slowest[words] = max(counts.slowest.get(words, 0.0), took)
            new = [name for name in after if name not in self.before]
            going_on = words.split()[0] in ("solve", "reproduce")  # what they have is kept
            if new and not going_on and not self._is_whole(after, new):
                wrong.append(f"{', '.join(new)} is there, and not whole")
        if any(after.get(name) != content for name, content in self.before.items()):
            wrong.append("what is only read has changed")
        if parts_in(self.folder) and words.split()[0] != "reproduce":
            wrong.append("a hidden part is left")
        for problem in wrong:
            text = f"{words}: {problem}: {stderr[-600:]}"
            print(text, file=sys.stderr, flush=True)
            counts.wrong.append(text)
        self._tidy(after)

    @staticmethod
    def _is_whole(after: dict[str, bytes], new: list[str]) -> bool:
        """Whether files that a command had just written end as they should."""
        ends = {".json": b"}\n", ".jsonl": b"}\n", ".html": b"</html>\n", ".parquet": b"PAR1"}
        return all(after[name].endswith(ends.get(Path(name).suffix, b"")) for name in new)

    def _tidy(self, after: dict[str, bytes]) -> None:
        for name in {Path(name).parts[0] for name in after} - {*self.before}:
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for part in parts_in(self.folder):
            part.unlink()


def main() -> None:
    """Interrupt commands, print the counts, and fail if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=460)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where to keep the counts, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="resolvent-interrupts-") as folder:
        trials = Trials(Path(folder), options.seed)
        trials.run(options.interrupts, options.seconds)
    counts = json.dumps(trials.counts.as_dict(), indent=1)
    print(counts)
    if options.output is not None:
        options.output.write_text(counts + "\n")
    if trials.counts.wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
