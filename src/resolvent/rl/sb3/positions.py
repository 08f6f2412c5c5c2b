"""Assign the states of changing machines to positions in a row of fixed length.

A network has weights for each position. So a state keeps the position of the old state that
occurred at the same steps, as far as possible, and a split-off state begins as a copy of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Positions:
    """The position of each state of one machine, and the position that showed it before."""

    of_state: NDArray[np.int64]
    before: NDArray[np.int64]

    @property
    def moves(self) -> dict[int, int]:
        """The changed positions of states, each with the position before."""
        pairs = list(zip(self.of_state.tolist(), self.before.tolist(), strict=True))
        return {place: earlier for place, earlier in reversed(pairs) if place != earlier}


def assign_positions(counts: NDArray[np.int64]) -> Positions:
    """Return positions for states, given the counts of states while each position was shown.

    `counts` has a row for each position and a column for each state. The pair with the highest
    count stays together, then the next; remaining states get free positions, the most frequent
    first. The last position is shared by all states that are left.

    >>> grown = assign_positions(np.array([[5, 9, 0], [0, 0, 7], [0, 0, 0]]))
    >>> grown.of_state.tolist(), grown.before.tolist(), grown.moves
    ([2, 0, 1], [0, 0, 1], {2: 0})
    """
    places, states = counts.shape
    own = places if states <= places else places - 1
    of_state = np.full(states, -1, np.int64)
    is_free = [True] * own
    rows, columns = np.nonzero(counts[:own])
    for at in np.lexsort((columns, rows, -counts[rows, columns])).tolist():
        place, state = int(rows[at]), int(columns[at])
        if is_free[place] and of_state[state] < 0:
            of_state[state], is_free[place] = place, False
    left = iter([place for place in range(own) if is_free[place]])
    total = counts.sum(axis=0)
    for state in np.argsort(-total, kind="stable").tolist():
        if of_state[state] < 0:
            of_state[state] = next(left, places - 1)
    before = np.where(total > 0, counts.argmax(axis=0), of_state)
    return Positions(of_state, before)
