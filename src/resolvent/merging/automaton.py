"""What merging gives back: states, transitions and outputs by id, and how they were found."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import Codes


class Event(NamedTuple):
    """One decision of the search. `red` is None when `blue` became a state of its own.

    `red` and `blue` are nodes of the prefix tree; `score` is how many answers
    agreed, `folded` how many tree nodes the merge did away with.
    """

    red: int | None
    blue: int
    score: int
    folded: int


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """An automaton over ids, its states numbered in the order of their promotion.

    `access[s]` is the tree node that state s began as. The columns `transition_*`
    and `output_*` are sorted by state, then label or alpha; `*_count` says how
    often each was seen. `tree_nodes` is the size of the prefix tree.
    """

    access: Codes
    transition_state: Codes
    transition_label: Codes
    transition_target: Codes
    transition_count: NDArray[np.int64]
    output_state: Codes
    output_alpha: Codes
    output_value: Codes
    output_count: NDArray[np.int64]
    events: tuple[Event, ...]
    attempts: int
    tree_nodes: int

    @property
    def states(self) -> int:
        """How many states the automaton has."""
        return len(self.access)


class Contradiction(Exception):  # noqa: N818
    """Two rows read the same labels and answer the same alpha differently.

    Of all such pairs the first: by label history in shortlex order, then by
    alpha, then by row.
    """

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.first = first
        self.second = second
