"""The lowest keys of groups add up to those of all, and tell how many there are if few."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.trust.reaching import Lowest

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 9)), max_size=30)


def lowest(pairs, most):
    group, key = np.array(pairs, np.int64).reshape(-1, 2).T
    return Lowest.of(group, key, most)


@settings(deadline=None)
@given(PAIRS, st.integers(0, 30), st.integers(1, 4))
def test_the_lowest_keys_of_pieces_are_those_of_all(pairs, cut, most):
    different = {}
    for group, key in pairs:
        different.setdefault(group, set()).add(key)
    expected = [
        (group, key) for group in sorted(different) for key in sorted(different[group])[:most]
    ]
    for found in (lowest(pairs, most), lowest(pairs[cut:], most) + lowest(pairs[:cut], most)):
        assert list(zip(found.group.tolist(), found.key.tolist(), strict=True)) == expected
        groups, counts = found.counts()
        assert groups.tolist() == sorted(different)
        assert counts.tolist() == [min(len(different[group]), most) for group in groups.tolist()]
