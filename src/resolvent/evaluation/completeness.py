"""Check the conditions of structure completeness, which guarantee that inference is right.

Input: a machine and the traces. Output: each of the three conditions and what it lacks.

Paper: "Formal Definition of Structure Completeness".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from resolvent import _core
from resolvent.evaluation.observed import Numbers, ObservedTransitions, SampledSteps
from resolvent.evaluation.separation import CoreListener, VaryingOutputs, nontrivial_transitions
from resolvent.evaluation.weighing import OpenTransition, open_transitions
from resolvent.machines import Machine
from resolvent.machines.compare import history_text
from resolvent.machines.tables import look_up
from resolvent.noise import AlternativeTransitions
from resolvent.replay import StepQueries
from resolvent.traces import Label, label_text

Unseen = tuple[tuple[int, Label], ...]
"""States, each with a label that no trace reads there."""


@dataclass(frozen=True)
class OpenHistory:
    """A label history that reaches `state` and whose evidence does not rule out `other`."""

    history: tuple[Label, ...]
    state: int
    other: int

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {**vars(self), "history": [sorted(label) for label in self.history]}

    def __str__(self) -> str:
        place = f"after {history_text(self.history)}" if self.history else "at the start"
        return f"{place}: state {self.state} or {self.other}"


@dataclass(frozen=True)
class Completeness:
    """The gaps of traces under each of the three conditions.

    `histories` is the number of distinct label histories without trivial labels, `converging` the
    number of those whose evidence rules out every other state, and `first_open` the first of the
    remaining ones, in shortlex order.

    With noise no single output rules out a state, and transitions are weighed instead of
    histories: `moves` is their number, and `open_moves` are those that might lead elsewhere, at
    odds of less than 100 to 1, the least certain first. Otherwise `moves` is None.

    `part` is the sample of steps that histories or transitions are from, if traces in files are
    too many. The first two conditions always consider all traces.
    """

    unvisited: tuple[int, ...]
    unseen_transitions: Unseen
    histories: int
    converging: int
    first_open: OpenHistory | None
    moves: int | None = None
    open_moves: tuple[OpenTransition, ...] = ()
    part: SampledSteps | None = None

    @property
    def state_coverage(self) -> bool:
        """Whether the traces visit every state."""
        return not self.unvisited

    @property
    def transition_coverage(self) -> bool:
        """Whether the traces read every nontrivial label in every state."""
        return not self.unseen_transitions

    @property
    def conflict_convergence(self) -> bool:
        """Whether the evidence of every history rules out every state but its own.

        With noise: whether every transition is certain at odds of 100 to 1 or more.
        """
        return not self.open_moves and self.converging == self.histories

    @property
    def structure_complete(self) -> bool:
        """Whether all three conditions hold."""
        return self.state_coverage and self.transition_coverage and self.conflict_convergence

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        weighed: dict[str, Any] = {}
        if self.moves is not None:
            open_moves = [transition.as_dict() for transition in self.open_moves]
            weighed = {"moves": self.moves, "open_moves": open_moves}
        return {
            "state_coverage": self.state_coverage,
            "transition_coverage": self.transition_coverage,
            "conflict_convergence": self.conflict_convergence,
            "unvisited": list(self.unvisited),
            "unseen_transitions": [
                {"state": state, "label": sorted(label)} for state, label in self.unseen_transitions
            ],
            **weighed,
            **({} if self.part is None else {"part": self.part.as_dict()}),
            "histories": self.histories,
            "converging": self.converging,
            "first_open": None if self.first_open is None else self.first_open.as_dict(),
        }

    def __str__(self) -> str:
        states = ", ".join(map(str, self.unvisited))
        convergence = self._convergence_text()
        if self.part is not None:
            convergence += f"; {self.part}"
        return (
            f"state coverage: {f'no trace visits {states}' if states else 'yes'}\n"
            f"transition coverage: {_unseen_text(self.unseen_transitions)}\n{convergence}"
        )

    def _convergence_text(self) -> str:
        if self.moves is not None:
            certain = self.moves - len(self.open_moves)
            text = f"moves sure at odds of 100 to 1: {certain:,} of {self.moves:,}"
            return f"{text}, not {self.open_moves[0]}" if self.open_moves else text
        share = self.converging / max(self.histories, 1)
        text = (
            f"conflict convergence: {self.converging:,} of {self.histories:,} histories "
            f"({share:.1%})"
        )
        return text if self.first_open is None else f"{text}, not {self.first_open}"


def _unseen_text(unseen: Unseen, most: int = 3) -> str:
    if not unseen:
        return "yes"
    listed = ", ".join(f"{label_text(label)} in state {state}" for state, label in unseen[:most])
    more = f", and {len(unseen) - most:,} more" if len(unseen) > most else ""
    return f"never read: {listed}{more}"


def check_completeness(
    steps: StepQueries,
    offsets: Numbers,
    transitions: ObservedTransitions,
    varying: VaryingOutputs,
    unknown: list[tuple[int, Label]],
    progress: CoreListener | None = None,
) -> Completeness:
    """Check the paper's three conditions on traces, with the machine as the target.

    `unknown` are the states with labels that the machine does not know. State and transition
    coverage are the paper's, without trivial labels. Conflict convergence is checked in this form:
    for every history and every state other than the one it reaches, some labels read after the
    history lead to an output that contradicts an output observed after the same labels from that
    state, in any history. The paper requires such a conflict with each single history of the
    other state, which implies this condition; state merging needs only this one once the
    histories of a state are merged.
    """
    machine = steps.machine
    unvisited, unseen = _uncovered(machine, transitions, unknown)
    codes = np.arange(len(machine.labels) + 1, dtype=np.int32)
    codes[list(machine.trivial)] = -1
    tree = _core.build_history_tree(_core.recode(steps.labels, codes), offsets)
    histories, converging, node, state, other = _converge(steps, varying, tree, progress)
    first_open = None
    if node >= 0:
        labels = tuple(machine.labels[code] for code in tree.history(node))
        first_open = OpenHistory(labels, state, other)
    return Completeness(unvisited, unseen, histories, converging, first_open)


def weigh_completeness(
    machine: Machine,
    transitions: ObservedTransitions,
    comparison: AlternativeTransitions,
    unknown: list[tuple[int, Label]],
) -> Completeness:
    """Check the paper's first two conditions on noisy traces, and the odds of each transition."""
    unvisited, unseen = _uncovered(machine, transitions, unknown)
    uncertain = tuple(open_transitions(machine, comparison))
    first_open = None
    if uncertain and uncertain[0].state in machine.reachable():
        least = uncertain[0]
        history = (*machine.history(least.state), least.label)
        first_open = OpenHistory(history, least.target, least.other)
    weighed = int(np.count_nonzero(comparison.target >= 0))
    return Completeness(unvisited, unseen, 0, 0, first_open, weighed, uncertain)


