"""The automaton that state merging returns: states, transitions and outputs as columns of codes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import Codes


class RawMergeEvent(NamedTuple):
    """One decision of state merging; `red` is None when `blue` was promoted to a state.

    `red` and `blue` are nodes of the prefix tree. `score` is the number of outputs that agreed,
    `folded` the number of tree nodes that the merge removed.
    """

    red: int | None
    blue: int
    score: int
    folded: int


@dataclass(frozen=True, slots=True, eq=False)
class RawAutomaton:
    """An automaton over codes; states are numbered in the order of their promotion.

    Attributes:
        access: The tree node that each state began as.
        transition_state, transition_label, transition_target, transition_count: The transitions
            and how often each was taken, sorted by state, then label.
        output_state, output_alpha, output_value, output_count: The outputs and how often each was
            seen, sorted by state, then α-input.
        events: The decisions in order.
        attempts: Number of folds that were tried.
        tree_nodes: Size of the prefix tree.
        finished: False if time ran out. Then a state may have seen several outputs for an
            α-input, and `output_value` is the most frequent one.
        wrong: Number of rows that an unfinished automaton predicts wrongly.
        work: Effort in units that are the same on every computer; 0 if it was not counted.
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
    events: tuple[RawMergeEvent, ...]
    attempts: int
    tree_nodes: int
    finished: bool = True
    wrong: int = 0
    work: int = 0

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.access)


def automaton_of_transitions(transitions: Codes) -> RawAutomaton:
    """Return the automaton of a table [state, label], −1 for no transition, without outputs.

    >>> automaton_of_transitions(np.int32([[1, -1], [0, 1]])).transition_target.tolist()
    [1, 0, 1]
    """
    state, label = (column.astype(np.int32) for column in np.nonzero(transitions >= 0))
    no_codes, no_counts = np.empty(0, np.int32), np.empty(0, np.int64)
    return RawAutomaton(
        access=np.zeros(len(transitions), np.int32),
        transition_state=state,
        transition_label=label,
        transition_target=transitions[state, label],
        transition_count=np.zeros(len(state), np.int64),
        output_state=no_codes,
        output_alpha=no_codes,
        output_value=no_codes,
        output_count=no_counts,
        events=(),
        attempts=0,
        tree_nodes=0,
    )


def automaton_from_columns(columns: dict[str, Any], tree_nodes: int) -> RawAutomaton:
    """Return the automaton of the columns that the compiled core returns."""
    red, *fields = (columns.pop(f"event_{name}").tolist() for name in RawMergeEvent._fields)
    merged_into = [None if state < 0 else state for state in red]
    return RawAutomaton(
        events=tuple(map(RawMergeEvent, merged_into, *fields)), tree_nodes=tree_nodes, **columns
    )


class BudgetExceeded(Exception):  # noqa: N818
    """The budget of state merging was exceeded."""


class StateLimitExceeded(BudgetExceeded):
    """Merging found more states than the limit."""


class WorkLimitExceeded(BudgetExceeded):
    """Merging took more work than the limit."""
