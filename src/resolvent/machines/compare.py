"""Comparison of machines and of their labels: isomorphism, minimality, events, alternatives.

Input: machines. Output: decisions about them, and texts for people.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp
from resolvent._util.text import amount, odds_text, short
from resolvent._util.validation import check_arguments
from resolvent.machines.knowledge import UNSEEN
from resolvent.machines.machine import Machine
from resolvent.machines.machine_set import Machines
from resolvent.preprocess.labeling import LabelingFunction, label_of_event
from resolvent.traces.symbols import Label, label_text

_HISTORY_ENDS: Final = 8
"""Number of labels printed at each end of a long history; long is four times as many."""

_MAX_EVENTS: Final = 20
"""Maximum number of events printed for a machine."""

_MAX_PARTS: Final = 8
"""Maximum number of labels, or of transitions, printed for an event."""


def is_isomorphic(first: Machine, second: Machine) -> bool:
    """Return whether two machines are equal up to the names of their states.

    Unseen outputs and transitions must be the same in both. Alphabets are compared by the
    symbols that occur in outputs and transitions. Of outputs that vary, the most frequent ones
    are compared, since shares of noise differ between any two sets of traces.
    """
    check_arguments(is_isomorphic, locals())
    if first.states != second.states:
        return False
    partner = {0: 0}
    queue = [0]
    labels = set(first.labels) | set(second.labels)
    queries = {
        (answer.observation, answer.action)
        for machine in (first, second)
        for answer in machine.answers()
    }
    for state in queue:
        twin = partner[state]
        for query in queries:
            output, twin_output = first.output(state, *query), second.output(twin, *query)
            if output is twin_output:
                continue
            if output is UNSEEN or twin_output is UNSEEN or output != twin_output:
                return False
        for label in labels:
            target, twin_target = first.step(state, label), second.step(twin, label)
            if target is UNSEEN or twin_target is UNSEEN:
                if target is not twin_target:
                    return False
            elif target not in partner:
                partner[target] = twin_target
                queue.append(target)
            elif partner[target] != twin_target:
                return False
    return len(set(partner.values())) == len(partner)


def is_minimal(machine: Machine) -> bool:
    """Return whether no two states have the same behavior; unseen is a distinct behavior.

    By partition refinement: states are split by their outputs, then by their next states, until
    nothing changes. Outputs that vary are the same if each has the same share.
    """
    check_arguments(is_minimal, locals())
    outputs: list[dict[int, Any]] = [{} for _ in range(machine.states)]
    for (state, query), value in machine._answers.items():
        outputs[state][query] = value
    for (state, query), counts in machine.spread.rows.items():
        divisor = gcd(*(count for _, count in counts))
        outputs[state][query] = tuple((value, count // divisor) for value, count in counts)
    blocks = _numbered([tuple(sorted(row.items())) for row in outputs])
    while True:
        targets = np.where(machine.transitions >= 0, blocks[machine.transitions], -1).tolist()
        finer = _numbered(
            [(block, *row) for block, row in zip(blocks.tolist(), targets, strict=True)]
        )
        if finer.max() == blocks.max():
            return int(blocks.max()) + 1 == machine.states
        blocks = finer


def _numbered(keys: list[tuple[Any, ...]]) -> NDArray[np.int64]:
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def history_text(history: Sequence[Label]) -> str:
    """Return a label sequence as text; of a long one only both ends.

    >>> history_text(()), history_text((frozenset({"key"}), frozenset({"door"})))
    ('start', 'key, door')
    >>> history_text((frozenset({"x"}),) * 1000)
    'x, x, x, x, x, x, x, x, … 984 more …, x, x, x, x, x, x, x, x'
    """
    if not history:
        return "start"
    if len(history) <= 4 * _HISTORY_ENDS:
        return ", ".join(map(label_text, history))
    first, last = history[:_HISTORY_ENDS], history[-_HISTORY_ENDS:]
    return ", ".join([*map(label_text, first), _omitted(len(history)), *map(label_text, last)])


def history_texts(machine: Machine) -> list[str]:
    """Return the shortest history of each state as `history_text`, in one pass.

    >>> from resolvent.worlds import House
    >>> history_texts(House().machines().transition)
    ['start', 'key']
    """
    texts = ["no labels lead here"] * machine.states
    texts[0] = "start"
    heads: dict[int, tuple[str, ...]] = {0: ()}
    tails: dict[int, tuple[int, tuple[str, ...]]] = {0: (0, ())}  # length, and last labels
    names = [*map(label_text, machine.labels)]
    for state, (source, code) in machine._shortest_paths.items():  # nearer ones come first
        if code < 0:
            continue
        length, tail = tails[source]
        heads[state] = heads[source] + ((names[code],) if length < _HISTORY_ENDS else ())
        length, tail = tails[state] = length + 1, (*tail[1 - 4 * _HISTORY_ENDS :], names[code])
        if length > 4 * _HISTORY_ENDS:
            tail = (*heads[state], _omitted(length), *tail[-_HISTORY_ENDS:])
        texts[state] = ", ".join(tail)
    return texts


def _omitted(length: int) -> str:
    return f"… {length - 2 * _HISTORY_ENDS:,} more …"


@dataclass(frozen=True)
class LabelClass:
    """Labels with the same transitions in all states.

    `moves` are the states that change, with their targets. `made_of` names the observations,
    actions or pairs of them that have these labels; empty where labels were recorded.
    """

    labels: tuple[Label, ...]
    moves: tuple[tuple[int, int], ...]
    made_of: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the event as JSON values."""
        return {
            "labels": [sorted(label) for label in self.labels],
            "moves": [list(move) for move in self.moves],
            "made_of": list(self.made_of),
        }

    def __str__(self) -> str:
        moves = _first_parts([f"{state} → {target}" for state, target in self.moves])
        return f"{_first_parts(self.made_of or tuple(map(label_text, self.labels)))}: state {moves}"


