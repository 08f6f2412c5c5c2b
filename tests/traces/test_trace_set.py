import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.errors import TraceError
from resolvent.traces import Trace, TraceSet, read_traces
from resolvent.traces.vocabulary import JointVocabularies
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
    with pytest.raises(TraceError, match=r"trace 1: observations: step 0: 7 is an int, .* a str"):
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
@given(trace_sets(min_size=0, any_columns=True), st.data())
def test_a_set_is_the_sequence_of_its_traces(traces, data):
    listed = list(traces)
    assert TraceSet(listed) == traces
    assert hash(TraceSet(listed)) == hash(traces)
    cut = data.draw(st.integers(0, len(traces)))
    assert traces[:cut] + traces[cut:] == traces
    order = data.draw(st.permutations(range(len(traces))))
    assert list(traces.take(order)) == [listed[number] for number in order]


@settings(max_examples=30, deadline=None)
@given(trace_sets(any_columns=True), trace_sets(any_columns=True))
def test_sets_are_equal_exactly_when_their_traces_are(one, other):
    assert (one == other) == (repr(list(one)) == repr(list(other)))


COSTLY = Trace(
    ["hall", "attic", "hall"], [None, "key", None], ["up", "down"],
    terminated=True, columns={"fault": [False, True], "cost": [5, 2]},
)  # fmt: skip
CHEAP = Trace(["hall", "hall"], [None, None], ["up"], columns={"fault": [False], "cost": [2]})


def test_step_columns_by_hand():
    traces = TraceSet([COSTLY, CHEAP])
    assert list(traces.columns) == ["cost", "fault"]
    assert list(traces.columns["cost"].values) == [2, 5]
    assert traces.columns["cost"].codes.tolist() == [1, 0, 0]
    values, codes = traces.column("fault")
    assert list(values) == [False, True]
    assert codes.tolist() == [0, 1, 0]
    assert list(traces) == [COSTLY, CHEAP]
    assert repr(traces) == (
        "TraceSet(2 traces, 3 steps, 2 observations, 2 labels, 2 actions, "
        "2 values of cost, 2 values of fault)"
    )
    with pytest.raises(TypeError):
        traces.columns["cost"] = traces.columns["fault"]


def test_rewards_are_a_column_and_come_first():
    traces = TraceSet([Trace([0, 1], [None] * 2, ["go"], [7], columns={"cost": [1], "a": ["x"]})])
    assert list(traces.columns) == ["reward", "a", "cost"]
    assert traces.column("reward") == (traces.rewards, traces.reward_codes)
    assert list(traces.rewards) == [7.0]


def test_the_end_is_a_column_that_can_be_asked_for():
    traces = TraceSet([COSTLY, CHEAP])
    values, codes = traces.column("terminated")
    assert list(values) == [False, True]
    assert codes.tolist() == [0, 1, 0]
    assert "terminated" not in traces.columns
    one_step = Trace([0, 1], [None, None], ["go"], terminated=True)
    assert list(TraceSet([one_step]).column("terminated").values) == [True]
    assert list(TraceSet([CHEAP]).column("terminated").values) == [False]
    assert list(TraceSet().column("terminated").values) == []


def test_columns_that_are_not_there():
    traces = TraceSet([COSTLY])
    for asked in (lambda: traces.rewards, lambda: traces.reward_codes):
        with pytest.raises(TraceError, match="no rewards: there are cost, fault, terminated"):
            asked()
    with pytest.raises(TraceError, match="no column `cots`: there are cost, fault, terminated"):
        traces.column("cots")


def test_all_traces_have_the_same_columns():
    poor = Trace(["hall", "hall"], [None, None], ["up"], columns={"cost": [2]})
    with pytest.raises(
        TraceError, match="trace 1: no column `fault`, but the first trace has: give it to"
    ):
        TraceSet([COSTLY, poor])
    with pytest.raises(
        TraceError, match="trace 2: rewards here, but the first trace has none: give them"
    ):
        TraceSet([COSTLY, CHEAP, LONG])
    with pytest.raises(TraceError, match="trace set 1: no rewards, but trace set 0 has: give them"):
        TraceSet([LONG]) + TraceSet([CHEAP])
    with pytest.raises(TraceError, match="b: column `fault` here, but a has none"):
        TraceSet.concatenate([TraceSet(), TraceSet([poor]), TraceSet([CHEAP])], ["-", "a", "b"])


