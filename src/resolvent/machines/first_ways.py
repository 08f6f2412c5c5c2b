"""A table of moves → by which of them each state is reached first."""

import numpy as np

from resolvent.traces.vocabulary import Codes


def first_ways(transitions: Codes) -> dict[int, tuple[int, int]]:
    """Return for each state that can be reached from where and by which label it first is.

    States come nearest first. The initial one is reached by no label, which is −1.

    >>> first_ways(np.array([[0, 2, -1], [0, 1, -1], [1, 2, 0]]))
    {0: (0, -1), 2: (0, 1), 1: (2, 0)}
    """
    ways: dict[int, tuple[int, int]] = {0: (0, -1)}
    queue = [0]
    for state in queue:
        row = transitions[state]
        for code in np.flatnonzero(row >= 0).tolist():
            if (target := int(row[code])) not in ways:
                ways[target] = state, code
                queue.append(target)
    return ways
