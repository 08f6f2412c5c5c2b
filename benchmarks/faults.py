"""Commands that write, killed at random moments, on full disks and at the same time.

Every command that writes runs in a process of its own, over files of an earlier run. After each
fault all files are checked: inputs must be unchanged, outputs must be completely old or completely
new. The counts are printed, and kept as JSON.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fault_trials import (
    COMMANDS,
    HOUSE,
    RESUMED,
    Command,
    Trial,
    content_of,
    ended,
    parts_in,
    small_disk,
    trial,
)

PAGE = 4096
"""Bytes that a disk of memory gives out at once."""

AT_THE_WRITE = 0.6
"""This share of kills waits until a file is being written, the others come at any moment."""


@dataclass
class Counts:
    """What was tried, how often, and what came of it."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, fault: str, outcome: str) -> None:
        self.outcomes.setdefault(fault, Counter())[outcome] += 1

    def found_wrong(self, text: str) -> None:
        """Keep what is wrong, and say it at once: all of it may take an hour."""
        print(text, file=sys.stderr, flush=True)
        self.wrong.append(text)

    def as_dict(self) -> dict[str, object]:
        totals = {fault: sum(counter.values()) for fault, counter in self.outcomes.items()}
        kinds = {fault: dict(sorted(counter.items())) for fault, counter in self.outcomes.items()}
        return {**totals, "outcomes": kinds, "wrong": self.wrong}


def kill(trial: Trial, seconds: float, draw: random.Random) -> str:
    """Run a command, and kill it with all its processes at a random moment of its run."""
    at_write = draw.random() < AT_THE_WRITE
    child = trial.start()
    until = time.monotonic() + (seconds * 3 if at_write else draw.uniform(0, seconds * 1.1))
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return "done before it was killed"
        if at_write and parts_in(trial.folder):
            time.sleep(draw.uniform(0, 0.004))
            break
        time.sleep(0 if at_write else 0.001)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed at the write" if at_write else "killed at any moment"


