"""Pictures in symbols, read back by Pillow and compared with shades worked out by hand."""

import io
from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from resolvent.traces.symbols import as_symbol
from resolvent.viz.thumbnails import (
    SIDE,
    pictures_in,
    png,
    shrunk,
    thumbnail,
    thumbnails,
    thumbnails_of_symbols,
)


def read(picture):
    kind, content = picture.address.split(",")
    assert kind == "data:image/png;base64"
    return np.array(Image.open(io.BytesIO(b64decode(content))))


@given(arrays(np.uint8, st.tuples(st.integers(1, 60), st.integers(1, 60), st.just(3))))
def test_every_pixel_is_written(pixels):
    assert np.array_equal(np.array(Image.open(io.BytesIO(png(pixels)))), pixels)


def test_shades_of_255_stay_as_they_are():
    picture = np.random.default_rng(0).integers(0, 256, (7, 9, 3))
    (drawn,) = thumbnails(pictures_in(as_symbol(picture)))
    assert np.array_equal(read(drawn), picture)
    assert (drawn.width, drawn.height) == (45, 35)  # five pixels each


def test_codes_are_scaled_by_channel_over_all_that_are_shown():
    one, other = np.zeros((2, 3, 3, 3), int)
    one[0, 1], other[2, 2] = (10, 5, 0), (2, 5, 0)
    drawn = [read(each) for (each,) in thumbnails_of_symbols(map(as_symbol, (one, other)))]
    assert drawn[0][0, 1].tolist() == [255, 255, 0]
    assert drawn[1][2, 2].tolist() == [51, 255, 0]
    assert sum(int(each.astype(bool).sum()) for each in drawn) == 4


@pytest.mark.parametrize(
    ("values", "shades"),
    [
        ((False, True), (0, 255)),
        ((0.0, 0.5), (0, 128)),  # shares
        ((0.0, 4.0), (0, 255)),
        ((-1, 1), (0, 255)),
        ((0, 100), (0, 100)),
        ((0, 1000), (0, 255)),
        ((7, 7), (255, 255)),
        ((0, 0), (0, 0)),
    ],
)
def test_one_channel_is_grey(values, shades):
    for shape in ((4, 4), (4, 4, 1)):
        array = np.full(shape, values[0])
        array[1, 2] = values[1]
        ((drawn,),) = thumbnails_of_symbols([as_symbol(array)])
        assert read(drawn)[1, 2].tolist() == [shades[1]] * 3
        assert read(drawn)[0, 0].tolist() == [shades[0]] * 3


def test_parts_that_are_pictures():
    seen = {"camera": {"left": np.zeros((4, 5)), "right": np.zeros((6, 5, 3))}, "speed": [1.5, 2.0]}
    assert [one.shape for one in pictures_in(as_symbol(seen))] == [(4, 5), (6, 5, 3)]


@pytest.mark.parametrize(
    "symbol",
    ["hall", 3, (1, 2, 3), ((1, 2), (3, 4)), ((10**400,) * 3,) * 3, ((1e300,) * 3,) * 3, ()],
)
def test_what_is_no_picture(symbol):
    assert pictures_in(symbol) == []


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([(), (1,), (3,)]))
def test_large_pictures_are_shrunk_to_means(height, width, channels):
    array = np.arange(height * width, dtype=float).reshape(height, width)
    array = np.broadcast_to(
        array.reshape(height, width, *[1] * len(channels)), (height, width, *channels)
    )
    small = shrunk(array)
    side = next(side for side in range(1, 301) if max(height, width) <= side * SIDE)
    for row, column in ((0, 0), (small.shape[0] - 1, small.shape[1] - 1)):
        block = array[row * side : row * side + side, column * side : column * side + side]
        assert np.allclose(small[row, column], block.mean(axis=(0, 1)))
    assert max(small.shape[:2]) <= SIDE


def test_a_thumbnail_is_never_large():
    drawn = thumbnail(shrunk(np.zeros((210, 160, 3), np.uint8)))
    assert (drawn.width, drawn.height) == (32, 42)
