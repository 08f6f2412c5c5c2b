import copy
import enum
import functools
import pickle
import re

import numpy as np
import pytest
from gymnasium.spaces import GraphInstance
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from resolvent.errors import TraceError
from resolvent.traces.symbols import (
    DEEPEST,
    as_label,
    as_symbol,
    difference_text,
    event_text,
    label_order,
    label_text,
    path_text,
    symbol_order,
    symbol_text,
)
from strategies import alphabets, labels


class Colour(enum.Enum):
    RED = 3


class Direction(enum.IntEnum):
    UP = 1


def nested(depth):
    value = 0
    for turn in range(depth):
        value = [value] if turn % 2 else {"inside": value}
    return value


def endless():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "symbol"),
    [
        (3, 3),
        (True, True),
        ("hall", "hall"),
        (0.5, 0.5),
        (-0.0, 0.0),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("hall"), "hall"),
        (np.array(7), 7),
        (np.array([[1, 2], [3, 4]]), ((1, 2), (3, 4))),
        ([1, [2, "x"]], (1, (2, "x"))),
        ((), ()),
        ({"b": 1, "a": [2]}, (("a", (2,)), ("b", 1))),
        (Colour.RED, 3),
        (Direction.UP, 1),
    ],
)
def test_as_symbol(value, symbol):
    result = as_symbol(value)
    assert result == symbol
    assert type(result) is type(symbol)
    assert repr(result) == repr(symbol)


def test_a_symbol_as_deep_as_may_be_can_be_told_ordered_and_copied():
    deep = as_symbol(nested(DEEPEST))
    assert symbol_text(deep)
    assert sorted([deep, as_symbol(nested(DEEPEST - 1))], key=symbol_order)
    assert pickle.loads(pickle.dumps(deep)) == copy.deepcopy(deep) == deep  # noqa: S301


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan cannot be a symbol"),
        ([1, float("inf")], "inf cannot be a symbol"),
        (None, "a NoneType cannot be a symbol"),
        (b"bytes", "a bytes cannot be a symbol"),
        ({1: 2}, "only when its keys are strings"),
        (nested(DEEPEST + 1), "nested more than 100 deep"),
        (nested(5000), "nested more than 100 deep"),
        (endless(), "nested more than 100 deep"),
    ],
)
def test_what_cannot_be_a_symbol(value, message):
    with pytest.raises(TraceError, match=message):
        as_symbol(value)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (None, set()),
        ([], set()),
        ("key", {"key"}),
        (3, {"3"}),
        (np.int64(3), {"3"}),
        (["b", "a", "b"], {"a", "b"}),
        ({"key"}, {"key"}),
        (("x",), {"x"}),
        ((), set()),
        ((1, "x"), {"(1, 'x')"}),
        (np.array([2, 1]), {"(2, 1)"}),
        (np.array(["b", "a"]), {"a", "b"}),
        (np.array(["key"]), {"key"}),
        (np.array(3), {"3"}),
        (np.array("key"), {"key"}),
        (np.array(None), set()),
        (Colour.RED, {"RED"}),
    ],
)
def test_as_label(value, label):
    assert as_label(value) == frozenset(label)


@pytest.mark.parametrize("value", [0.5, True, [None], [["key"]], b"key"])
def test_what_cannot_be_a_label(value):
    with pytest.raises(TraceError, match="cannot be a proposition"):
        as_label(value)


def test_a_proposition_needs_a_name():
    with pytest.raises(TraceError, match="empty string"):
        as_label(["key", ""])


def test_text_for_people():
    assert label_text(frozenset()) == "no event"
    assert label_text(frozenset({"key", "door"})) == "door & key"
    assert symbol_text("attic") == "attic"
    assert symbol_text((1, "a")) == "(1, 'a')"


def test_symbol_order_puts_types_one_after_the_other():
    shuffled = ["b", (1,), 2, True, 0.5, "a", (), 1, False]
    ordered = sorted(shuffled, key=symbol_order)
    assert list(map(repr, ordered)) == [
        "False",
        "True",
        "1",
        "2",
        "0.5",
        "'a'",
        "'b'",
        "()",
        "(1,)",
    ]


@given(st.lists(alphabets, max_size=3))
def test_symbol_order_can_compare_all_symbols(lists):
    symbols = [as_symbol(value) for values in lists for value in values]
    backwards = symbols[::-1]
    assert sorted(symbols, key=symbol_order) == sorted(backwards, key=symbol_order)


