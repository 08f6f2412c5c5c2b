"""A picture as pixels, with plain NumPy: walls dark, things coloured, the agent a disc."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.environments.drawing import pixel_font
from resolvent.environments.drawing.picture import Cell, Colour, Picture

Pixels: TypeAlias = NDArray[np.uint8]

_PAPER: Colour = (255, 255, 255)
_FLOOR: Colour = (248, 247, 243)
_GRID: Colour = (225, 223, 216)
_WALL: Colour = (66, 70, 82)
_AGENT: Colour = (30, 32, 40)
_INK: Colour = (44, 46, 56)

_MARGIN = 16
_LINE = 20  # from one line of text to the next
_DOT = 2  # pixels a dot of text
_CHARACTER = (pixel_font.WIDTH + 1) * _DOT
_WIDTH = 480  # of the grid, if cells between these two sizes can make it
_SMALLEST, _LARGEST = 18, 72


def as_pixels(picture: Picture) -> Pixels:
    """Draw the grid, below it the legend, then the captions; what is too long is cut off."""
    size = max(_SMALLEST, min(_LARGEST, _WIDTH // max(picture.rows, picture.columns)))
    width = max(_WIDTH, picture.columns * size)
    legend = _legend_lines(picture, width)
    grid_height = picture.rows * size
    texts = len(legend) + len(picture.captions)
    height = grid_height + _MARGIN + texts * _LINE
    image = np.full((height + 2 * _MARGIN, width + 2 * _MARGIN, 3), _PAPER, np.uint8)
    inner = image[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]

    grid_width = picture.columns * size
    left, line = _MARGIN + (width - grid_width) // 2, 2 * max(1, size // 20)
    bottom, right = _MARGIN + grid_height, left + grid_width
    _draw_frame(image[_MARGIN - line : bottom + line, left - line : right + line], line)
    _draw_grid(image[_MARGIN:bottom, left:right], picture, size, line)
    rows = inner[grid_height + _MARGIN :]
    for names in legend:
        _draw_legend(rows, picture, names)
        rows = rows[_LINE:]
    for caption in picture.captions:
        _draw_text(rows, caption, _INK, _DOT)
        rows = rows[_LINE:]
    return image


def _draw_grid(image: Pixels, picture: Picture, size: int, line: int) -> None:
    for row in range(picture.rows):
        for column in range(picture.columns):
            top, left = row * size, column * size
            _draw_cell(image[top : top + size, left : left + size], picture, (row, column))
    half = line // 2
    for one, other in map(sorted, picture.walls):
        top, left = other[0] * size, other[1] * size
        above, before = max(0, top - half), max(0, left - half)
        if one[0] == other[0]:
            image[above : top + size + half, before : left + half] = _WALL
        else:
            image[above : top + half, before : left + size + half] = _WALL


def _draw_frame(image: Pixels, line: int) -> None:
    """Draw a line along all four sides."""
    image[:line] = image[-line:] = _WALL
    image[:, :line] = image[:, -line:] = _WALL


def _draw_cell(image: Pixels, picture: Picture, cell: Cell) -> None:
    size = len(image)
    name, solid = picture.things.get(cell), cell in picture.solid
    image[:] = _WALL if solid else _FLOOR
    if not solid:
        image[0] = image[:, 0] = _GRID
    if name is not None:
        colour = picture.colour(name)
        if not solid:
            edge = max(1, size // 14)
            image[edge:-edge, edge:-edge] = colour
        letter, dot = picture.legend[name], max(1, size // 10)
        glyph = pixel_font.pixels(letter, dot)
        room = image[(size - glyph.shape[0]) // 2 :, (size - glyph.shape[1]) // 2 :]
        if cell != picture.agent:
            _draw_text(room, letter, colour if solid else _darker(colour), dot)
    if cell == picture.agent:
        _draw_disc(image, size * 0.36, _PAPER)
        _draw_disc(image, size * 0.29, _AGENT)


def _legend_lines(picture: Picture, width: int) -> list[list[str]]:
    """Spread the legend over as few lines as it takes."""
    lines: list[list[str]] = []
    used = width
    for name in picture.legend:
        length = _entry_width(name)
        if used + length > width:
            lines.append([])
            used = 0
        lines[-1].append(name)
        used += length
    return lines


def _entry_width(name: str) -> int:
    return _LINE + (len(name) + 2) * _CHARACTER


def _draw_legend(image: Pixels, picture: Picture, names: list[str]) -> None:
    side = pixel_font.HEIGHT * _DOT
    for name in names:
        image[:side, :side] = picture.colour(name)
        _draw_text(image[:, side + 6 :], name, _INK, _DOT)
        image = image[:, _entry_width(name) :]


def _draw_text(image: Pixels, text: str, colour: Colour, dot: int) -> None:
    dots = pixel_font.pixels(text, dot)[: image.shape[0], : image.shape[1]]
    image[: dots.shape[0], : dots.shape[1]][dots] = colour


def _draw_disc(image: Pixels, radius: float, colour: Colour) -> None:
    """Draw a disc in the middle, its rim mixed with what is there already."""
    across = np.arange(len(image)) - (len(image) - 1) / 2
    distance = np.hypot(across[:, None], across[None, :])
    share = np.clip(radius + 0.5 - distance, 0.0, 1.0)[..., None]
    image[:] = np.round(image * (1 - share) + np.array(colour) * share).astype(np.uint8)


def _darker(colour: Colour) -> Colour:
    red, green, blue = (part * 2 // 5 for part in colour)
    return red, green, blue
