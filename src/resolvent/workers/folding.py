"""Several neighbouring pieces as one task for another process: few tasks, and one result each."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple, TypeVar

from resolvent.workers.cores import sharing_cores

Given = TypeVar("Given")
Made = TypeVar("Made")

TASKS_PER_SLOT = 8
"""Tasks for each process that works. With more of them the last ones end at more nearly the same
time, and each costs what it takes to send it."""


class Note(NamedTuple):
    """What a task tells beside its result: our own warnings, as categories and texts."""

    warnings: tuple[tuple[type[Warning], str], ...] = ()


def neighbours(pieces: Sequence[Given], slots: int) -> list[Sequence[Given]]:
    """Return pieces in runs of about the same length, as many as are good for so many slots.

    >>> [list(run) for run in neighbours(range(20), slots=1)]
    [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9], [10, 11], [12, 13, 14], [15, 16], [17, 18, 19]]
    """
    tasks = min(len(pieces), TASKS_PER_SLOT * slots)
    bounds = [len(pieces) * number // tasks for number in range(tasks + 1)]
    return [pieces[bounds[task] : bounds[task + 1]] for task in range(tasks)]


def fold(
    work: Callable[[Given], Made],
    combine: Callable[[Made, Made], Made] | None,
    pieces: Iterable[Given],
) -> tuple[Made, Note]:
    """Work on pieces one after the other, on one core, and combine what is made of them.

    Without `combine` there has to be one piece.
    """
    with sharing_cores(1), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = map(work, pieces)
        result = next(made) if combine is None else reduce(combine, made)
    ours = [one for one in said if one.category.__module__.startswith("resolvent.")]
    return result, Note(tuple((one.category, str(one.message)) for one in ours))


class Telling:
    """Says in this process what tasks warn of: the first of each kind, as there is here."""

    def __init__(self) -> None:
        self._told: set[type[Warning]] = set()

    def tell(self, notes: Iterable[Note]) -> None:
        """Warn of what the next notes hold."""
        for category, text in _warnings_of(notes):
            if category not in self._told:
                self._told.add(category)
                warnings.warn(text, category, stacklevel=4)


def _warnings_of(notes: Iterable[Note]) -> Iterator[tuple[type[Warning], str]]:
    for note in notes:
        yield from note.warnings
