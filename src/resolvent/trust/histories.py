"""Columns of steps → a number for all that a trace held up to each step."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.choosing import scrambled
from resolvent.traces.vocabulary import Codes


def history_keys(columns: Iterable[Codes], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each step that equal beginnings of traces share, others almost never.

    A beginning ends with the step, and is what the columns hold of it, one code a step.

    >>> first_two_are_alike = np.array([0, 1, 2, 0, 1, 1], np.int32)
    >>> keys = history_keys([first_two_are_alike], np.array([0, 3, 6]))
    >>> (keys[:3] == keys[3:]).tolist()
    [True, True, False]
    """
    lengths = np.diff(offsets)
    place: NDArray[np.int64] = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    mixed = scrambled(place, 0)
    for salt, codes in enumerate(columns, 1):
        mixed = scrambled(mixed + codes.astype(np.int64), salt)
    total = np.cumsum(mixed)  # which wraps around, as it should
    before = np.concatenate([[0], total])[offsets[:-1]]
    keys: NDArray[np.int64] = total - np.repeat(before, lengths)
    return keys
