"""How far long work is → whoever listens: one event, whatever is being done."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Progress(NamedTuple):
    """So much is `done` of a `total`, which is 0 while it is not known.

    A search for a machine also says how many `states` it has found and how many are still
    `undecided`; its total are the nodes of the prefix tree.

    Going through pieces of files says in which `round` it is, about how many `steps` they hold
    together, and for how many `seconds` it has lasted.

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
        """How much of the work is done: 0 to 1."""
        return self.done / max(self.total, 1)

    @property
    def steps_per_second(self) -> float | None:
        """About how many steps are gone through in a second; None where nobody knows."""
        if not (self.steps and self.seconds):
            return None
        return self.steps * self.fraction / self.seconds

    @property
    def seconds_left(self) -> float | None:
        """About how long it will take at this pace; None where nobody knows."""
        if not (self.seconds and self.done and self.total):
            return None
        return self.seconds * (self.total - self.done) / self.done


Listener: TypeAlias = Callable[[str, Progress], object]
"""Told now and then what is being done, such as the machine that is inferred, and how far it is."""

FractionListener: TypeAlias = Callable[[float], object]
"""Told now and then how much of a single task is done, such as reading a file: 0 to 1."""
