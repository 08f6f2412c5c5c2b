"""Check the conditions of structure completeness, which guarantee that inference is right.

Input: a machine and the traces. Output: each of the three conditions and what it lacks.

Paper: "Formal Definition of Structure Completeness".
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from resolvent import _core
from resolvent._util.records import to_builtins
from resolvent._util.text import odds_text
from resolvent.evaluation.observed import (
    Location,
    Numbers,
    SampledSteps,
    location,
    nontrivial_labels,
)
from resolvent.evaluation.separation import (
    CoreListener,
    VaryingOutputs,
    nontrivial_transitions,
    times,
)
from resolvent.machines import Machine
from resolvent.machines.compare import label_sequence_text
from resolvent.machines.tables import AlternativeTransitions, positions
from resolvent.noise.outputs import OPEN_LOG_ODDS
from resolvent.replay.counts import CountTable
from resolvent.replay.steps import StepQueries
from resolvent.traces import Label, label_text

Unseen = tuple[tuple[int, Label], ...]  # states, each with a label that no trace reads there
_UNSEEN_SHOWN: Final = 3


@dataclass(frozen=True)
class TransitionSupport:
    """A transition of the traces, its count, and its first location.

    In a noisy machine `alternative` is the most likely other target, and `log_odds` its
    log-likelihood ratio to `target`, given all other transitions.
    """

    state: int
    label: Label
    target: int
    count: int
    location: Location
    alternative: int | None = None
    log_odds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return to_builtins(self, optional=["alternative", "log_odds"])

    def __str__(self) -> str:
        read = f"state {self.state} reads {label_text(self.label)} → {self.target}"
        text = f"{read}: {times(self.count)} (trace {self.location[0]}, step {self.location[1]})"
        if self.log_odds is None:
            return text
        return f"{text}; to {self.alternative}: {odds_text(self.log_odds)}"


def supports_of(
    machine: Machine,
    transitions: CountTable,
    rows: Numbers,
    alternatives: AlternativeTransitions | None = None,
) -> list[TransitionSupport]:
    """Return some rows of the observed transitions, with the alternatives to each."""
    supports = []
    for row in rows.tolist():
        state, label, target = (int(column[row]) for column in transitions.columns.values())
        other: tuple[int, float] | tuple[()] = ()
        if alternatives is not None and (likeliest := int(alternatives.target[state, label])) >= 0:
            other = likeliest, -float(alternatives.log_odds[state, label])
        count, where = int(transitions.count[row]), location(transitions, row)
        read = machine.labels[label]
        supports.append(TransitionSupport(state, read, target, count, where, *other))
    return supports


@dataclass(frozen=True)
class AmbiguousSequence:
    """A label sequence that reaches `state`, whose evidence does not rule out `other`."""

    labels: tuple[Label, ...]
    state: int
    other: int

    def __str__(self) -> str:
        read = f"after {label_sequence_text(self.labels)}" if self.labels else "at the start"
        return f"{read}: state {self.state} or {self.other}"


@dataclass(frozen=True)
class Completeness:
    """The gaps of traces under each of the three conditions.

    `sequences` is the number of distinct label sequences without trivial labels, `converging` the
    number of those whose evidence rules out every other state, and `first_ambiguous` the first of
    the remaining ones, in shortlex order.

    With noise, transitions are weighed instead of sequences: `weighed` is their number, and
    `uncertain` are those that may lead elsewhere, at odds of less than 100 to 1, the least certain
    first. Otherwise `weighed` is None.

    `part` is the sample of steps that sequences or weighed transitions are from, if any.
    """

    unvisited: tuple[int, ...]
    unseen_transitions: Unseen
    sequences: int = 0
    converging: int = 0
    first_ambiguous: AmbiguousSequence | None = None
    weighed: int | None = None
    uncertain: tuple[TransitionSupport, ...] = ()
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
        """Whether the evidence of every label sequence rules out every state but its own.

        With noise: whether every transition is certain at odds of 100 to 1 or more.
        """
        return not self.uncertain and self.converging == self.sequences

    @property
    def structure_complete(self) -> bool:
        """Whether all three conditions hold."""
        return self.state_coverage and self.transition_coverage and self.conflict_convergence

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        conditions = ("state_coverage", "transition_coverage", "conflict_convergence", "unvisited")
        figures = ("part", "sequences", "converging", "first_ambiguous")
        weighed = () if self.weighed is None else ("weighed", "uncertain")
        return {
            **to_builtins(self, conditions),
            "unseen_transitions": [
                {"state": state, "label": sorted(label)} for state, label in self.unseen_transitions
            ],
            **to_builtins(self, (*weighed, *figures), optional=["part"]),
        }

    def __str__(self) -> str:
        states = ", ".join(map(str, self.unvisited))
        first = self.unseen_transitions[:_UNSEEN_SHOWN]
        unseen = [f"{label_text(label)} in state {state}" for state, label in first]
        if len(self.unseen_transitions) > _UNSEEN_SHOWN:
            unseen.append(f"and {len(self.unseen_transitions) - _UNSEEN_SHOWN:,} more")
        reading = f"never read: {', '.join(unseen)}" if unseen else "yes"
        if self.weighed is not None:
            text = f"transitions certain at odds of 100 to 1: {self.convergence}"
            open_case: object = self.uncertain[0] if self.uncertain else None
        else:
            share = self.converging / max(self.sequences, 1)
            text = f"conflict convergence: {self.convergence} label sequences ({share:.1%})"
            open_case = self.first_ambiguous
        open_text = "" if open_case is None else f", not {open_case}"
        part = "" if self.part is None else f"; {self.part}"
        return (
            f"state coverage: {f'no trace visits {states}' if states else 'yes'}\n"
            f"transition coverage: {reading}\n"
            f"{text}{open_text}{part}"
        )

    @property
    def convergence(self) -> str:
        """The number of converging label sequences, or with noise of certain transitions."""
        if self.weighed is not None:
            return f"{self.weighed - len(self.uncertain):,} of {self.weighed:,}"
        return f"{self.converging:,} of {self.sequences:,}"


def check_completeness(
    steps: StepQueries,
    offsets: Numbers,
    transitions: CountTable,
    varying: VaryingOutputs,
    unknown: list[tuple[int, Label]],
    progress: CoreListener | None = None,
) -> Completeness:
    """Check the paper's three conditions on traces, with the machine as the target.

    `unknown` are the states with labels that the machine does not know. Conflict convergence is
    checked for each label sequence and state (docs/decisions/evaluation.md).
    """
    machine = steps.machine
    tree = _core.build_history_tree(nontrivial_labels(steps), offsets)
    columns = positions(varying.queries, steps.queries)
    columns[steps.outputs >= len(machine.outputs)] = -1
    entries = varying.by_query
    # A node of the tree rules out a state by its own outputs, or if a child rules out the state
    # that the child's label leads to from there. `node` is the first that leaves one open.
    sequences, converging, node, state, other = _core.converge(
        tree,
        columns,
        steps.outputs,
        query=varying.column[entries],
        state=varying.state[entries],
        output=varying.output[entries],
        queries=len(varying.queries),
        transitions=nontrivial_transitions(machine),
        states=machine.states,
        labels=len(machine.labels),
        progress=progress,
    )
    ambiguous = None
    if node >= 0:
        labels = tuple(machine.labels[code] for code in tree.history(node))
        ambiguous = AmbiguousSequence(labels, state, other)
    uncovered = _uncovered(machine, transitions, unknown)
    return Completeness(*uncovered, sequences, converging, ambiguous)


def weigh_completeness(
    machine: Machine,
    transitions: CountTable,
    alternatives: AlternativeTransitions,
    unknown: list[tuple[int, Label]],
) -> Completeness:
    """Check the paper's first two conditions on noisy traces, and the odds of each transition."""
    is_open = (alternatives.target >= 0) & (alternatives.log_odds < OPEN_LOG_ODDS)
    state, label = transitions["state"], transitions["label"]
    rows = np.flatnonzero(is_open[state, label])
    rows = rows[np.argsort(alternatives.log_odds[state[rows], label[rows]], kind="stable")]
    ambiguous = None
    if len(rows) and int(state[rows[0]]) in machine.reachable():
        source, code, target = (int(column[rows[0]]) for column in transitions.columns.values())
        labels = (*machine.access_sequence(source), machine.labels[code])
        ambiguous = AmbiguousSequence(labels, target, int(alternatives.target[source, code]))
    return Completeness(
        *_uncovered(machine, transitions, unknown),
        first_ambiguous=ambiguous,
        weighed=int(np.count_nonzero(alternatives.target >= 0)),
        uncertain=tuple(supports_of(machine, transitions, rows, alternatives)),
    )


def _uncovered(
    machine: Machine, transitions: CountTable, unknown: list[tuple[int, Label]]
) -> tuple[tuple[int, ...], Unseen]:
    """Return the states that no trace visits, and the labels never read in a state."""
    is_visited = np.zeros(machine.states, bool)
    is_visited[0] = True  # by the empty sequence
    is_visited[transitions["target"]] = True
    is_read = np.zeros(machine.transitions.shape, bool)
    is_read[transitions["state"], transitions["label"]] = True
    is_read[:, list(machine.trivial)] = True
    unseen = [(state, machine.labels[code]) for state, code in np.argwhere(~is_read).tolist()]
    return tuple(np.flatnonzero(~is_visited).tolist()), (*unseen, *unknown)
