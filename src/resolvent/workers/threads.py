"""Threads of this process: nothing is copied, and the compiled core leaves the lock free."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import reduce
from typing import TypeVar

from resolvent.workers.cores import cores, take_cores
from resolvent.workers.working import Report

Given = TypeVar("Given")
Made = TypeVar("Made")

MOST_THREADS = 8
"""Pieces that are worked on at the same time at most: each takes memory. Where there are more
cores, each piece uses several."""


class Threads:
    """Threads that go through pieces of work; by default as many as there are cores.

    >>> Threads().together(len, ["ab", "c"], int.__add__, called="counting")
    3
    """

    name = "threads"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def each(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        *,
        called: str,  # nobody watches threads
        report: Report | None = None,
    ) -> Iterator[Made]:
        """Return what is made of every piece, in the order of the pieces.

        Only few results wait for the caller at any time.
        """
        count = self._count(len(pieces))
        with _pool(count) as threads:
            waiting: deque[Future[Made]] = deque()
            try:
                done = 0
                for piece in pieces:
                    waiting.append(threads.submit(work, piece))
                    if len(waiting) > count:
                        yield waiting.popleft().result()
                        done = _told(done, report)
                while waiting:
                    yield waiting.popleft().result()
                    done = _told(done, report)
            finally:
                for future in waiting:
                    future.cancel()

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
        return reduce(combine, self.each(work, pieces, called=called, report=report))

    def first(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        enough: Callable[[Made], bool],
        *,
        called: str,
    ) -> list[Made | None]:
        """Work on pieces side by side until one is enough.

        A thread cannot be stopped: what is under way is waited for, and the rest not begun.
        """
        made: list[Made | None] = [None] * len(pieces)
        with _pool(self._count(len(pieces))) as threads:
            number = {threads.submit(work, piece): at for at, piece in enumerate(pieces)}
            waiting = set(number)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                results = {future: future.result() for future in done}
                for future, result in results.items():
                    made[number[future]] = result
                if any(map(enough, results.values())):
                    waiting = {future for future in waiting if not future.cancel()}
        return made

    def close(self) -> None:
        """Do nothing: threads end with the work they were begun for."""

    def _count(self, pieces: int) -> int:
        return max(min(self.threads or min(cores(), MOST_THREADS), pieces), 1)


def _pool(threads: int) -> ThreadPoolExecutor:
    """Return threads that share the cores among them."""
    share = max(cores() // threads, 1)
    return ThreadPoolExecutor(threads, initializer=take_cores, initargs=(share,))


def _told(done: int, report: Report | None) -> int:
    if report is not None:
        report(done + 1)
    return done + 1
