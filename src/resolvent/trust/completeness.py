"""The paper's three conditions under which inference is bound to be right, one by one.

Paper: "Formal Definition of Structure Completeness".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines.columns import look_up
from resolvent.machines.drawing import history_text
from resolvent.replay import StepsAsked
from resolvent.traces import Label, label_text
from resolvent.trust.counting import MovesSeen
from resolvent.trust.separation import VaryingAnswers, moving
from resolvent.trust.telling import CoreListener


@dataclass(frozen=True)
class OpenHistory:
    """A label history that reaches `state`, whose evidence does not rule out `other`."""

    history: tuple[Label, ...]
    state: int
    other: int


@dataclass(frozen=True)
class Completeness:
    """What the three conditions lack in some traces; nothing, if they all hold.

    `histories` counts the distinct label histories, trivial labels left out, and
    `converging` those whose evidence rules out every state but the one they
    reach; `first_open` is the first, in shortlex order, where it does not.
    """

    unvisited: tuple[int, ...]
    unseen_transitions: tuple[tuple[int, Label], ...]
    histories: int
    converging: int
    first_open: OpenHistory | None

    @property
    def state_coverage(self) -> bool:
        """Whether the traces visit every state."""
        return not self.unvisited

    @property
    def transition_coverage(self) -> bool:
        """Whether the traces read every label in every state, trivial ones left out."""
        return not self.unseen_transitions

    @property
    def conflict_convergence(self) -> bool:
        """Whether every history's evidence rules out every state but its own."""
        return self.converging == self.histories

    @property
    def structure_complete(self) -> bool:
        """Whether all three conditions hold."""
        return self.state_coverage and self.transition_coverage and self.conflict_convergence

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        first = self.first_open
        return {
            "state_coverage": self.state_coverage,
            "transition_coverage": self.transition_coverage,
            "conflict_convergence": self.conflict_convergence,
            "unvisited": list(self.unvisited),
            "unseen_transitions": [
                {"state": state, "label": sorted(label)} for state, label in self.unseen_transitions
            ],
            "histories": self.histories,
            "converging": self.converging,
            "first_open": None
            if first is None
            else {
                "history": [sorted(label) for label in first.history],
                "state": first.state,
                "other": first.other,
            },
        }

    def __str__(self) -> str:
        states = ", ".join(map(str, self.unvisited))
        share = self.converging / max(self.histories, 1)
        lines = [
            f"state coverage: {f'no trace visits {states}' if states else 'yes'}",
            f"transition coverage: {_unseen_text(self.unseen_transitions)}",
            f"conflict convergence: {self.converging:,} of {self.histories:,} histories "
            f"({share:.1%})",
        ]
        if self.first_open is not None:
            one = self.first_open
            lines[2] += (
                f", not after {history_text(one.history)}: state {one.state} or {one.other}"
                if one.history
                else f", not at the start: state {one.state} or {one.other}"
            )
        return "\n".join(lines)


def _unseen_text(unseen: tuple[tuple[int, Label], ...], most: int = 3) -> str:
    if not unseen:
        return "yes"
    shown = ", ".join(f"{label_text(label)} in state {state}" for state, label in unseen[:most])
    more = f", and {len(unseen) - most:,} more" if len(unseen) > most else ""
    return f"never read: {shown}{more}"


def check_completeness(
    asked: StepsAsked,
    offsets: NDArray[np.int64],
    moves: MovesSeen,
    table: VaryingAnswers,
    unknown: list[tuple[int, Label]],
    progress: CoreListener | None = None,
) -> Completeness:
    """Check the paper's three conditions on some traces, with the machine as the target.

    `unknown` are states in which the traces read a label that the machine does not know.
    State and transition coverage are the paper's, trivial labels left out. Of
    conflict convergence this is checked: for every history and every state other
    than the one it reaches, some labels read after that history lead to an answer
    which the traces show otherwise after the same labels from that state, in
    whatever history. The paper asks for such a conflict with each single history
    that reaches the other state; what is checked here follows from that, and is
    what state merging has to go by once histories of one state are merged.
    """
    machine = asked.machine
    visited = np.zeros(machine.states, bool)
    visited[0] = True  # by the history of no labels
    visited[moves.target] = True
    read = np.zeros(machine.transitions.shape, bool)
    read[moves.state, moves.label] = True
    read[:, list(machine.trivial)] = True
    unseen = [(state, machine.labels[code]) for state, code in np.argwhere(~read).tolist()]
    unseen += unknown
    kept = np.arange(len(machine.labels) + 1, dtype=np.int32)
    kept[list(machine.trivial)] = -1
    tree = _core.build_history_tree(_core.recode(asked.labels, kept), offsets)
    histories, converging, node, state, other = _converging(asked, table, tree, progress)
    first = None
    if node >= 0:
        labels = tuple(machine.labels[code] for code in tree.history(node))
        first = OpenHistory(labels, state, other)
    return Completeness(
        tuple(np.flatnonzero(~visited).tolist()), tuple(unseen), histories, converging, first
    )


def _converging(
    asked: StepsAsked, table: VaryingAnswers, tree: _core.HistoryTree, progress: CoreListener | None
) -> tuple[int, int, int, int, int]:
    """Return histories, those that converge, and of the first that does not node and states.

    A node of the tree rules out a state by its own answers, or when a child rules
    out the state that the child's label leads to from there.
    """
    machine = asked.machine
    columns = look_up(
        table.questions, np.arange(len(table.questions), dtype=np.int32), asked.questions
    )
    columns[asked.outputs >= len(machine.outputs)] = -1
    entries = table.by_question
    return _core.converge(
        tree,
        columns,
        asked.outputs,
        question=table.column[entries],
        state=table.state[entries],
        output=table.output[entries],
        questions=len(table.questions),
        transitions=moving(machine),
        states=machine.states,
        labels=len(machine.labels),
        progress=progress,
    )
