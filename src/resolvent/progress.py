"""How far long work is → whoever listens: one event, whatever is being done."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Progress(NamedTuple):
    """So much is `done` of a `total`, which is 0 while it is not known.

    A search for a machine also says how many `states` it has found and how many are still
    `undecided`; its total are the nodes of the prefix tree.

    >>> Progress(3, 12, 250, 1000).fraction, Progress(0, 0, 0, 0).fraction
    (0.25, 0.0)
    """

    states: int
    undecided: int
    done: int
    total: int

    @property
    def fraction(self) -> float:
        """How much of the work is done: 0 to 1."""
        return self.done / max(self.total, 1)


Listener: TypeAlias = Callable[[str, Progress], object]
"""Told now and then what is being done, such as the machine that is inferred, and how far it is."""

FractionListener: TypeAlias = Callable[[float], object]
"""Told now and then how much of a single task is done, such as reading a file: 0 to 1."""
