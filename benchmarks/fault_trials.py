"""A command in a process and a folder of its own, and a check of its files, for `faults.py`."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pyarrow.parquet as _parquet  # noqa: F401

from resolvent.cli import main as run_command
from resolvent.viz.report import page as _report  # noqa: F401 -- imported once, before all forks

HOUSE = "resolvent/House-v0"
SECONDS_AT_MOST = 120.0


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

RESUMED = next(one for one in COMMANDS if "--resume" in one.words)
"""What goes on with a `solve` that was killed."""


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
            allowed = (self.before.get(name), new.get(name))
            if content not in allowed and not (self.command.goes_on and _is_whole(name, content)):
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
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            with suppress(ProcessLookupError):  # those it began end a little later
                os.killpg(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 124


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
