"""How many cores a piece of work may use: all of them, or its share beside other pieces."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Cores that this process may run on."""

_here = threading.local()


def cores() -> int:
    """Return how many threads the compiled core may use for what is done here.

    >>> with sharing_cores(1):
    ...     cores()
    1
    """
    share: int = getattr(_here, "cores", CORES)
    return share


@contextmanager
def sharing_cores(share: int) -> Iterator[None]:
    """Use only so many cores for what this thread does inside."""
    before = cores()
    take_cores(share)
    try:
        yield
    finally:
        take_cores(before)


def take_cores(share: int) -> None:
    """Use only so many cores for what this thread does from now on."""
    _here.cores = share
