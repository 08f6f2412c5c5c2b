"""Where two symbols differ, against NumPy and against places worked out by hand."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from resolvent.traces.symbols import as_symbol, difference_text, place_text

ROOM = {"image": np.zeros((5, 5, 3), int), "robot": {"arm": 1, "name": "bolt"}}


@given(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), st.data())
def test_arrays_differ_where_numpy_says(shape, data):
    one = np.full((60, *shape), 7)  # large enough to have a name
    other = one.copy()
    places = st.tuples(*(st.integers(0, side - 1) for side in one.shape))
    for place in data.draw(st.lists(places, min_size=1, max_size=6)):
        other[place] = 4
    found = np.argwhere(one != other).tolist()
    told = difference_text(as_symbol(one), as_symbol(other))
    assert told.startswith(f"differ in {len(found):,} of {one.size:,} places: ")
    named = re.findall(r"(\[[\d, ]+\]) is 7 and 4", told)
    assert named == [str(place) for place in found[:3]]
    assert told.endswith(f"and {len(found) - 3} more") == (len(found) > 3)


def test_keys_are_named():
    other = {"image": np.zeros((5, 5, 3), int), "robot": {"arm": 2, "name": "nut"}}
    other["image"][4, 0, 2] = 9
    assert difference_text(as_symbol(ROOM), as_symbol(other)) == (
        "differ in 3 of 77 places: image[4, 0, 2] is 0 and 9, robot.arm is 1 and 2, "
        "robot.name is 'bolt' and 'nut'"
    )


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (np.zeros((7, 7)), np.zeros((9, 7)), "differ in form: 7×7 and 9×7"),
        (ROOM, ROOM["image"], "differ in form: the keys image, robot and 5×5×3"),
        ([0] * 50, [[0] * 49], "differ in form: 50 and 1×49"),
        (
            {**ROOM, "image": ()},
            ROOM,
            "differ in 1 of 3 places: image is () and image#6e48c72051 (5×5×3)",
        ),
        ([0] * 30 + ["a" * 90], [0] * 30 + ["b"], f"'{'a' * 18}…{'a' * 18}' and 'b'"),
    ],
)
def test_other_forms(one, other, told):
    found = difference_text(as_symbol(one), as_symbol(other))
    assert re.sub(r"#\w+", "", found).endswith(re.sub(r"#\w+", "", told))


@pytest.mark.parametrize("pair", [(1, 2), ("a" * 90, "b" * 90), ((1, "a"), (1, "b")), (None, 1.5)])
def test_what_can_be_read_is_not_explained(pair):
    assert difference_text(*pair) == ""


def test_equal_symbols_do_not_differ():
    assert difference_text(as_symbol(ROOM), as_symbol(ROOM)) == ""


def test_keys_that_are_hostile_are_made_visible():
    one, other = ((("a\u202eb", (0,) * 40),), (("a\u202eb", (0,) * 39 + (1,)),))
    assert difference_text(one, other) == "differ in 1 of 40 places: a\\u202eb[39] is 0 and 1"
    assert place_text((0, "part", 1)) == "[0].part[1]"