class LabelClasses(Mapping[str, tuple[LabelClass, ...]]):
    """The events of each machine, by its name: the labels that change a state, in classes.

    >>> from resolvent.worlds import House
    >>> print(LabelClasses.of(House().machines()))
    transition: 1 event, 3 labels change nothing
      key: state 0 → 1
    reward: 1 event, 3 labels change nothing
      toilet: state 0 → 1
    """

    def __init__(
        self, events: Mapping[str, tuple[LabelClass, ...]], idle: Mapping[str, int]
    ) -> None:
        self._events, self._idle = dict(events), dict(idle)

    @classmethod
    def of(cls, machines: Machines) -> "LabelClasses":
        """Return the events of machines."""
        sources = _sources(machines.senses.labelling)
        events = {name: _events(machine, sources) for name, machine in machines.items()}
        return cls(
            events,
            {
                name: len(machine.labels) - sum(len(event.labels) for event in events[name])
                for name, machine in machines.items()
            },
        )

    def __getitem__(self, name: str) -> tuple[LabelClass, ...]:
        return self._events[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def as_dict(self) -> dict[str, Any]:
        """Return the events as JSON values."""
        return {name: [event.as_dict() for event in events] for name, events in self.items()}

    def __repr__(self) -> str:
        counts = (f"{short(name)} {len(events)}" for name, events in self.items())
        return f"Events({', '.join(counts)})"

    def __str__(self) -> str:
        lines = []
        for name, events in self.items():
            change = "changes" if self._idle[name] == 1 else "change"
            idle = f", {amount(self._idle[name], 'label')} {change} nothing"
            lines.append(f"{short(name)}: {amount(len(events), 'event')}{idle}")
            lines += [f"  {event}" for event in events[:_MAX_EVENTS]]
            if len(events) > _MAX_EVENTS:
                lines.append(f"  and {amount(len(events) - _MAX_EVENTS, 'other event')}")
        return "\n".join(lines)


def _events(machine: Machine, sources: Mapping[Label, list[str]]) -> tuple[LabelClass, ...]:
    targets = np.ascontiguousarray(machine.transitions.T)  # a row for each label
    changed = (targets >= 0) & (targets != np.arange(machine.states))
    classes: dict[bytes, list[int]] = {}
    # Few labels change a state; those with the same transitions have the same row.
    for code in np.flatnonzero(changed.any(1)).tolist():
        row = np.where(changed[code], targets[code], -1)
        classes.setdefault(row.tobytes(), []).append(code)
    events = []
    for codes in classes.values():
        states = np.flatnonzero(changed[codes[0]])
        moves = tuple(zip(states.tolist(), targets[codes[0], states].tolist(), strict=True))
        labels = tuple(machine.labels[code] for code in codes)
        names = tuple(name for label in labels for name in sources.get(label, ()))
        events.append(LabelClass(labels, moves, names))
    return tuple(sorted(events, key=lambda event: event.moves))


def _sources(labeling: LabelingFunction) -> dict[Label, list[str]]:
    """Return the names of the sources of each label; nothing where labels were recorded."""
    sources: dict[Label, list[str]] = {}
    for source, name in (labeling.events or {}).items():
        sources.setdefault(label_of_event(name), []).append(labeling.name_of(source))
    return sources


def _first_parts(texts: Sequence[str]) -> str:
    first = ", ".join(map(short, texts[:_MAX_PARTS]))
    more = len(texts) - _MAX_PARTS
    return f"{first} and {amount(more, 'other')}" if more > 0 else first


@dataclass(frozen=True)
class Alternative:
    """Another machine that noisy traces hardly distinguish from the inferred one.

    `log_odds` is the logarithm of its odds against the inferred machine, in general below 0.
    `move` is (state, label, target) if it differs in this transition only, in the state numbers
    of the inferred machine; otherwise it has another number of states.
    """

    machine: Machine
    log_odds: float
    move: tuple[int, Label, int] | None = None

    @property
    def odds(self) -> float:
        """Odds against the inferred machine."""
        return exp(self.log_odds)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        move = None
        if self.move is not None:
            state, label, target = self.move
            move = {"state": state, "label": sorted(label), "target": target}
        return {"states": self.machine.states, "log_odds": self.log_odds, "move": move}

    def __str__(self) -> str:
        difference = amount(self.machine.states, "state")
        if self.move is not None:
            state, label, target = self.move
            difference = f"state {state} reads {label_text(label)} → {target}"
        return f"{difference}: {odds_text(self.log_odds)}"
