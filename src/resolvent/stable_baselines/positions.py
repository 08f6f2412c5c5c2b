"""Machines that change → places for their states in a row of fixed length.

A network has weights for each place. So a state keeps the place of the one that was met at
the same steps before, as far as possible, and a state that split off begins as a copy of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Positions:
    """The place of each state of one machine, and the place at which it was shown before."""

    of_state: NDArray[np.int64]
    before: NDArray[np.int64]

    @property
    def moves(self) -> dict[int, int]:
        """The places whose states were shown elsewhere before, and where that was."""
        return {
            place: earlier
            for place, earlier in reversed(
                list(zip(self.of_state.tolist(), self.before.tolist(), strict=True))
            )
            if place != earlier
        }


def renumbered(together: NDArray[np.int64]) -> Positions:
    """Return places for states, given how often each was met while each place was shown.

    `together` has a row for each place and a column for each state. Those that were met most
    often together stay together; states that are left get free places, those met most often
    first. If there are more states than places, the last place is shared by all that are left.

    >>> grown = renumbered(np.array([[5, 9, 0], [0, 0, 7], [0, 0, 0]]))
    >>> grown.of_state.tolist(), grown.before.tolist(), grown.moves
    ([2, 0, 1], [0, 0, 1], {2: 0})
    """
    places, states = together.shape
    own = places if states <= places else places - 1
    of_state = np.full(states, -1, np.int64)
    free = [True] * own
    rows, columns = np.nonzero(together[:own])
    for at in np.lexsort((columns, rows, -together[rows, columns])).tolist():
        place, state = int(rows[at]), int(columns[at])
        if free[place] and of_state[state] < 0:
            of_state[state], free[place] = place, False
    left = iter([place for place in range(own) if free[place]])
    met = together.sum(axis=0)
    for state in np.argsort(-met, kind="stable").tolist():
        if of_state[state] < 0:
            of_state[state] = next(left, places - 1)
    before = np.where(met > 0, together.argmax(axis=0), of_state)
    return Positions(of_state, before)
