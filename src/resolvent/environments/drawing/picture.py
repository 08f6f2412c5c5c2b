"""What a grid world looks like now, as plain data → text or pixels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """A grid, what lies on it, the agent, and captions that tell what it cannot see.

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
        from resolvent.environments.drawing.text import as_text

        return as_text(self)

    def rgb_array(self) -> NDArray[np.uint8]:
        """Return the picture as height × width × 3 pixels; a world's pictures have one size."""
        from resolvent.environments.drawing.pixels import as_pixels

        return as_pixels(self)

    def colour(self, name: str) -> Colour:
        """Return the colour of what has this name in the legend."""
        position = list(self.legend).index(name)
        return self.colours.get(name, PALETTE[position % len(PALETTE)])


def checklist(items: Mapping[str, bool]) -> str:
    """Write what is done and what is not, for a caption.

    >>> checklist({"Coffee": True, "Stair": False})
    '[x] Coffee  [ ] Stair'
    """
    return "  ".join(f"[{'x' if done else ' '}] {name}" for name, done in items.items())
