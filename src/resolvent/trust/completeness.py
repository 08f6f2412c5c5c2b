"""The paper's three conditions under which inference is bound to be right, one by one.

Paper: "Formal Definition of Structure Completeness".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.machines import Machine
from resolvent.machines.columns import look_up
from resolvent.machines.ways import history_text
from resolvent.noise import Rivals
from resolvent.replay import StepsAsked
from resolvent.traces import Label, label_text
from resolvent.trust.counting import MovesSeen
from resolvent.trust.part import Part
from resolvent.trust.separation import VaryingAnswers, moving
from resolvent.trust.telling import CoreListener
from resolvent.trust.weighing import OpenMove, open_moves


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

    Where there is noise no single answer rules out a state, and moves are weighed instead of
    histories: `moves` counts them, and `open_moves` are those that might lead elsewhere, at odds
    of less than 100 to 1, the least sure first. Otherwise `moves` is None.

    `part` says from how many of all steps histories or moves are, where traces are in files and
    too many to hold all histories. The first two conditions are always about all of them.
    """

    unvisited: tuple[int, ...]
    unseen_transitions: tuple[tuple[int, Label], ...]
    histories: int
    converging: int
    first_open: OpenHistory | None
    moves: int | None = None
    open_moves: tuple[OpenMove, ...] = ()
    part: Part | None = None

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
        """Whether every history's evidence rules out every state but its own.

        With noise: whether every move leads where it does at odds of 100 to 1 or more.
        """
        return not self.open_moves and self.converging == self.histories

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
            **(
                {}
                if self.moves is None
                else {
                    "moves": self.moves,
                    "open_moves": [one.as_dict() for one in self.open_moves],
                }
            ),
            **({} if self.part is None else {"part": self.part.as_dict()}),
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
        if self.moves is not None:
            lines[2] = self._moves_text(self.moves)
        elif self.first_open is not None:
            one = self.first_open
            lines[2] += (
                f", not after {history_text(one.history)}: state {one.state} or {one.other}"
                if one.history
                else f", not at the start: state {one.state} or {one.other}"
            )
        if self.part is not None:
            lines[2] += f"; {self.part}"
        return "\n".join(lines)

    def _moves_text(self, moves: int) -> str:
        sure = moves - len(self.open_moves)
        text = f"moves sure at odds of 100 to 1: {sure:,} of {moves:,}"
        return f"{text}, not {self.open_moves[0]}" if self.open_moves else text


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
    unvisited, unseen = _uncovered(machine, moves, unknown)
    kept = np.arange(len(machine.labels) + 1, dtype=np.int32)
    kept[list(machine.trivial)] = -1
    tree = _core.build_history_tree(_core.recode(asked.labels, kept), offsets)
    histories, converging, node, state, other = _converging(asked, table, tree, progress)
    first = None
    if node >= 0:
        labels = tuple(machine.labels[code] for code in tree.history(node))
        first = OpenHistory(labels, state, other)
    return Completeness(unvisited, unseen, histories, converging, first)


def weigh_completeness(
    machine: Machine, moves: MovesSeen, rivals: Rivals, unknown: list[tuple[int, Label]]
) -> Completeness:
    """Check the paper's first two conditions on noisy traces, and how sure each move is."""
    unvisited, unseen = _uncovered(machine, moves, unknown)
    doubtful = tuple(open_moves(machine, rivals))
    first = None
    if doubtful and doubtful[0].state in machine.reachable():
        one = doubtful[0]
        first = OpenHistory((*machine.history(one.state), one.label), one.target, one.other)
    weighed = int(np.count_nonzero(rivals.target >= 0))
    return Completeness(unvisited, unseen, 0, 0, first, weighed, doubtful)


def _uncovered(
    machine: Machine, moves: MovesSeen, unknown: list[tuple[int, Label]]
) -> tuple[tuple[int, ...], tuple[tuple[int, Label], ...]]:
    """Return the states that no trace visits, and the labels never read in a state."""
    visited = np.zeros(machine.states, bool)
    visited[0] = True  # by the history of no labels
    visited[moves.target] = True
    read = np.zeros(machine.transitions.shape, bool)
    read[moves.state, moves.label] = True
    read[:, list(machine.trivial)] = True
    unseen = [(state, machine.labels[code]) for state, code in np.argwhere(~read).tolist()]
    return tuple(np.flatnonzero(~visited).tolist()), (*unseen, *unknown)


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
