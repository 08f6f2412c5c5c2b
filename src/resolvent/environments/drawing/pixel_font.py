"""Letters three pixels wide and five high, so that pictures need no font files."""

import numpy as np
from numpy.typing import NDArray

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
