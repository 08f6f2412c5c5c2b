"""What the compiled core makes of columns of a table, against what NumPy makes of them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent import _core
from resolvent.traces.io.arrow import distinct

SMALL = st.integers(-3, 3)
LARGE = 1 << 18  # codes whose memory is taken up again


def column(values):
    return np.array(values, np.int64)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=12), st.integers(0, 2), st.booleans())
def test_starts_of_rows_in_order(rows, times, ordered):
    rows = sorted(rows) if ordered else rows
    columns = [column([row[at] for row in rows]) for at in range(3)]
    many = 3 - times
    starts = _core.starts_in_order(columns[:many], columns[many:], len(rows))
    keys = [row[:many] for row in rows]
    rising = all(one < other for one, other in pairwise(rows)) if times else keys == sorted(keys)
    if rising:
        begins = [not at or keys[at] != keys[at - 1] for at in range(len(rows))]
        assert starts.tolist() == np.flatnonzero(begins).tolist()
    else:
        assert starts is None


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="equally long"):
        _core.starts_in_order([column([1, 2])], [column([1])], 2)


@given(st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1), max_size=12))
def test_distinct_integers_are_those_of_numpy(numbers):
    found = _core.distinct_integers(column(numbers), 64)
    if numbers and max(numbers) - min(numbers) >= 64:
        assert found is None
        return
    values, codes = np.unique(column(numbers), return_inverse=True)
    assert found[0].tolist() == values.tolist()
    assert found[1].tolist() == codes.tolist()


@given(st.lists(st.integers(0, 2), max_size=9), st.lists(st.integers(0, 9), max_size=5))
def test_inserted_codes_are_those_of_numpy(codes, at):
    places = column(sorted(min(place, len(codes)) for place in at))
    table = np.int32([7, 5, 6])
    found = _core.recode_with_inserted(np.array(codes, np.int32), table, places, -1)
    assert found.tolist() == np.insert(table[np.array(codes, np.intp)], places, -1).tolist()


@pytest.mark.parametrize(("codes", "at"), [([0, 1], [3]), ([0, 1], [1, 0]), ([0, 1], [-1])])
def test_places_that_are_none_are_refused(codes, at):
    with pytest.raises(ValueError, match="places must not fall"):
        _core.recode_with_inserted(np.int32(codes), np.int32([0, 1]), column(at), 0)


@pytest.mark.parametrize("code", [-1, 2, 2**31 - 1, -(2**31)])
def test_codes_out_of_range_are_refused(code):
    with pytest.raises(ValueError, match="out of range"):
        _core.recode_with_inserted(np.int32([0, code]), np.int32([0, 1]), column([]), 0)


def test_an_array_that_is_held_is_never_written_to_again():
    held = []
    for turn in range(20):
        made = [_core.repeated_code(turn * 10 + at, LARGE + at) for at in range(5)]
        held.append(made[turn % 5])
        del made
    for turn, one in enumerate(held):
        assert len(one) == LARGE + turn % 5
        assert np.all(one == turn * 10 + turn % 5)


def test_used_codes_are_found_wherever_they_are():
    codes = np.zeros(100_000, np.int32)
    codes[-1], codes[5000] = 2, 3
    assert _core.used_codes(codes, 5).tolist() == [1, 0, 1, 1, 0]


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b"],
        ["b", None, "a"],
        [3, 1, 3],
        [2**62, -5, 7],
        [2.5, 1.0, 2.5],
    ],
)
@pytest.mark.parametrize("coded", [False, True])
def test_distinct_values_and_codes_give_the_column_back(values, coded):
    array = pa.array(values)
    chunks = [array.dictionary_encode() if coded else array] * 2
    found, codes = distinct(pa.chunked_array(chunks))
    assert [found[code] for code in codes] == values * 2
    assert len(found) == len({*values})


def test_a_dictionary_may_hold_values_that_do_not_occur():
    array = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, 2], pa.int32()), pa.array(["c", "b", "a"])
    )
    found, codes = distinct(pa.chunked_array([array]))
    assert [found[code] for code in codes] == ["a", "c", "a"]
    assert len(found) == 2
