"""The progress of long work, as one type of event."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Progress(NamedTuple):
    """The amount `done` of a `total`, which is 0 while unknown.

    A search for a machine also reports the number of `states` so far and of those still
    `undecided`; its total is the number of nodes of the prefix tree. A pass over shards of files
    reports its `round`, and the approximate number of `steps` in all shards.

    >>> Progress(3, 12, 250, 1000).fraction, Progress(0, 0, 0, 0).fraction
    (0.25, 0.0)
    """

    states: int
    undecided: int
    done: int
    total: int
    round: int = 0
    steps: int = 0

    @property
    def fraction(self) -> float:
        """The share of the work done: 0 to 1."""
        return self.done / max(self.total, 1)


Listener: TypeAlias = Callable[[str, Progress], object]
"""Called regularly with the name of the stage, such as the inferred machine, and its progress."""

FractionListener: TypeAlias = Callable[[float], object]
"""Called regularly with the finished share of one task, such as reading a file: 0 to 1."""
