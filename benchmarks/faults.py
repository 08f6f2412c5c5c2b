"""Commands that write, killed at random moments, on full disks and in each other's way.

Every command that writes runs in a process of its own, over files that hold what it wrote
before. After each fault all files are looked at: those it reads must be as they were, those it
writes must hold all of the old or all of the new. The counts are printed, and kept as JSON.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from resolvent.cli import main as run_command
from resolvent.display import report as _report  # noqa: F401 -- imported once, before all forks
from resolvent.traces.files import parquet as _parquet  # noqa: F401

HOUSE = "resolvent/House-v0"
SECONDS_AT_MOST = 120.0
PAGE = 4096
"""Bytes that a disk of memory gives out at once."""

AT_THE_WRITE = 0.6
"""This share of kills waits until a file is being written, the others come at any moment."""


@dataclass(frozen=True)
class Command:
    """A command, what it writes, and what it wrote before with the words in `before`."""

    words: tuple[str, ...]
    writes: tuple[str, ...]
    before: tuple[str, ...] = ()
    goes_on: bool = False
    """Whether what it writes grows with time, so that any of it that is whole is right."""
    takes: float | None = None
    """Seconds within which it is killed, if it takes too long to be run to its end."""

    @property
    def name(self) -> str:
        return self.words[0]


def over(words: str, target: str, before: str) -> Command:
    """Return a command that writes over a file of another run of it."""
    return Command(tuple(words.split()), (target,), tuple(before.split()))


COMMANDS = (
    over(f"collect {HOUSE} -n 150 -o out.jsonl", "out.jsonl", f"collect {HOUSE} -n 9 -o out.jsonl"),
    over(
        f"collect {HOUSE} -n 150 -o out.parquet",
        "out.parquet",
        f"collect {HOUSE} -n 9 -o out.parquet",
    ),
    over("infer t.jsonl -o out.json", "out.json", "infer few.jsonl -o out.json"),
    over("plan m.json t.jsonl -o out.json", "out.json", "plan m.json few.jsonl -o out.json"),
    over("report m.json t.jsonl -o out.html", "out.html", "report m.json few.jsonl -o out.html"),
    over("convert t.jsonl out.parquet", "out.parquet", "convert few.jsonl out.parquet"),
    over("convert t.jsonl out.jsonl.gz", "out.jsonl.gz", "convert few.jsonl out.jsonl.gz"),
    over("show m.json -o out.txt", "out.txt", "show m.json --machine reward -o out.txt"),
    over(
        "show m.json --format svg --machine transition -o out.svg",
        "out.svg",
        "show m.json --format svg --machine reward -o out.svg",
    ),
    Command(
        ("train", HOUSE, "-n", "400", "-o", "out.json", "--curve", "out.csv"),
        ("out.json", "out.csv"),
        ("train", HOUSE, "-n", "20", "-o", "out.json", "--curve", "out.csv"),
    ),
    Command(
        ("solve", HOUSE, "--budget", "3000", "-o", "out", "--resume"),
        ("out",),
        ("solve", HOUSE, "--budget", "60", "-o", "out"),
        goes_on=True,
    ),
    Command(("solve", HOUSE, "--budget", "3000", "-o", "out"), ("out",), goes_on=True),
    Command(
        ("reproduce", "ablation", "--quick", "--time-limit", "3", "-o", "out"),
        ("out",),
        goes_on=True,
        takes=4.0,
    ),
)

WORLD = "resolvent/RandomWorld-v0"
LONG = (
    f"collect {WORLD} -n 100000 -o out.jsonl",
    "infer long.jsonl --no-held-out --engine python --keep-redundant --no-supplement -o out.json",
    "infer long.jsonl --strategy search --effort 50 -o out.json",
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
"""Commands that take seconds, for who presses Ctrl-C."""

AT_MOST = 0.2
"""Seconds of processor time that a command may take to end."""


@dataclass
class Counts:
    """What was tried, how often, and what came of it."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    slowest: dict[str, float] = field(default_factory=dict)
    """Processor seconds that each command took at most to end on Ctrl-C."""

    def add(self, fault: str, outcome: str) -> None:
        self.outcomes.setdefault(fault, Counter())[outcome] += 1

    def found_wrong(self, text: str) -> None:
        """Keep what is wrong, and say it at once: all of it may take an hour."""
        print(text, file=sys.stderr, flush=True)
        self.wrong.append(text)

    def as_dict(self) -> dict[str, object]:
        totals = {fault: sum(counter.values()) for fault, counter in self.outcomes.items()}
        kinds = {fault: dict(sorted(found.items())) for fault, found in self.outcomes.items()}
        more = {"slowest_to_interrupt": self.slowest} if self.slowest else {}
        return {**totals, "outcomes": kinds, **more, "wrong": self.wrong}


