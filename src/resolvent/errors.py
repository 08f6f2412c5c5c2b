"""All errors and warnings: each says what is wrong, where, and what to do.

Errors derive from `ResolventError`; the command line prints one line and returns an exit code.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from resolvent._util.text import short

MAX_CHARACTERS = 4_000  # of an error's message: names that users chose may be of any length


class ResolventError(Exception):
    r"""Base of all errors that Resolvent raises on purpose; its text is one line, safe to show.

    >>> print(ResolventError("no file 'a\x1b[31m\nb'"))
    no file 'a\x1b[31m\nb'
    """

    def __str__(self) -> str:
        return short(super().__str__(), MAX_CHARACTERS)


class TraceError(ResolventError):
    """Traces that cannot be read or do not have the shape of traces."""


class StorageError(TraceError):
    """Storage that failed or did not respond; this may be temporary, so try again."""


class DamagedFile(TraceError):  # noqa: N818
    """A file, or a part of one, that cannot be read because it is damaged or missing."""


class EnvironmentFailed(TraceError):  # noqa: N818
    """An environment that raised while it was explored, or returned what no step can return.

    Attributes:
        solution: The result so far, which can be continued; None if there is none.
    """

    solution: Any = None


class ModelError(ResolventError):
    """A machine or model file that cannot be read or does not fit its use."""


class OptionError(ResolventError, ValueError):
    """An option with a value that is not allowed, or does not fit the other arguments."""


class TooLarge(TraceError, ModelError):  # noqa: N818
    """Input that would take more memory than a limit allows; `Limits` sets another limit."""


class OutOfMemory(ResolventError, MemoryError):  # noqa: N818
    """Work for which this computer has too little memory; the data may be correct."""


@dataclass(frozen=True, slots=True)
class StepLocation:
    """The location of a step in the traces, written as errors write it.

    Attributes:
        trace: The trace's number among all traces.
        step: The step's number within the trace.
        source: The file or trace set that holds the trace, None if all come from one.
        trace_in_source: The trace's number within `source`, None if there is none.

    >>> print(StepLocation(7, 4))
    trace 7, step 4
    >>> print(StepLocation(7, 4, "house/part-2.parquet", 3))
    house/part-2.parquet, trace 3, step 4
    """

    trace: int
    step: int
    source: str | None = None
    trace_in_source: int | None = None

    def __str__(self) -> str:
        if self.source is None:
            return f"trace {self.trace}, step {self.step}"
        return f"{self.source}, trace {self.trace_in_source}, step {self.step}"


class ContradictoryTraces(ResolventError):  # noqa: N818
    """Two steps that no deterministic machine over these labels can explain together.

    Attributes:
        output: The column that no machine can predict: "observation", "reward" or another.
        locations: The two steps.
        values: The output at each of the two steps, in the order of `locations`.
        query: The observation and the action, which are the same at both steps.
        outcomes: Every output after the same labels and for the same query, with the
            number of steps that have it; most frequent first, then in the order of
            symbols. Only traces that were learned from count.
        label_sequence: The labels read before both steps, without trivial ones.
        labels_read: Whether any label, trivial or not, had been read before either step. If
            not, both are the first of their traces, and no later label can help.
        advice: What to try, as the message ends.
        timing: The label timing under which the traces do not contradict each other, None
            if there is none.
        exact_remedy: Whether something other than noise explains it, which `advice` names: that
            timing, a label that is not trivial after all, or rewards that differ by rounding.

    >>> import resolvent as rs
    >>> days = [rs.Trace(["hall", end], [None, None], ["up"], [0]) for end in ("attic", "hall")]
    >>> try:
    ...     rs.infer(rs.TraceSet(days), noise="none")
    ... except rs.ContradictoryTraces as error:
    ...     print(error.machine, *error.locations, error.query, error.outcomes, sep="; ")
    transition; trace 0, step 0; trace 1, step 0; ('hall', 'up'); (('attic', 1), ('hall', 1))
    """

    output: str
    locations: tuple[StepLocation, StepLocation]
    values: tuple[Hashable, Hashable]
    query: tuple[Hashable, Hashable]
    outcomes: tuple[tuple[Hashable, int], ...]
    label_sequence: tuple[frozenset[str], ...]
    labels_read: bool
    advice: str
    timing: str | None
    exact_remedy: bool

    def __init__(self, message: str, conflict: Any) -> None:
        """Take the message and a dataclass with these attributes (`inference.conflict`)."""
        super().__init__(message)
        vars(self).update({field.name: getattr(conflict, field.name) for field in fields(conflict)})

    @property
    def machine(self) -> str:
        """The machine that cannot exist: "transition", or else the name of its output."""
        return "transition" if self.output == "observation" else self.output

    def __reduce__(self) -> tuple[Any, ...]:
        # Without `__init__`, whose arguments are not those of the exception.
        return type(self).__new__, (type(self), *self.args), vars(self)


class TimeLimitReached(ResolventError):  # noqa: N818
    """The time limit ended the search before it had a result."""


class ClusterError(ResolventError):
    """A cluster or a worker process that cannot be reached, does not fit, or was lost."""


class MissingExtra(ResolventError, ImportError):  # noqa: N818
    """An optional dependency is not installed; the message names the extra."""


class TableWarning(UserWarning):
    """Only a part of a table was read; the message says what is missing and why."""


class ResumeWarning(UserWarning):
    """A cached result of an earlier run cannot be used; the message says what is done instead."""


class SpaceWarning(UserWarning):
    """An environment is wrapped, but deep learners cannot read all of its observations."""


@contextmanager
def locating(where: str) -> Iterator[None]:
    """Put a location in front of the message of any `TraceError` raised inside.

    >>> with locating("house.jsonl, line 3"):
    ...     raise TraceError("the trace is empty: leave it out")
    Traceback (most recent call last):
    resolvent.errors.TraceError: house.jsonl, line 3: the trace is empty: leave it out
    """
    try:
        yield
    except TraceError as error:
        raise located(where, error) from error


def located(where: str, error: TraceError) -> TraceError:
    """Return an error with its location in front, for loops over steps: `locating` is slower."""
    return type(error)(f"{where}: {error}")
