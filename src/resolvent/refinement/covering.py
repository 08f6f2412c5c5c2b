"""Traces and the states that machines are in there → few that take each rare move several times."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.traces import Codes

COMMON: Final = 64
"""Moves at so many times as many steps as there should be traces with them are common: any few
traces have them."""


def covering(
    moves: Iterable[Codes], offsets: NDArray[np.int64], order: NDArray[np.int64], times: int
) -> NDArray[np.int64]:
    """Return the numbers of traces, rising, with each rare move in `times` of them, or in all.

    `moves` has a column for each machine: the number of the move at each step, −1 for none.
    For each move the first traces in `order` are taken that have it; only those count at all.

    >>> moves, offsets = np.int32([0, 0, 0, 1, 0, 1]), np.int64([0, 2, 4, 6])
    >>> covering([moves], offsets, np.int64([0, 1, 2]), 1)
    array([0, 1])
    """
    place = np.full(len(offsets) - 1, -1, np.int64)
    place[order] = np.arange(len(order))
    place_of_step = np.repeat(place, np.diff(offsets))
    chosen = np.zeros(len(order), bool)
    for column in moves:
        counted = column[(column >= 0) & (place_of_step >= 0)]
        common = np.bincount(counted, minlength=int(column.max(initial=0)) + 1) > COMMON * times
        step = np.flatnonzero((column >= 0) & (place_of_step >= 0) & ~common[column])
        met = np.unique(column[step].astype(np.int64) * len(order) + place_of_step[step])
        move = met // max(len(order), 1)
        rank = np.arange(len(met)) - np.searchsorted(move, move)
        chosen[met[rank < times] % max(len(order), 1)] = True
    found: NDArray[np.int64] = np.sort(order[chosen])
    return found
