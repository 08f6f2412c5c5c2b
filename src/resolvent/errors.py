"""Every error a user can meet, each saying what, where and what to do.

All derive from `ResolventError`, so one `except` is enough; the command line
turns each into one line and an exit code.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class ResolventError(Exception):
    """Base of all errors that Resolvent raises on purpose."""


class TraceError(ResolventError):
    """Traces that cannot be read or do not have the shape of traces."""


class ModelError(ResolventError):
    """A machine or model file that cannot be read or does not fit its use."""


class OptionError(ResolventError, ValueError):
    """An option whose value cannot be honoured."""


class ContradictoryTraces(ResolventError):  # noqa: N818
    """Two traces that no deterministic machine over these labels can explain."""


class TimeLimitReached(ResolventError):  # noqa: N818
    """The search was stopped by its time limit before it had an answer."""


class MissingExtra(ResolventError, ImportError):  # noqa: N818
    """An optional dependency is not installed; the message names the extra."""


@contextmanager
def locating(where: str) -> Iterator[None]:
    """Put the place in front of the message of any `TraceError` raised inside.

    >>> with locating("house.jsonl, line 3"):
    ...     raise TraceError("the trace is empty: leave it out")
    Traceback (most recent call last):
    resolvent.errors.TraceError: house.jsonl, line 3: the trace is empty: leave it out
    """
    try:
        yield
    except TraceError as error:
        raise TraceError(f"{where}: {error}") from error
