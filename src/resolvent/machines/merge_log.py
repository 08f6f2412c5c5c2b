"""Events of the search ↔ decisions in a machine's states ↔ columns for a file.

Each blue state of the search hangs from one red state by one label. So every
event settles one transition, and a log has at most as many decisions as the
machine has transitions.
"""

from collections.abc import Sequence

import numpy as np

from resolvent import _core
from resolvent.machines.automaton import RawAutomaton
from resolvent.machines.decision import Decision
from resolvent.machines.machine import Machine
from resolvent.samples import Histories


def decisions_of(
    machine: Machine, histories: Histories, automaton: RawAutomaton
) -> tuple[Decision, ...]:
    """Tell the events of a search in the states of the machine that it led to.

    `histories` are those that were searched, trivial labels left out.
    """
    node, parent, label = _core.history_columns(histories.tree)
    states = np.zeros(len(parent), np.int32)
    states[node] = machine.replay(histories.beta, histories.offsets)
    blue = np.array([event.blue for event in automaton.events], np.int64)
    return tuple(
        map(
            Decision,
            states[parent[blue]].tolist(),
            map(machine.labels.__getitem__, label[blue].tolist()),
            states[blue].tolist(),
            [event.red is None for event in automaton.events],
            [event.score for event in automaton.events],
            [event.folded for event in automaton.events],
        )
    )


def log_columns(
    machine: Machine, decisions: Sequence[Decision]
) -> tuple[list[int], list[int], list[int]]:
    """Return which of the known transitions was settled when, and both counts.

    Known transitions are numbered by state and label. Where one leads stands in
    the machine, and a state is new when a decision first leads there.
    """
    number = np.cumsum(machine.transitions.ravel() >= 0) - 1
    width = len(machine.labels)
    place = [one.source * width + machine.labels.code(one.label) for one in decisions]
    return (
        number[np.array(place, np.int64)].tolist(),
        [one.agreeing for one in decisions],
        [one.folded for one in decisions],
    )


def decisions_of_columns(
    machine: Machine, settled: Sequence[int], agreeing: Sequence[int], folded: Sequence[int]
) -> tuple[Decision, ...]:
    """Return the decisions that `log_columns` wrote down.

    Raises:
        ValueError: when no search for this machine can have gone like that.
    """
    source, code = np.nonzero(machine.transitions >= 0)
    if not len(settled) == len(agreeing) == len(folded):
        raise ValueError("the columns of decisions differ in length")
    if len(set(settled)) < len(settled):
        raise ValueError("decisions settle a transition twice")
    if any(not 0 <= row < len(source) for row in settled):
        raise ValueError("decisions name a transition that does not exist")
    if any(not 0 <= number < 2**63 for number in (*agreeing, *folded)):
        raise ValueError("decisions hold a count out of range")
    found = {0}
    decisions = []
    for row, agree, fold in zip(settled, agreeing, folded, strict=True):
        state, label = int(source[row]), int(code[row])
        target = int(machine.transitions[state, label])
        new = target not in found
        if state not in found:
            raise ValueError(f"decisions leave state {state} before they find it")
        if new == (fold > 0) or (new and agree > 0):
            raise ValueError(f"decisions fold nothing into state {target}, or too much")
        found.add(target)
        decisions.append(Decision(state, machine.labels[label], target, new, agree, fold))
    if len(found) < machine.states:
        raise ValueError("decisions never find some of the states")
    return tuple(decisions)
