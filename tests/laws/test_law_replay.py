"""What traces show adds up: any shards, in any order, wherever they were replayed."""

import copy
import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.replay.coded_shard import Alphabets, CodedShard
from resolvent.replay.replaying import MachineTables, replay_shard
from strategies import moving_machines, traces_with_cost

# Earliest places are asked for only of traces gone through as they lie.
asking = st.sampled_from(
    [
        {"shortest": shortest, "unknown_states": unknown, "earliest": earliest}
        for shortest, earliest in ((True, False), (False, False), (False, True))
        for unknown in (False, True)
    ]
)


def assert_same(one, other):
    """Every column of two replays is equal, to the last entry."""
    assert one.alphabets == other.alphabets
    assert (one.traces, one.steps) == (other.traces, other.steps)
    assert one.counted_in_outputs == other.counted_in_outputs
    assert one.sizes == other.sizes
    assert one.machines.keys() == other.machines.keys()
    for kind, mine in one.machines.items():
        yours = other.machines[kind]
        assert mine.unqueried == yours.unqueried
        for rows in ("outputs", "transitions", "conflicts", "missing", "known_outputs"):
            assert_equal_rows(getattr(mine, rows), getattr(yours, rows))
    assert_equal_rows(one.augmented_states, other.augmented_states)
    assert_equal_rows(one.terminations, other.terminations)
    assert one.consistent == other.consistent


def assert_equal_rows(mine, yours):
    assert mine.dtype == yours.dtype
    for column in mine.dtype.names:
        assert mine[column].tolist() == yours[column].tolist(), column


def shards_of(traces, cuts):
    """The traces in pieces, some of which may be empty, in the codes of all."""
    alphabets = Alphabets.of(traces.values)
    bounds = zip([0, *cuts], [*cuts, len(traces)], strict=True)
    return [CodedShard.among(a, traces[a:b], alphabets, {}) for a, b in bounds]


@st.composite
def sharded(draw):
    """Machines that may fail, traces, and shards of these in any order."""
    traces = draw(traces_with_cost())
    machines = draw(moving_machines(traces.labels))
    cuts = sorted(draw(st.lists(st.integers(0, len(traces)), max_size=3)))
    shards = draw(st.permutations(shards_of(traces, cuts)))
    return machines, traces, shards


def added_up(parts, draw):
    """The sum, with brackets anywhere."""
    parts = list(parts)
    while len(parts) > 1:
        at = draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0]


@settings(deadline=None, max_examples=300)
@given(drawn=sharded(), how=asking, data=st.data())
def test_the_sum_over_any_shards_is_the_replay_of_all_traces(drawn, how, data):
    machines, traces, shards = drawn
    (whole,) = shards_of(traces, [])
    tables = MachineTables.of(machines, whole.alphabets)
    parts = [replay_shard(tables, shard, **how) for shard in shards]
    assert_same(added_up(parts, data.draw), replay_shard(tables, whole, **how))


@settings(deadline=None, max_examples=100)
@given(drawn=sharded(), how=asking, data=st.data())
def test_pickled_and_copied_counts_add_up(drawn, how, data):
    """Shards, tables and replays travel: each step of the work may be done elsewhere."""
    machines, traces, shards = drawn
    (whole,) = shards_of(traces, [])
    tables = MachineTables.of(machines, whole.alphabets)
    travel = data.draw(st.sampled_from([sent, copy.deepcopy]))
    parts = [travel(replay_shard(travel(tables), travel(shard), **how)) for shard in shards]
    assert_same(added_up(parts, data.draw), replay_shard(tables, whole, **how))


def sent(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


@settings(deadline=None, max_examples=60)
@given(drawn=sharded(), how=asking)
def test_adding_changes_neither_operand(drawn, how):
    machines, _, shards = drawn
    tables = MachineTables.of(machines, shards[0].alphabets)
    parts = [replay_shard(tables, shard, **how) for shard in shards]
    before = [sent(part) for part in parts]
    for one in parts:
        for other in parts:
            _ = one + other
    for part, as_it_was in zip(parts, before, strict=True):
        assert_same(part, as_it_was)


@settings(deadline=None, max_examples=60)
@given(drawn=sharded(), data=st.data())
def test_shuffled_traces_have_the_same_counts_and_first_traces(drawn, data):
    """But for their numbers: what stands for a thing is chosen by what traces hold."""
    machines, traces, _ = drawn
    order = data.draw(st.permutations(range(len(traces))))
    (one,), (other,) = shards_of(traces, []), shards_of(traces.take(order), [])
    shown = [
        replay_shard(MachineTables.of(machines, each.alphabets), each) for each in (one, other)
    ]
    for kind in machines:
        for rows in ("outputs", "transitions"):
            mine, yours = (getattr(each.machines[kind], rows) for each in shown)
            for column in mine.dtype.names:
                if column not in ("trace", "early_trace"):
                    assert np.array_equal(mine[column], yours[column]), column
