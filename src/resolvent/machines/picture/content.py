"""Machine → what a picture of it says: a box for each state, a text for each arrow, notes.

Nothing here knows where things are drawn.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from resolvent._util.text import amount, percent, short
from resolvent.errors import OptionError
from resolvent.machines.drawing import EdgeStrength, edge_strengths, edges, rare_edges
from resolvent.machines.machine import Machine
from resolvent.machines.picture.folding import Edge, first_ways, moves_of
from resolvent.machines.picture.text import ELLIPSIS, listed, set_in_lines, shortened
from resolvent.traces.symbols import Label, Symbol, label_text, symbol_text

NUMBER_SIZE, NAME_SIZE, LABEL_SIZE, NOTE_SIZE = 19.0, 11.0, 12.0, 11.0
MOST_STATES = 100
MOST_ARROWS = 60
"""With more nobody can follow them: only those that first lead to a state are drawn then."""

_NAME_WIDTH, _LABEL_WIDTH, _MOST_LINES = 100.0, 116.0, 3
_MOST_TRIVIAL = 12
_MOST_HOVER = 200
"""Characters of the labels that lead from a state to another, in a list of such."""
_MOST_VARYING, _MOST_ANSWERS = 6, 4
"""How many questions with more than one answer a state tells of, and how many answers of each."""
_MOST_LABELS = 40
"""More do not fit in three lines, however short: each takes a comma and a space."""


@dataclass(frozen=True)
class StateBox:
    """A state: its number, a name in short lines, and what is shown on hovering."""

    state: int
    name: tuple[str, ...]
    hover: str
    leads_out: bool
    """Whether a transition leads to a state that is not drawn."""
    moves: tuple[str, ...] = ()
    """Where labels lead that have no arrow of their own."""


@dataclass(frozen=True)
class Arrow:
    """All transitions from one state to another: their labels in short lines."""

    source: int
    target: int
    lines: tuple[str, ...]
    hover: str
    strength: EdgeStrength | None = None
    """How often it was taken; of noisy machines only."""
    is_rare: bool = False
    """Whether it was taken once or twice, so that little speaks for it."""


@dataclass(frozen=True)
class Content:
    """What a picture says; `boxes[i]` is state i."""

    title: str
    boxes: tuple[StateBox, ...]
    arrows: tuple[Arrow, ...]
    notes: tuple[str, ...]


def content_of(machine: Machine, most_states: int = MOST_STATES) -> Content:
    """Say what to draw of a machine: the states reached first, and the arrows among them.

    Where these are too many to follow, a state is led to by one arrow, and says itself where
    its other labels lead.
    """
    if most_states < 1:
        raise OptionError(f"most_states={most_states}: use at least 1")
    known, often, rare = edges(machine), edge_strengths(machine), rare_edges(machine)
    drawn = min(machine.states, most_states)
    inside = [edge for edge in known if max(edge[:2]) < drawn]
    leading_out = {source for source, target, _ in known if source < drawn <= target}
    folds = len(inside) > MOST_ARROWS
    shown, told = inside, dict[int, list[Edge]]()
    if folds:
        ways = first_ways(machine, inside)
        shown = [edge for edge in inside if edge[:2] in ways]
        for edge in known:
            if edge[0] < drawn and edge[:2] not in ways:
                told.setdefault(edge[0], []).append(edge)
    return Content(
        title=f"{machine.title}, {amount(machine.states, 'state')}",
        boxes=tuple(
            _box(machine, state, state in leading_out, told.get(state, []))
            for state in range(drawn)
        ),
        arrows=tuple(_arrow(*edge, often.get(edge[:2]), edge[:2] in rare) for edge in shown),
        notes=tuple(_notes(machine, drawn, folds)),
    )


def _box(machine: Machine, state: int, leads_out: bool, told: list[Edge]) -> StateBox:
    moves = moves_of(state, told)
    if state and machine.first_move(state) is None:
        hover = f"state {state}: no labels lead here"
        return StateBox(state, ("not reached",), hover, leads_out, moves)
    history = machine.history(state)
    after = f"after {listed([*map(label_text, history)])}" if history else "start"
    also = [f"→ {target}: {listed(labels, _MOST_HOVER)}" for _, target, labels in told]
    hover = "\n".join([f"state {state}: {after}", *also, *_varying(machine, state)])
    return StateBox(state, _state_name(history), hover, leads_out, moves)


def _varying(machine: Machine, state: int) -> list[str]:
    """Say what a state answers in more than one way, first what most often came otherwise."""
    spread = machine.spread
    rows = np.flatnonzero(spread.state[spread.starts] == state)
    oddest = np.argsort(spread.most[rows] - spread.totals[rows], kind="stable")
    told = []
    for row in rows[oddest[:_MOST_VARYING]]:
        observation, action = machine.question(int(spread.question[spread.starts[row]]))
        shares = machine.distribution(state, observation, action)
        told.append(f"{_cut(observation)}, {_cut(action)}:")
        told += [
            f"{_bar(share)} {percent(share)} {_cut(output)}"
            for output, share in [*shares.items()][:_MOST_ANSWERS]
        ]
        if len(shares) > _MOST_ANSWERS:
            told.append(f"and {amount(len(shares) - _MOST_ANSWERS, 'other')}")
    left_out = len(rows) - min(len(rows), _MOST_VARYING)
    return [*told, *([f"and {amount(left_out, 'other answer')} that vary"] if left_out else [])]


def _bar(share: float) -> str:
    """Draw a share as a bar of block letters, a tenth each.

    >>> _bar(0.62), _bar(0.01)
    ('██████', '▏')
    """
    return "█" * round(10 * share) or "▏"


def _cut(symbol: Symbol) -> str:
    return short(symbol_text(symbol), 40)


def _state_name(history: tuple[Label, ...]) -> tuple[str, ...]:
    """Name a state by the labels that lead to it; of many by their number and the last two."""
    if not history:
        return ("start",)
    labels = [
        _short(label_text(label), NAME_SIZE, _NAME_WIDTH) + (f" ×{times}" if times > 1 else "")
        for label, times in _in_a_row(history)
    ]
    lines = _after(labels)
    if len(lines) > _MOST_LINES:
        lines = [f"after {len(history)} labels:", f"{ELLIPSIS} {labels[-2]},", labels[-1]]
    return tuple(lines)


def _in_a_row(history: tuple[Label, ...]) -> list[tuple[Label, int]]:
    return [(label, len(list(group))) for label, group in groupby(history)]


def _after(labels: list[str]) -> list[str]:
    return set_in_lines([f"after {labels[0]}", *labels[1:]], NAME_SIZE, _NAME_WIDTH)


def _arrow(
    source: int, target: int, labels: list[str], strength: EdgeStrength | None, is_rare: bool
) -> Arrow:
    lines = tuple(_label_lines(labels))
    hover = f"from {source} to {target}: {listed(labels)}"
    if strength is not None:
        hover += f"\ntaken {amount(strength.times, 'time')}"
        hover += "; it might lead elsewhere" if strength.is_open else ""
    elif is_rare:
        hover += "\ntaken once or twice"
    return Arrow(source, target, lines, hover, strength, is_rare and strength is None)


def _label_lines(labels: list[str]) -> list[str]:
    """Set labels in few lines; where they do not fit, the first, and how many more there are."""
    kept = min(len(labels), _MOST_LABELS)
    short = [_short(label, LABEL_SIZE, _LABEL_WIDTH) for label in labels[:kept]]
    while True:
        left_out = len(labels) - kept
        more = [f"{left_out} more"] if left_out else []
        lines = set_in_lines([*short[:kept], *more], LABEL_SIZE, _LABEL_WIDTH)
        if len(lines) <= _MOST_LINES or kept <= 1:
            return lines
        kept -= 1


def _short(text: str, size: float, most: float) -> str:
    return shortened(text, size, most)


def _notes(machine: Machine, drawn: int, folds: bool) -> list[str]:
    notes = []
    if folds:
        notes.append(
            "There are too many arrows to follow: each state has the one that first leads to it, "
            "and says where its other labels lead."
        )
    if drawn < machine.states:
        notes.append(
            f"{machine.states} states are too many to draw: the {drawn} reached first are shown; "
            "a dashed border means that labels lead on to others."
        )
    if machine.trivial:
        named = machine.trivial_labels[:_MOST_TRIVIAL]
        names = [_short(label_text(label), NOTE_SIZE, 200) for label in named]
        left_out = len(machine.trivial) - len(named)
        more = [f"{left_out} more"] if left_out else []
        notes.append(f"Labels that change nothing are not drawn: {', '.join([*names, *more])}.")
    if machine.is_noisy:
        odd = percent(machine.noise)
        notes.append(f"Noise: {odd} of all answers were others than the most frequent ones.")
    strengths = edge_strengths(machine)
    if strengths:
        note = "The more often a move was made, the thicker is its arrow"
        if any(one.is_open for one in strengths.values()):
            note += "; a dashed one might lead elsewhere, and says how sure it is"
        notes.append(f"{note}.")
    elif any(max(edge) < drawn for edge in rare_edges(machine)):
        notes.append("A dashed arrow was taken once or twice: little speaks for it.")
    if (machine.transitions[:drawn] < 0).any():
        missing = "that is not named" if folds else "without an arrow"
        notes.append(f"A label {missing} was never seen in that state.")
    return notes
