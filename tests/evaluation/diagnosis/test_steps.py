from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.evaluation.diagnosis.steps import OutputTally

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