def test_no_traces_join_any_and_keep_their_columns():
    traces = TraceSet([COSTLY, CHEAP])
    assert TraceSet() + traces == traces
    assert traces + TraceSet() == traces
    assert traces[:0] + traces == traces
    assert list(traces[:0].columns) == list((traces[:0] + traces[:0]).columns) == ["cost", "fault"]
    assert list(TraceSet().columns) == ["reward"]


def test_the_digest_tells_columns_by_name():
    def digest(rewards=None, **columns):
        return TraceSet([Trace([0, 1], [None, None], ["go"], rewards, columns=columns)]).digest

    digests = [
        digest(),
        digest([1]),
        digest(cost=[1.0]),
        digest(fault=[1.0]),
        digest(cost=[2.0]),
        digest([1], cost=[1.0]),
        digest([1], cost=[1]),
        digest([1], cost=[1], fault=[1]),
    ]
    assert len(set(digests)) == len(digests)


def columns_of(codes, rewards=None, offsets=(0, 2), flags=(True,), **columns):
    seen = [0] * (len(codes) + 1)
    return TraceSet.from_columns(
        (["hall"], np.array(seen)), ([frozenset()], np.array(seen)), (["up", "down"], codes),
        rewards, offsets=offsets, terminated=flags, truncated=np.zeros(1, bool), columns=columns,
    )  # fmt: skip


def test_arrays_of_the_caller_stay_the_callers():
    codes = np.array([0, 1, 0], np.int32)
    own = codes.copy()
    own.flags.writeable = False
    view = codes[:2]
    view.flags.writeable = False
    offsets, flags = np.array([0, 2]), np.array([True])
    cost = ([7, 8], codes[1:])
    traces = columns_of(view, offsets=offsets, flags=flags, cost=cost)
    before = repr(list(traces))
    codes[:], offsets[:], flags[:] = 1, 9, False
    assert repr(list(traces)) == before
    assert traces[0].actions == ("up", "down")
    assert traces[0].columns == {"cost": (8, 7)}
    assert codes.flags.writeable
    sorted_already = columns_of(own[:2], rewards=([0.0, 1.0], own[:2]))
    own.flags.writeable = True  # its owner can take it back at any time
    own[:] = 1
    assert sorted_already[0].rewards == (0.0, 1.0)


def test_a_number_of_a_trace_that_no_index_holds_is_named_as_it_is():
    with pytest.raises(IndexError, match="there is no trace 9223372036854775808"):
        columns_of(np.array([0, 1])).take(np.array([1 << 63], np.uint64))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.array([0.0, 1.0]), "actions: codes must be one row of integers, not of type float64"),
        (np.array([False, True]), "actions: codes must be one row of integers, not of type bool"),
        (np.array([[0], [1]]), "actions: codes must be one row of integers"),
        (np.array([0, 2**32]), "actions: position 1: the code is 4294967296, but only 0 to 1"),
        (np.array([0, 2**64 - 1], np.uint64), "position 1: the code is 18446744073709551615"),
        (np.array([-1, 0], np.int32), "actions: position 0: the code is -1, but only 0 to 1"),
        (np.array([0, 2], np.int32), "actions: position 1: the code is 2, but only 0 to 1"),
    ],
)
def test_codes_that_are_none(codes, message):
    with pytest.raises(TraceError, match=message):
        columns_of(codes)


def test_what_else_does_not_fit():
    codes = np.array([0, 1], np.int32)
    for offsets in ([0.0, 2.0], [], [1, 2], [0, 0, 2], [0, 1], [[0, 2]]):
        with pytest.raises(TraceError, match="offsets"):
            columns_of(codes, offsets=offsets)
    with pytest.raises(TraceError, match="terminated must be one row of booleans"):
        columns_of(codes, flags=[0.5])
    with pytest.raises(TraceError, match="do not fit its offsets"):
        columns_of(codes, cost=([7], codes[:1]))
    with pytest.raises(TraceError, match="column `cost`: position 1: the code is 1, but only 0"):
        columns_of(codes, cost=([7], codes))
    with pytest.raises(TraceError, match="a column cannot be called `episode`"):
        columns_of(codes, episode=([7], codes))
    with pytest.raises(TraceError, match="rewards: position 0: the code is 0, but there are no"):
        columns_of(codes, rewards=([], codes))


