"""Pythons that are started here, and where they look for modules."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from resolvent.workers.forking import in_child

_starting = RLock()  # processes take over the environment, which all threads share


@in_child
def _renew() -> None:
    global _starting
    _starting = RLock()


@contextmanager
def starting_safely(**environment: str) -> Iterator[None]:
    """Have Pythons that are started inside not look for modules in the current folder.

    A file there, such as a `random.py`, would be imported in place of the module of that name.
    What multiprocessing starts takes over our search path once it has begun, and so finds the
    modules that we find. Processes see the environment with these changes.

    >>> import subprocess, sys
    >>> told = "import os, sys; print(sys.flags.safe_path, os.environ['OF_TESTS'])"
    >>> with starting_safely(OF_TESTS="here"):
    ...     subprocess.run([sys.executable, "-c", told], capture_output=True).stdout.split()
    [b'True', b'here']
    """
    wanted = {"PYTHONSAFEPATH": "1", **environment}
    with _starting:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
