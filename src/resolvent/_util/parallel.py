"""Map functions over items with threads, processes or Ray, and report the progress of long work.

Input: a function of one item, which can be pickled, and the items. Output: the results in the
order of the items, or combined in that order; they never depend on the workers. See
docs/decisions/util.md.
"""

import os
import signal
import sys
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from functools import cache, cached_property, reduce
from itertools import islice
from multiprocessing import get_context
from threading import Lock, RLock
from typing import Any, NamedTuple, TypeAlias, TypeVar

from resolvent._util.validation import quoted
from resolvent.errors import ClusterError, OptionError

Item = TypeVar("Item")
Result = TypeVar("Result")

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Number of cores that this process may run on."""

MAX_THREADS = 8  # since each item takes memory; on more cores, each item uses several
TASKS_PER_SLOT = 8  # more tasks balance better, and cost more to send

Report: TypeAlias = Callable[[int], None]
"""Called with the number of items that are done; an exception that it raises stops the work."""

Submit: TypeAlias = Callable[..., Any]
"""Starts a function with its arguments, and returns a task with `result()` and `cancel()`."""

TaskWarnings: TypeAlias = tuple[tuple[type[Warning], str], ...]  # our own, with their texts


class Progress(NamedTuple):
    """The amount `done` of a `total`, which is 0 while unknown.

    A search for a machine also reports the number of `states` so far and of those still
    `undecided`; its total is the number of nodes of the prefix tree. A pass over shards of files
    reports its `round`, and the approximate number of `steps` in all shards.
    """

    states: int
    undecided: int
    done: int
    total: int
    round: int = 0
    steps: int = 0

    @property
    def fraction(self) -> float:
        """The share of the work done: 0 to 1."""
        return self.done / max(self.total, 1)


Listener: TypeAlias = Callable[[str, Progress], object]
"""Called regularly with the name of the stage, such as the inferred machine, and its progress."""

FractionListener: TypeAlias = Callable[[float], object]
"""Called regularly with the finished share of one task, such as reading a file: 0 to 1."""

# --- Workers ------------------------------------------------------------------------------------


def fold(
    function: Callable[[Item], Result],
    combine: Callable[[Result, Result], Result] | None,
    items: Iterable[Item],
) -> tuple[Result, TaskWarnings]:
    """Work on items one by one, on one core; return the combined result, and our warnings."""
    with limit_cores(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = map(function, items)
        result = next(results) if combine is None else reduce(combine, results)
    ours = [warning for warning in caught if warning.category.__module__.startswith("resolvent.")]
    return result, tuple((warning.category, str(warning.message)) for warning in ours)


class Workers:
    """A pool that works on several items at a time.

    Functions must be picklable, such as a frozen dataclass with `__call__`, and return the same for
    the same item: Ray may try it again elsewhere. `called` names the work in errors and in Ray's
    dashboard, such as "replaying".

    Workers of your own override `map`, `map_reduce` and `map_until`, and may override `close`.
    """

    _task = staticmethod(fold)
    """Works on a run of items, and combines the results."""

    @property
    def name(self) -> str:
        """The name in `on=`: "threads", "processes", "ray" or "ray:ADDRESS"."""
        return type(self).__name__.lower()

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Result]:
        """Yield the results in the order of the items, computed a few ahead."""
        yield from self._in_order(function, None, [[item] for item in items], called, report)

    def map_reduce(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        combine: Callable[[Result, Result], Result],
        *,
        called: str,
        report: Report | None = None,
    ) -> Result:
        """Return the results combined in order; `combine` has to be associative."""
        results = self._in_order(function, combine, self._runs(items), called, report)
        return reduce(combine, results)

    def map_until(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        is_enough: Callable[[Result], bool],
        *,
        called: str,
    ) -> list[Result | None]:
        """Work on all items at once until a result is enough, and stop the rest.

        Returns the result of each item, None for those that were stopped, which may be any.
        Warnings are dropped. Running threads cannot be stopped, and are awaited.
        """
        results: list[Result | None] = [None] * len(items)
        if not items:
            return results
        with self._executor(len(items), called, own=True) as (submit, _):
            tasks = {
                submit(self._task, function, None, [item]): number
                for number, item in enumerate(items)
            }
            waiting, stop = set(tasks), False
            while waiting and not stop:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for task in done:
                    results[tasks[task]] = result = task.result()[0]
                    stop |= is_enough(result)
        return results

    def close(self) -> None:
        """Release the workers; more work starts them again."""

    def _executor(
        self, tasks: int, called: str, *, own: bool = False
    ) -> AbstractContextManager[tuple[Submit, int]]:
        """Yield a function that submits tasks, and the number of tasks to submit ahead.

        `own`: an executor for these tasks alone, which ends them with the block.
        """
        raise NotImplementedError

    def _runs(self, items: Sequence[Item]) -> Sequence[Sequence[Item]]:
        """Return runs of neighboring items, one for each task to combine."""
        return [[item] for item in items]

    def _in_order(
        self,
        function: Callable[[Item], Result],
        combine: Callable[[Result, Result], Result] | None,
        runs: Sequence[Sequence[Item]],
        called: str,
        report: Report | None,
    ) -> Iterator[Result]:
        """Yield the combined results of runs of items, in order."""
        repeated: set[type[Warning]] = set()
        tasks: deque[Any] = deque()
        done, remaining = 0, iter(runs)
        with self._executor(len(runs), called) as (submit, ahead):
            try:
                for run in runs:
                    tasks.extend(
                        submit(self._task, function, combine, later)
                        for later in islice(remaining, ahead - len(tasks))
                    )
                    result, task_warnings = tasks.popleft().result()
                    for category, text in task_warnings:
                        if category not in repeated:
                            repeated.add(category)
                            warnings.warn(text, category, stacklevel=3)
                    yield result
                    del result  # it belongs to the caller now
                    done += len(run)
                    if report is not None:
                        report(done)
            finally:
                for task in tasks:
                    task.cancel()


class Threads(Workers):
    """Threads of this process, by default one per core; nothing is copied."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    @contextmanager
    def _executor(
        self, tasks: int, called: str, *, own: bool = False
    ) -> Iterator[tuple[Submit, int]]:
        count = max(min(self.threads or min(available_cores(), MAX_THREADS), tasks), 1)
        share = max(available_cores() // count, 1)
        executor = ThreadPoolExecutor(count, initializer=set_cores, initargs=(share,))
        try:
            yield executor.submit, count + 1
        finally:
            executor.shutdown(cancel_futures=True)

    @staticmethod
    def _task(
        function: Callable[[Item], Result],
        combine: Callable[[Result, Result], Result] | None,
        items: Iterable[Item],
    ) -> tuple[Result, TaskWarnings]:
        (item,) = items
        return function(item), ()


class Processes(Workers):
    """Processes of this machine, by default one per core: for work that holds Python's lock.

    They start with the first work, which takes about a second, and wait for more until `close`. A
    script must call this below `if __name__ == "__main__":`, since each process imports it again.
    """

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or CORES
        self._pool: ProcessPoolExecutor | None = None

    def close(self) -> None:
        """End the processes; more work starts new ones."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    @contextmanager
    def _executor(
        self, tasks: int, called: str, *, own: bool = False
    ) -> Iterator[tuple[Submit, int]]:
        if own:
            executor = _started_processes(min(self.processes, tasks))
        else:
            executor = self._pool = self._pool or _started_processes(self.processes)
        try:
            yield executor.submit, 2 * self.processes
        except BrokenProcessPool as error:
            if not own:
                self.close()
            raise ClusterError(
                f"{called}: a process ended before its work was done: it may have run out of "
                f'memory; and a script must call this below `if __name__ == "__main__":`'
            ) from error
        finally:
            if own:
                running = list((executor._processes or {}).values())  # there is no public list
                executor.shutdown(wait=False, cancel_futures=True)
                for process in running:
                    process.terminate()

    def _runs(self, items: Sequence[Item]) -> Sequence[Sequence[Item]]:
        return split_evenly(items, self.processes)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}


def _started_processes(processes: int) -> ProcessPoolExecutor:
    # A fork of a process with threads may hang, and the core and PyArrow have threads.
    # Ctrl-C does not reach them: the process that started them ends them.
    with signal_handlers(signal.SIG_IGN, signal.SIGINT), safe_import_path():
        pool = ProcessPoolExecutor(
            processes, get_context("spawn"), initializer=set_cores, initargs=(1,)
        )
        for _ in range(processes):  # each starts one process
            pool.submit(int)
    return pool


def split_evenly(items: Sequence[Item], slots: int) -> list[Sequence[Item]]:
    """Return items in runs of about the same length, at most `TASKS_PER_SLOT` for each slot."""
    tasks = min(len(items), TASKS_PER_SLOT * slots)
    bounds = [len(items) * number // tasks for number in range(tasks + 1)]
    return [items[bounds[task] : bounds[task + 1]] for task in range(tasks)]


def executor_named(on: str | Workers) -> Workers:
    """Return the workers of a name, such as "ray:ADDRESS"; `Workers` as they are."""
    if isinstance(on, Workers):
        return on
    return _workers_by_name(on if isinstance(on, str) else quoted(on))


@cache
def _workers_by_name(on: str) -> Workers:
    backend, colon, address = on.partition(":")
    if backend == "ray" and (address.strip() or not colon):
        from resolvent._util.ray import Ray

        return Ray(address.strip() or None)
    if on in ("threads", "processes"):
        return Threads() if on == "threads" else Processes()
    raise OptionError(f"on={quoted(on)}: choose threads, processes, ray or ray:ADDRESS")


@contextmanager
def get_executor(on: str | Workers) -> Iterator[Workers]:
    """Yield workers; those given by name are closed after the last block that uses them."""
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


_users: Counter[str] = Counter()  # number of blocks that use workers, by their name

# --- Cores --------------------------------------------------------------------------------------

_share = threading.local()


def available_cores() -> int:
    """Return the number of threads that the compiled core may use in this thread."""
    share: int = getattr(_share, "cores", CORES)
    return share


@contextmanager
def limit_cores(share: int) -> Iterator[None]:
    """Limit this thread to a number of cores for the duration of a block."""
    before = available_cores()
    set_cores(share)
    try:
        yield
    finally:
        set_cores(before)


def set_cores(share: int) -> None:
    """Limit this thread to a number of cores from now on."""
    _share.cores = share


# --- Processes and signals ----------------------------------------------------------------------


def run_after_fork(renew: Callable[[], object]) -> Callable[[], object]:
    """Call a function first in each forked process, to renew locks that were held at the fork."""
    if hasattr(os, "register_at_fork"):  # Windows has no forks
        os.register_at_fork(after_in_child=renew)
    return renew


_users_lock = Lock()
_environment_lock = RLock()  # processes inherit the environment, which all threads share


@run_after_fork
def _renew_locks() -> None:
    global _users_lock, _environment_lock
    _users_lock, _environment_lock = Lock(), RLock()


def _renew_properties() -> None:
    """Renew the locks of this package's cached properties in Python 3.11."""
    modules = tuple(sys.modules.items())
    ours = (module for name, module in modules if name.startswith("resolvent."))
    classes = (each for module in ours for each in vars(module).values() if isinstance(each, type))
    for owner in set(classes):
        for attribute in vars(owner).values():
            if isinstance(attribute, cached_property) and hasattr(attribute, "lock"):
                attribute.lock = RLock()


if sys.version_info < (3, 12):
    run_after_fork(_renew_properties)


@contextmanager
def safe_import_path(**environment: str) -> Iterator[None]:
    """Prevent processes started inside from importing modules of the current folder at start-up.

    A file there, such as a `random.py`, would be imported in place of the module of that name.
    The environment of processes has these changes.
    """
    changes = {"PYTHONSAFEPATH": "1", **environment}
    with _environment_lock:
        before = {name: os.environ[name] for name in changes if name in os.environ}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name in changes:
                del os.environ[name]
            os.environ.update(before)


@contextmanager
def signal_handlers(handler: Any, *numbers: int) -> Iterator[None]:
    """Set a handler for the duration of a block; only the main thread can, others do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether a stop was requested; a second request interrupts."""
    requests: list[int] = []

    def on_signal(number: int, frame: Any) -> None:
        if requests:
            raise KeyboardInterrupt
        requests.append(number)

    with signal_handlers(on_signal, signal.SIGINT, signal.SIGTERM):
        yield lambda: bool(requests)