def test_copies_are_equal_and_frozen():
    for traces in (TraceSet([LONG, SHORT]), TraceSet([COSTLY, CHEAP]), TraceSet()):
        for again in (pickle.loads(pickle.dumps(traces)), copy.deepcopy(traces)):  # noqa: S301
            assert again == traces
            assert list(again) == list(traces)
            assert list(again.columns) == list(traces.columns)
            arrays = [again.offsets, again.terminated, again.truncated, again.observation_codes]
            arrays += [again.label_codes, again.action_codes]
            arrays += [column.codes for column in again.columns.values()]
            assert not any(array.flags.writeable for array in arrays)


def test_numbers_to_take():
    traces = TraceSet([Trace([0, 1], [None, None], ["go"], [reward]) for reward in (0, 1, 2)])

    def taken(numbers):
        return [trace.rewards[0] for trace in traces.take(numbers)]

    assert taken([-2]) == [1.0]
    assert taken([-1, 0, -3]) == [2.0, 0.0, 0.0]
    assert taken([False, True, True]) == [1.0, 2.0]
    assert taken(np.array([True, False, True])) == [0.0, 2.0]
    assert taken([]) == taken([False] * 3) == []
    assert taken(np.array([2], np.uint8)) == [2.0]
    assert traces[-2:].rewards == traces.take([1, 2]).rewards
    for numbers, message in (
        ([3], "there is no trace 3: there are 3"),
        ([0, -4], "there is no trace -4: there are 3"),
        ([True, False], "a mask of 2 for 3 traces"),
        ([1.0], "a list of integers"),
        (1, "a list of integers"),
        ([[0]], "a list of integers"),
    ):
        with pytest.raises(IndexError, match=message):
            traces.take(numbers)


def test_values_of_several_sets_in_common_codes():
    one = TraceSet([COSTLY])
    other = TraceSet([CHEAP])
    common = JointVocabularies()
    common.add(one.values, "one")
    common.add(other.values, "other")
    values, codes = common.values(), common.codes(other)
    assert [*values] == ["observation", "label", "action", "cost", "fault"]
    assert values["observation"] == ["attic", "hall"]
    assert values["cost"] == [2, 5]
    assert [codes[name].tolist() for name in values][:4] == [[1, 1], [0, 0], [1], [0]]
    with pytest.raises(TraceError, match="third: rewards here, but one has none"):
        common.add(TraceSet([Trace([0, 1], [None, None], ["go"], [0])]).values, "third")


@pytest.mark.parametrize("given", [2, None, [[0]], ["trace"]])
def test_what_are_no_traces_is_refused(given):
    with pytest.raises(TraceError, match=r"not a list of traces|make it a resolvent\.Trace"):
        TraceSet(given)


@pytest.mark.parametrize(
    "column",
    [5, ["up"], ("up", "down", "up"), (5, [0, 0]), (["up"], [[0], [0, 1]]), ([[]], [0, 0]),
     ([{}], [0, 0]), (["up", "up"], [0, 1])],
)  # fmt: skip
def test_what_is_no_column_is_refused(column):
    fine = (["hall"], [0, 0, 0]), ([frozenset()], [0, 0, 0])
    ends = {"offsets": [0, 2], "terminated": [True], "truncated": [False]}
    assert TraceSet.from_columns(*fine, (["up"], [0, 0]), **ends).steps == 2
    with pytest.raises(TraceError):
        TraceSet.from_columns(*fine, column, **ends)


def test_rows_of_different_lengths_are_no_numbers_of_traces():
    with pytest.raises(IndexError, match="list of integers"):
        columns_of(np.array([0, 1])).take([0, [0]])
