"""Tables of machines: columns looked up by sorted keys; transitions explored or recoded."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.symbols import Label
from resolvent.traces.vocabulary import MAX_TABLE_SIZE, Codes, Vocabulary, codes_of

_MAX_TABLE_ENTRIES_PER_KEY = 64
"""Maximum number of entries per key for which a table is cheaper than searching."""


def no_codes() -> Codes:
    """Return an empty column of codes."""
    return np.empty(0, np.int32)


def no_numbers() -> NDArray[np.int64]:
    """Return an empty column of numbers."""
    return np.empty(0, np.int64)


def look_up(keys: NDArray[np.int64], values: Codes, wanted: NDArray[np.int64]) -> Codes:
    """Return the value of each wanted key, −1 where there is none; `keys` are sorted."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int32)
    size = int(keys[-1]) + 1
    if size <= min(MAX_TABLE_SIZE, _MAX_TABLE_ENTRIES_PER_KEY * len(wanted)):
        table = np.full(size + 1, -1, np.int32)  # the last entry stands for all other keys
        table[keys] = values
        return table[np.where((wanted >= 0) & (wanted < size), wanted, size)]
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    return np.where(keys[at] == wanted, values[at], np.int32(-1))


def places(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> Codes:
    """Return the index of each wanted key among the sorted keys, −1 where there is none.

    >>> places(np.array([2, 5, 9]), np.array([9, 3, 2])).tolist()
    [2, -1, 0]
    """
    return look_up(keys, np.arange(len(keys), dtype=np.int32), wanted)


def is_member(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each wanted key whether it is among the sorted keys."""
    return np.asarray(look_up(keys, np.zeros(len(keys), np.int32), wanted) == 0)


def shortest_paths(transitions: Codes) -> dict[int, tuple[int, int]]:
    """Return for each reachable state the last transition of its shortest path: source and label.

    States come in breadth-first order, labels in theirs. The initial state has the label −1.

    >>> shortest_paths(np.array([[0, 2, -1], [0, 1, -1], [1, 2, 0]]))
    {0: (0, -1), 2: (0, 1), 1: (2, 0)}
    """
    paths: dict[int, tuple[int, int]] = {0: (0, -1)}
    queue = [0]
    for state in queue:
        row = transitions[state]
        for code in np.flatnonzero(row >= 0).tolist():
            if (target := int(row[code])) not in paths:
                paths[target] = state, code
                queue.append(target)
    return paths


def breadth_first(transitions: Codes) -> NDArray[np.int64]:
    """Return the reachable states in breadth-first order."""
    return np.array(list(shortest_paths(transitions)), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class TransitionTable:
    """Next states as [state, label code]; −1 where none is known.

    >>> from resolvent.traces.vocabulary import Vocabulary
    >>> table = TransitionTable(np.int32([[1, -1], [0, 1]]), Vocabulary("ab"))
    >>> table.for_labels("bca").tolist()
    [[-1, -1, 1], [1, -1, 0]]
    >>> table.for_labels("bca", unseen="stay", others=True).tolist()
    [[0, 0, 1, 0], [1, 1, 0, 1]]
    """

    next_state: Codes
    labels: Vocabulary[Label]

    def for_labels(
        self,
        alphabet: Collection[Label],
        *,
        unseen: str = "unknown",
        others: bool = False,
    ) -> Codes:
        """Return the next states as [state, label code in the alphabet], a contiguous array.

        Transitions that are not known are −1, or with `unseen="stay"` lead back to their state.
        With `others` a last column stands for all labels outside the alphabet.
        """
        codes = codes_of(alphabet, self.labels, -1)
        if others:
            codes = np.append(codes, np.int32(-1))
        unknown = np.full((len(self.next_state), 1), -1, np.int32)
        table = np.hstack([self.next_state, unknown])[:, codes]
        if unseen == "stay":
            table = np.where(table < 0, np.arange(len(table), dtype=np.int32)[:, None], table)
        return np.ascontiguousarray(table)