@dataclass
class Bench:
    """Faults tried on all commands in turn, with the same seed in the same order."""

    work: Path
    draw: random.Random
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self.template = self.work / "template"
        self.template.mkdir()
        for words in (
            f"collect {HOUSE} -n 200 -o t.jsonl",
            f"collect {HOUSE} -n 60 -o few.jsonl",
            "infer t.jsonl -o m.json",
        ):
            self._did(self.template, words.split())
        self.seconds: dict[Command, float] = {}
        self.new: dict[Command, dict[str, bytes]] = {}
        for number, command in enumerate(COMMANDS):
            ready = self.work / f"before-{number}"
            shutil.copytree(self.template, ready)
            if command.before:
                self._did(ready, command.before)
            if command.takes is not None:
                self.seconds[command], self.new[command] = command.takes, {}
                continue
            with trial(self.template, command) as one:
                started = time.monotonic()
                code = ended(one.start())
                if code:
                    told = (one.folder / ".stderr").read_text()
                    raise SystemExit(f"{command.words} ended with {code} by itself: {told}")
                self.seconds[command] = time.monotonic() - started
                self.new[command] = content_of(one.folder)

    def _did(self, folder: Path, words: Sequence[str]) -> None:
        code = ended(Trial(folder, Command(tuple(words), ()), {}).start())
        assert code == 0, (words, (folder / ".stderr").read_text())

    def kills(self, most: int) -> None:
        """Kill commands until so many were killed; some are then run again, to the end."""
        done = 0
        while done < most:
            command = COMMANDS[done % len(COMMANDS)]
            with trial(self.template, command) as one:
                outcome = kill(one, self.seconds[command], self.draw)
                if not outcome.startswith("killed"):
                    continue
                done += 1
                outcome += ", a hidden part is left" * bool(parts_in(one.folder))
                self._record("kills", one, outcome)
                if done % 10 == 0 and command.takes is None:
                    begun = command.name == "solve" and (one.folder / "out").exists()
                    again = RESUMED if begun else command
                    self._again(Trial(one.folder, again, one.before))

    def _again(self, trial: Trial) -> None:
        """Run a command that was killed once more: it ends well, with what it always gives."""
        code = ended(trial.start())
        self.counts.add("runs_after_kills", f"exit code {code}")
        wrong = trial.wrong(content_of(trial.folder), self.new[trial.command])
        if code or wrong:
            message = (trial.folder / ".stderr").read_text().strip()
            self.counts.found_wrong(
                f"again after a kill, {trial.command.words}: {wrong or message}"
            )

    def _record(self, fault: str, trial: Trial, outcome: str) -> None:
        wrong = trial.wrong(content_of(trial.folder), self.new[trial.command])
        if wrong is not None:
            self.counts.found_wrong(f"{fault}, {' '.join(trial.command.words)}: {wrong}")
        self.counts.add(fault, outcome if wrong is None else "wrong")

    def refusals(
        self, fault: str, most: int, place: Path | None, refuse: Callable[[Trial], int | None]
    ) -> None:
        """Run commands where something refuses to be written: one line, and nothing changes."""
        for number in range(most):
            command = COMMANDS[number % len(COMMANDS)]
            with trial(self.template, command, place) as one:
                code = ended(one.start(refuse(one)))
                self._restore(one.folder)
                told = (one.folder / ".stderr").read_text().strip()
                outcome = "refused in one line" if code == 2 else f"exit code {code}"
                if (code == 2 and told.count("\n")) or "Traceback" in told:
                    self.counts.found_wrong(f"{fault}, {' '.join(command.words)}: {told[-300:]}")
                if parts_in(one.folder):
                    self.counts.found_wrong(f"{fault}, {' '.join(command.words)}: a part is left")
                self._record(fault, one, outcome)

    def _restore(self, folder: Path) -> None:
        for filler in folder.parent.glob("filler*"):
            filler.unlink()

    def _speak_elsewhere(self, one: Trial) -> None:
        """Have what a command says kept on another disk."""
        for stream in (".stdout", ".stderr"):
            (self.work / stream).touch()
            (one.folder / stream).unlink(missing_ok=True)
            (one.folder / stream).symlink_to(self.work / stream)

    def full_disks(self, most: int) -> None:
        """Fill a small disk of memory up to some room that is too little."""
        with small_disk(self.work / "disk") as disk:
            if disk is None:
                self.counts.add("full_disks_not_tried", "only root may mount a small disk")
                return

            def fill(one: Trial) -> None:
                new = self.new[one.command]
                written = [name for name in new if name.split("/")[0] in one.command.writes]
                pages = -(-sum(len(new[name]) for name in written) // PAGE) or 1
                self._speak_elsewhere(one)
                with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
                    while filler.write(bytes(PAGE)):
                        pass
                left = (disk / "filler").stat().st_size - self.draw.randrange(pages) * PAGE
                os.truncate(disk / "filler", left)

            self.refusals("full_disks", most, disk, fill)  # type: ignore[arg-type]

    def limited_files(self, most: int) -> None:
        """Allow files of fewer bytes than what is to be written has."""

        def limit(one: Trial) -> int:
            sizes = [len(self.new[one.command].get(name, b"")) for name in one.command.writes]
            return self.draw.randrange(300, max(*sizes, 302))

        self.refusals("limited_files", most, None, limit)

    def two_writers(self, most: int) -> None:
        """Let two commands write one file at once: it is one's or the other's, and whole."""
        words = [("collect", HOUSE, "-n", "150", "--seed", str(s), "-o", "x.jsonl") for s in (0, 1)]
        results = []
        for one in words:
            self._did(self.template, one)
            results.append((self.template / "x.jsonl").read_bytes())
            (self.template / "x.jsonl").unlink()
        for _ in range(most):
            with trial(self.template, COMMANDS[0]) as one:
                children = [Trial(one.folder, Command(each, ()), {}).start() for each in words]
                codes = [ended(child) for child in children]
                whole = (one.folder / "x.jsonl").read_bytes() in results
                self.counts.add("two_writers", "one of both, whole" if whole else "wrong")
                if not whole or any(codes) or parts_in(one.folder):
                    self.counts.found_wrong(f"two writers: exit codes {codes}")

    def changing_files(self, most: int) -> None:
        """Write to traces while they are read: machines of either version, or one line."""
        for number in range(most):
            name = ("t.jsonl", "t.parquet", "many")[number % 3]
            with trial(self.template, COMMANDS[2]) as one:
                versions, machines = self._versions(one.folder, name)
                target = one.folder / ("many/a.parquet" if name == "many" else name)
                child = Trial(one.folder, Command(("infer", name, "-o", "x.json"), ()), {}).start()
                code = self._while_written(child, target, versions)
                told = (one.folder / ".stderr").read_text()
                if code == 0:
                    right = (one.folder / "x.json").read_bytes() in machines
                    self.counts.add("changing_files", "one of both versions" if right else "wrong")
                else:
                    right = code == 2 and told.count("\n") == 1
                    self.counts.add("changing_files", "refused in one line" if right else "wrong")
                if not right:
                    self.counts.found_wrong(f"{name} changing, exit code {code}: {told[-300:]}")

    def _versions(self, folder: Path, name: str) -> tuple[list[bytes], list[bytes]]:
        versions, machines = [], []
        for source in ("few.jsonl", "t.jsonl"):
            path = folder / f"version-{source}"
            if name != "t.jsonl":
                path = path.with_suffix(".parquet")
                self._did(folder, ("convert", source, path.name))
            else:
                shutil.copy(folder / source, path)
            self._did(folder, ("infer", path.name, "-o", "version.json"))
            versions.append(path.read_bytes())
            machines.append((folder / "version.json").read_bytes())
            path.unlink()
        (folder / "version.json").unlink()
        if name == "many":
            (folder / "many").mkdir()
        target = folder / ("many/a.parquet" if name == "many" else name)
        target.write_bytes(versions[0])
        return versions, machines

    def _while_written(self, child: int, target: Path, versions: list[bytes]) -> int:
        """Write one version over the other, in place or by another file, until a process ends."""
        time.sleep(self.draw.uniform(0, 0.02))
        in_place = self.draw.random() < 0.7
        turn = 1
        while True:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if in_place:
                with target.open("r+b") as file:
                    half = len(versions[turn]) // 2
                    file.write(versions[turn][:half])
                    file.flush()
                    time.sleep(self.draw.uniform(0, 0.01))
                    file.write(versions[turn][half:])
                    file.truncate()
            else:
                other = target.with_name(".other")
                other.write_bytes(versions[turn])
                other.replace(target)
            turn = 1 - turn
            time.sleep(self.draw.uniform(0.001, 0.03))

    def read_only_folders(self, most: int) -> None:
        """Have a folder refuse all that is to be written there."""
        with small_disk(self.work / "read-only") as disk:
            if disk is None:
                return
            for number in range(most):
                command = COMMANDS[number % len(COMMANDS)]
                with trial(self.template, command, disk) as one:
                    self._speak_elsewhere(one)
                    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
                    code = ended(one.start())
                    told = (self.work / ".stderr").read_text()
                    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
                    right = code == 2 and told.count("\n") == 1
                    if not right:
                        words = " ".join(command.words)
                        self.counts.found_wrong(f"read-only, {words}: {code}, {told[-300:]}")
                    self._record("read_only_folders", one, f"exit code {code}")


def main() -> None:
    """Try all faults, print the counts, and fail if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--full-disks", type=int, default=100)
    parser.add_argument("--others", type=int, default=40, help="of each other fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where to keep the counts, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="resolvent-faults-") as folder:
        bench = Bench(Path(folder), random.Random(options.seed))
        bench.kills(options.kills)
        bench.full_disks(options.full_disks)
        bench.limited_files(options.others)
        bench.read_only_folders(options.others)
        bench.two_writers(options.others)
        bench.changing_files(options.others)
    counts = json.dumps(bench.counts.as_dict(), indent=1)
    print(counts)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(counts + "\n")
    if bench.counts.wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
