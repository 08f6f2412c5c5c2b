"""The current state of a grid world, as plain data → text or pixels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Cell: TypeAlias = tuple[int, int]
"""Row and column; row 0 is on top."""

Colour: TypeAlias = tuple[int, int, int]

PALETTE: tuple[Colour, ...] = (
    (240, 173, 78),
    (86, 180, 233),
    (64, 180, 140),
    (232, 140, 180),
    (165, 130, 210),
    (224, 110, 60),
    (160, 195, 80),
    (140, 150, 165),
)


@dataclass(frozen=True)
class Picture:
    """A grid, the things on it, the agent, and captions for unobserved facts.

    `things` says what lies on a cell, by name; `legend` gives every name its
    letter. Cells in `solid` are walls, or impassable now; `walls` are pairs of
    neighbouring cells with a wall between them, so that a door is a gap.
    `colours` are those of names, and otherwise taken from a palette in turn.

    >>> picture = Picture(1, 3, (0, 0), {(0, 2): "key"}, {"key": "K"}, captions=("hand empty",))
    >>> print(picture.ansi())
    ┌───────┐
    │ @ · K │
    └───────┘
    @ agent  K key
    hand empty
    """

    rows: int
    columns: int
    agent: Cell
    things: Mapping[Cell, str] = field(default_factory=dict)
    legend: Mapping[str, str] = field(default_factory=dict)
    solid: frozenset[Cell] = frozenset()
    walls: frozenset[tuple[Cell, Cell]] = frozenset()
    captions: tuple[str, ...] = ()
    colours: Mapping[str, Colour] = field(default_factory=dict)

    def ansi(self) -> str:
        """Return the picture as text."""
        return as_text(self)

    def rgb_array(self) -> NDArray[np.uint8]:
        """Return the picture as height × width × 3 pixels; a world's pictures have one size."""
        from resolvent.worlds.pixels import as_pixels

        return as_pixels(self)

    def colour(self, name: str) -> Colour:
        """Return the colour of a name in the legend."""
        position = list(self.legend).index(name)
        return self.colours.get(name, PALETTE[position % len(PALETTE)])


def checklist(items: Mapping[str, bool]) -> str:
    """Write finished and unfinished tasks, for a caption.

    >>> checklist({"Coffee": True, "Stair": False})
    '[x] Coffee  [ ] Stair'
    """
    return "  ".join(f"[{'x' if done else ' '}] {name}" for name, done in items.items())


# Which line character joins which neighbours: up 1, right 2, down 4, left 8.
_JOINS = " │─└││┌├─┘─┴┐┤┬┼"


def as_text(picture: Picture) -> str:
    """Draw the grid with a frame, then the legend, then the captions."""
    layout = _Layout.of(picture)
    canvas = _joined(_lines(picture, layout))
    for row, y in enumerate(layout.tops):
        for column, x in enumerate(layout.lefts):
            canvas[y][x : x + 2] = _characters(picture, (row, column))
    drawn = ["".join(line).rstrip() for line in canvas]
    signs = {"agent": "@", **picture.legend}
    if any(cell in picture.things for cell in picture.solid):
        signs["impassable now"] = "#"
    return "\n".join(
        [*drawn, "  ".join(f"{sign} {name}" for name, sign in signs.items()), *picture.captions]
    )


@dataclass(frozen=True)
class _Layout:
    """Where on the canvas each row and column of cells begins, and how large it is.

    A cell takes two characters, a filler and its letter. Rows and columns lie
    side by side, with room for a line only where some wall runs between them.
    """

    tops: list[int]
    lefts: list[int]
    height: int
    width: int

    @classmethod
    def of(cls, picture: Picture) -> "_Layout":
        pairs = [sorted(pair) for pair in picture.walls]
        below = {first[0] for first, second in pairs if first[1] == second[1]}
        right_of = {first[1] for first, second in pairs if first[0] == second[0]}
        tops, lefts = [1], [1]
        for row in range(picture.rows):
            tops.append(tops[-1] + 1 + (row in below))
        for column in range(picture.columns):
            lefts.append(lefts[-1] + 2 + 2 * (column in right_of))
        return cls(tops[:-1], lefts[:-1], tops[-1] + 1, lefts[-1] + 2)


def _lines(picture: Picture, layout: _Layout) -> NDArray[np.bool_]:
    """Return the characters of the canvas that belong to the frame or to a wall."""
    lines = np.zeros((layout.height, layout.width), bool)
    lines[[0, -1], :] = True
    lines[:, [0, -1]] = True
    for (row, column), (other_row, other_column) in map(sorted, picture.walls):
        if row == other_row:
            lines[layout.tops[row], layout.lefts[other_column] - 1] = True
        else:
            right = layout.lefts[column] + 2
            spaced = column + 1 == picture.columns or layout.lefts[column + 1] > right
            lines[layout.tops[other_row] - 1, right - 2 : right + spaced] = True
    # Where walls meet, neither row nor column has a cell: the corner joins what touches it.
    between = [after - 1 for left, after in pairwise(layout.lefts) if after - left > 2]
    for y in set(range(layout.height)) - set(layout.tops):
        for x in between:
            lines[y, x] |= lines[max(y - 1, 0) : y + 2, x].any() or lines[y, x - 1 : x + 2].any()
    return lines


def _joined(lines: NDArray[np.bool_]) -> list[list[str]]:
    """Turn lines into characters that join up with their neighbours."""
    padded = np.pad(lines, 1).astype(int)
    joins = padded[:-2, 1:-1] + 2 * padded[1:-1, 2:] + 4 * padded[2:, 1:-1] + 8 * padded[1:-1, :-2]
    return [[_JOINS[join] for join in row] for row in np.where(lines, joins, 0).tolist()]


def _characters(picture: Picture, cell: Cell) -> str:
    """Return the filler and the letter of a cell; of solid ground only the edge is drawn."""
    solid, name = cell in picture.solid, picture.things.get(cell)
    if cell == picture.agent:
        letter = "@"
    elif name is not None:
        letter = picture.legend[name]
    elif solid:
        return "▒▒" if _touches_floor(picture, cell) else "  "
    else:
        letter = "·"
    return ("#" if solid else " ") + letter


def _touches_floor(picture: Picture, cell: Cell) -> bool:
    around = product(range(cell[0] - 1, cell[0] + 2), range(cell[1] - 1, cell[1] + 2))
    return any(
        0 <= row < picture.rows
        and 0 <= column < picture.columns
        and (row, column) not in picture.solid
        for row, column in around
    )
