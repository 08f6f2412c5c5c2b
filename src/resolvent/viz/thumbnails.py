"""Pictures in observations → small PNG images, as data URIs.

A picture is an array of H×W, H×W×1 or H×W×3 numbers with at least three rows and columns.
Pictures shown together are scaled together, so that a number has the same shade in each.
"""

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.symbols import Symbol, as_array

SIDE = 48
"""Maximum width and height of a thumbnail in pixels."""

MOST_PARTS = 3
"""Maximum number of pictures shown of one observation."""

_LEAST_SIDE = 3
_CODES = 31
"""Maximum of whole numbers that count as codes, which are scaled, not as shades of 0…255."""

_HUGE = 1e100
"""Least absolute value that is no shade: differences of such numbers may overflow."""

_ADDRESS = "data:image/png;base64,"

Pixels: TypeAlias = NDArray[np.uint8]
"""Array of H×W×3: red, green, blue."""


class Thumbnail(NamedTuple):
    """A picture as a data URI, and the size at which to show it without blurring its pixels."""

    address: str
    width: int
    height: int


def pictures_in(symbol: Symbol) -> list[NDArray[Any]]:
    """Return the pictures in a symbol, shrunk: the symbol itself, or parts of it.

    >>> [array.shape for array in pictures_in((("image", (((0,) * 5,) * 4)), ("direction", 3)))]
    [(4, 5)]
    >>> pictures_in("hall"), pictures_in((1, 2))
    ([], [])
    """
    return list(islice(_pictures(symbol), MOST_PARTS))


def thumbnails_of_symbols(symbols: Iterable[Symbol]) -> list[list[Thumbnail]]:
    """Return the thumbnails of the pictures in each symbol, all on the same scale.

    >>> [len(pictures) for pictures in thumbnails_of_symbols([((0,) * 5,) * 4, "hall"])]
    [1, 0]
    """
    arrays_of = [pictures_in(symbol) for symbol in symbols]
    drawn = iter(thumbnails([array for arrays in arrays_of for array in arrays]))
    return [[next(drawn) for _ in arrays] for arrays in arrays_of]


def thumbnails(arrays: Sequence[NDArray[Any]]) -> list[Thumbnail]:
    """Return thumbnails of pictures shown together, those of one shape on the same scale.

    >>> codes = np.arange(12).reshape(3, 4)
    >>> (picture,) = thumbnails([codes])
    >>> picture.address[:22], picture.width, picture.height
    ('data:image/png;base64,', 48, 36)
    """
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
    """Return a picture averaged over squares of pixels, the smallest ones that make it fit.

    >>> shrunk(np.arange(100 * 60).reshape(100, 60)).shape
    (34, 20)
    """
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
    r"""Return pixels as a PNG file; the same pixels give the same bytes.

    >>> png(np.zeros((3, 4, 3), np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    height, width, _ = pixels.shape
    # Each row begins with the number of its filter: 0, none.
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, red-green-blue
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def _pictures(symbol: Any) -> Iterator[NDArray[Any]]:
    array = as_array(symbol)
    if array is None:
        if isinstance(symbol, tuple):
            for part in symbol:
                yield from _pictures(part)
    elif is_picture(array.shape) and np.abs(array.astype(float)).max() < _HUGE:
        yield shrunk(array)


def is_picture(shape: tuple[int, ...]) -> bool:
    """Return whether an array of this shape is shown as a picture.

    >>> is_picture((7, 7, 3)), is_picture((84, 84)), is_picture((3, 84, 84)), is_picture((2, 9))
    (True, True, False, False)
    """
    channels = shape[2:] in ((), (1,), (3,))
    return channels and len(shape) >= 2 and min(shape[:2]) >= _LEAST_SIDE


def _scale(arrays: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return for each channel the numbers that become black and full brightness."""
    lows = np.array([_channels(array).min(axis=(0, 1)) for array in arrays], float).min(axis=0)
    highs = np.array([_channels(array).max(axis=(0, 1)) for array in arrays], float).max(axis=0)
    low, high = np.minimum(lows, 0), highs
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
