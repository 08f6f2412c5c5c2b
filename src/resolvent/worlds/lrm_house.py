"""The house of the cookie, two-keys and symbol worlds: three rooms and a hallway.

Toro Icarte, Waldie, Klassen, Valenzano, Castro and McIlraith, "Learning Reward
Machines for Partially Observable Reinforcement Learning" (2019). There a step
slips with probability 5%, to one of the other three directions, and objects are placed at
random; here only if `slip` and `published` say so.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from resolvent.worlds.drawing import Cell, Picture

ROWS, COLUMNS = 17, 15
START: Final[Cell] = (8, 2)
CORNERS: Final[dict[str, Cell]] = {
    "north-west": (1, 1),
    "north-east": (1, 3),
    "south-west": (15, 1),
    "south-east": (15, 3),
}
"""The corners of the two small rooms, where cookies and keys lie."""

_DIRECTIONS: Final = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
ACTIONS: Final = tuple(_DIRECTIONS)

_ROOMS = {
    "north": {(row, column) for row in range(1, 4) for column in range(1, 4)},
    "south": {(row, column) for row in range(13, 16) for column in range(1, 4)},
    "east": {(row, column) for row in range(6, 11) for column in range(8, 14)},
    "hallway": {(row, 2) for row in range(4, 13)} | {(8, column) for column in range(3, 8)},
}
ROOM_OF: Final = {cell: room for room, cells in _ROOMS.items() for cell in cells}
"""The room that each cell belongs to: north, south, east or hallway."""

_WALLS: Final = frozenset(product(range(ROWS), range(COLUMNS))) - ROOM_OF.keys()


def seen_from(cell: Cell, corner: str) -> bool:
    """Whether an object in a corner is visible from a cell."""
    return ROOM_OF[cell] == ROOM_OF[CORNERS[corner]]


def view(cell: Cell, objects: Sequence[str]) -> str:
    """Return the observation of a cell and of the objects visible from there.

    >>> view((8, 2), []), view((3, 2), ["west key", "east key"])
    ('8,2', '3,2: west key, east key')
    """
    position = f"{cell[0]},{cell[1]}"
    return f"{position}: {', '.join(objects)}" if objects else position


def side(corner: str) -> str:
    """Return the side of its room that a corner is on: west or east."""
    return corner.split("-")[1]


def next_cell(cell: Cell, action: int) -> Cell:
    """Return the neighboring cell, or the same one at a wall."""
    down, right = _DIRECTIONS[ACTIONS[action]]
    target = cell[0] + down, cell[1] + right
    return target if target in ROOM_OF else cell


def draw_house(
    agent: Cell,
    things: Mapping[Cell, str],
    legend: Mapping[str, str],
    captions: tuple[str, ...],
    inner_walls: frozenset[Cell] = frozenset(),
) -> Picture:
    """Draw the house with the things in it."""
    solid = _WALLS | inner_walls
    return Picture(ROWS, COLUMNS, agent, things, legend, solid=solid, captions=captions)
