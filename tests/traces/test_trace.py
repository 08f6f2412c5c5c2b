import dataclasses

import numpy as np
import pytest

from resolvent.errors import TraceError
from resolvent.traces.trace import Trace, check_lengths


def test_fields_hold_plain_symbols():
    trace = Trace(
        np.array([[0, 1], [1, 1]]), [None, {"key"}], [np.int64(2)], [np.float32(0.5)], True
    )
    assert trace.observations == ((0, 1), (1, 1))
    assert trace.labels == (frozenset(), frozenset({"key"}))
    assert trace.actions == (2,)
    assert trace.rewards == (0.5,)
    assert (trace.terminated, trace.truncated) == (True, False)
    assert len(trace) == 1


def test_traces_are_values():
    one, other = (Trace([0, 1], [[], []], ["go"], [reward]) for reward in (0, -0.0))
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.terminated = True


def test_iterators_are_accepted():
    assert Trace(iter([0, 1]), iter([None, None]), iter("a"), iter([1])).actions == ("a",)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), float("-inf")])
def test_rewards_must_be_finite(reward):
    with pytest.raises(TraceError, match=f"step 1: the reward is {reward}"):
        Trace([0, 1, 2], [None] * 3, "ab", [0, reward])


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((3, 2, 2, 2), "3 observations but 2 labels"),
        ((3, 3, 2, 1), "2 actions but 1 rewards"),
        ((0, 0, 0, 0), "the trace is empty"),
        ((1, 1, 0, 0), "one observation and no action"),
        ((2, 2, 2, 2), "2 observations for 2 actions: a trace has one more"),
        ((4, 4, 2, 2), "4 observations for 2 actions"),
    ],
)
def test_lengths_that_do_not_fit(lengths, message):
    with pytest.raises(TraceError, match=message):
        check_lengths(*lengths)


def test_lengths_that_fit():
    check_lengths(2, 2, 1, 1)
    check_lengths(11, 11, 10, 10)
