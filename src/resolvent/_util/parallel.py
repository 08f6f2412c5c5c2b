"""Map functions over pieces of work with threads, processes or Ray; results never depend on which.

Input: a function of one piece, which can be pickled, and the pieces. Output: the results in the
order of the pieces, or combined in that order. See docs/decisions/util.md.
"""

import signal
import threading
import warnings
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from functools import cache, reduce
from multiprocessing import get_context
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from resolvent._util.processes import (
    CORES,
    available_cores,
    limit_cores,
    run_after_fork,
    safe_import_path,
    set_cores,
)
from resolvent._util.text import short
from resolvent._util.validation import shown
from resolvent.errors import ClusterError, OptionError

if TYPE_CHECKING:
    from resolvent._util.ray import Ray

Piece = TypeVar("Piece")
Result = TypeVar("Result")

MOST_THREADS = 8
"""Maximum number of pieces that threads work on at a time, since each takes memory. On more
cores, each piece uses several."""

TASKS_PER_SLOT = 8
"""Number of tasks per process. More of them end at more nearly the same time, and cost more to
send."""

Report = Callable[[int], None]
"""Called with the number of pieces that are done; an exception that it raises stops the work."""

TaskWarnings = tuple[tuple[type[Warning], str], ...]
"""Our own warnings of a task, as categories and texts."""


class Workers(Protocol):
    """A pool that works on several pieces at a time.

    The function has to be one that can be pickled, such as a frozen dataclass with `__call__`, and
    has to return the same for the same piece: Ray may try it again elsewhere. `called` names the
    work in errors and in Ray's dashboard, such as "replaying".
    """

    @property
    def name(self) -> str:
        """The name in `on=`: "threads", "processes", "ray" or "ray:ADDRESS"."""

    def each(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Result]:
        """Yield the results in the order of the pieces; only few wait for the caller at a time."""

    def together(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        combine: Callable[[Result, Result], Result],
        *,
        called: str,
        report: Report | None = None,
    ) -> Result:
        """Return the results of one piece or more, combined in the order of the pieces.

        `combine` has to be associative: neighbors are combined near the data, in any grouping.
        """

    def first(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        enough: Callable[[Result], bool],
        *,
        called: str,
    ) -> list[Result | None]:
        """Work on all pieces at once until a result is `enough`, and stop the rest.

        Returns the result of each piece, None for those that were stopped. Which these are depends
        on chance: a caller has to return the same whichever they are.
        """

    def close(self) -> None:
        """Release the workers; more work starts them again."""


class _PoolWorkers(ABC):
    """Workers that are an executor of `concurrent.futures`."""

    _ends_tasks: ClassVar[bool]
    """Whether tasks that are running end with the executor, rather than being awaited."""

    @abstractmethod
    def _executor(
        self, tasks: int, called: str, *, own: bool = False
    ) -> AbstractContextManager[tuple[Executor, int]]:
        """Lend an executor for some tasks, and its number of slots; `own`: for these alone."""

    @abstractmethod
    def _runs(self, pieces: Sequence[Piece]) -> Sequence[Sequence[Piece]]:
        """Return runs of neighboring pieces, one for each task to combine."""

    @staticmethod
    @abstractmethod
    def _task(
        work: Callable[[Piece], Result],
        combine: Callable[[Result, Result], Result] | None,
        pieces: Iterable[Piece],
    ) -> tuple[Result, TaskWarnings]:
        """Work on a run of pieces, and combine the results."""

    def each(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Result]:
        """Yield the results in the order of the pieces; only few wait for the caller at a time."""
        yield from self._results(work, None, [[piece] for piece in pieces], called, report)

    def together(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        combine: Callable[[Result, Result], Result],
        *,
        called: str,
        report: Report | None = None,
    ) -> Result:
        """Return the results of one piece or more, combined in the order of the pieces."""
        runs = self._runs(pieces)
        return reduce(combine, self._results(work, combine, runs, called, report))

    def first(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        enough: Callable[[Result], bool],
        *,
        called: str,
    ) -> list[Result | None]:
        """Work on all pieces at once until a result is `enough`, and stop the rest.

        Processes are ended. Threads cannot be: those under way are awaited. Warnings of processes
        are dropped.
        """
        results: list[Result | None] = [None] * len(pieces)
        if not pieces:
            return results
        with self._executor(len(pieces), called, own=True) as (executor, _):
            number = {
                executor.submit(self._task, work, None, [piece]): at
                for at, piece in enumerate(pieces)
            }
            waiting: set[Future[Any]] = set(number)
            stop = False
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    results[number[future]] = result = future.result()[0]
                    stop |= enough(result)
                if stop and self._ends_tasks:
                    break
                if stop:
                    waiting = {future for future in waiting if not future.cancel()}
        return results

    def _results(
        self,
        work: Callable[[Piece], Result],
        combine: Callable[[Result, Result], Result] | None,
        runs: Sequence[Sequence[Piece]],
        called: str,
        report: Report | None,
    ) -> Iterator[Result]:
        """Yield the combined results of runs of pieces, in order."""
        relay, done, started = WarningRelay(), 0, 0
        waiting: deque[Future[tuple[Result, TaskWarnings]]] = deque()
        with self._executor(len(runs), called) as (executor, slots):
            try:
                for run in runs:
                    while started < len(runs) and len(waiting) < slots:
                        waiting.append(executor.submit(self._task, work, combine, runs[started]))
                        started += 1
                    result, warned = waiting.popleft().result()
                    relay.warn(warned)
                    yield result
                    del result  # it belongs to the caller now
                    done += len(run)
                    if report is not None:
                        report(done)
            finally:
                for future in waiting:
                    future.cancel()


