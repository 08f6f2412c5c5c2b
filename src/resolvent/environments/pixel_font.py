"""Letters three pixels wide and five high, so that pictures need no font files."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 3, 5

# Five rows from top to bottom, each one octal digit whose bits are its pixels.
_ROWS = {
    **{"A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644"},
    **{"G": "34553", "H": "55755", "I": "72227", "J": "11152", "K": "55655", "L": "44447"},
    **{"M": "57755", "N": "65555", "O": "25552", "P": "65644", "Q": "25573", "R": "65655"},
    **{"S": "34216", "T": "72222", "U": "55557", "V": "55552", "W": "55775", "X": "55255"},
    **{"Y": "55222", "Z": "71247", "0": "75557", "1": "26227", "2": "61247", "3": "61216"},
    **{"4": "55711", "5": "74616", "6": "34757", "7": "71122", "8": "75757", "9": "75716"},
    **{".": "00002", ",": "00024", ":": "02020", ";": "02024", "-": "00700", "+": "02720"},
    **{"(": "12221", ")": "42224", "[": "32223", "]": "62226", "/": "11244", "?": "61202"},
    **{"=": "07070", ">": "42124", "<": "12421", "'": "22000", "!": "22202", " ": "00000"},
}


def pixels(text: str, scale: int) -> NDArray[np.bool_]:
    """Return the pixels of one line of text; a character without a picture is a question mark.

    >>> print("\\n".join("".join(" #"[dot] for dot in row) for row in pixels("Hi", 1).astype(int)))
    # # ###
    # #  #
    ###  #
    # #  #
    # # ###
    """
    glyphs = [_glyph(character) for character in text.upper()]
    gap = np.zeros((HEIGHT, 1), bool)
    parts: list[NDArray[Any]] = [part for glyph in glyphs for part in (glyph, gap)][:-1]
    line = np.hstack(parts) if parts else np.zeros((HEIGHT, 0), bool)
    return line.repeat(scale, axis=0).repeat(scale, axis=1)


def _glyph(character: str) -> NDArray[np.bool_]:
    rows = [int(digit) for digit in _ROWS.get(character, _ROWS["?"])]
    return np.array([[row >> 2 & 1, row >> 1 & 1, row & 1] for row in rows], bool)
