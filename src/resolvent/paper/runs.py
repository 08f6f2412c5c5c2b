"""A run → its record, from a separate process, so that limits hold whatever the run does."""

import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import msgspec

from resolvent._util import startup
from resolvent._util.parallel import safe_import_path, signal_handlers
from resolvent.errors import MissingExtra, TimeLimitReached
from resolvent.paper.baselines import outcome

_SECONDS_BETWEEN_CHECKS: Final = 0.1
SECONDS_TO_STOP = 2.0  # seconds after its time limit at which a method is ended, at least
WALL_SECONDS_PER_SECOND = 10  # limit of wall-clock seconds for each CPU second of the time limit
_MARK: Final = "RESOLVENT_RUNS_APART"
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_ENVIRONMENT: Final = {_MARK: "1", **dict.fromkeys(_THREADS, "1")}

if _MARK in os.environ:  # a process of runs, which the process that started it ends
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True)
class Run:
    """One method in one setting, once.

    `call` is a function of a module. It gets a `Stopwatch` and the arguments, and returns JSON
    values; only its work under the stopwatch is measured.
    """

    experiment: str
    setting: str
    method: str
    repetition: int
    call: Callable[..., dict[str, Any]]
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that identify the run."""
        names = ("experiment", "setting", "method", "repetition")
        return {name: getattr(self, name) for name in names}

    @property
    def file(self) -> str:
        """The path of its record, in the folder of results."""
        return f"runs/{self.experiment}/{self.setting}--{self.method}--{self.repetition}.json"

    def __str__(self) -> str:
        return f"{self.experiment}, {self.setting}, {self.method}, repetition {self.repetition}"


class Stopwatch:
    """Measures seconds, CPU seconds and memory of a block; `report` gets whether it begins."""

    def __init__(
        self, time_limit: float, report: Callable[[bool], object] = lambda begins: None
    ) -> None:
        self.time_limit = time_limit
        self.figures: dict[str, float] = {}
        self._report = report

    def __enter__(self) -> None:
        self._report(True)
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        wall, processor = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        self.figures["seconds"] = round(wall, 6)
        self.figures["processor_seconds"] = round(processor, 6)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.figures["memory_mb"] = round(peak / (1024**2 if sys.platform == "darwin" else 1024), 1)
        self._report(False)


# --- In the process that waits -------------------------------------------------------------------


def run_apart(
    run: Run,
    *,
    time_limit: float,
    memory_limit_mb: float,
    tick: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Execute one run in a separate process and return its record, whatever happens.

    The record has a "status": that of the run ("found", "no solution", …), or "time limit",
    "memory limit", "not installed", or "error" with the "error". The time limit is in CPU seconds
    under the stopwatch. A method that does not stop is killed a little later, and one that only
    waits after ten times the limit; `tick` is called meanwhile.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, run, time_limit), daemon=True)
    try:
        # On one thread, so that all methods have the same.
        with _delaying_ctrl_c(), safe_import_path(**_ENVIRONMENT):
            process.start()
        theirs.close()
        usage = _Usage(process.pid or 0, time_limit, memory_limit_mb)
        while True:
            if startup.was_interrupted():  # in a finalizer, where Python drops the exception
                raise KeyboardInterrupt
            if not ours.poll(_SECONDS_BETWEEN_CHECKS):
                tick()
                if (exceeded := usage.exceeded()) is not None:
                    return run.identity | exceeded
                continue
            try:
                message = ours.recv()
            except EOFError:
                process.join()
                return run.identity | {"status": "error", "error": _ending(process.exitcode)}
            if not isinstance(message, dict):
                usage.note(message)
                continue
            too_late = message.get("processor_seconds", 0.0) > time_limit
            if message["status"] == "found" and too_late:
                message["status"] = "time limit"
            return run.identity | message
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()


class _Usage:
    """The resources that a process has used so far, against its limits."""

    def __init__(self, process: int, time_limit: float, memory_limit_mb: float) -> None:
        self._of_process = Path(f"/proc/{process}")
        self._time_limit = time_limit
        self._memory_limit_mb = memory_limit_mb
        self._began: tuple[float, float | None] | None = None

    def note(self, begins: bool) -> None:
        """Note that the stopwatch was started or stopped."""
        self._began = (time.monotonic(), self._cpu_seconds()) if begins else None

    def exceeded(self) -> dict[str, Any] | None:
        """Return the record of a run that is over a limit, or None."""
        if self._began is None:
            return None
        wall_start, cpu_start = self._began
        wall = used = time.monotonic() - wall_start
        if cpu_start is not None and (cpu := self._cpu_seconds()) is not None:
            used = cpu - cpu_start
        memory = self._peak_mb()
        # Methods that know their limit end a little after it, perhaps with a machine.
        margin = max(SECONDS_TO_STOP, self._time_limit / 20)
        waits = wall > WALL_SECONDS_PER_SECOND * self._time_limit + margin
        if memory is not None and memory > self._memory_limit_mb:
            status = "memory limit"
        elif waits or used > self._time_limit + margin:
            status = "time limit"
        else:
            return None
        return {
            "status": status,
            "seconds": round(wall, 6),
            "processor_seconds": round(used, 6),
            "memory_mb": memory,
            "ended_from_outside": True,
        }

    def _cpu_seconds(self) -> float | None:
        """Return the CPU seconds of the process, where the system provides them."""
        with suppress(OSError):
            fields = (self._of_process / "stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return None

    def _peak_mb(self) -> float | None:
        """Return the peak memory of the process, where the system provides it."""
        with suppress(OSError):
            for line in (self._of_process / "status").read_text(encoding="ascii").splitlines():
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) / 1024
        return None


def _ending(code: int | None) -> str:
    """Describe the end of a process that sent no record."""
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with code {code}"


@contextmanager
def _delaying_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C until a process has started: earlier it would print a traceback."""
    requests: list[int] = []
    with signal_handlers(lambda number, frame: requests.append(number), signal.SIGINT):
        yield
    if requests:
        signal.raise_signal(signal.SIGINT)


# --- In the process of the run -------------------------------------------------------------------


def _work(pipe: Connection, run: Run, time_limit: float) -> None:
    """Report the begin and end of the measured work, then the record."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    outcome.now = time.process_time
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # solvers print
        os.dup2(nowhere, stream)
    pipe.send(record_of(run, Stopwatch(time_limit, pipe.send)))
    pipe.close()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def record_of(run: Run, stopwatch: Stopwatch) -> dict[str, Any]:
    """Execute a run in this process and return its record, failures included."""
    try:
        record = run.call(stopwatch, **run.arguments)
        record = msgspec.json.decode(msgspec.json.encode(record))  # as it will be read from a file
    except TimeLimitReached:
        record = {"status": "time limit"}
    except MemoryError:
        record = {"status": "memory limit"}
    except (MissingExtra, ModuleNotFoundError) as error:
        record = {"status": "not installed", "error": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        record = {"status": "error", "error": f"{type(error).__name__}: {text}"}
    return {"status": record.pop("status"), **stopwatch.figures, **record}