class Threads(_PoolWorkers):
    """Threads of this process, by default one per core; nothing is copied.

    >>> Threads().together(len, ["ab", "c"], int.__add__, called="counting")
    3
    """

    name = "threads"
    _ends_tasks = False

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def close(self) -> None:
        """Do nothing: threads end with the work they were started for."""

    @contextmanager
    def _executor(
        self, tasks: int, called: str, *, own: bool = False
    ) -> Iterator[tuple[Executor, int]]:
        count = max(min(self.threads or min(available_cores(), MOST_THREADS), tasks), 1)
        share = max(available_cores() // count, 1)
        with ThreadPoolExecutor(count, initializer=set_cores, initargs=(share,)) as executor:
            yield executor, count + 1

    def _runs(self, pieces: Sequence[Piece]) -> Sequence[Sequence[Piece]]:
        return [[piece] for piece in pieces]

    @staticmethod
    def _task(
        work: Callable[[Piece], Result],
        combine: Callable[[Result, Result], Result] | None,
        pieces: Iterable[Piece],
    ) -> tuple[Result, TaskWarnings]:
        (piece,) = pieces
        return work(piece), ()


class Processes(_PoolWorkers):
    """Processes of this machine, by default one per core: for work that holds Python's lock.

    They are started with the first work, which takes a second or so, and wait for more until
    `close`. Each uses one core. A script has to call this below `if __name__ == "__main__":`, as
    with all processes that Python starts by importing the script again.
    """

    name = "processes"
    _ends_tasks = True

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or CORES
        self._pool: ProcessPoolExecutor | None = None

    def close(self) -> None:
        """End the processes; more work starts others."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    @contextmanager
    def _executor(
        self, tasks: int, called: str, *, own: bool = False
    ) -> Iterator[tuple[Executor, int]]:
        count = min(self.processes, tasks) if own else self.processes
        if own:
            executor = _started_processes(count)
        else:
            executor = self._pool = self._pool or _started_processes(count)
        try:
            yield executor, 2 * count
        except BrokenProcessPool as error:
            if not own:
                self.close()
            raise ClusterError(
                f"{called}: a process ended before its work was done: it may have run out of "
                f'memory; and a script has to call this below `if __name__ == "__main__":`'
            ) from error
        finally:
            if own:
                running = list((executor._processes or {}).values())  # no public way to them
                executor.shutdown(wait=False, cancel_futures=True)
                for process in running:
                    process.terminate()

    def _runs(self, pieces: Sequence[Piece]) -> Sequence[Sequence[Piece]]:
        return split_evenly(pieces, self.processes)

    @staticmethod
    def _task(
        work: Callable[[Piece], Result],
        combine: Callable[[Result, Result], Result] | None,
        pieces: Iterable[Piece],
    ) -> tuple[Result, TaskWarnings]:
        return fold(work, combine, pieces)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}


def _started_processes(processes: int) -> ProcessPoolExecutor:
    # A fork of a process with threads may hang, and the core and PyArrow have threads.
    with _ignoring_ctrl_c(), safe_import_path():  # a pool starts a process of its own at once
        pool = ProcessPoolExecutor(
            processes, get_context("spawn"), initializer=set_cores, initargs=(1,)
        )
        for _ in range(processes):  # each starts one process
            pool.submit(int)
    return pool


@contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: the process that started them ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def split_evenly(pieces: Sequence[Piece], slots: int) -> list[Sequence[Piece]]:
    """Return pieces in runs of about the same length, `TASKS_PER_SLOT` for each slot at most.

    >>> [list(run) for run in split_evenly(range(20), slots=1)]
    [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9], [10, 11], [12, 13, 14], [15, 16], [17, 18, 19]]
    """
    tasks = min(len(pieces), TASKS_PER_SLOT * slots)
    bounds = [len(pieces) * number // tasks for number in range(tasks + 1)]
    return [pieces[bounds[task] : bounds[task + 1]] for task in range(tasks)]


def fold(
    work: Callable[[Piece], Result],
    combine: Callable[[Result, Result], Result] | None,
    pieces: Iterable[Piece],
) -> tuple[Result, TaskWarnings]:
    """Work on pieces one by one, on one core, and return the combined result and our warnings.

    Without `combine` there has to be one piece.
    """
    with limit_cores(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = map(work, pieces)
        result = next(results) if combine is None else reduce(combine, results)
    ours = [warning for warning in caught if warning.category.__module__.startswith("resolvent.")]
    return result, tuple((warning.category, str(warning.message)) for warning in ours)


class WarningRelay:
    """Warnings of tasks, repeated in this process: the first of each category."""

    def __init__(self) -> None:
        self._repeated: set[type[Warning]] = set()

    def warn(self, warned: TaskWarnings) -> None:
        """Repeat the warnings of the next task."""
        for category, text in warned:
            if category not in self._repeated:
                self._repeated.add(category)
                warnings.warn(text, category, stacklevel=4)


_users_lock = Lock()
_users: Counter[str] = Counter()
"""Number of blocks that use workers at the moment, by their name."""


@run_after_fork
def _renew_lock() -> None:
    global _users_lock
    _users_lock = Lock()


def executor_named(on: str | Workers) -> Workers:
    """Return the workers of a name: "threads", "processes", "ray" or "ray:ADDRESS".

    The address is one that `ray.init` takes. An object with the methods of `Workers` is returned
    as it is.

    >>> executor_named("threads").name, executor_named("ray:10.0.0.1:6379")
    ('threads', Ray(address='10.0.0.1:6379'))
    >>> executor_named("dask")
    Traceback (most recent call last):
    resolvent.errors.OptionError: on='dask': choose threads, processes, ray or ray:ADDRESS
    """
    if not isinstance(on, str):
        if all(callable(getattr(on, name, None)) for name in ("each", "together", "first")):
            return on
        raise OptionError(f"on={shown(on)}: choose threads, processes, ray or ray:ADDRESS")
    return _workers_by_name(on)


@cache
def _workers_by_name(on: str) -> Workers:
    backend, colon, address = on.partition(":")
    if backend == "ray" and (address.strip() or not colon):
        from resolvent._util.ray import Ray

        return Ray(address.strip() or None)
    if on == "threads":
        return Threads()
    if on == "processes":
        return Processes()
    raise OptionError(f"on='{short(on)}': choose threads, processes, ray or ray:ADDRESS")


def ray_named(on: str) -> "Ray":
    """Return the Ray of a name, "ray" or "ray:ADDRESS".

    >>> ray_named("threads")
    Traceback (most recent call last):
    resolvent.errors.OptionError: on='threads' is no Ray cluster: write ray or ray:ADDRESS
    """
    from resolvent._util.ray import Ray

    workers = executor_named(on)
    if not isinstance(workers, Ray):
        raise OptionError(f"on='{short(on)}' is no Ray cluster: write ray or ray:ADDRESS")
    return workers


@contextmanager
def get_executor(on: str | Workers) -> Iterator[Workers]:
    """Lend workers for the duration of a block.

    Workers by name are closed after the last block that uses them; those passed as an object are
    left open.
    """
    workers = executor_named(on)
    if not isinstance(on, str):
        yield workers
        return
    with _users_lock:
        _users[on] += 1
    try:
        yield workers
    finally:
        with _users_lock:
            _users[on] -= 1
            if not _users[on]:
                workers.close()
