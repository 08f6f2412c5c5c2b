"""Cores, forks and environment of this process and of those that it starts."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import RLock

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Number of cores that this process may run on."""

_share = threading.local()


def available_cores() -> int:
    """Return the number of threads that the compiled core may use in this thread.

    >>> with limit_cores(1):
    ...     available_cores()
    1
    """
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


def run_after_fork(renew: Callable[[], object]) -> Callable[[], object]:
    """Have a function called first in every process that is forked from this one.

    A lock that another thread holds at the fork is held in the child for ever, for the thread is
    not there: `renew` replaces it.
    """
    if hasattr(os, "register_at_fork"):  # Windows has no forks
        os.register_at_fork(after_in_child=renew)
    return renew


def _renew_properties() -> None:
    """Renew the locks that cached properties of this package's classes have in Python 3.11."""
    modules = tuple(sys.modules.items())
    ours = (module for name, module in modules if name.startswith("resolvent."))
    classes = (each for module in ours for each in vars(module).values() if isinstance(each, type))
    for owner in set(classes):
        for attribute in vars(owner).values():
            if isinstance(attribute, cached_property) and hasattr(attribute, "lock"):
                attribute.lock = RLock()


if sys.version_info < (3, 12):
    run_after_fork(_renew_properties)

_environment_lock = RLock()  # processes inherit the environment, which all threads share


@run_after_fork
def _renew_lock() -> None:
    global _environment_lock
    _environment_lock = RLock()


@contextmanager
def safe_import_path(**environment: str) -> Iterator[None]:
    """Keep Pythons that are started inside from importing modules of the current folder.

    A file there, such as a `random.py`, would be imported in place of the module of that name.
    Multiprocessing copies our search path once the process has started, so that it finds the
    modules that we find. Processes see the environment with these changes.

    >>> import subprocess, sys
    >>> program = "import os, sys; print(sys.flags.safe_path, os.environ['OF_TESTS'])"
    >>> with safe_import_path(OF_TESTS="here"):
    ...     subprocess.run([sys.executable, "-c", program], capture_output=True).stdout.split()
    [b'True', b'here']
    """
    wanted = {"PYTHONSAFEPATH": "1", **environment}
    with _environment_lock:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, text in before.items():
                if text is None:
                    del os.environ[name]
                else:
                    os.environ[name] = text
