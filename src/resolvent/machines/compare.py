"""Comparison of machines and of their labels: isomorphism, minimality, events, alternatives.

Input: machines. Output: decisions about them, and texts for people.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from resolvent._util.math import exp
from resolvent._util.records import ByMachine, builtin
from resolvent._util.text import amount, odds_text, short
from resolvent._util.validation import check_arguments
from resolvent.machines.machine import Machine
from resolvent.machines.machine_set import Machines
from resolvent.machines.memory import number_states
from resolvent.preprocess.labeling import label_of_event
from resolvent.traces.symbols import Label, label_text
from resolvent.traces.vocabulary import Codes, Vocabulary, codes_of

_SEQUENCE_ENDS: Final = 8  # labels printed at each end of a sequence four times as long
_MAX_CLASSES: Final = 20  # maximum number of classes of labels printed for a machine
_MAX_PARTS: Final = 8  # maximum number of labels, or of transitions, printed for a class


def is_isomorphic(first: Machine, second: Machine) -> bool:
    """Return whether two machines are equal up to the names of their states.

    Unseen outputs and transitions must be the same in both. Alphabets are compared by the
    symbols that occur in outputs and transitions. Of outputs that vary, the most frequent ones
    are compared, since shares of noise differ between any two sets of traces.
    """
    check_arguments(is_isomorphic, locals())
    if first.states != second.states:
        return False
    machines = (first, second)
    labels = dict.fromkeys([*first.labels, *second.labels])
    entries = (entry for machine in machines for entry in machine.entries())
    queries = dict.fromkeys((entry.observation, entry.action) for entry in entries)
    outputs = Vocabulary(dict.fromkeys([*first.outputs, *second.outputs]))
    tables = [_canonical_tables(machine, labels, queries, outputs) for machine in machines]
    return all(np.array_equal(*pair) for pair in zip(*tables, strict=True))


def _canonical_tables(
    machine: Machine,
    labels: Collection[Label],
    queries: Collection[tuple[Any, Any]],
    outputs: Vocabulary[Any],
) -> tuple[Codes, Codes]:
    """Return next states [state, label] and outputs [state, query] in breadth-first order."""
    transitions, order, _ = number_states(machine.transitions_for(labels))
    numbers = np.array([machine.query_number(*query) for query in queries], np.int64)
    states = np.repeat(order.astype(np.int32), len(numbers))
    predicted = machine.predict(states, np.tile(numbers, len(order)))
    common = np.append(codes_of(machine.outputs, outputs, -1), np.int32(-1))
    return transitions, common[predicted].reshape(len(order), -1)


def label_sequence_text(labels: Sequence[Label]) -> str:
    """Return a label sequence as text; of a long one only both ends."""
    if not labels:
        return "start"
    if len(labels) <= 4 * _SEQUENCE_ENDS:
        return ", ".join(map(label_text, labels))
    first, last = labels[:_SEQUENCE_ENDS], labels[-_SEQUENCE_ENDS:]
    return ", ".join([*map(label_text, first), _omitted(len(labels)), *map(label_text, last)])


def access_sequence_texts(machine: Machine) -> list[str]:
    """Return the access sequence of each state as `label_sequence_text`, in one pass."""
    texts = ["no labels lead here"] * machine.states
    texts[0] = "start"
    heads: dict[int, tuple[str, ...]] = {0: ()}
    tails: dict[int, tuple[int, tuple[str, ...]]] = {0: (0, ())}  # length, and last labels
    names = [*map(label_text, machine.labels)]
    for state, (source, code) in machine.shortest_paths.items():  # nearer ones come first
        if code < 0:
            continue
        length, tail = tails[source]
        heads[state] = heads[source] + ((names[code],) if length < _SEQUENCE_ENDS else ())
        length, tail = tails[state] = length + 1, (*tail[1 - 4 * _SEQUENCE_ENDS :], names[code])
        if length > 4 * _SEQUENCE_ENDS:
            tail = (*heads[state], _omitted(length), *tail[-_SEQUENCE_ENDS:])
        texts[state] = ", ".join(tail)
    return texts


def _omitted(length: int) -> str:
    return f"… {length - 2 * _SEQUENCE_ENDS:,} more …"


@dataclass(frozen=True)
class LabelClass:
    """Labels with the same transitions in all states.

    `transitions` are the states that change, with their targets. `sources` names the observations,
    actions or pairs of them that have these labels; empty where labels were recorded.
    """

    labels: tuple[Label, ...]
    transitions: tuple[tuple[int, int], ...]
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = self.sources or tuple(map(label_text, self.labels))
        changes = [f"{state} → {target}" for state, target in self.transitions]
        return f"{_first_parts(names)}: state {_first_parts(changes)}"


class LabelClasses(ByMachine[tuple[LabelClass, ...]]):
    """The events of each machine, by its name: the labels that change a state, in classes."""

    def __init__(self, machines: Machines) -> None:
        labeling = machines.preprocessor.labeling
        sources: dict[Label, list[str]] = {}  # none where labels were recorded
        for source, event in (labeling.events or {}).items():
            sources.setdefault(label_of_event(event), []).append(labeling.source_name(source))
        self._classes = {name: _classes(machine, sources) for name, machine in machines.items()}
        self._labels = {name: len(machine.labels) for name, machine in machines.items()}

    @property
    def _by_name(self) -> dict[str, tuple[LabelClass, ...]]:
        return self._classes

    def as_dict(self) -> dict[str, Any]:
        """Return the events as JSON values."""
        return builtin(dict(self))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        counts = (f"{short(name)} {len(events)}" for name, events in self.items())
        return f"LabelClasses({', '.join(counts)})"

    def __str__(self) -> str:
        lines = []
        for name, events in self.items():
            idle = self._labels[name] - sum(len(event.labels) for event in events)
            counts = f"{amount(len(events), 'event')}, {amount(idle, 'label')}"
            lines.append(f"{short(name)}: {counts} {'changes' if idle == 1 else 'change'} nothing")
            lines += [f"  {event}" for event in events[:_MAX_CLASSES]]
            if len(events) > _MAX_CLASSES:
                lines.append(f"  and {amount(len(events) - _MAX_CLASSES, 'other event')}")
        return "\n".join(lines)


def _classes(machine: Machine, sources: Mapping[Label, list[str]]) -> tuple[LabelClass, ...]:
    targets = np.ascontiguousarray(machine.transitions.T)  # a row for each label
    changed = (targets >= 0) & (targets != np.arange(machine.states))
    codes_by_row: dict[bytes, list[int]] = {}
    # Few labels change a state; those with the same transitions have the same row.
    for code in np.flatnonzero(changed.any(1)).tolist():
        row = np.where(changed[code], targets[code], -1)
        codes_by_row.setdefault(row.tobytes(), []).append(code)
    classes = []
    for codes in codes_by_row.values():
        states = np.flatnonzero(changed[codes[0]])
        changes = tuple(zip(states.tolist(), targets[codes[0], states].tolist(), strict=True))
        labels = tuple(machine.labels[code] for code in codes)
        names = tuple(name for label in labels for name in sources.get(label, ()))
        classes.append(LabelClass(labels, changes, names))
    return tuple(sorted(classes, key=lambda event: event.transitions))


def _first_parts(texts: Sequence[str]) -> str:
    first = ", ".join(map(short, texts[:_MAX_PARTS]))
    more = len(texts) - _MAX_PARTS
    return f"{first} and {amount(more, 'other')}" if more > 0 else first


@dataclass(frozen=True)
class Alternative:
    """Another machine that noisy traces hardly distinguish from the inferred one.

    `log_odds` is the logarithm of its odds against the inferred machine, in general below 0.
    `transition` is (state, label, target) if it differs in this one only, in the state numbers
    of the inferred machine; otherwise it has another number of states.
    """

    machine: Machine
    log_odds: float
    transition: tuple[int, Label, int] | None = None

    @property
    def odds(self) -> float:
        """Odds against the inferred machine."""
        return exp(self.log_odds)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        names = ("state", "label", "target")
        change = self.transition and dict(zip(names, builtin(self.transition), strict=True))
        return {"states": self.machine.states, "log_odds": self.log_odds, "transition": change}

    def __str__(self) -> str:
        difference = amount(self.machine.states, "state")
        if self.transition is not None:
            state, label, target = self.transition
            difference = f"state {state} reads {label_text(label)} → {target}"
        return f"{difference}: {odds_text(self.log_odds)}"