def _uncovered(
    machine: Machine, transitions: ObservedTransitions, unknown: list[tuple[int, Label]]
) -> tuple[tuple[int, ...], Unseen]:
    """Return the states that no trace visits, and the labels never read in a state."""
    is_visited = np.zeros(machine.states, bool)
    is_visited[0] = True  # by the empty history
    is_visited[transitions.target] = True
    is_read = np.zeros(machine.transitions.shape, bool)
    is_read[transitions.state, transitions.label] = True
    is_read[:, list(machine.trivial)] = True
    unseen = [(state, machine.labels[code]) for state, code in np.argwhere(~is_read).tolist()]
    return tuple(np.flatnonzero(~is_visited).tolist()), (*unseen, *unknown)


def _converge(
    steps: StepQueries,
    varying: VaryingOutputs,
    tree: _core.HistoryTree,
    progress: CoreListener | None,
) -> tuple[int, int, int, int, int]:
    """Return the numbers of histories and converging ones; node and states of the first open one.

    A node of the tree rules out a state by its own outputs, or if a child rules out the state
    that the child's label leads to from there.
    """
    machine = steps.machine
    codes = np.arange(len(varying.queries), dtype=np.int32)
    columns = look_up(varying.queries, codes, steps.questions)
    columns[steps.outputs >= len(machine.outputs)] = -1
    entries = varying.by_query
    return _core.converge(
        tree,
        columns,
        steps.outputs,
        question=varying.column[entries],
        state=varying.state[entries],
        output=varying.output[entries],
        questions=len(varying.queries),
        transitions=nontrivial_transitions(machine),
        states=machine.states,
        labels=len(machine.labels),
        progress=progress,
    )
