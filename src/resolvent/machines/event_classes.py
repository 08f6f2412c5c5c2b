"""Machines → which labels are events to each of them: those that change a state, in classes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from resolvent._util.text import amount, short
from resolvent.machines.machine import Machine
from resolvent.machines.machine_set import Machines
from resolvent.traces.labelling import Labelling, whole_label
from resolvent.traces.symbols import Label, label_text

_EVENTS_SHOWN = 20
"""How many events of a machine are written out."""

_SHOWN = 8
"""How many labels, or moves, of an event are written out."""


@dataclass(frozen=True)
class Event:
    """Labels that lead a machine from the same states to the same states.

    `moves` are the states that change, with where to. `made_of` names the observations,
    actions or pairs of them that have these labels; empty where labels were given.
    """

    labels: tuple[Label, ...]
    moves: tuple[tuple[int, int], ...]
    made_of: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "labels": [sorted(label) for label in self.labels],
            "moves": [list(move) for move in self.moves],
            "made_of": list(self.made_of),
        }

    def __str__(self) -> str:
        moved = _some([f"{state} → {target}" for state, target in self.moves])
        return f"{_some(self.made_of or tuple(map(label_text, self.labels)))}: state {moved}"


class Events(Mapping[str, tuple[Event, ...]]):
    """The events of each machine, by its kind.

    >>> from resolvent.worlds import House
    >>> print(Events.of(House().machines()))
    transition: 1 event, 3 labels change nothing
      key: state 0 → 1
    reward: 1 event, 3 labels change nothing
      toilet: state 0 → 1
    """

    def __init__(self, events: Mapping[str, tuple[Event, ...]], idle: Mapping[str, int]) -> None:
        self._events, self._idle = dict(events), dict(idle)

    @classmethod
    def of(cls, machines: Machines) -> "Events":
        """Return the events of machines."""
        sources = _sources(machines.senses.labelling)
        found = {kind: _events(one, sources) for kind, one in machines.items()}
        return cls(
            found,
            {
                kind: len(machine.labels) - sum(len(one.labels) for one in found[kind])
                for kind, machine in machines.items()
            },
        )

    def __getitem__(self, kind: str) -> tuple[Event, ...]:
        return self._events[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def as_dict(self) -> dict[str, Any]:
        """Return the events as JSON values."""
        return {kind: [one.as_dict() for one in events] for kind, events in self.items()}

    def __repr__(self) -> str:
        told = (f"{short(kind)} {len(events)}" for kind, events in self.items())
        return f"Events({', '.join(told)})"

    def __str__(self) -> str:
        lines = []
        for kind, events in self.items():
            change = "changes" if self._idle[kind] == 1 else "change"
            idle = f", {amount(self._idle[kind], 'label')} {change} nothing"
            lines.append(f"{short(kind)}: {amount(len(events), 'event')}{idle}")
            lines += [f"  {event}" for event in events[:_EVENTS_SHOWN]]
            if len(events) > _EVENTS_SHOWN:
                lines.append(f"  and {amount(len(events) - _EVENTS_SHOWN, 'other event')}")
        return "\n".join(lines)


def _events(machine: Machine, sources: Mapping[Label, list[str]]) -> tuple[Event, ...]:
    targets = np.ascontiguousarray(machine.transitions.T)  # a row for each label
    changed = (targets >= 0) & (targets != np.arange(machine.states))
    classes: dict[bytes, list[int]] = {}
    # Of very many labels few change anything, and those that act alike have the same row.
    for code in np.flatnonzero(changed.any(1)).tolist():
        moved = np.where(changed[code], targets[code], -1)
        classes.setdefault(moved.tobytes(), []).append(code)
    found = []
    for codes in classes.values():
        states = np.flatnonzero(changed[codes[0]])
        moves = tuple(zip(states.tolist(), targets[codes[0], states].tolist(), strict=True))
        labels = tuple(machine.labels[code] for code in codes)
        names = tuple(name for one in labels for name in sources.get(one, ()))
        found.append(Event(labels, moves, names))
    return tuple(sorted(found, key=lambda event: event.moves))


def _sources(labelling: Labelling) -> dict[Label, list[str]]:
    """Return what makes each label; nothing where that is the label's own name."""
    found: dict[Label, list[str]] = {}
    for source, name in (labelling.events or {}).items():
        found.setdefault(whole_label(name), []).append(labelling.name_of(source))
    return found


def _some(texts: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(map(short, texts[:_SHOWN]))
    more = len(texts) - _SHOWN
    return f"{shown} and {amount(more, 'other')}" if more > 0 else shown
