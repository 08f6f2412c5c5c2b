"""Observations that a page shows → their texts, with numbers of pictures; and the pictures, once.

A text with pictures is `{"text": …, "pictures": […]}`, one without is the text alone.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount, short
from resolvent.display.report.wording import value_text
from resolvent.errors import OptionError
from resolvent.machines import UNSEEN, Machine
from resolvent.traces import Symbol, symbol_text
from resolvent.traces.thumbnails import (
    Pixels,
    Thumbnail,
    pictures_in,
    shrunk,
    thumbnail,
    thumbnails,
)

MOST_PICTURES = 400
MOST_BYTES = 500_000
"""What all pictures of a page may take."""

DrawOf: TypeAlias = Callable[[Any], Any]
"""Draws an observation: an array of H×W×3 numbers from 0 to 255, or None for no picture."""

Told: TypeAlias = str | dict[str, Any]


class Gallery:
    """The pictures of a page: whatever is told through it is drawn, each picture once.

    >>> dots = ((0, 1, 0),) * 3
    >>> Gallery().told(dots)
    {'text': '((0, 1, 0), (0, 1, 0), (0, 1, 0))', 'pictures': [0]}
    >>> Gallery().told("hall")
    'hall'
    """

    def __init__(self, draw_of: DrawOf | None = None) -> None:
        if draw_of is not None and not callable(draw_of):
            raise OptionError(
                f"draw_of is a {type(draw_of).__name__}: give a function of an observation "
                "that returns an array of pixels, or None"
            )
        self._draw_of = draw_of
        self._numbers: dict[bytes, int] = {}
        self._arrays: list[NDArray[Any]] = []
        # By identity: 1 equals True, which looks otherwise, and images are slow to hash.
        self._known: dict[int, tuple[Symbol, str, list[int]]] = {}
        self._left_out: set[bytes] = set()

    def told(self, symbol: Any, text: str = "") -> Told:
        """Return the text of an observation with what it looks like, by default as symbols have."""
        known = self._known.get(id(symbol))
        if known is None:
            pictures = [] if symbol is UNSEEN else self._pictures(symbol)
            known = self._known[id(symbol)] = symbol, value_text(symbol), pictures
        _, name, pictures = known
        text = text or name
        return {"text": text, "pictures": pictures} if pictures else text

    def pictures(self) -> list[Thumbnail | None]:
        """Return all pictures, with None for those that would make the page too large."""
        drawn = map(thumbnail, self._arrays) if self._draw_of else thumbnails(self._arrays)
        found, size = list[Thumbnail | None](), 0
        for one in drawn:
            size += len(one.address)
            found.append(one if size <= MOST_BYTES else None)
        return found

    def missing(self, pictures: list[Thumbnail | None]) -> list[str]:
        """Say which pictures a page does not hold, if it lacks some."""
        lacking = len(self._left_out) + pictures.count(None)
        shown = len(pictures) - pictures.count(None)
        told = f"The page holds {amount(shown, 'picture')} of observations, "
        return [f"{told}and leaves out {lacking:,} others to stay small."] if lacking else []

    def _pictures(self, symbol: Symbol) -> list[int]:
        arrays = pictures_in(symbol) if self._draw_of is None else self._drawn(symbol)
        return [number for array in arrays if (number := self._number(array)) is not None]

    def _number(self, array: NDArray[Any]) -> int | None:
        form = f"{array.shape} {array.dtype.str}".encode()
        key = hashlib.blake2b(form + array.tobytes(), digest_size=16).digest()
        if key not in self._numbers:
            if len(self._numbers) == MOST_PICTURES:
                self._left_out.add(key)
                return None
            self._numbers[key] = len(self._numbers)
            self._arrays.append(array)
        return self._numbers[key]

    def _drawn(self, symbol: Symbol) -> list[Pixels]:
        call = f"draw_of({short(symbol_text(symbol), 60)})"
        try:
            given = self._draw_of(symbol)  # type: ignore[misc]
            array = None if given is None else np.asarray(given)
        except Exception as error:
            raise OptionError(
                f"{call} raised {type(error).__name__}: {short(str(error), 400)}"
            ) from error
        return [] if array is None else [shrunk(_pixels(array, call))]


def answer_told(machine: Machine, output: Any, gallery: Gallery, share: str = "") -> Told:
    """Return the text of an answer, with what it looks like where that is an observation.

    Where the answer varies, its share comes after it.
    """
    text = f"{value_text(output)} {share}" if share else ""
    seen = machine.predicts == "observation"
    return gallery.told(output, text) if seen else text or value_text(output)


def _pixels(array: NDArray[Any], call: str) -> Pixels:
    """Return what `draw_of` gave as pixels, or say what they should have been."""
    wanted = "give an array of H×W×3 numbers from 0 to 255 (or 0.0 to 1.0), or None for no picture"
    if array.ndim not in (2, 3) or array.shape[2:] not in ((), (1,), (3,)) or 0 in array.shape:
        form = "×".join(map(str, array.shape)) or f"a single {type(array.item()).__name__}"
        raise OptionError(f"{call} gave {form}: {wanted}")
    if array.dtype.kind not in "biuf":
        raise OptionError(f"{call} gave an array of {array.dtype}: {wanted}")
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 255):
        raise OptionError(f"{call} gave numbers from {array.min()} to {array.max()}: {wanted}")
    shares = array.dtype.kind == "b" or (array.dtype.kind == "f" and array.max() <= 1)
    shades = array.astype(float) * (255 if shares else 1)
    channels = np.rint(shades).reshape(*array.shape[:2], -1)
    return np.broadcast_to(channels, (*array.shape[:2], 3)).astype(np.uint8)
