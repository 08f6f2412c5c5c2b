"""Text that is safe to draw → about how wide it is, shorter text, and text in lines."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

ELLIPSIS = "…"
MOST_LISTED = 1000
"""So many characters of a list are shown on hovering: more than anybody reads there."""

# In shares of the font size; on the wide side of the usual sans-serif fonts, so that a
# box made for a text holds it whichever font the reader has.
_NARROW = frozenset("iljftIr.,:;'|!()[] ")
_WIDE = frozenset("mwMW@%—…")
_NARROW_EM, _USUAL_EM, _CAPITAL_EM, _WIDE_EM, _FULL_EM = 0.40, 0.62, 0.72, 0.98, 1.05


def width(text: str, size: float) -> float:
    """Estimate how wide a text is in a font of a size.

    >>> width("iii", 10) < width("mmm", 10)
    True
    """
    return size * sum(map(_width_in_em, text))


@lru_cache(maxsize=1024)
def _width_in_em(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return _FULL_EM
    if character in _NARROW:
        return _NARROW_EM
    if character in _WIDE or ord(character) > 0x24F:
        return _WIDE_EM
    return _CAPITAL_EM if character.isupper() else _USUAL_EM


def shortened(text: str, size: float, most: float) -> str:
    """Cut a text that is wider than `most`, keeping its beginning and its end.

    >>> shortened("key", 10, 60), shortened("corridor_door_17", 10, 60)
    ('key', 'corrido…17')
    """
    # More letters than that do not fit, however narrow: a long name is not tried in full.
    kept = min(len(text) - 1, int(most / (size * _NARROW_EM)) + 1)
    if width(text[: kept + 1], size) <= most and width(text, size) <= most:
        return text
    while kept > 1:
        end = kept // 4
        short = text[: kept - end] + ELLIPSIS + text[len(text) - end :]
        if width(short, size) <= most:
            return short
        kept -= 1
    return text[:1] + ELLIPSIS


def listed(texts: Sequence[str], most: int = MOST_LISTED) -> str:
    """List texts up to about so many characters, and say how many more there are.

    >>> listed(["key", "bell", "lamp"]), listed(["key", "bell", "lamp"], 9)
    ('key, bell, lamp', 'key, bell, … and 1 more')
    """
    shown: list[str] = []
    length = 0
    for text in texts:
        length += len(text)
        if shown and length > most:
            break
        shown.append(_cut(text, most))
    left_out = len(texts) - len(shown)
    return ", ".join([*shown, f"{ELLIPSIS} and {left_out:,} more"] if left_out else shown)


def _cut(text: str, most: int) -> str:
    end = most // 4
    return text if len(text) <= most else text[: most - end] + ELLIPSIS + text[len(text) - end :]


def set_in_lines(parts: Iterable[str], size: float, most: float) -> list[str]:
    """Set parts one after another in lines about `most` wide, a comma after each but the last.

    A part written from right to left has a line for itself: beside others it
    would be read in the wrong place.

    >>> set_in_lines(["key", "bell", "lamp"], 10, 60)
    ['key, bell,', 'lamp']
    """
    lines: list[str] = []
    alone = False
    for part in _with_commas(parts):
        turned = _is_right_to_left(part)
        joined = f"{lines[-1]} {part}" if lines else part
        if lines and not alone and not turned and width(joined, size) <= most:
            lines[-1] = joined
        else:
            lines.append(part)
        alone = turned
    return lines


def _with_commas(parts: Iterable[str]) -> Iterator[str]:
    *most, last = parts
    yield from (f"{part}," for part in most)
    yield last


def _is_right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)
