"""Traces and the states that machines are in there → few that take each rare move several times."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import distinct_numbers

COMMON: Final = 64
"""Moves at so many times as many steps as there should be traces with them are common: any few
traces have them."""

_NOT_RARE: Final = np.iinfo(np.int64).max


def covering(
    moves: Iterable[NDArray[np.int64]],
    offsets: NDArray[np.int64],
    order: NDArray[np.int64],
    times: int,
    most_steps: int,
) -> NDArray[np.int64]:
    """Return the numbers of traces, rising, with each rare move in `times` of them, or in all.

    `moves` has a column for each machine: the number of the move at each step, −1 for none.
    For each move the first traces in `order` are taken that have it; only those count at all.
    Where these have more than so many steps, those with the rarest moves are taken.

    >>> moves, offsets = np.int64([0, 0, 0, 1, 0, 1]), np.int64([0, 2, 4, 6])
    >>> covering([moves], offsets, np.int64([0, 1, 2]), 1, most_steps=4)
    array([0, 1])
    """
    lengths = np.diff(offsets)
    place = np.full(len(lengths), -1, np.int64)
    place[order] = np.arange(len(order))
    place_of_step = np.repeat(place, lengths)
    rarest = np.full(len(order), _NOT_RARE)  # by place: of its rare moves, in how many traces
    for column in moves:
        counts = (column >= 0) & (place_of_step >= 0)
        met_at = np.flatnonzero(counts)
        _, number = distinct_numbers(column[met_at], int(column.max(initial=0)) + 1)
        rare = np.bincount(number)[number] <= COMMON * times
        met = np.unique(number[rare] * len(order) + place_of_step[met_at[rare]])
        move, trace = np.divmod(met, max(len(order), 1))
        first, after = (np.searchsorted(move, move, side) for side in ("left", "right"))
        taken = np.arange(len(met)) - first < times
        np.minimum.at(rarest, trace[taken], (after - first)[taken])
    by_rarity = np.argsort(rarest, kind="stable")[: int(np.sum(rarest < _NOT_RARE))]
    within = np.cumsum(lengths[order[by_rarity]]) <= most_steps
    found: NDArray[np.int64] = np.sort(order[by_rarity[within]])
    return found
