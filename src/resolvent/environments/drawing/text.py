"""A picture as text: `@` is the agent, `·` floor, `▒` a wall, `#` an impassable cell."""

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from resolvent.environments.drawing.picture import Cell, Picture

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
        below = {one[0] for one, other in pairs if one[1] == other[1]}
        right_of = {one[1] for one, other in pairs if one[0] == other[0]}
        tops, lefts = [1], [1]
        for row in range(picture.rows):
            tops.append(tops[-1] + 1 + (row in below))
        for column in range(picture.columns):
            lefts.append(lefts[-1] + 2 + 2 * (column in right_of))
        return cls(tops[:-1], lefts[:-1], tops[-1] + 1, lefts[-1] + 2)


def _lines(picture: Picture, layout: _Layout) -> NDArray[np.bool_]:
    """Return which characters of the canvas belong to the frame or to a wall."""
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
