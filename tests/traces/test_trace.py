import copy
import dataclasses
import pickle
import re
from functools import reduce

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
        ((3, 2, 2, {"reward": 2}), "3 observations but 2 labels"),
        ((3, 3, 2, {"reward": 1}), "2 actions but 1 rewards"),
        ((3, 3, 2, {"reward": 2, "cost": 3}), "2 actions but 3 in the column `cost`"),
        ((0, 0, 0, {"reward": 0}), "the trace is empty"),
        ((1, 1, 0), "one observation and no action"),
        ((2, 2, 2, {"reward": 2}), "2 observations for 2 actions: a trace has one more"),
        ((4, 4, 2), "4 observations for 2 actions"),
    ],
)
def test_lengths_that_do_not_fit(lengths, message):
    with pytest.raises(TraceError, match=message):
        check_lengths(*lengths)


def test_lengths_that_fit():
    check_lengths(2, 2, 1)
    check_lengths(11, 11, 10, {"reward": 10, "cost": 10})


def test_rewards_may_be_left_out():
    trace = Trace(["hall", "attic"], [None, None], ["up"])
    assert trace.rewards is None
    assert trace == Trace(["hall", "attic"], [None, None], ["up"], None)
    assert trace != Trace(["hall", "attic"], [None, None], ["up"], [0])
    assert trace.step_columns == {}


def test_further_columns_are_values_too():
    def made(cost=3):
        columns = {"fault": np.array([False, True]), "cost": [np.int64(cost), 0]}
        return Trace([0, 1, 0], [None] * 3, "ab", [0, 1], columns=columns)

    trace = made()
    assert trace.columns == {"cost": (3, 0), "fault": (False, True)}
    assert list(trace.step_columns) == ["reward", "cost", "fault"]
    assert trace == made()
    assert hash(trace) == hash(made())
    assert trace != made(cost=4)
    assert trace != Trace([0, 1, 0], [None] * 3, "ab", [0, 1])
    with pytest.raises(TypeError):
        trace.columns["cost"] = (1, 1)
    for again in (pickle.loads(pickle.dumps(trace)), copy.deepcopy(trace)):  # noqa: S301
        assert again == trace
        assert hash(again) == hash(trace)
    assert dataclasses.replace(trace, rewards=None).columns == trace.columns


def test_what_a_trace_shows_of_itself():
    plain = Trace([0, 1], [None, None], ["go"], [1])
    start = "Trace(observations=(0, 1), labels=(frozenset(), frozenset()), actions=('go',), "
    assert repr(plain) == start + "rewards=(1.0,), terminated=False, truncated=False)"
    with_cost = Trace([0, 1], [None, None], ["go"], columns={"cost": [2]})
    assert repr(with_cost) == (
        start + "rewards=None, terminated=False, truncated=False, columns={'cost': (2,)})"
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"cost": [1, 2]}, "1 actions but 2 in the column `cost`"),
        ({"": [1]}, "'' cannot be the name of a column"),
        ({7: [1]}, "7 cannot be the name of a column"),
        ({"\ud800": [1]}, "is not valid Unicode"),
        ({"cost": [None]}, "a NoneType cannot be a symbol"),
        ({"cost": [float("nan")]}, "nan cannot be a symbol"),
    ],
)
def test_columns_that_are_refused(columns, message):
    with pytest.raises(TraceError, match=message):
        Trace([0, 1], [None, None], ["go"], columns=columns)


@pytest.mark.parametrize(
    "name",
    [
        *("observation", "observations", "label", "labels", "action", "actions"),
        *("reward", "rewards", "terminated", "truncated", "episode", "step"),
    ],
)
def test_names_that_mean_something_else(name):
    with pytest.raises(TraceError, match=f"cannot be called `{name}`.* another name"):
        Trace([0, 1], [None, None], ["go"], columns={name: [1]})


DEEP = reduce(lambda inner, _: [inner], range(5000), 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"observations": 255}, "observations: int is not a list of values"),
        ({"labels": None}, "labels: NoneType is not a list of values"),
        ({"rewards": 3.5}, "rewards: float is not a list of values"),
        ({"rewards": ["abc"]}, "step 0: the reward is 'abc'; rewards must be numbers"),
        ({"rewards": [10**400]}, "step 0: the reward is 1000"),
        ({"rewards": [DEEP]}, "step 0: the reward is a list; rewards must be numbers"),
        ({"actions": [DEEP]}, "nested more than 100 deep"),
        ({"terminated": np.zeros(2)}, "terminated is ndarray: give True or False"),
        ({"columns": "x"}, "columns are str: give values by column name"),
        ({"columns": {"cost": 5}}, "cost: int is not a list of values"),
    ],
)
def test_what_is_no_trace_is_refused_in_words(given, message):
    right = {"observations": [0, 1], "labels": [None, None], "actions": ["up"], "rewards": [1]}
    assert len(Trace(**right)) == 1
    with pytest.raises(TraceError, match=re.escape(message)):
        Trace(**{**right, **given})
