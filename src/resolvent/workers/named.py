"""Words for workers, such as "ray:auto" → the workers, begun when needed and let go after."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from resolvent.arguments import shown
from resolvent.errors import OptionError
from resolvent.wording import short
from resolvent.workers.forking import in_child
from resolvent.workers.processes import Processes
from resolvent.workers.ray import Ray
from resolvent.workers.threads import Threads
from resolvent.workers.working import Workers

_lock = Lock()


@in_child
def _renew() -> None:
    global _lock
    _lock = Lock()


_users: Counter[str] = Counter()


def workers_named(on: "str | Workers") -> Workers:
    """Return the workers of a name: "threads", "processes", "ray" or "ray:ADDRESS".

    The address is one that `ray.init` takes. Workers that are given are returned as they are.

    >>> workers_named("threads").name, workers_named("ray:10.0.0.1:6379")
    ('threads', Ray(address='10.0.0.1:6379'))
    >>> workers_named("dask")
    Traceback (most recent call last):
    resolvent.errors.OptionError: on='dask': choose threads, processes, ray or ray:ADDRESS
    """
    if not isinstance(on, str):
        if all(callable(getattr(on, name, None)) for name in ("each", "together", "first")):
            return on
        raise OptionError(f"on={shown(on)}: choose threads, processes, ray or ray:ADDRESS")
    return _named(on)


@cache
def _named(on: str) -> Workers:
    kind, colon, address = on.partition(":")
    if kind == "ray" and (address.strip() or not colon):
        return Ray(address.strip() or None)
    if on == "threads":
        return Threads()
    if on == "processes":
        return Processes()
    raise OptionError(f"on='{short(on)}': choose threads, processes, ray or ray:ADDRESS")


def ray_named(on: str) -> Ray:
    """Return the Ray of a name, "ray" or "ray:ADDRESS".

    >>> ray_named("threads")
    Traceback (most recent call last):
    resolvent.errors.OptionError: on='threads' is no Ray cluster: write ray or ray:ADDRESS
    """
    found = workers_named(on)
    if not isinstance(found, Ray):
        raise OptionError(f"on='{short(on)}' is no Ray cluster: write ray or ray:ADDRESS")
    return found


@contextmanager
def at_work(on: "str | Workers") -> Iterator[Workers]:
    """Lend workers for as long as a block lasts.

    Those with a name are closed after the last block that uses them; those that are given belong
    to whoever made them.
    """
    workers = workers_named(on)
    if not isinstance(on, str):
        yield workers
        return
    with _lock:
        _users[on] += 1
    try:
        yield workers
    finally:
        with _lock:
            _users[on] -= 1
            if not _users[on]:
                workers.close()
