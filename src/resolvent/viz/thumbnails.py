"""Pictures in observations → small PNG images, as data URIs; and the values of a report page.

A picture is an array of H×W, H×W×1 or H×W×3 numbers with at least three rows and columns.
Pictures shown together are scaled together, so that a number has the same shade in each.
"""

import hashlib
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount, short
from resolvent.errors import OptionError
from resolvent.machines import UNSEEN, Machine
from resolvent.traces import Label, Symbol, label_text, symbol_text
from resolvent.traces.symbols import as_array

SIDE = 48  # maximum width and height of a thumbnail in pixels
MOST_PARTS = 3  # maximum number of pictures shown of one observation
_LEAST_SIDE = 3
_CHANNELS = (), (1,), (3,)
_CODES = 31  # maximum of whole numbers that are codes, which are scaled, not shades of 0…255
_HUGE = 1e100  # least absolute value that is no shade: differences of such numbers may overflow
_ADDRESS = "data:image/png;base64,"

Pixels: TypeAlias = NDArray[np.uint8]  # array of H×W×3: red, green, blue


class Thumbnail(NamedTuple):
    """A picture as a data URI, and the size at which to show it without blurring its pixels."""

    address: str
    width: int
    height: int


def pictures_in(symbol: Symbol) -> list[NDArray[Any]]:
    """Return the pictures in a symbol, shrunk: the symbol itself, or parts of it."""
    return list(islice(_pictures(symbol), MOST_PARTS))


def thumbnails_of_symbols(symbols: Iterable[Symbol]) -> list[list[Thumbnail]]:
    """Return the thumbnails of the pictures in each symbol, all on the same scale."""
    arrays_of = [pictures_in(symbol) for symbol in symbols]
    drawn = iter(thumbnails([array for arrays in arrays_of for array in arrays]))
    return [[next(drawn) for _ in arrays] for arrays in arrays_of]


def thumbnails(arrays: Sequence[NDArray[Any]]) -> list[Thumbnail]:
    """Return thumbnails of pictures shown together, those of one shape on the same scale."""
    by_shape: dict[tuple[int, ...], list[NDArray[Any]]] = {}
    for array in arrays:
        by_shape.setdefault(array.shape, []).append(array)
    scales = {shape: _scale(group) for shape, group in by_shape.items()}
    return [thumbnail(_scaled(array, *scales[array.shape])) for array in arrays]


