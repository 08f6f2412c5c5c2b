"""What merging gives back: states, transitions and outputs by id, and how they were found."""

from dataclasses import dataclass
from typing import Any, NamedTuple

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
    often each was seen. `tree_nodes` is the size of the prefix tree. Where time ran out it
    is not `finished`: then some states answer a question in more than one way, `output_value`
    is what came most often, and `wrong` counts the answers that were others. `work` says what
    it took to find it, in units that are the same on every computer; 0 if nobody counted.
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
    finished: bool = True
    wrong: int = 0
    work: int = 0

    @property
    def states(self) -> int:
        """How many states the automaton has."""
        return len(self.access)


def moves_alone(transitions: Codes) -> Automaton:
    """Return an automaton of a table [state, label], −1 where there is no move, without answers.

    >>> moves_alone(np.int32([[1, -1], [0, 1]])).transition_target.tolist()
    [1, 0, 1]
    """
    state, label = (column.astype(np.int32) for column in np.nonzero(transitions >= 0))
    none, no_counts = np.empty(0, np.int32), np.empty(0, np.int64)
    return Automaton(
        access=np.zeros(len(transitions), np.int32),
        transition_state=state,
        transition_label=label,
        transition_target=transitions[state, label],
        transition_count=np.zeros(len(state), np.int64),
        output_state=none,
        output_alpha=none,
        output_value=none,
        output_count=no_counts,
        events=(),
        attempts=0,
        tree_nodes=0,
    )


def automaton_of(found: dict[str, Any], tree_nodes: int) -> Automaton:
    """Make an automaton of the columns that the core returns."""
    red, *others = (found.pop(f"event_{name}").tolist() for name in Event._fields)
    merged_into = [None if state < 0 else state for state in red]
    return Automaton(events=tuple(map(Event, merged_into, *others)), tree_nodes=tree_nodes, **found)


class GivenUp(Exception):  # noqa: N818
    """Merging was given up, for what it would have found was not worth it."""


class TooManyStates(GivenUp):
    """More states were found than somebody wants to know of."""


class TooMuchWork(GivenUp):
    """It took more work than somebody wants to spend."""


class Contradiction(Exception):  # noqa: N818
    """Two rows read the same labels and answer the same alpha differently.

    Of all such pairs the first: by label history in shortlex order, then by
    alpha, then by row.
    """

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        self.first = first
        self.second = second
