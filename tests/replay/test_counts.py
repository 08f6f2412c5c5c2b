"""Counts of distinct rows, which do not depend on how rows are split into shards."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.replay.counts import CountTable, GroupedCounts, pack_rows

TRACES = st.lists(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 2)), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)
LARGE = st.integers(-1, 2**62)


def table_of(traces, first=0):
    rows = [
        (trace, step, *row)
        for trace, steps in enumerate(traces, first)
        for step, row in enumerate(steps)
    ]
    trace, step, seen, done = np.array(rows, np.int64).T
    columns = {"seen": seen.astype(np.int32), "done": done.astype(np.int32)}
    return CountTable.of(columns, trace=trace, step=step)


def rows_of(table):
    return list(zip(table["seen"].tolist(), table["done"].tolist(), strict=True))


@settings(deadline=None)
@given(TRACES, st.integers(0, 6))
def test_rows_are_sorted_and_counted_with_their_first_location(traces, cut):
    rows = [(row, (t, s)) for t, steps in enumerate(traces) for s, row in enumerate(steps)]
    count, first = Counter(row for row, _ in rows), {}
    for row, place in rows:
        first.setdefault(row, place)
    tables = [table_of(traces)]
    if 0 < cut < len(traces):
        early, late = table_of(traces[:cut]), table_of(traces[cut:], cut)
        tables += [early + late, late + early]
    for table in tables:
        assert rows_of(table) == sorted(first)
        assert table.count.tolist() == [count[row] for row in rows_of(table)]
        places = zip(*(column.tolist() for column in table.locations), strict=True)
        assert list(places) == [first[row] for row in rows_of(table)]
        assert rows_of(table.by_location()) == list(first)


@settings(deadline=None)
@given(st.lists(st.tuples(LARGE, st.integers(0, 2), LARGE), max_size=8))
def test_rows_too_large_for_one_number(rows):
    columns = dict(zip("abc", np.array(rows, np.int64).reshape(-1, 3).T, strict=True))
    table, count = CountTable.of(columns), Counter(rows)
    assert list(zip(*(table[name].tolist() for name in "abc"), strict=True)) == sorted(count)
    assert table.count.tolist() == [count[row] for row in sorted(count)]
    packed = pack_rows(columns, len(rows)).tolist()
    for i, number in enumerate(packed):
        for j, other in enumerate(packed):
            assert (number < other) == (rows[i] < rows[j])


def test_counts_that_rows_have_already_are_summed():
    columns = {"seen": np.int32([2, 1, 2])}
    table = CountTable.of(columns, np.array([2**60, 1, 1])) + CountTable.of(columns)
    assert (table["seen"].tolist(), table.count.tolist()) == ([1, 2], [2, 2**60 + 3])
    assert table.take(table.count > 2)["seen"].tolist() == [2]


def test_an_empty_table():
    nothing = np.empty(0, np.int64)
    table = CountTable.of({"seen": np.empty(0, np.int32)}, trace=nothing, step=nothing)
    assert len(table) == len(table + table) == 0
    assert len(GroupedCounts.of(nothing, nothing)) == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20))
def test_counts_are_grouped_by_key(rows):
    counts = GroupedCounts.of(*np.array(rows, np.int64).T)
    of_key = [Counter(value for key, value in rows if key == own) for own in counts.key.tolist()]
    assert counts.key.tolist() == sorted({key for key, _ in rows})
    assert counts.total.tolist() == [sum(one.values()) for one in of_key]
    assert counts.largest.tolist() == [max(one.values()) for one in of_key]
    assert counts.size.tolist() == [len(one) for one in of_key]
    owner, entry = counts.entries(np.append(np.arange(len(counts)), -1))
    assert np.array_equal(owner, counts.row)
    assert np.array_equal(entry, np.arange(len(rows) and len(counts.value)))
