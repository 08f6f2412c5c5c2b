"""The columns that machines hold their tables in: empty ones, and values found by sorted keys."""

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import MAX_TABLE_SIZE, Codes

_WORTH_A_TABLE = 64
"""Up to so many entries for each key looked up, a table is cheaper than searching."""


def no_codes() -> Codes:
    """Return a column of codes without a row."""
    return np.empty(0, np.int32)


def no_numbers() -> NDArray[np.int64]:
    """Return a column of numbers without a row."""
    return np.empty(0, np.int64)


def is_among(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the wanted keys there are; `keys` are sorted."""
    found: NDArray[np.bool_] = look_up(keys, np.zeros(len(keys), np.int32), wanted) == 0
    return found


def look_up(keys: NDArray[np.int64], values: Codes, wanted: NDArray[np.int64]) -> Codes:
    """Return for each wanted key its value, −1 where there is none; `keys` are sorted."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int32)
    size = int(keys[-1]) + 1
    if size <= min(MAX_TABLE_SIZE, _WORTH_A_TABLE * len(wanted)):
        table = np.full(size + 1, -1, np.int32)  # the last entry answers for all other keys
        table[keys] = values
        return table[np.where((wanted >= 0) & (wanted < size), wanted, size)]
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    return np.where(keys[at] == wanted, values[at], np.int32(-1))


def places(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> Codes:
    """Return for each wanted key its place among the keys, −1 where there is none.

    >>> places(np.array([2, 5, 9]), np.array([9, 3, 2])).tolist()
    [2, -1, 0]
    """
    return look_up(keys, np.arange(len(keys), dtype=np.int32), wanted)
