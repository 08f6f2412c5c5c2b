"""Every error a user can meet, each saying what, where and what to do.

All derive from `ResolventError`, so one `except` is enough; the command line
turns each into one line and an exit code. Warnings stand here, too.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from resolvent._util.text import short

E = TypeVar("E", bound=Exception)


MOST_CHARACTERS = 4_000
"""Of an error's message: names that users chose may be of any length."""


class ResolventError(Exception):
    r"""Base of all errors that Resolvent raises on purpose; its text is one line, safe to show.

    >>> print(ResolventError("no file 'a\x1b[31m\nb'"))
    no file 'a\x1b[31m\nb'
    """

    def __str__(self) -> str:
        return short(super().__str__(), MOST_CHARACTERS)


class TraceError(ResolventError):
    """Traces that cannot be read or do not have the shape of traces."""


class StorageError(TraceError):
    """Storage that failed or did not answer, which may pass: try again."""


class DamagedFile(TraceError):  # noqa: N818
    """A file, or a part of one, that cannot be read since it is damaged or gone."""


class EnvironmentFailed(TraceError):  # noqa: N818
    """An environment that raised while it was explored, or gave what no step can give.

    Attributes:
        solved: What was found until then, to look at or to go on from; None if that is nothing.
    """

    solved: Any = None


class ModelError(ResolventError):
    """A machine or model file that cannot be read or does not fit its use."""


class OptionError(ResolventError, ValueError):
    """An option with a value that is not allowed, or does not fit what else was given."""


class TooLarge(TraceError, ModelError):  # noqa: N818
    """Something that would take more memory than a limit allows; `Limits` sets another limit."""


class OutOfMemory(ResolventError, MemoryError):  # noqa: N818
    """Work that this computer has not enough memory for; nothing need be wrong with the data."""


@dataclass(frozen=True, slots=True)
class TracePlace:
    """A step of a trace, written as errors write it.

    Attributes:
        trace: The trace's number among all traces.
        step: The step's number within the trace.
        source: The file or trace set that holds the trace, None if all come from one.
        trace_in_source: The trace's number within `source`, None if there is none.

    >>> print(TracePlace(7, 4))
    trace 7, step 4
    >>> print(TracePlace(7, 4, "house/part-2.parquet", 3))
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
        places: The two steps.
        values: The output at each of the two steps, in the order of `places`.
        question: The observation and the action, which are the same at both steps.
        outcomes: Every output after the same labels and for the same question, with the
            number of steps that have it; most frequent first, then in the order of
            symbols. Only traces that were learned from count.
        history: The labels read before both steps, without trivial ones.
        labels_read: Whether any label, trivial or not, had been read before either step. If
            not, both are the first of their traces, and no label that comes later can help.
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
    ...     print(error.machine, *error.places, error.question, error.outcomes, sep="; ")
    transition; trace 0, step 0; trace 1, step 0; ('hall', 'up'); (('attic', 1), ('hall', 1))
    """

    def __init__(
        self,
        message: str,
        *,
        output: str,
        places: tuple[TracePlace, TracePlace],
        values: tuple[Hashable, Hashable],
        question: tuple[Hashable, Hashable],
        outcomes: tuple[tuple[Hashable, int], ...],
        history: tuple[frozenset[str], ...],
        labels_read: bool,
        advice: str,
        timing: str | None = None,
        exact_remedy: bool = False,
    ) -> None:
        super().__init__(message)
        self.output = output
        self.places = places
        self.values = values
        self.question = question
        self.outcomes = outcomes
        self.history = history
        self.labels_read = labels_read
        self.advice = advice
        self.timing = timing
        self.exact_remedy = exact_remedy

    @property
    def machine(self) -> str:
        """The machine that cannot exist: "transition", or else the name of its output."""
        return "transition" if self.output == "observation" else self.output

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their positional arguments, here the message alone.
        return _made_without_init, (type(self), self.args), vars(self)


class TimeLimitReached(ResolventError):  # noqa: N818
    """The search was stopped by its time limit before it had an answer."""


class ClusterError(ResolventError):
    """A cluster or a worker process that cannot be reached, does not fit, or was lost."""


class MissingExtra(ResolventError, ImportError):  # noqa: N818
    """An optional dependency is not installed; the message names the extra."""


class TableWarning(UserWarning):
    """A table was read, but not all that it holds; the message says what is missing and why."""


class ResumeWarning(UserWarning):
    """What an earlier run kept cannot be used as it is; the message says what is done instead."""


class SpaceWarning(UserWarning):
    """An environment is wrapped, but deep learners do not take all that it shows."""


def _made_without_init(kind: type[E], args: tuple[Any, ...]) -> E:
    return kind.__new__(kind, *args)


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
        raise type(error)(f"{where}: {error}") from error
