"""The different rows of columns, counted, whatever the pieces."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.replay import Kinds

ROWS = st.lists(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 2)), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)


def kinds_of(traces, first=0):
    rows = [
        (trace, step, *row)
        for trace, steps in enumerate(traces, first)
        for step, row in enumerate(steps)
    ]
    trace, step, seen, done = np.array(rows, np.int64).T
    columns = {"seen": seen.astype(np.int32), "done": done.astype(np.int32)}
    return Kinds.of(columns, trace, step)


@settings(deadline=None)
@given(ROWS, st.integers(0, 6))
def test_kinds_are_counted_by_where_they_first_occur(traces, cut):
    rows = [(row, (t, s)) for t, steps in enumerate(traces) for s, row in enumerate(steps)]
    count, first = Counter(row for row, _ in rows), {}
    for row, place in rows:
        first.setdefault(row, place)
    found = [kinds_of(traces)]
    if 0 < cut < len(traces):
        one, other = kinds_of(traces[:cut]), kinds_of(traces[cut:], cut)
        found += [one + other, other + one]
    for kinds in found:
        listed = list(zip(kinds["seen"].tolist(), kinds["done"].tolist(), strict=True))
        assert listed == list(first)
        assert kinds.count.tolist() == [count[row] for row in listed]
        places = zip(kinds.trace.tolist(), kinds.step.tolist(), strict=True)
        assert list(places) == [first[row] for row in listed]


def test_nothing_has_no_kinds():
    nothing = np.empty(0, np.int64)
    kinds = Kinds.of({"seen": np.empty(0, np.int32)}, nothing, nothing)
    assert len(kinds) == 0
    assert len(kinds + kinds) == 0
