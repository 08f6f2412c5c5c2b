"""The progress of long work, as one type of event."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Progress(NamedTuple):
    """The amount `done` of a `total`, which is 0 while unknown.

    A search for a machine also reports the number of `states` found and of those still
    `undecided`; its total is the number of nodes of the prefix tree.

    A pass over pieces of files reports its `round`, the approximate number of `steps` in all
    pieces, and its duration in `seconds`.

    >>> Progress(3, 12, 250, 1000).fraction, Progress(0, 0, 0, 0).fraction
    (0.25, 0.0)
    >>> replaying = Progress(0, 0, done=30, total=90, round=2, steps=90_000_000, seconds=2.0)
    >>> replaying.steps_per_second, replaying.seconds_left
    (15000000.0, 4.0)
    """

    states: int
    undecided: int
    done: int
    total: int
    round: int = 0
    steps: int = 0
    seconds: float = 0.0

    @property
    def fraction(self) -> float:
        """The share of the work done: 0 to 1."""
        return self.done / max(self.total, 1)

    @property
    def steps_per_second(self) -> float | None:
        """The approximate number of steps per second; None if unknown."""
        if not (self.steps and self.seconds):
            return None
        return self.steps * self.fraction / self.seconds

    @property
    def seconds_left(self) -> float | None:
        """The approximate time left at this pace; None if unknown."""
        if not (self.seconds and self.done and self.total):
            return None
        return self.seconds * (self.total - self.done) / self.done


Listener: TypeAlias = Callable[[str, Progress], object]
"""Called regularly with the name of the stage, such as the inferred machine, and its progress."""

FractionListener: TypeAlias = Callable[[float], object]
"""Called regularly with the finished share of one task, such as reading a file: 0 to 1."""
