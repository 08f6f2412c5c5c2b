"""Too many arrows to follow → those that first lead to a state, and the others as texts.

An arrow says where it leads by its line. With a hundred of them no line can be followed, and
a text in the box of the state it comes from says more: "→ 7: RST, 3 more".
"""

from collections.abc import Iterable

from resolvent.machines.machine import Machine
from resolvent.machines.picture.text import ELLIPSIS, shortened, width

MOVE_SIZE = 10.0
_MOVE_WIDTH = 130.0
_MOST_MOVES = 8
_MOST_LABELS = 40
"""More do not fit in a line, however short."""

Edge = tuple[int, int, list[str]]
"""Source, target, and the labels that lead from one to the other."""


def first_ways(machine: Machine, known: Iterable[Edge]) -> set[tuple[int, int]]:
    """Return for each state from where the shortest history of labels leads there, and it."""
    targets = {target for _, target, _ in known}
    moves = {target: machine.first_move(target) for target in targets}
    return {(move[0], target) for target, move in moves.items() if move is not None}


def moves_of(state: int, known: Iterable[Edge]) -> tuple[str, ...]:
    """Say in short lines where labels lead that have no arrow: those that stay, then by target.

    >>> moves_of(2, [(2, 0, ["RST"]), (2, 2, ["ACK", "SYN"])])
    ('stays: ACK, SYN', '→ 0: RST')
    """
    ordered = sorted(known, key=lambda edge: (edge[1] != state, edge[1]))
    lines = [
        _line("stays" if target == state else f"→ {target}", labels)
        for _, target, labels in ordered
    ]
    if len(lines) > _MOST_MOVES:
        left_out = len(lines) - _MOST_MOVES + 1
        lines = [*lines[: _MOST_MOVES - 1], f"{ELLIPSIS} and {left_out} other states"]
    return tuple(lines)


def _line(leads: str, labels: list[str]) -> str:
    """Name as many labels as fit in a line, and count the others.

    >>> _line("→ 7", [f"label {number}" for number in range(12)])
    '→ 7: label 0, 11 more'
    """
    for kept in range(min(len(labels), _MOST_LABELS), 0, -1):
        left_out = len(labels) - kept
        more = [f"{left_out} more"] if left_out else []
        line = f"{leads}: {', '.join([*labels[:kept], *more])}"
        if width(line, MOVE_SIZE) <= _MOVE_WIDTH:
            return line
    if len(labels) > 1:
        return f"{leads}: {len(labels)} labels"
    return f"{leads}: {shortened(labels[0], MOVE_SIZE, _MOVE_WIDTH)}"
