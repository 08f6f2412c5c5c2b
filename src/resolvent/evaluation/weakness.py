"""Find the states and transitions of machines that rest on few label sequences.

Input: the steps of a machine, shard by shard. Output: weak states, rare transitions and sinks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Final

import numpy as np

from resolvent._util.text import amount, short
from resolvent.evaluation.observed import LazySequence, Numbers, nontrivial_labels
from resolvent.evaluation.separation import nontrivial_transitions
from resolvent.machines import Machine, Machines
from resolvent.machines.compare import label_sequence_text
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import StepQueries, step_queries
from resolvent.traces import Label, TraceSet, label_text
from resolvent.traces.digest import splitmix64
from resolvent.traces.vocabulary import Codes

FEW: Final = 5  # with fewer label sequences a state is weak: one faulty session may have made it
_SINGLE: Final = 2  # label sequences kept for each transition: to distinguish one from several
_MOSTLY: Final = 0.5  # share of steps spent in sinks above which that is reported
_SHOWN_CHARACTERS: Final = 160  # maximum number of characters of a label sequence that are shown
_SINKS_SHOWN: Final = 3


def prefix_keys(columns: Iterable[Codes], offsets: Numbers) -> Numbers:
    """Return a hash for each step that equal prefixes of traces share, others almost never.

    A prefix ends with the step and consists of the codes in all columns, one code a step.
    """
    lengths = np.diff(offsets)
    step: Numbers = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    mixed = splitmix64(step, 0)
    for salt, codes in enumerate(columns, 1):
        mixed = splitmix64(mixed + codes.astype(np.int64), salt)
    total = np.cumsum(mixed)  # wraps around, as it should
    before = np.concatenate([[0], total])[offsets[:-1]]
    keys: Numbers = total - np.repeat(before, lengths)
    return keys


@dataclass(frozen=True, eq=False)
class LowestKeys:
    """Keys in groups: of each group the `most` lowest distinct ones.

    Only whether a group has few keys matters, so the lowest are enough; and those of parts of
    the traces add up to those of all traces.
    """

    most: int
    group: Numbers
    key: Numbers

    @classmethod
    def of(cls, group: Numbers, key: Numbers, most: int) -> "LowestKeys":
        """Keep the lowest keys of each group."""
        order = np.lexsort((key, group))
        group, key = group[order].astype(np.int64), key[order]
        is_new = np.append(True, (np.diff(group) != 0) | (key[1:] != key[:-1]))[: len(key)]
        group, key = group[is_new], key[is_new]
        is_low = np.arange(len(group)) - np.searchsorted(group, group) < most
        return cls(most, group[is_low], key[is_low])

    def __add__(self, other: "LowestKeys") -> "LowestKeys":
        group = np.concatenate([self.group, other.group])
        return LowestKeys.of(group, np.concatenate([self.key, other.key]), self.most)


@dataclass(frozen=True, eq=False)
class SequenceCounts:
    """The label sequences that enter each state from another, and that take each transition.

    `spent` is the number of steps in each state, and `steps` that of all steps. A transition is
    a state and a label as one number: state · number of labels + label.
    """

    entered: LowestKeys
    transitions: LowestKeys
    spent: Numbers
    steps: int

    @classmethod
    def of(cls, steps: StepQueries, offsets: Numbers) -> "SequenceCounts":
        """Count the sequences of nontrivial labels in traces that begin at `offsets`."""
        machine, labels, states = steps.machine, nontrivial_labels(steps), steps.states
        before = np.concatenate([[0], states[:-1]])
        before[offsets[:-1]] = 0
        is_read = (labels >= 0) & (labels < len(machine.labels))
        rows = np.flatnonzero(is_read)
        keys = prefix_keys([labels[rows]], np.concatenate([[0], np.cumsum(is_read)])[offsets])
        is_known = (before[rows] >= 0) & (states[rows] >= 0)
        rows, keys = rows[is_known], keys[is_known]
        enters = before[rows] != states[rows]
        transitions = before[rows].astype(np.int64) * len(machine.labels) + labels[rows]
        return cls(
            LowestKeys.of(states[rows[enters]], keys[enters], FEW),
            LowestKeys.of(transitions, keys, _SINGLE),
            np.bincount(states[states >= 0], minlength=machine.states),
            len(states),
        )

    def __add__(self, other: "SequenceCounts") -> "SequenceCounts":
        return SequenceCounts(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class WeakState:
    """A state that few label sequences reach, and the shortest labels `by` which it is reached.

    `sequences` is the number of distinct ones that enter it from another state, so that a
    repeated session counts once. `steps` is the number of steps spent there.
    """

    state: int
    sequences: int
    steps: int
    by: tuple[Label, ...]

    def __str__(self) -> str:
        number = amount(self.sequences, "label sequence")
        labels = short(label_sequence_text(self.by), _SHOWN_CHARACTERS)
        return f"state {self.state}, reached by {number}, such as {labels}"


@dataclass(frozen=True)
class Weakness:
    """The parts of a machine that rest on little evidence.

    `weak` are the states reached by fewer than 5 label sequences, the weakest first. Of the
    `transitions` that the traces take, `rare` were taken by a single sequence, such as `example`:
    a state, a label and the next state. Of all `steps`, `stuck` are in `sinks`, the states without
    a transition to another.
    """

    states: int = 0
    weak: Sequence[WeakState] = ()
    transitions: int = 0
    rare: int = 0
    example: tuple[int, Label, int] | None = None
    steps: int = 0
    stuck: int = 0
    sinks: tuple[int, ...] = ()

    def lines(self, most: int = 5) -> list[str]:
        """Return a few lines of text with at most `most` states; none if nothing is weak."""
        lines = []
        if self.weak:
            lines.append(
                f"{len(self.weak):,} of {amount(self.states, 'state')} reached by fewer than "
                f"{FEW} distinct label sequences; collect other sequences that reach them:"
            )
            lines += [f"  {state}" for state in self.weak[:most]]
            if len(self.weak) > most:
                lines.append(f"  and {len(self.weak) - most:,} more")
        if self.example is not None:
            state, label, target = self.example
            lines.append(
                f"{self.rare:,} of {amount(self.transitions, 'transition')} taken after a single "
                f"label sequence, such as {short(label_text(label))} in state {state} (→ {target})"
            )
        if self.stuck > _MOSTLY * self.steps:
            states = ", ".join(map(str, self.sinks[:_SINKS_SHOWN]))
            if len(self.sinks) > _SINKS_SHOWN:
                states += f" and {len(self.sinks) - _SINKS_SHOWN} more"
            lines.append(
                f"{self.stuck / self.steps:.1%} of all steps are in "
                f"state{'s' if len(self.sinks) > 1 else ''} {states}, "
                f"from which no label leads to another state: collect shorter traces"
            )
        return lines


def weakness_of(machine: Machine, counts: SequenceCounts) -> Weakness:
    """Find the weak states, rare transitions and sinks of a machine."""
    sequences = np.bincount(counts.entered.group, minlength=machine.states)
    sequences[0] += 1  # the empty sequence
    spent, stuck_in = counts.spent, sinks(machine)
    weak = sorted(
        (state for state in machine.reachable() if state and sequences[state] < FEW),
        key=lambda state: (sequences[state], spent[state], state),
    )
    transitions, count = np.unique(counts.transitions.group, return_counts=True)
    once = transitions[count == 1]
    example = None
    if len(once):
        targets = machine.transitions.ravel()[once]
        # Prefer one that leads to a well-known state: then only the transition is uncertain.
        first = int(once[np.lexsort((once, -np.minimum(sequences[targets], FEW)))[0]])
        state, code = divmod(first, len(machine.labels))
        example = state, machine.labels[code], int(machine.transitions[state, code])
    return Weakness(
        machine.states,
        LazySequence(len(weak), partial(_weak_state, machine, weak, sequences, spent)),
        len(transitions),
        len(once),
        example,
        counts.steps,
        int(spent[stuck_in].sum()),
        tuple(stuck_in.tolist()),
    )


def _weak_state(
    machine: Machine, states: list[int], sequences: Numbers, spent: Numbers, index: int
) -> WeakState:
    state = states[index]
    number, steps = int(sequences[state]), int(spent[state])
    return WeakState(state, number, steps, machine.access_sequence(state))


def sinks(machine: Machine) -> Numbers:
    """Return the states of a log's machine (one observation) that no label leads out of."""
    if machine.states == 1 or len(machine.observations) != 1:
        return np.empty(0, np.int64)
    targets = nontrivial_transitions(machine).reshape(machine.transitions.shape)
    stays = targets == np.arange(machine.states)[:, None]
    return np.flatnonzero((stays | (targets < 0)).all(axis=1) & stays.any(axis=1))


def weaknesses(machines: Machines, traces: TraceSet) -> dict[str, Weakness]:
    """Find the parts of each machine that rest on little in some traces."""
    traces = machines.preprocessor.transform(traces)
    queries = step_queries(machines, traces, states_at_steps(machines, traces))
    return {
        name: weakness_of(steps.machine, SequenceCounts.of(steps, traces.offsets))
        for name, steps in queries.items()
    }
