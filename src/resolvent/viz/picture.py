"""Choose the content of a picture of a machine: boxes for states, texts for arrows, and notes.

Input: a machine. Output: a `Picture`, its texts cut and set in lines, without positions. Above 60
arrows, only one arrow leads to each state, and boxes list the targets of other labels.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from resolvent._util.text import amount, percent, short
from resolvent.errors import OptionError
from resolvent.machines.machine import Machine
from resolvent.traces.symbols import Label, Symbol, label_text, symbol_text
from resolvent.viz.dot import Edge, edges

NUMBER_SIZE, NAME_SIZE, LABEL_SIZE, NOTE_SIZE, SUCCESSOR_SIZE = 19.0, 11.0, 12.0, 11.0, 10.0
MOST_STATES = 100
MOST_ARROWS = 60  # maximum number that can be followed; beyond, only first paths are drawn
MOST_LISTED = 1000  # maximum number of characters of a list that is shown on hovering
_NAME_WIDTH, _LABEL_WIDTH, _SUCCESSOR_WIDTH, _NOTE_LABEL_WIDTH = 100.0, 116.0, 130.0, 200.0
_MOST_LINES, _MOST_SUCCESSORS, _MOST_TRIVIAL = 3, 8, 12
_MOST_HOVER = 200  # maximum number of characters of the labels that lead to one listed state
_MOST_VARYING, _MOST_OUTPUTS = 6, 4  # queries listed for a state, and outputs of each
_MOST_LABELS = 40  # that fit in three lines, however short: each takes a comma and space
_ELLIPSIS = "…"


class StateBox(NamedTuple):
    """A state: its number, a name in short lines, and a text shown on hovering."""

    state: int
    name: tuple[str, ...]
    hover: str
    leads_out: bool  # whether a transition leads to a state that is not drawn
    successors: tuple[str, ...]  # successors for labels without an arrow


class Arrow(NamedTuple):
    """All transitions from one state to another: their labels in short lines."""

    source: int
    target: int
    lines: tuple[str, ...]
    hover: str
    width: float | None  # line width; None for the usual one
    is_dashed: bool  # whether the arrow may lead elsewhere or was rarely taken


class Picture(NamedTuple):
    """Content of a picture; `boxes[i]` is state i."""

    title: str
    boxes: tuple[StateBox, ...]
    arrows: tuple[Arrow, ...]
    notes: tuple[str, ...]


def picture_of(machine: Machine, most_states: int = MOST_STATES) -> Picture:
    """Return the picture of the states reached first and the arrows among them."""
    if most_states < 1:
        raise OptionError(f"most_states={most_states}: use at least 1")
    all_edges = edges(machine)
    drawn = min(machine.states, most_states)
    arrows = [edge for edge in all_edges if max(edge[:2]) < drawn]
    leading_out = {edge.source for edge in all_edges if edge.source < drawn <= edge.target}
    folded: list[list[Edge]] = [[] for _ in range(drawn)]
    is_folded = len(arrows) > MOST_ARROWS
    if is_folded:
        access = {edge.target: machine.access_transition(edge.target) for edge in arrows}
        first = {(step[0], target) for target, step in access.items() if step is not None}
        arrows = [edge for edge in arrows if edge[:2] in first]
        for edge in all_edges:
            if edge.source < drawn and edge[:2] not in first:
                folded[edge.source].append(edge)
    return Picture(
        f"{machine.title}, {amount(machine.states, 'state')}",
        tuple(_box(machine, state, state in leading_out, folded[state]) for state in range(drawn)),
        tuple(map(_arrow, arrows)),
        tuple(_notes(machine, all_edges, drawn, is_folded)),
    )


def _box(machine: Machine, state: int, leads_out: bool, folded: list[Edge]) -> StateBox:
    successors = _successor_lines(state, folded)
    if state and machine.access_transition(state) is None:
        hover = f"state {state}: not reachable"
        return StateBox(state, ("not reachable",), hover, leads_out, successors)
    history = machine.access_sequence(state)
    after = f"after {listed([*map(label_text, history)])}" if history else "start"
    targets = [f"→ {edge.target}: {listed(edge.labels, _MOST_HOVER)}" for edge in folded]
    hover = "\n".join([f"state {state}: {after}", *targets, *_varying(machine, state)])
    return StateBox(state, _state_name(history), hover, leads_out, successors)


def _successor_lines(state: int, folded: list[Edge]) -> tuple[str, ...]:
    """Write the targets of labels without an arrow in short lines, loops first."""
    lines = [
        successor_line("stays" if edge.target == state else f"→ {edge.target}", edge.labels)
        for edge in sorted(folded, key=lambda edge: (edge.target != state, edge.target))
    ]
    if len(lines) > _MOST_SUCCESSORS:
        left_out = len(lines) - _MOST_SUCCESSORS + 1
        lines[_MOST_SUCCESSORS - 1 :] = [f"{_ELLIPSIS} and {left_out} other states"]
    return tuple(lines)


def successor_line(target: str, labels: Sequence[str]) -> str:
    """Name the labels that fit in a line, and count the others."""
    for count in range(min(len(labels), _MOST_LABELS), 0, -1):
        line = f"{target}: {', '.join(_first(labels, count))}"
        if width(line, SUCCESSOR_SIZE) <= _SUCCESSOR_WIDTH:
            return line
    if len(labels) > 1:
        return f"{target}: {len(labels)} labels"
    return f"{target}: {shortened(labels[0], SUCCESSOR_SIZE, _SUCCESSOR_WIDTH)}"


def _first(texts: Sequence[str], count: int) -> list[str]:
    """Return the first texts and the number of the others, if any."""
    left_out = len(texts) - count
    return [*texts[:count], *([f"{left_out} more"] if left_out > 0 else [])]


def _varying(machine: Machine, state: int) -> list[str]:
    """List the varying outputs of a state, those with most exceptions first."""
    counts = machine.output_counts
    rows = np.flatnonzero(counts.state[counts.starts] == state)
    ordered = rows[np.argsort(counts.most[rows] - counts.totals[rows], kind="stable")]
    lines = []
    for row in ordered[:_MOST_VARYING]:
        query = machine.query(int(counts.query[counts.starts[row]]))
        shares = machine.distribution(state, *query)
        lines.append(f"{', '.join(map(_symbol_text, query))}:")
        for output, share in [*shares.items()][:_MOST_OUTPUTS]:
            bar = "█" * round(10 * share) or "▏"
            lines.append(f"{bar} {percent(share)} {_symbol_text(output)}")
        if len(shares) > _MOST_OUTPUTS:
            lines.append(f"and {amount(len(shares) - _MOST_OUTPUTS, 'other')}")
    if len(rows) > _MOST_VARYING:
        lines.append(f"and {len(rows) - _MOST_VARYING:,} more with varying outputs")
    return lines


def _symbol_text(symbol: Symbol) -> str:
    return short(symbol_text(symbol), 40)


def _state_name(history: tuple[Label, ...]) -> tuple[str, ...]:
    """Name a state by the labels that lead to it, or by their number and the last two."""
    if not history:
        return ("start",)
    labels = []
    for label, group in groupby(history):
        times = len(list(group))
        text = shortened(label_text(label), NAME_SIZE, _NAME_WIDTH)
        labels.append(f"{text} ×{times}" if times > 1 else text)
    lines = set_in_lines([f"after {labels[0]}", *labels[1:]], NAME_SIZE, _NAME_WIDTH)
    if len(lines) > _MOST_LINES:
        return (f"after {len(history)} labels:", f"{_ELLIPSIS} {labels[-2]},", labels[-1])
    return tuple(lines)


def _arrow(edge: Edge) -> Arrow:
    hover = f"from {edge.source} to {edge.target}: {listed(edge.labels)}"
    if edge.width is not None and edge.times is not None:
        hover += f"\ntaken {amount(edge.times, 'time')}"
        hover += "; it may lead elsewhere" if edge.is_uncertain else ""
    elif edge.is_rare:
        hover += "\ntaken once or twice"
    most = min(len(edge.labels), _MOST_LABELS)
    texts = [shortened(label, LABEL_SIZE, _LABEL_WIDTH) for label in edge.labels[:most]]
    texts += edge.labels[most:]  # only counted
    for count in range(most, 0, -1):
        lines = set_in_lines(_first(texts, count), LABEL_SIZE, _LABEL_WIDTH)
        if len(lines) <= _MOST_LINES:
            break
    is_dashed = edge.is_uncertain or edge.is_rare
    return Arrow(edge.source, edge.target, tuple(lines), hover, edge.width, is_dashed)


def _notes(machine: Machine, all_edges: list[Edge], drawn: int, is_folded: bool) -> Iterator[str]:
    if is_folded:
        yield (
            "Too many arrows to draw: only the first one to each state is shown; states list the "
            "targets of their other labels."
        )
    if drawn < machine.states:
        yield (
            f"{machine.states} states are too many to draw: the {drawn} reached first are shown; "
            "a dashed border marks a state with transitions to others."
        )
    if machine.trivial:
        names = [
            shortened(label_text(label), NOTE_SIZE, _NOTE_LABEL_WIDTH)
            for label in machine.trivial_labels
        ]
        listing = ", ".join(_first(names, _MOST_TRIVIAL))
        yield f"Labels that change nothing are not drawn: {listing}."
    if machine.is_noisy:
        yield f"Noise: {percent(machine.noise)} of all outputs differ from the most frequent one."
    if any(edge.width is not None for edge in all_edges):
        yield "The more often a transition was taken, the thicker is its arrow."
        if any(edge.is_uncertain for edge in all_edges):
            yield "A dashed arrow may lead elsewhere; its confidence is given in parentheses."
    elif any(edge.is_rare and max(edge[:2]) < drawn for edge in all_edges):
        yield "A dashed arrow was taken only once or twice."
    if (machine.transitions[:drawn] < 0).any():
        missing = "that is not listed" if is_folded else "without an arrow"
        yield f"A label {missing} was never seen in that state."


_NARROW_EM = 0.40  # width of a narrow character, as a share of the font size


def width(text: str, size: float) -> float:
    """Estimate the width of a text in a font of a size."""
    return size * sum(map(_width_in_em, text))


@lru_cache(maxsize=1024)
def _width_in_em(character: str) -> float:
    # On the wide side of the usual sans-serif fonts, so that a box made for a text holds it
    # whichever font the reader has.
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in "iljftIr.,:;'|!()[] ":
        return _NARROW_EM
    if character in "mwMW@%—…" or ord(character) > 0x24F:
        return 0.98
    return 0.72 if character.isupper() else 0.62


def shortened(text: str, size: float, most: float) -> str:
    """Cut the middle of a text that is wider than `most`."""
    # More letters do not fit, however narrow: a long text is not measured in full.
    longest = min(len(text) - 1, int(most / (size * _NARROW_EM)) + 1)
    if width(text[: longest + 1], size) <= most and width(text, size) <= most:
        return text
    for length in range(longest, 1, -1):
        if width(cut := _cut(text, length), size) <= most:
            return cut
    return text[:1] + _ELLIPSIS


def _cut(text: str, length: int) -> str:
    """Keep `length` characters of a text, a quarter of them from its end."""
    end = length // 4
    return text[: length - end] + _ELLIPSIS + text[len(text) - end :]


def listed(texts: Sequence[str], most: int = MOST_LISTED) -> str:
    """List texts of at most about `most` characters, and the number of the others."""
    parts: list[str] = []
    length = 0
    for text in texts:
        length += len(text)
        if parts and length > most:
            break
        parts.append(text if len(text) <= most else _cut(text, most))
    if len(parts) < len(texts):
        parts.append(f"{_ELLIPSIS} and {len(texts) - len(parts):,} more")
    return ", ".join(parts)


def set_in_lines(parts: Sequence[str], size: float, most: float) -> list[str]:
    """Set parts in lines about `most` wide, a comma after each but the last.

    A part written from right to left has a separate line, since mixed lines change its place.
    """
    lines: list[str] = []
    is_closed = False
    for part in (*(f"{part}," for part in parts[:-1]), parts[-1]):
        is_right_to_left = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in part)
        joined = f"{lines[-1]} {part}" if lines else part
        if lines and not is_closed and not is_right_to_left and width(joined, size) <= most:
            lines[-1] = joined
        else:
            lines.append(part)
        is_closed = is_right_to_left
    return lines
