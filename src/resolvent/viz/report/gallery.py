"""Write values as short texts, observations with the numbers of their pictures.

The page holds each picture once. A caption is `{"text": …, "pictures": […]}`, or the text alone.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount, short
from resolvent.errors import OptionError
from resolvent.machines import UNSEEN, Machine
from resolvent.traces import Label, Symbol, label_text, symbol_text
from resolvent.viz.thumbnails import (
    Pixels,
    Thumbnail,
    pictures_in,
    shrunk,
    thumbnail,
    thumbnails,
)

MOST_PICTURES = 400
"""Maximum number of pictures in a page."""

MOST_BYTES = 500_000
"""Maximum size of all pictures of a page."""

DrawOf: TypeAlias = Callable[[Any], Any]
"""Draws an observation: an array of H×W×3 numbers from 0 to 255, or None for no picture."""

Caption: TypeAlias = str | dict[str, Any]


def value_text(value: Any) -> str:
    """Write an observation, an action or a reward.

    >>> value_text("hall"), value_text(1.0), value_text((1, 2)), value_text(UNSEEN)
    ('hall', '1', '(1, 2)', 'never seen')
    """
    if value is UNSEEN:
        return "never seen"
    return short(f"{value:g}" if isinstance(value, float) else symbol_text(value))


def event_text(label: Label) -> str:
    """Write a label."""
    return short(label_text(label))


class Gallery:
    """The pictures of a page, collected while captions are written.

    >>> dots = ((0, 1, 0),) * 3
    >>> Gallery().caption(dots)
    {'text': '((0, 1, 0), (0, 1, 0), (0, 1, 0))', 'pictures': [0]}
    >>> Gallery().caption("hall")
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
        # By identity: 1 equals True, which is written otherwise, and images are slow to hash.
        self._cache: dict[int, tuple[Symbol, str, list[int]]] = {}
        self._left_out: set[bytes] = set()

    def caption(self, symbol: Any, text: str = "") -> Caption:
        """Return the caption of an observation, its text by default the symbol's."""
        cached = self._cache.get(id(symbol))
        if cached is None:
            pictures = [] if symbol is UNSEEN else self._pictures(symbol)
            cached = self._cache[id(symbol)] = symbol, value_text(symbol), pictures
        _, name, pictures = cached
        text = text or name
        return {"text": text, "pictures": pictures} if pictures else text

    def output_caption(self, machine: Machine, output: Any, share: str = "") -> Caption:
        """Return the caption of a machine's output, followed by its share if outputs vary."""
        text = f"{value_text(output)} {share}" if share else ""
        if machine.predicts == "observation":
            return self.caption(output, text)
        return text or value_text(output)

    def pictures(self) -> list[Thumbnail | None]:
        """Return all pictures, with None for those that would make the page too large."""
        drawn = map(thumbnail, self._arrays) if self._draw_of else thumbnails(self._arrays)
        pictures, size = list[Thumbnail | None](), 0
        for picture in drawn:
            size += len(picture.address)
            pictures.append(picture if size <= MOST_BYTES else None)
        return pictures

    def missing(self, pictures: list[Thumbnail | None]) -> list[str]:
        """Return a sentence on the number of pictures left out, if any."""
        left_out = len(self._left_out) + pictures.count(None)
        if not left_out:
            return []
        number = amount(len(pictures) - pictures.count(None), "picture")
        return [
            f"The page holds {number} of observations, and leaves out {left_out:,} others to stay "
            "small."
        ]

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
            picture = self._draw_of(symbol)  # type: ignore[misc]
            array = None if picture is None else np.asarray(picture)
        except Exception as error:
            raise OptionError(
                f"{call} raised {type(error).__name__}: {short(str(error), 400)}"
            ) from error
        return [] if array is None else [shrunk(_pixels(array, call))]


def _pixels(array: NDArray[Any], call: str) -> Pixels:
    """Return the result of `draw_of` as pixels, or raise an error that names the right form."""
    wanted = "give an array of H×W×3 numbers from 0 to 255 (or 0.0 to 1.0), or None for no picture"
    if array.ndim not in (2, 3) or array.shape[2:] not in ((), (1,), (3,)) or 0 in array.shape:
        form = "×".join(map(str, array.shape)) or f"a single {type(array.item()).__name__}"
        raise OptionError(f"{call} gave {form}: {wanted}")
    if array.dtype.kind not in "biuf":
        raise OptionError(f"{call} gave an array of {array.dtype}: {wanted}")
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 255):
        raise OptionError(f"{call} gave numbers from {array.min()} to {array.max()}: {wanted}")
    are_shares = array.dtype.kind == "b" or (array.dtype.kind == "f" and array.max() <= 1)
    shades = array.astype(float) * (255 if are_shares else 1)
    channels = np.rint(shades).reshape(*array.shape[:2], -1)
    return np.broadcast_to(channels, (*array.shape[:2], 3)).astype(np.uint8)
