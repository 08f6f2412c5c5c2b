"""Processes of this machine: for work that holds Python's lock."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import reduce
from multiprocessing import get_context
from threading import current_thread, main_thread
from typing import Any, TypeVar

from resolvent.errors import ClusterError
from resolvent.workers.cores import CORES, take_cores
from resolvent.workers.folding import Note, Telling, fold, neighbours
from resolvent.workers.safely import starting_safely
from resolvent.workers.working import Report

Given = TypeVar("Given")
Made = TypeVar("Made")


class Processes:
    """Processes that go through pieces of work; by default as many as there are cores.

    They are begun with the first work, which takes them a second or so, and wait for more until
    `close`. Each uses one core. In a script, what leads here has to stand below
    `if __name__ == "__main__":`, as with all processes that Python begins anew.
    """

    name = "processes"

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or CORES
        self._pool: ProcessPoolExecutor | None = None

    def each(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Made]:
        """Return what is made of every piece, in the order of the pieces."""
        yield from self._folded(work, None, [[one] for one in pieces], called, report)

    def together(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        combine: Callable[[Made, Made], Made],
        *,
        called: str,
        report: Report | None = None,
    ) -> Made:
        """Return what is made of all pieces, combined in their order."""
        runs = neighbours(pieces, self.processes)
        return reduce(combine, self._folded(work, combine, runs, called, report))

    def first(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        enough: Callable[[Made], bool],
        *,
        called: str,
    ) -> list[Made | None]:
        """Work on pieces side by side until one is enough; the processes of the others are ended.

        What was made is returned without the warnings that came with it.
        """
        made: list[Made | None] = [None] * len(pieces)
        if not pieces:
            return made
        pool = _begun(min(self.processes, len(pieces)))
        try:
            with _explaining(called):
                number = {
                    pool.submit(fold, work, None, [piece]): at for at, piece in enumerate(pieces)
                }
                waiting: set[Future[Any]] = set(number)
                stop = False
                while waiting and not stop:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        made[number[future]] = result = future.result()[0]
                        stop |= enough(result)
        finally:
            running = list((pool._processes or {}).values())  # there is no other way to them
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.terminate()
        return made

    def close(self) -> None:
        """End the processes; more work begins others."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _folded(
        self,
        work: Callable[[Given], Made],
        combine: Callable[[Made, Made], Made] | None,
        runs: Sequence[Sequence[Given]],
        called: str,
        report: Report | None,
    ) -> Iterator[Made]:
        if self._pool is None:
            self._pool = _begun(self.processes)
        telling, done, ahead = Telling(), 0, 2 * self.processes
        waiting: list[Future[tuple[Made, Note]]] = []
        try:
            for number, run in enumerate(runs):
                while len(waiting) < min(len(runs), number + ahead):
                    waiting.append(self._pool.submit(fold, work, combine, runs[len(waiting)]))
                with _explaining(called):
                    made, note = waiting[number].result()
                waiting[number] = Future()  # what was made is the caller's now
                telling.tell([note])
                yield made
                done += len(run)
                if report is not None:
                    report(done)
        except ClusterError:
            self.close()
            raise
        finally:
            for future in waiting:
                future.cancel()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}


def _begun(processes: int) -> ProcessPoolExecutor:
    # A fork of a process with threads may hang, and the core and PyArrow have threads.
    with _not_interrupted(), starting_safely():  # a pool begins a process of its own at once
        pool = ProcessPoolExecutor(
            processes, get_context("spawn"), initializer=take_cores, initargs=(1,)
        )
        for _ in range(processes):  # each begins one process
            pool.submit(int)
    return pool


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Begin processes that Ctrl-C does not reach: whoever began them ends them."""
    if current_thread() is not main_thread():
        yield  # only the main thread may say what becomes of signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _explaining(called: str) -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise ClusterError(
            f"{called}: a process ended before its work was done: it may have run out of memory; "
            f'and a script has to call this below `if __name__ == "__main__":`'
        ) from error
