"""The current state of a grid world, as plain data → text or pixels.

Pictures have letters of their own, three pixels wide and five high, so that they need neither
font files nor an imaging library.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Cell: TypeAlias = tuple[int, int]  # row and column; row 0 is on top
Color: TypeAlias = tuple[int, int, int]
Pixels: TypeAlias = NDArray[np.uint8]

PALETTE: tuple[Color, ...] = (
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

    `things` are the names of what lies on cells; `legend` gives every name its letter. Cells in
    `solid` are walls, or impassable now; `walls` are pairs of neighboring cells with a wall between
    them, so that a door is a gap. `colors` are those of names, and otherwise taken from a palette
    in turn. `text` replaces the drawing of the grid as text.

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
    colors: Mapping[str, Color] = field(default_factory=dict)
    text: str | None = None

    def ansi(self) -> str:
        """Return the picture as text."""
        signs = {"agent": "@", **self.legend}
        if any(cell in self.things for cell in self.solid):
            signs["impassable now"] = "#"
        legend = "  ".join(f"{sign} {name}" for name, sign in signs.items())
        return "\n".join([self.text or f"{_grid_text(self)}\n{legend}", *self.captions])

    def rgb_array(self) -> Pixels:
        """Return the picture as height × width × 3 pixels; a world's pictures have one size.

        Below the grid are the legend and the captions; long lines are truncated.
        """
        size = max(_SMALLEST, min(_LARGEST, _WIDTH // max(self.rows, self.columns)))
        width = max(_WIDTH, self.columns * size)
        legend = _legend_lines(self, width)
        grid_height = self.rows * size
        texts = len(legend) + len(self.captions)
        height = grid_height + 3 * _MARGIN + texts * _LINE
        image = np.full((height, width + 2 * _MARGIN, 3), _PAPER, np.uint8)
        inner = image[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]

        grid_width = self.columns * size
        left, line = _MARGIN + (width - grid_width) // 2, 2 * max(1, size // 20)
        bottom, right = _MARGIN + grid_height, left + grid_width
        image[_MARGIN - line : bottom + line, left - line : right + line] = _WALL  # the frame
        _draw_grid(image[_MARGIN:bottom, left:right], self, size, line)
        top = grid_height + _MARGIN
        for names in legend:
            _draw_legend(inner[top:], self, names)
            top += _LINE
        for caption in self.captions:
            _draw_text(inner[top:], caption, _INK, _DOT)
            top += _LINE
        return image

    def color(self, name: str) -> Color:
        """Return the color of a name in the legend."""
        position = list(self.legend).index(name)
        return self.colors.get(name, PALETTE[position % len(PALETTE)])


def checklist(items: Mapping[str, bool]) -> str:
    """Write finished and unfinished tasks, for a caption."""
    return "  ".join(f"[{'x' if done else ' '}] {name}" for name, done in items.items())


# --- Text ----------------------------------------------------------------------------------------

_JOINS = " │─└││┌├─┘─┴┐┤┬┼"  # joins neighbors: up 1, right 2, down 4, left 8


def _grid_text(picture: Picture) -> str:
    """Draw the grid with a frame.

    Cells have odd places in a lattice, frame and walls even ones. An even row or column without
    walls is omitted. A cell takes two characters, a filler and its letter; so do walls.
    """
    lines = np.zeros((2 * picture.rows + 1, 2 * picture.columns + 1), bool)
    lines[[0, -1], :] = True
    lines[:, [0, -1]] = True
    for (row, column), (other_row, other_column) in picture.walls:
        lines[row + other_row + 1, column + other_column + 1] = True
    padded = np.pad(lines, 1).astype(int)
    joins = padded[:-2, 1:-1] + 2 * padded[1:-1, 2:] + 4 * padded[2:, 1:-1] + 8 * padded[1:-1, :-2]
    columns = [x for x in range(1, lines.shape[1]) if x % 2 or lines[1::2, x].any()]
    text = []
    for y in (y for y in range(len(lines)) if y % 2 or lines[y, 1::2].any()):
        line = _JOINS[joins[y, 0]]
        for x in columns:
            if x % 2:
                wall = "─" if lines[y, x] else " "
                line += _characters(picture, (y // 2, x // 2)) if y % 2 else 2 * wall
            elif y % 2:
                line += " │" if lines[y, x] else "  "
            else:
                line += ("─" if lines[y, x - 1] else " ") + _JOINS[joins[y, x]]
        text.append(line.rstrip())
    return "\n".join(text)


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
    rows, columns = (
        range(max(0, at - 1), min(at + 2, size))
        for at, size in zip(cell, (picture.rows, picture.columns), strict=True)
    )
    return any(around not in picture.solid for around in product(rows, columns))


# --- Pixels --------------------------------------------------------------------------------------

_GLYPH_HEIGHT = 5
_GLYPHS = """
A25755 B65656 C34443 D65556 E74647 F74644 G34553 H55755 I72227 J11152 K55655 L44447 M57755
N65555 O25552 P65644 Q25573 R65655 S34216 T72222 U55557 V55552 W55775 X55255 Y55222 Z71247
075557 126227 261247 361216 455711 574616 634757 771122 875757 975716
.00002 ,00024 :02020 ;02024 -00700 +02720 (12221 )42224 [32223 ]62226 /11244 ?61202 =07070
>42124 <12421 '22000 !22202
"""
"""Each character with its five rows from top to bottom: octal digits whose bits are pixels."""

_ROWS = {" ": "00000", **{glyph[0]: glyph[1:] for glyph in _GLYPHS.split()}}

_PAPER: Color = (255, 255, 255)
_FLOOR: Color = (248, 247, 243)
_GRID: Color = (225, 223, 216)
_WALL: Color = (66, 70, 82)
_AGENT: Color = (30, 32, 40)
_INK: Color = (44, 46, 56)

_MARGIN = 16
_LINE = 20  # height of a line of text
_DOT = 2  # size of a dot of text
_CHARACTER = 4 * _DOT  # width of a character, with a gap
_WIDTH, _SMALLEST, _LARGEST = 480, 18, 72  # of the grid, and sizes of cells that may fill it


def text_pixels(text: str, scale: int) -> NDArray[np.bool_]:
    """Return the pixels of one line of text; unknown characters are question marks."""
    digits = [list(map(int, _ROWS.get(character, _ROWS["?"]))) for character in text.upper()]
    rows = np.array(digits, np.uint8).reshape(-1, _GLYPH_HEIGHT, 1)
    dots = rows & np.array([4, 2, 1, 0], np.uint8) > 0  # the last column is a gap
    line = dots.swapaxes(0, 1).reshape(_GLYPH_HEIGHT, -1)[:, :-1]
    return line.repeat(scale, axis=0).repeat(scale, axis=1)


def _draw_grid(image: Pixels, picture: Picture, size: int, line: int) -> None:
    for row, column in product(range(picture.rows), range(picture.columns)):
        top, left = row * size, column * size
        _draw_cell(image[top : top + size, left : left + size], picture, (row, column))
    half = line // 2
    for first, second in map(sorted, picture.walls):
        top, left = second[0] * size, second[1] * size
        above, before = max(0, top - half), max(0, left - half)
        height, width = (size, 0) if first[0] == second[0] else (0, size)
        image[above : top + height + half, before : left + width + half] = _WALL


def _draw_cell(image: Pixels, picture: Picture, cell: Cell) -> None:
    size = len(image)
    name, solid = picture.things.get(cell), cell in picture.solid
    image[:] = _WALL if solid else _FLOOR
    if not solid:
        image[0] = image[:, 0] = _GRID
    if name is not None:
        color = picture.color(name)
        if not solid:
            edge = max(1, size // 14)
            image[edge:-edge, edge:-edge] = color
        if cell != picture.agent:
            letter, dot = picture.legend[name], max(1, size // 10)
            height, width = text_pixels(letter, dot).shape
            room = image[(size - height) // 2 :, (size - width) // 2 :]
            shade = 5 if solid else 2  # of five
            _draw_text(room, letter, tuple(part * shade // 5 for part in color), dot)
    if cell == picture.agent:
        _draw_disc(image, size * 0.36, _PAPER)
        _draw_disc(image, size * 0.29, _AGENT)


def _legend_lines(picture: Picture, width: int) -> list[list[str]]:
    """Spread the legend over as few lines as it takes."""
    lines: list[list[str]] = []
    for name in picture.legend:
        if not lines or sum(map(_entry_width, [*lines[-1], name])) > width:
            lines.append([])
        lines[-1].append(name)
    return lines


def _entry_width(name: str) -> int:
    return _LINE + (len(name) + 2) * _CHARACTER


def _draw_legend(image: Pixels, picture: Picture, names: list[str]) -> None:
    side = _GLYPH_HEIGHT * _DOT
    for name in names:
        image[:side, :side] = picture.color(name)
        _draw_text(image[:, side + 6 :], name, _INK, _DOT)
        image = image[:, _entry_width(name) :]


def _draw_text(image: Pixels, text: str, color: Sequence[int], dot: int) -> None:
    dots = text_pixels(text, dot)[: image.shape[0], : image.shape[1]]
    image[: dots.shape[0], : dots.shape[1]][dots] = color


def _draw_disc(image: Pixels, radius: float, color: Color) -> None:
    """Draw a disc in the middle, its rim blended with the background."""
    across = np.arange(len(image)) - (len(image) - 1) / 2
    distance = np.hypot(across[:, None], across[None, :])
    share = np.clip(radius + 0.5 - distance, 0.0, 1.0)[..., None]
    image[:] = np.round(image * (1 - share) + np.array(color) * share).astype(np.uint8)
