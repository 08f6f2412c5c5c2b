import numpy as np
import pytest

from resolvent.machines import OutputCounts


def columns(*rows):
    """Rows of state, query, answer and count as columns."""
    state, query, value, count = np.array(rows, np.int64).reshape(len(rows), 4).T
    return state.astype(np.int32), query, value.astype(np.int32), count


def output_counts(*rows):
    return OutputCounts(*columns(*rows))


# State 0 answers query 3 in two ways, and in state 2 there are three, two of them equally often.
MIXED = [(0, 3, 0, 1), (0, 3, 4, 9), (1, 3, 4, 2), (2, 0, 1, 5), (2, 3, 1, 2), (2, 3, 2, 4)]
MIXED += [(2, 3, 7, 4)]


def test_outputs_by_state_and_query():
    given = columns(*MIXED)
    before = [column.copy() for column in given]
    outputs = OutputCounts(*given)
    assert outputs.state[outputs.starts].tolist() == [0, 1, 2, 2]
    assert outputs.query[outputs.starts].tolist() == [3, 3, 0, 3]
    assert outputs.main.tolist() == [4, 4, 1, 2]  # of 2 and 7, equally often, the lower code
    assert outputs.totals.tolist() == [10, 2, 5, 10]
    assert outputs.varying() == output_counts(
        *(row for row in MIXED if row[0] != 1 and row[1] != 0)
    )
    assert (outputs.state.dtype, outputs.main.dtype) == (np.int32, np.int32)
    assert all(map(np.array_equal, given, before))


def test_outputs_that_do_not_vary():
    assert output_counts((0, 3, 0, 1), (0, 4, 0, 1), (1, 3, 1, 8)).varying() == OutputCounts()
    assert len(output_counts().varying()) == 0


def test_rows_name_the_most_frequent_output_first():
    grouped = output_counts(*MIXED).varying()
    assert grouped.rows == {(0, 3): {4: 9, 0: 1}, (2, 3): {2: 4, 7: 4, 1: 2}}
    assert [*grouped.rows[2, 3]] == [2, 7, 1]  # the most frequent first
    assert grouped.main.tolist() == [4, 2]
    assert grouped.totals.tolist() == [10, 10]
    assert grouped.most.tolist() == [9, 4]
    assert OutputCounts().rows == {}


def test_shares_are_compared_and_not_counts():
    one = output_counts((0, 3, 0, 1), (0, 3, 4, 9), (1, 3, 0, 4), (1, 3, 1, 2))
    scaled = output_counts((0, 3, 0, 7), (0, 3, 4, 63), (1, 3, 0, 2), (1, 3, 1, 1))
    assert one == scaled
    assert hash(one) == hash(scaled)


@pytest.mark.parametrize(
    "other",
    [
        output_counts((0, 3, 0, 2), (0, 3, 4, 9)),
        output_counts((0, 3, 0, 1), (0, 3, 5, 9)),
        output_counts((1, 3, 0, 1), (1, 3, 4, 9)),
        output_counts((0, 2, 0, 1), (0, 2, 4, 9)),
        OutputCounts(),
        "a text",
    ],
)
def test_output_counts_that_differ(other):
    assert output_counts((0, 3, 0, 1), (0, 3, 4, 9)) != other
