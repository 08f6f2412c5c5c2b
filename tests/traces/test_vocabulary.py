import copy
import pickle

import numpy as np
import pytest

from resolvent.errors import TraceError
from resolvent.traces.columns import ColumnBuilder, LabelCodes, canonical_column
from resolvent.traces.vocabulary import Interner, Vocabulary, distinct_numbers, distinct_pairs


def test_a_value_s_code_is_its_position():
    rooms = Vocabulary(["attic", "cellar"])
    assert [rooms.code("attic"), rooms.code("cellar")] == [0, 1]
    assert list(rooms) == ["attic", "cellar"]
    assert rooms[1] == "cellar"
    assert len(rooms) == 2
    assert "attic" in rooms
    assert "garden" not in rooms
    assert rooms.get("garden") is None
    with pytest.raises(KeyError):
        rooms.code("garden")


def test_vocabularies_compare_by_value():
    assert Vocabulary([1, 2]) == Vocabulary([1, 2])
    assert hash(Vocabulary([1, 2])) == hash(Vocabulary([1, 2]))
    assert Vocabulary([1, 2]) != Vocabulary([2, 1])
    assert Vocabulary([1, 2]) != [1, 2]
    assert repr(Vocabulary([1])) == "Vocabulary([1])"


def test_values_must_be_distinct():
    with pytest.raises(ValueError, match="distinct"):
        Vocabulary(["a", "a"])


def test_interner_gives_codes_in_order_of_first_sight():
    interner = Interner()
    assert interner.encode(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert interner.encode(["c", "a"]).tolist() == [2, 1]
    assert interner.encode([]).tolist() == []
    assert interner.values_in_order() == ["b", "a", "c"]
    assert interner.encode(["a"]).dtype == np.int32


def test_ints_among_floats_are_floats():
    interner = Interner()
    assert interner.encode([1, 2]).tolist() == [0, 1]
    assert interner.encode([1.0, 0.5]).tolist() == [0, 2]
    assert list(map(repr, interner.values_in_order())) == ["1.0", "2.0", "0.5"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1], ["a"], "step 0: 'a' is a str, but the first value was an int"),
        ([], [1, True], "step 1: True is a bool, but the first value was an int"),
        ([(1,)], [(2,), 3], "step 1: 3 is an int, but the first value was a tuple"),
        ([0.5], [1.0, 2.0, False], "step 2: False is a bool, but the first value was a float"),
    ],
)
def test_values_of_two_types(first, second, message):
    interner = Interner()
    interner.encode(first)
    with pytest.raises(TraceError, match=message):
        interner.encode(second)


@pytest.mark.parametrize("large", [[2**60, 2**60 + 1], [10**400]])
def test_ints_that_no_float_is_among_floats(large):
    interner = Interner()
    interner.encode([0.5, *large])
    with pytest.raises(TraceError, match="too large to be floats"):
        interner.values_in_order()


def test_a_canonical_column_is_sorted_and_has_no_unused_values():
    vocabulary, codes = canonical_column("cost", ([30, 10, 20, 40], np.array([0, 2, 0], np.int32)))
    assert list(vocabulary) == [20, 30]
    assert codes.tolist() == [1, 0, 1]


def test_a_canonical_column_is_not_copied():
    before = np.array([0, 1], np.int32)
    vocabulary, codes = canonical_column("cost", ([1, 2], before))
    assert list(vocabulary) == [1, 2]
    assert codes is before


def test_copies_of_a_vocabulary():
    rooms = Vocabulary(["attic", (1, 2)])
    for again in (pickle.loads(pickle.dumps(rooms)), copy.deepcopy(rooms)):  # noqa: S301
        assert again == rooms
        assert again.code((1, 2)) == 1


def test_spellings_of_a_label_share_a_code():
    codes = LabelCodes()
    spellings = [None, "key", ("key",), ("key", "door"), ("door", "key")]
    assert [codes[label] for label in spellings] == [0, 1, 1, 2, 2]


def test_columns_are_coded_episode_by_episode():
    builder = ColumnBuilder()
    builder.extend({"label": [None, "key"]})
    builder.extend({"label": [("key",)]})
    values, codes = builder.columns()["label"]
    assert values == [frozenset(), frozenset({"key"})]
    assert codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize("dense", [0, 1 << 24])
def test_distinct_pairs_and_numbers_are_in_rising_order(monkeypatch, dense):
    monkeypatch.setattr("resolvent.traces.vocabulary.MAX_TABLE_SIZE", dense)
    pairs, codes = distinct_pairs(np.int32([1, 0, 1]), np.int32([2, 1, 2]), 2, 3)
    assert (pairs.tolist(), codes.tolist()) == ([1, 5], [1, 0, 1])
    numbers, index = distinct_numbers(np.array([7, 2, 7]), 10)
    assert (numbers.tolist(), index.tolist()) == ([2, 7], [1, 0, 1])
