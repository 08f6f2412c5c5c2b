from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.evaluation.diagnosis.columns import in_one_trace
from resolvent.evaluation.diagnosis.steps import OutputTally, outcomes_text, shortened
from resolvent.evaluation.separation import times

LARGE = 2**61  # four times that does not fit into 64 bits


@pytest.mark.parametrize("scale", [1, LARGE // 5])
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_a_tally_counts_as_a_counter_does(rows, scale):
    queries = [query * scale for query, _ in rows]
    outputs = [output for _, output in rows]
    tally = OutputTally.of(np.array(queries, np.int64), np.array(outputs, np.int32))
    columns = tally.key[tally.row], tally.value, tally.count
    entries = zip(*(column.tolist() for column in columns), strict=True)
    counter = Counter(zip(queries, outputs, strict=True))
    assert [*entries] == sorted((*row, count) for row, count in counter.items())
    total = Counter(queries)
    most = {query: max(n for (q, _), n in counter.items() if q == query) for query in total}
    assert tally.total.tolist() == [total[query] for query in sorted(total)]
    assert tally.differing.tolist() == [total[query] - most[query] for query in sorted(total)]
    assert tally.repeated == sum(count for count in total.values() if count > 1)
    assert tally.contradicted.tolist() == [q for q in sorted(total) if total[q] > most[q]]
    query, counts = tally.worst()
    assert total[query] - most[query] == max(total[q] - most[q] for q in total)
    assert sum(count for _, count in counts) == total[query]
    assert counts[0][1] == most[query]


def test_queries_of_one_trace():
    rows = np.array([0, 0, 2, 2]), np.array([0, 0, 0, 1])
    assert in_one_trace(*rows, 3).tolist() == [True, True, False]


def test_outcomes_and_counts_as_text():
    assert outcomes_text({"attic": 3, "hall": 1}, 2) == "attic (3×) or hall (1×)"
    many = "a (1×), b (1×), c (1×), d (1×) or 5 others"
    assert outcomes_text(dict.fromkeys("abcdefg", 1), 9) == many
    assert (times(1), times(1200)) == ("once", "1,200 times")
    assert (shortened("hall"), len(shortened("a" * 1000))) == ("hall", 61)
