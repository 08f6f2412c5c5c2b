import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.errors import TraceError
from resolvent.traces import Trace, TraceSet, read_traces
from strategies import trace_sets

LONG = Trace(["hall", "attic", "hall"], [None, "key", None], ["up", "down"], [0, 1], True)
SHORT = Trace(["attic", "attic"], ["key", ["key", "cat"]], ["up"], [-1], False, True)


def test_columns_by_hand():
    traces = TraceSet([LONG, SHORT])
    assert list(traces.observations) == ["attic", "hall"]
    assert list(traces.labels) == [frozenset(), frozenset({"key"}), frozenset({"cat", "key"})]
    assert list(traces.actions) == ["down", "up"]
    assert list(traces.rewards) == [-1.0, 0.0, 1.0]
    assert traces.observation_codes.tolist() == [1, 0, 1, 0, 0]
    assert traces.label_codes.tolist() == [0, 1, 0, 1, 2]
    assert traces.action_codes.tolist() == [1, 0, 1]
    assert traces.reward_codes.tolist() == [1, 2, 0]
    assert traces.offsets.tolist() == [0, 2, 3]
    assert traces.terminated.tolist() == [True, False]
    assert traces.truncated.tolist() == [False, True]
    assert traces.steps == 3
    assert repr(traces) == (
        "TraceSet(2 traces, 3 steps, 2 observations, 3 labels, 2 actions, 3 rewards)"
    )


def test_traces_come_back():
    traces = TraceSet([LONG, SHORT])
    assert list(traces) == [LONG, SHORT]
    assert traces[-1] == SHORT
    assert list(traces[::-1]) == [SHORT, LONG]
    with pytest.raises(IndexError):
        traces[2]


def test_columns_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        TraceSet([LONG]).action_codes[0] = 0


def test_no_traces():
    empty = TraceSet()
    assert len(empty) == 0
    assert empty.steps == 0
    assert empty == TraceSet.concatenate([])
    assert empty + TraceSet([LONG]) == TraceSet([LONG])


def test_vocabularies_shrink_with_the_traces():
    taken = TraceSet([LONG, SHORT]).take([1, 1])
    assert taken == TraceSet([SHORT, SHORT])
    assert list(taken.observations) == ["attic"]


def test_mixed_types_name_trace_column_and_step():
    other = Trace([7, "hall"], [None, None], ["up"], [0])
    with pytest.raises(TraceError, match=r"trace 1, observations: step 0: 7 is an int, .* a str"):
        TraceSet([LONG, other])
    with pytest.raises(TraceError, match=r"trace set 1, joined .*: observations: .*7 is an int"):
        TraceSet([LONG]) + TraceSet([Trace([7, 8], [None, None], ["up"], [0])])


def test_columns_that_do_not_fit():
    one = np.zeros(1, np.int32)
    with pytest.raises(TraceError, match="do not fit"):
        TraceSet.from_columns(
            ([0], one), ([frozenset()], one), ([0], one), ([0.0], one),
            offsets=[0, 1], terminated=[True], truncated=[False],
        )  # fmt: skip


def test_save_follows_the_name(tmp_path):
    traces = TraceSet([LONG, SHORT])
    traces.save(tmp_path / "house.parquet")
    assert (tmp_path / "house.parquet").read_bytes()[:4] == b"PAR1"
    assert read_traces(tmp_path / "house.parquet") == traces


@settings(max_examples=30, deadline=None)
@given(trace_sets(min_size=0), st.data())
def test_a_set_is_the_sequence_of_its_traces(traces, data):
    listed = list(traces)
    assert TraceSet(listed) == traces
    assert hash(TraceSet(listed)) == hash(traces)
    cut = data.draw(st.integers(0, len(traces)))
    assert traces[:cut] + traces[cut:] == traces
    order = data.draw(st.permutations(range(len(traces))))
    assert list(traces.take(order)) == [listed[number] for number in order]


@settings(max_examples=30, deadline=None)
@given(trace_sets(), trace_sets())
def test_sets_are_equal_exactly_when_their_traces_are(one, other):
    assert (one == other) == (repr(list(one)) == repr(list(other)))
