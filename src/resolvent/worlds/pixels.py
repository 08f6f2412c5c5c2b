"""Letters three pixels wide and five high, so that pictures need no font files."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.worlds.drawing import Cell, Colour, Picture

WIDTH, HEIGHT = 3, 5

# A character, then its five rows from top to bottom: octal digits whose bits are pixels.
_GLYPHS = """
A25755 B65656 C34443 D65556 E74647 F74644 G34553 H55755 I72227 J11152 K55655 L44447 M57755
N65555 O25552 P65644 Q25573 R65655 S34216 T72222 U55557 V55552 W55775 X55255 Y55222 Z71247
075557 126227 261247 361216 455711 574616 634757 771122 875757 975716
.00002 ,00024 :02020 ;02024 -00700 +02720 (12221 )42224 [32223 ]62226 /11244 ?61202 =07070
>42124 <12421 '22000 !22202
"""
_ROWS = {" ": "00000", **{glyph[0]: glyph[1:] for glyph in _GLYPHS.split()}}


def pixels(text: str, scale: int) -> NDArray[np.bool_]:
    """Return the pixels of one line of text; a character without a picture is a question mark.

    >>> for row in pixels("Hi", scale=1).tolist():
    ...     print("".join("#" if dot else "." for dot in row))
    #.#.###
    #.#..#.
    ###..#.
    #.#..#.
    #.#.###
    """
    glyphs = [_glyph(character) for character in text.upper()]
    gap = np.zeros((HEIGHT, 1), bool)
    parts: list[NDArray[np.bool_]] = [part for glyph in glyphs for part in (glyph, gap)][:-1]
    line = np.hstack(parts) if parts else np.zeros((HEIGHT, 0), bool)
    return line.repeat(scale, axis=0).repeat(scale, axis=1)


def _glyph(character: str) -> NDArray[np.bool_]:
    rows = [int(digit) for digit in _ROWS.get(character, _ROWS["?"])]
    return np.array([[row >> 2 & 1, row >> 1 & 1, row & 1] for row in rows], bool)


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
_CHARACTER = (WIDTH + 1) * _DOT
_WIDTH = 480  # of the grid, if cells between these two sizes can make it
_SMALLEST, _LARGEST = 18, 72


def as_pixels(picture: Picture) -> Pixels:
    """Draw the grid, below it the legend, then the captions; long lines are cut off."""
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
    for first, second in map(sorted, picture.walls):
        top, left = second[0] * size, second[1] * size
        above, before = max(0, top - half), max(0, left - half)
        if first[0] == second[0]:
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
        glyph = pixels(letter, dot)
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
    side = HEIGHT * _DOT
    for name in names:
        image[:side, :side] = picture.colour(name)
        _draw_text(image[:, side + 6 :], name, _INK, _DOT)
        image = image[:, _entry_width(name) :]


def _draw_text(image: Pixels, text: str, colour: Colour, dot: int) -> None:
    dots = pixels(text, dot)[: image.shape[0], : image.shape[1]]
    image[: dots.shape[0], : dots.shape[1]][dots] = colour


def _draw_disc(image: Pixels, radius: float, colour: Colour) -> None:
    """Draw a disc in the middle, its rim blended with the background."""
    across = np.arange(len(image)) - (len(image) - 1) / 2
    distance = np.hypot(across[:, None], across[None, :])
    share = np.clip(radius + 0.5 - distance, 0.0, 1.0)[..., None]
    image[:] = np.round(image * (1 - share) + np.array(colour) * share).astype(np.uint8)


def _darker(colour: Colour) -> Colour:
    red, green, blue = (part * 2 // 5 for part in colour)
    return red, green, blue
