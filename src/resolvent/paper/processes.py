"""A run → its record, from a separate process, so that limits hold whatever the run does."""

import importlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec

from resolvent._util.processes import safe_import_path
from resolvent.errors import MissingExtra, TimeLimitReached
from resolvent.paper.baselines import clock
from resolvent.paper.run import Run, function_called

SECONDS_BETWEEN_LOOKS: Final = 0.1
SECONDS_OF_PATIENCE = 2.0
"""How long after its limit a method is ended, at least."""
WALL_SECONDS_A_SECOND = 10
"""Limit of wall-clock seconds for each processor second of the time limit."""

_MARK: Final = "RESOLVENT_RUNS_APART"
_STARTED: Final = "started"
_FINISHED: Final = "finished"
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_ENVIRONMENT: Final = {_MARK: "1", **dict.fromkeys(_THREADS, "1")}

if _MARK in os.environ:  # this is where runs come from, and whoever started it says when to stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Clock:
    """Measures the work inside the block: wall-clock seconds, processor seconds, memory."""

    def __init__(self, limit: float, tell: Callable[[str], object] = lambda word: None) -> None:
        self.limit = limit
        self.figures: dict[str, float] = {}
        self._tell = tell

    def __enter__(self) -> "Clock":
        self.figures["memory_before_mb"] = _peak_mb()
        self._tell(_STARTED)
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        wall, processor = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        self.figures["seconds"] = round(wall, 6)
        self.figures["processor_seconds"] = round(processor, 6)
        self.figures["memory_mb"] = _peak_mb()
        self._tell(_FINISHED)


def run_apart(
    run: Run,
    *,
    time_limit: float,
    memory_limit_mb: float,
    tick: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Do one run in a separate process and return its record, whatever happens.

    The record has a "status": that of the run ("found", "no solution", …), or "time limit",
    "memory limit", "not installed", or "error" with the "error". The time limit is in
    processor seconds, so that it does not depend on the load of the machine. Preparations and
    the judgement of the result do not count. A method that does not stop is killed a little
    later, and one that only waits after ten times the limit; `tick` is called meanwhile.
    """
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    work = (theirs, run, time_limit)
    process = context.Process(target=_work, args=work, daemon=True)
    try:
        # On one thread, so that all methods have the same.
        with _interruptions_wait(), safe_import_path(**_ENVIRONMENT):
            process.start()
        theirs.close()
        watch = _Watch(process.pid or 0, time_limit, memory_limit_mb)
        while True:
            if not ours.poll(SECONDS_BETWEEN_LOOKS):
                tick()
                if (exceeded := watch.broken_limit()) is not None:
                    return run.identity | exceeded
                continue
            try:
                message = ours.recv()
            except EOFError:
                process.join()
                return run.identity | {"status": "error", "error": _ending(process.exitcode)}
            if isinstance(message, dict):
                return run.identity | _apply_time_limit(message, time_limit)
            watch.heard(message)
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()


class _Watch:
    """The resources that a process has used so far, against its limits."""

    def __init__(self, process: int, time_limit: float, memory_limit_mb: float) -> None:
        self._of_process = Path(f"/proc/{process}")
        self._time_limit = time_limit
        self._memory_limit_mb = memory_limit_mb
        self._started: tuple[float, float | None] | None = None

    def heard(self, word: str) -> None:
        """Note that the clock was started or stopped."""
        self._started = (time.monotonic(), self._processor()) if word == _STARTED else None

    def broken_limit(self) -> dict[str, Any] | None:
        """Return the record of a run that is over a limit, or None."""
        if self._started is None:
            return None
        seconds = time.monotonic() - self._started[0]
        processor = self._processor()
        used = seconds
        if processor is not None and self._started[1] is not None:
            used = processor - self._started[1]
        memory = self._memory_mb()
        usage = {
            "seconds": round(seconds, 6),
            "processor_seconds": round(used, 6),
            "memory_mb": memory,
            "ended_from_outside": True,
        }
        if memory is not None and memory > self._memory_limit_mb:
            return {"status": "memory limit", **usage}
        # Methods that know of their limit end a little after it, and may have something to show.
        patience = max(SECONDS_OF_PATIENCE, self._time_limit / 20)
        waits = seconds > WALL_SECONDS_A_SECOND * self._time_limit + patience
        if waits or used > self._time_limit + patience:
            return {"status": "time limit", **usage}
        return None

    def _processor(self) -> float | None:
        """Return the processor seconds it has used, where the system provides them."""
        with suppress(OSError):
            fields = (self._of_process / "stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return None

    def _memory_mb(self) -> float | None:
        """Return its peak memory, where the system provides it."""
        with suppress(OSError):
            for line in (self._of_process / "status").read_text(encoding="ascii").splitlines():
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) / 1024
        return None


def _apply_time_limit(record: dict[str, Any], time_limit: float) -> dict[str, Any]:
    """Return a record whose status is "time limit" if the run took longer than its limit."""
    if record.get("status") == "found" and record.get("processor_seconds", 0.0) > time_limit:
        return record | {"status": "time limit"}
    return record


def _ending(code: int | None) -> str:
    """Describe the end of a process that sent no record."""
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with code {code}"


def _context() -> Any:
    """Return the context that starts processes: a small server with all modules imported."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextmanager
def _interruptions_wait() -> Iterator[None]:
    """Delay Ctrl-C until a process has started: earlier it would print a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = False

    def remember(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        signal.raise_signal(signal.SIGINT)


def _work(pipe: Connection, run: Run, time_limit: float) -> None:
    """Run in the process: signal the clock's start and stop, then send the record."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    clock.now = time.process_time
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # solvers print
        os.dup2(nowhere, stream)
    pipe.send(record_of(run, Clock(time_limit, pipe.send)))
    pipe.close()


def record_of(run: Run, clock: Clock) -> dict[str, Any]:
    """Do a run in this process and return its record, failures included."""
    try:
        for module in run.needs:
            importlib.import_module(module)
        record = function_called(run.call)(clock, **run.arguments)
        record = msgspec.json.decode(msgspec.json.encode(record))  # what a file will give back
    except TimeLimitReached:
        record = {"status": "time limit"}
    except MemoryError:
        record = {"status": "memory limit"}
    except (MissingExtra, ModuleNotFoundError) as error:
        what = str(error)
        if run.extra is not None:
            what = f'pip install "resolvent[{run.extra}]"'
        record = {"status": "not installed", "error": what}
    except Exception as error:
        text = " ".join(str(error).split())
        record = {"status": "error", "error": f"{type(error).__name__}: {text}"}
    return {"status": record.pop("status"), **clock.figures, **record}


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _peak_mb() -> float:
    """Return the peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 if sys.platform != "darwin" else 1024**2), 1)