def thumbnail(pixels: Pixels) -> Thumbnail:
    """Return a thumbnail of at most `SIDE` × `SIDE` pixels; small pictures are shown enlarged."""
    height, width, _ = pixels.shape
    times = max(1, SIDE // max(height, width))
    return Thumbnail(_ADDRESS + b64encode(png(pixels)).decode(), width * times, height * times)


def shrunk(array: NDArray[Any]) -> NDArray[Any]:
    """Return a picture averaged over squares of pixels, the smallest ones that make it fit."""
    height, width = array.shape[:2]
    side = -(-max(height, width) // SIDE)
    if side == 1:
        return array
    down, across = np.arange(0, height, side), np.arange(0, width, side)
    sums = np.add.reduceat(np.add.reduceat(array.astype(float), down, 0), across, 1)
    counts = np.outer(np.minimum(side, height - down), np.minimum(side, width - across))
    means = sums / counts.reshape(*counts.shape, *[1] * (array.ndim - 2))
    return means if array.dtype.kind == "f" else np.rint(means).astype(array.dtype)


def png(pixels: Pixels) -> bytes:
    r"""Return pixels as a PNG file; the same pixels give the same bytes."""
    height, width, _ = pixels.shape
    # Each row begins with the number of its filter: 0, none.
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, red-green-blue
    file = b"\x89PNG\r\n\x1a\n"
    for chunk in (b"IHDR" + header, b"IDAT" + zlib.compress(rows.tobytes(), 9), b"IEND"):
        file += struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return file


def _pictures(symbol: Any) -> Iterator[NDArray[Any]]:
    array = as_array(symbol)
    if array is None:
        if isinstance(symbol, tuple):
            for part in symbol:
                yield from _pictures(part)
    elif (
        array.ndim >= 2
        and array.shape[2:] in _CHANNELS
        and min(array.shape[:2]) >= _LEAST_SIDE
        and np.abs(array.astype(float)).max() < _HUGE
    ):
        yield shrunk(array)


def _scale(arrays: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return for each channel the numbers that become black and full brightness."""
    numbers = np.stack([_channels(array) for array in arrays])  # all of one shape
    low, high = np.minimum(numbers.min(axis=(0, 1, 2)), 0), numbers.max(axis=(0, 1, 2))
    are_integers = all(array.dtype.kind in "bi" for array in arrays)
    if are_integers and low.min() == 0 and _CODES < high.max() <= 255:
        high = np.full_like(high, 255)
    elif not are_integers and low.min() == 0 and high.max() <= 1:
        high = np.ones_like(high)
    return low, np.where(high > low, high, low + 1)


def _scaled(array: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> Pixels:
    shares = (_channels(array) - low) / (high - low)
    return np.broadcast_to(np.rint(255 * shares), (*array.shape[:2], 3)).astype(np.uint8)


def _channels(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(float).reshape(*array.shape[:2], -1)


# --- Gallery --------------------------------------------------------------------------------------

MOST_PICTURES = 400  # maximum number of pictures in a page
MOST_BYTES = 500_000  # maximum size of all pictures of a page
DrawOf: TypeAlias = Callable[[Any], Any]
"""Draws an observation: an array of H×W×3 numbers from 0 to 255, or None for no picture."""

Caption: TypeAlias = str | dict[str, Any]


def value_text(value: Any) -> str:
    """Write an observation, an action or a reward."""
    if value is UNSEEN:
        return "never seen"
    return short(f"{value:g}" if isinstance(value, float) else symbol_text(value))


def event_text(label: Label) -> str:
    """Write a label."""
    return short(label_text(label))


class Gallery:
    """The pictures of a page, collected while captions are written."""

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
        if id(symbol) not in self._cache:
            arrays = [] if symbol is UNSEEN else self._arrays_of(symbol)
            pictures = [number for array in arrays if (number := self._number(array)) is not None]
            self._cache[id(symbol)] = symbol, value_text(symbol), pictures
        _, name, pictures = self._cache[id(symbol)]
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
        number = amount(len(pictures) - pictures.count(None), "picture")
        text = f"The page holds {number} of observations, and leaves out {left_out:,} others"
        return [f"{text} to stay small."] if left_out else []

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

    def _arrays_of(self, symbol: Symbol) -> list[NDArray[Any]]:
        if self._draw_of is None:
            return pictures_in(symbol)
        call = f"draw_of({short(symbol_text(symbol), 60)})"
        try:
            picture = self._draw_of(symbol)
            array = None if picture is None else np.asarray(picture)
        except Exception as error:
            raise OptionError(
                f"{call} raised {type(error).__name__}: {short(str(error), 400)}"
            ) from error
        return [] if array is None else [shrunk(_pixels(array, call))]


def _pixels(array: NDArray[Any], call: str) -> Pixels:
    """Return the result of `draw_of` as pixels, or raise an error that names the right form."""
    wanted = "give an array of H×W×3 numbers from 0 to 255 (or 0.0 to 1.0), or None for no picture"
    if array.ndim < 2 or array.shape[2:] not in _CHANNELS or 0 in array.shape:
        form = "×".join(map(str, array.shape)) or f"a single {type(array.item()).__name__}"
        raise OptionError(f"{call} gave {form}: {wanted}")
    if array.dtype.kind not in "biuf":
        raise OptionError(f"{call} gave an array of {array.dtype}: {wanted}")
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 255):
        raise OptionError(f"{call} gave numbers from {array.min()} to {array.max()}: {wanted}")
    are_shares = array.dtype.kind == "b" or (array.dtype.kind == "f" and array.max() <= 1)
    shades = np.rint(_channels(array) * (255 if are_shares else 1))
    return np.broadcast_to(shades, (*array.shape[:2], 3)).astype(np.uint8)
