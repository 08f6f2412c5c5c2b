"""What a machine is asked step by step → which label histories reach each state and move.

Only whether there are few of them matters: so the few of lowest key are kept, and what pieces
of the traces keep adds up to what all of them would.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent.replay import StepsAsked
from resolvent.trust.histories import history_keys

FEW: Final = 5
"""A state that fewer histories reach is weak: one odd session could have made it."""

_ALONE: Final = 2
"""So many histories of a move are told apart from one alone."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lowest:
    """Keys in groups: of each group the lowest ones that differ, at most so many.

    >>> keys = Lowest.of(np.array([7, 7, 7, 2]), np.array([5, 3, 5, 9]), most=2)
    >>> keys.counts()
    (array([2, 7]), array([1, 2]))
    """

    most: int
    group: Numbers
    key: Numbers

    @classmethod
    def of(cls, group: Numbers, key: Numbers, most: int) -> "Lowest":
        """Keep the lowest keys of each group."""
        order = np.lexsort((key, group))
        group, key = group[order].astype(np.int64), key[order]
        new = np.ones(len(group), bool)
        new[1:] = (np.diff(group) != 0) | (key[1:] != key[:-1])
        group, key = group[new], key[new]
        first = np.searchsorted(group, group)  # where each one's group begins
        low = np.arange(len(group)) - first < most
        return cls(most, group[low], key[low])

    def counts(self) -> tuple[Numbers, Numbers]:
        """Return the groups and how many keys each has; the most that are kept may be more."""
        return np.unique(self.group, return_counts=True)

    def __add__(self, other: "Lowest") -> "Lowest":
        group = np.concatenate([self.group, other.group])
        return Lowest.of(group, np.concatenate([self.key, other.key]), self.most)


@dataclass(frozen=True, eq=False)
class Reached:
    """The label histories that enter each state from another and that take each move.

    `spent` are the steps in each state, and `steps` all there are. A move is a state and a label
    as one number, by the number of labels.
    """

    entered: Lowest
    moved: Lowest
    spent: Numbers
    steps: int

    @classmethod
    def of(cls, asked: StepsAsked, offsets: Numbers) -> "Reached":
        """Look at what a machine is asked in traces that begin at `offsets`.

        Labels that change nothing are left out of histories.
        """
        machine, labels, states = asked.machine, asked.labels, asked.states
        before = np.concatenate([[0], states[:-1]])
        before[offsets[:-1]] = 0
        moving = np.append(np.ones(len(machine.labels), bool), False)  # the last: other labels
        moving[list(machine.trivial)] = False
        read = moving[np.where((labels < 0) | (labels >= len(machine.labels)), -1, labels)]
        rows = np.flatnonzero(read)
        keys = history_keys([labels[rows]], np.concatenate([[0], np.cumsum(read)])[offsets])
        known = (before[rows] >= 0) & (states[rows] >= 0)
        rows, keys = rows[known], keys[known]
        enters = before[rows] != states[rows]
        moves = before[rows].astype(np.int64) * len(machine.labels) + labels[rows]
        return cls(
            Lowest.of(states[rows[enters]], keys[enters], FEW),
            Lowest.of(moves, keys, _ALONE),
            np.bincount(states[states >= 0], minlength=machine.states),
            len(states),
        )

    def __add__(self, other: "Reached") -> "Reached":
        return Reached(
            self.entered + other.entered,
            self.moved + other.moved,
            self.spent + other.spent,
            self.steps + other.steps,
        )
