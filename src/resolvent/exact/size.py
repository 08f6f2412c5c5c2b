"""One number of states: machines of that size that explain all samples, or a proof of none."""

from collections.abc import Callable

import numpy as np

from resolvent.exact.colouring import Colouring
from resolvent.exact.part import Part
from resolvent.exact.problem import Question, Table

SLICES = 16
"""Solver slices in one attempt at a number of states."""

UNTIMED_SLICES = 1200
"""Solver slices spent on uniqueness when there is no time limit."""


class OutOfTime(Exception):  # noqa: N818
    """The time limit has passed."""


class Size:
    """What a solver says of one number of states, by a part that grows with what clashes.

    `tick` is called often and may raise, to stop. Another `seed` searches along another path.
    """

    def __init__(
        self, problem: Question, part: Part, states: int, tick: Callable[[], None], seed: int = 0
    ) -> None:
        self._problem, self._part = problem, part
        self._colouring = Colouring(part, states, tick, seed)

    @property
    def clauses(self) -> int:
        """How many clauses the solver was given."""
        return self._colouring.clauses

    @property
    def calls(self) -> int:
        """How often the solver was asked."""
        return self._colouring.calls

    def solve(self, slices: int = SLICES) -> Table | bool | None:
        """Return a table that fits all samples, False if there is none, None if undecided."""
        while True:
            table = self._colouring.solve(slices)
            if not isinstance(table, np.ndarray):
                return table
            if (clash := self._problem.clash(table)) is None:
                return table
            self._part.grow(clash)

    def other_than(self, best: Table, most: int | None) -> Table | bool | None:
        """Return the settled table of another machine of this size, False if there is none.

        None where so many slices, `most`, do not decide it; without them it goes on.
        """
        spent = 0
        while most is None or spent < most:
            table = self.solve()
            if table is False:
                return False
            if isinstance(table, np.ndarray):
                settled = self._problem.settle(table)
                self._colouring.block(table, settled)
                if not np.array_equal(settled, best):
                    return settled
            spent += SLICES
        return None

    def close(self) -> None:
        """Let go of the solver."""
        self._colouring.close()