def test_label_order():
    ordered = [frozenset(), frozenset("b"), frozenset("c"), frozenset("ad"), frozenset("bc")]
    backwards = ordered[::-1]
    assert sorted(backwards, key=label_order) == ordered


@given(labels)
def test_labels_are_their_own_labels(label):
    assert as_label(label) == as_label(sorted(label)) == label
    assert functools.reduce(frozenset.union, map(as_label, label), frozenset()) == label


def test_a_graph_without_edges_is_a_symbol():
    bare = GraphInstance(np.array([[1, 2]]), None, None)
    assert as_symbol(bare) == (((1, 2),),)
    joined = GraphInstance(np.array([[1, 2]]), np.array([3]), np.array([[0, 0]]))
    assert as_symbol(joined) == (((1, 2),), (3,), ((0, 0),))
    with pytest.raises(TraceError, match="a NoneType cannot be a symbol"):
        as_symbol((1, None))


def test_text_that_is_not_unicode():
    with pytest.raises(TraceError, match="not valid Unicode"):
        as_symbol(("\ud800", 1))
    with pytest.raises(TraceError, match="not valid Unicode"):
        as_label(["\ud800"])


ROOM = {"image": np.zeros((5, 5, 3), int), "robot": {"arm": 1, "name": "bolt"}}


@given(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), st.data())
def test_arrays_differ_where_numpy_finds_differences(shape, data):
    first = np.full((60, *shape), 7)  # large enough to have a short name
    second = first.copy()
    places = st.tuples(*(st.integers(0, side - 1) for side in first.shape))
    for place in data.draw(st.lists(places, min_size=1, max_size=6)):
        second[place] = 4
    expected = np.argwhere(first != second).tolist()
    text = difference_text(as_symbol(first), as_symbol(second))
    assert text.startswith(f"differ in {len(expected):,} of {first.size:,} values: ")
    shown = re.findall(r"(\[[\d, ]+\]) is 7 and 4", text)
    assert shown == [str(place) for place in expected[:3]]
    assert text.endswith(f"and {len(expected) - 3} more") == (len(expected) > 3)


def test_differences_in_mappings_name_their_keys():
    changed = {"image": np.zeros((5, 5, 3), int), "robot": {"arm": 2, "name": "nut"}}
    changed["image"][4, 0, 2] = 9
    assert difference_text(as_symbol(ROOM), as_symbol(changed)) == (
        "differ in 3 of 77 values: image[4, 0, 2] is 0 and 9, robot.arm is 1 and 2, "
        "robot.name is 'bolt' and 'nut'"
    )


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (np.zeros((7, 7)), np.zeros((9, 7)), "differ in form: 7×7 and 9×7"),
        (ROOM, ROOM["image"], "differ in form: the keys image, robot and 5×5×3"),
        ([0] * 50, [[0] * 49], "differ in form: 50 and 1×49"),
        (
            {**ROOM, "image": ()},
            ROOM,
            "differ in 1 of 3 values: image is () and image#6e48c72051 (5×5×3)",
        ),
        ([0] * 30 + ["a" * 90], [0] * 30 + ["b"], f"'{'a' * 18}…{'a' * 18}' and 'b'"),
    ],
)
def test_differences_in_form(first, second, text):
    difference = difference_text(as_symbol(first), as_symbol(second))
    assert re.sub(r"#\w+", "", difference).endswith(re.sub(r"#\w+", "", text))


@pytest.mark.parametrize("pair", [(1, 2), ("a" * 90, "b" * 90), ((1, "a"), (1, "b")), (None, 1.5)])
def test_differences_of_symbols_printed_in_full_are_empty(pair):
    assert difference_text(*pair) == ""


def test_equal_symbols_do_not_differ():
    assert difference_text(as_symbol(ROOM), as_symbol(ROOM)) == ""


def test_invisible_characters_in_keys_are_escaped():
    first, second = ((("a\u202eb", (0,) * 40),), (("a\u202eb", (0,) * 39 + (1,)),))
    assert difference_text(first, second) == "differ in 1 of 40 values: a\\u202eb[39] is 0 and 1"
    assert path_text((0, "part", 1)) == "[0].part[1]"


def test_events_of_different_symbols_have_different_names():
    symbols = ("corridor", 7, "7")
    assert [event_text(symbol) for symbol in symbols] == ["corridor", "7", "'7'"]
