"""Progress out of, and a time limit into, a long search."""

import time
from collections.abc import Callable
from typing import TypeAlias

from resolvent.errors import TimeLimitReached
from resolvent.progress import Progress

Watcher: TypeAlias = Callable[[Progress], object]
"""Told now and then how far one search is."""


def out_of_time(progress: Progress) -> TimeLimitReached:
    """Return the error that says how far the search had come."""
    states = "state" if progress.states == 1 else "states"
    return TimeLimitReached(
        f"time ran out: {progress.states} {states} found so far, {progress.undecided} still "
        f"to be decided, {progress.done} of {progress.total} prefix-tree nodes settled; "
        f"raise the time limit, give more traces, declare labels that change nothing as trivial, "
        f"or take strategy 'search' if traces are few"
    )


class Watch:
    """Looks at the clock now and then: tells a listener, and raises when time is up."""

    def __init__(self, time_limit: float | None, listener: Watcher | None) -> None:
        self._limit = time_limit
        self._listener = listener
        self._started = self._told = time.monotonic()

    def look(self, progress: Progress) -> None:
        """Call this often: it costs a reading of the clock."""
        now = time.monotonic()
        if self._limit is not None and now - self._started > self._limit:
            raise out_of_time(progress)
        if self._listener is not None and now - self._told >= 0.05:
            self._told = now
            self._listener(progress)
