"""The house of the cookie, two-keys and symbol worlds: three rooms and a hallway.

Toro Icarte, Waldie, Klassen, Valenzano, Castro and McIlraith, "Learning Reward
Machines for Partially Observable Reinforcement Learning" (2019). There a step
slips with probability 5%, to one of the other three directions, and things lie where
chance puts them; here only if `slip` and `published` say so.
"""

from collections.abc import Sequence
from typing import Final

from resolvent.worlds.drawing import Cell

ROWS, COLUMNS = 17, 15
START: Final[Cell] = (8, 2)
CORNERS: Final[dict[str, Cell]] = {
    "north-west": (1, 1),
    "north-east": (1, 3),
    "south-west": (15, 1),
    "south-east": (15, 3),
}
"""Where cookies and keys may lie, in the two small rooms."""

MOVES: Final = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}

_ROOMS = {
    "north": {(row, column) for row in range(1, 4) for column in range(1, 4)},
    "south": {(row, column) for row in range(13, 16) for column in range(1, 4)},
    "east": {(row, column) for row in range(6, 11) for column in range(8, 14)},
    "hallway": {(row, 2) for row in range(4, 13)} | {(8, column) for column in range(3, 8)},
}
_ROOM_OF = {cell: room for room, cells in _ROOMS.items() for cell in cells}
FLOOR: Final = frozenset(_ROOM_OF)
WALLS: Final = frozenset((row, column) for row in range(ROWS) for column in range(COLUMNS)) - FLOOR


def room_of(cell: Cell) -> str:
    """Return the room that a cell belongs to: north, south, east or hallway."""
    return _ROOM_OF[cell]


def seen_from(cell: Cell, corner: str) -> bool:
    """Whether a thing in a corner is seen from a cell."""
    return room_of(cell) == room_of(CORNERS[corner])


def view(cell: Cell, things: Sequence[str]) -> str:
    """Return the observation of a cell and of the things seen from there.

    >>> view((8, 2), []), view((3, 2), ["west key", "east key"])
    ('8,2', '3,2: west key, east key')
    """
    place = f"{cell[0]},{cell[1]}"
    return f"{place}: {', '.join(things)}" if things else place


def side(corner: str) -> str:
    """Return which side of its room a corner is on: west or east."""
    return corner.split("-")[1]


def moved(cell: Cell, move: tuple[int, int]) -> Cell:
    """Return the neighbouring cell, or the same one where a wall is."""
    target = cell[0] + move[0], cell[1] + move[1]
    return target if target in FLOOR else cell