@dataclass(frozen=True)
class Trial:
    """A folder in which a command runs, and what all files were before."""

    folder: Path
    command: Command
    before: dict[str, bytes]

    def start(self, room: int | None = None) -> int:
        """Run the command in a process that has imported all there is; `room`: bytes a file."""
        child = os.fork()
        if child == 0:
            _run(self.folder, self.command.words, room)
        return child

    def wrong(self, after: dict[str, bytes], new: dict[str, bytes]) -> str | None:
        """Say what is wrong with the files, if anything is."""
        for name, content in self.before.items():
            written = name.split("/")[0] in self.command.writes
            if not written and after.get(name) != content:
                return f"{name}, which is only read, changed"
            if written and name not in after:
                return f"{name} was there before, and is lost"
        for name, content in after.items():
            known = (self.before.get(name), new.get(name))
            if content not in known and not (self.command.goes_on and _is_whole(name, content)):
                return f"{name} holds neither the old nor the new"
        return None


def _run(folder: Path, words: Sequence[str], room: int | None) -> NoReturn:
    os.setsid()
    os.chdir(folder)
    for stream, name in ((1, ".stdout"), (2, ".stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    sys.argv = ["resolvent", *words]
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    code = 99
    try:
        code = run_command()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def content_of(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder that are not hidden."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(part[0] == "." for part in path.relative_to(folder).parts)
    }


def _is_whole(name: str, content: bytes) -> bool:
    """Whether a file that grows from run to run is what a command leaves when it is done."""
    if name.endswith(".json"):
        json.loads(content)
        return content.endswith(b"\n")
    if name.endswith((".svg", ".md", ".csv", ".jsonl")):
        return content.endswith(b"\n") or content.rstrip().endswith(b"</svg>")
    return content[:4] == content[-4:] == b"PAR1"


def parts_in(folder: Path) -> list[Path]:
    """Return what is being written, or was when a process was killed."""
    return list(folder.rglob(".*.part"))


@contextmanager
def trial(template: Path, command: Command, place: Path | None = None) -> Iterator[Trial]:
    """Make a folder with what a command reads, and with what it wrote before."""
    folder = Path(tempfile.mkdtemp(prefix="resolvent-faults-", dir=place))
    shutil.copytree(template, folder, dirs_exist_ok=True)
    try:
        if command.before:
            ready = template.parent / f"before-{COMMANDS.index(command)}"
            shutil.copytree(ready, folder, dirs_exist_ok=True)
        yield Trial(folder, command, content_of(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ended(child: int) -> int:
    """Wait for a process, and return its exit code, or minus the signal that ended it."""
    limit = time.monotonic() + SECONDS_AT_MOST
    while time.monotonic() < limit:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            with suppress(ProcessLookupError):  # those it began end a little later
                os.killpg(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 124


def kill(one: Trial, seconds: float, draw: random.Random) -> str:
    """Run a command, and kill it with all its processes at a random moment of its run."""
    at_write = draw.random() < AT_THE_WRITE
    child = one.start()
    until = time.monotonic() + (seconds * 3 if at_write else draw.uniform(0, seconds * 1.1))
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return "done before it was killed"
        if at_write and parts_in(one.folder):
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
                self._judge("kills", one, outcome)
                if done % 10 == 0 and command.takes is None:
                    again = command
                    if command.name == "solve" and (one.folder / "out").exists():
                        again = COMMANDS[[c.before != () for c in COMMANDS].index(True, 10)]
                    self._again(Trial(one.folder, again, one.before))

    def _again(self, one: Trial) -> None:
        """Run a command that was killed once more: it ends well, with what it always gives."""
        code = ended(one.start())
        self.counts.add("runs_after_kills", f"exit code {code}")
        wrong = one.wrong(content_of(one.folder), self.new[one.command])
        if code or wrong:
            told = (one.folder / ".stderr").read_text().strip()
            self.counts.found_wrong(f"again after a kill, {one.command.words}: {wrong or told}")

    def _judge(self, fault: str, one: Trial, outcome: str) -> None:
        wrong = one.wrong(content_of(one.folder), self.new[one.command])
        if wrong is not None:
            self.counts.found_wrong(f"{fault}, {' '.join(one.command.words)}: {wrong}")
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
                self._judge(fault, one, outcome)

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
                    self._judge("read_only_folders", one, f"exit code {code}")

    def interrupts(self, most: int) -> None:
        """Press Ctrl-C: a command ends at once, says so in a line, and leaves nothing half done."""
        if not most:
            return
        folder = self.work / "interrupts"
        folder.mkdir()
        for words in (
            f"collect {WORLD} -n 1500 --max-steps 300 -o long.jsonl",
            "convert long.jsonl long.parquet",
            "infer long.jsonl --no-held-out -o long.json",
        ):
            self._did(folder, words.split())
        slowest = dict.fromkeys(LONG, 0.0)
        for number in range(most):
            words = LONG[number % len(LONG)]
            target = folder / words.split(" -o ")[-1]
            before = content_of(folder)
            child = Trial(folder, Command(tuple(words.split()), ()), before).start()
            time.sleep(self.draw.uniform(0.05, 3.0))
            used = processor_seconds(child)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGINT)
            _, status, usage = os.wait4(child, 0)
            code = os.waitstatus_to_exitcode(status)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            told = (folder / ".stderr").read_text()
            if code == 130:
                took = usage.ru_utime + usage.ru_stime - used
                slowest[words] = max(slowest[words], took)
                self.counts.add("interrupts", "at once" if took < AT_MOST else "later")
                right = "resolvent: interrupted" in told and "Traceback" not in told
            else:
                self.counts.add("interrupts", "done before" if code == 0 else f"exit code {code}")
                right = code == 0
            changed = any(
                content_of(folder).get(name) != content for name, content in before.items()
            )
            if not right or changed or (parts_in(folder) and words.split()[0] != "reproduce"):
                self.counts.found_wrong(f"Ctrl-C, {words}: exit code {code}, {told[-300:]}")
            if target.name.startswith("out"):
                shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        self.counts.slowest = {words: round(took, 3) for words, took in slowest.items()}


def processor_seconds(process: int) -> float:
    """Return what a process has used so far."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


@contextmanager
def small_disk(place: Path, size: str = "8m") -> Iterator[Path | None]:
    """Mount a small disk of memory, if this user may."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def main() -> None:
    """Try all faults, print the counts, and fail if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--full-disks", type=int, default=100)
    parser.add_argument("--others", type=int, default=40, help="of each other fault")
    parser.add_argument("--interrupts", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where to keep the counts, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="resolvent-faults-") as folder:
        bench = Bench(Path(folder), random.Random(given.seed))
        bench.kills(given.kills)
        bench.full_disks(given.full_disks)
        bench.limited_files(given.others)
        bench.read_only_folders(given.others)
        bench.two_writers(given.others)
        bench.changing_files(given.others)
        bench.interrupts(given.interrupts)
    told = json.dumps(bench.counts.as_dict(), indent=1)
    print(told)
    if given.output is not None:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(told + "\n")
    if bench.counts.wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
