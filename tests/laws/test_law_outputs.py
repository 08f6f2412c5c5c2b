"""Any column can be predicted, and each gets the machine that it would get as a reward."""

from dataclasses import fields
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.machines.io.json import encode
from strategies import infer_options, world_traces


def with_column(traces, name, values_of, rewards=None):
    """The traces with a column more, or with other rewards, made of each trace."""
    return rs.TraceSet(
        rs.Trace(
            one.observations,
            one.labels,
            one.actions,
            one.rewards if rewards is None else rewards(one),
            one.terminated,
            one.truncated,
            columns={name: values_of(one)} if name else {},
        )
        for one in traces
    )


def assert_same_but_for_the_name(mine, yours):
    """Every table is the same; only what the machines are said to predict differs."""
    for field in fields(mine):
        if field.name in ("predicts", "support"):
            continue
        a, b = getattr(mine, field.name), getattr(yours, field.name)
        if isinstance(a, np.ndarray):
            assert np.array_equal(a, b), field.name
        else:
            assert a == b, field.name
    for field in fields(mine.support):
        assert np.array_equal(getattr(mine.support, field.name), getattr(yours.support, field.name))


@settings(deadline=None, max_examples=100)
@given(traces=world_traces(), options=infer_options, data=st.data())
def test_a_column_gets_the_machine_it_would_get_as_the_reward(traces, options, data):
    """The column says in part what the reward says: some of its values are taken for one."""
    worth = data.draw(
        st.fixed_dictionaries(dict.fromkeys((0.0, 1.0, -0.25), st.sampled_from([2.0, 3.0])))
    )

    def costs(trace):
        return [worth[one] for one in trace.rewards]

    beside = with_column(traces, "cost", costs)
    instead = with_column(traces, None, costs, rewards=costs)
    mine = rs.infer(beside, options=rs.InferenceOptions(outputs=["observation", "cost"], **options))
    yours = rs.infer(
        instead, options=rs.InferenceOptions(outputs=["observation", "reward"], **options)
    )
    assert list(mine.machines) == ["transition", "cost"]
    assert mine.machines.transition == yours.machines.transition
    assert_same_but_for_the_name(mine.machines["cost"], yours.machines.reward)
    alone = rs.infer(beside, options=rs.InferenceOptions(outputs=["cost"], **options)).machines[
        "cost"
    ]
    assert not alone.supplemented
    expected = rs.infer(
        instead, options=rs.InferenceOptions(outputs=["reward"], **options)
    ).machines.reward
    assert_same_but_for_the_name(alone, expected)


@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), options=infer_options)
def test_next_observations_as_a_column_get_the_transition_machine(traces, options):
    beside = with_column(traces, "next", lambda one: one.observations[1:])
    # A column has codes of its own, which begin where the values that occur in it do.
    assume(set(beside.column("next").values) == set(beside.observations))
    options = {**options, "supplement": False}
    found = rs.infer(
        beside, options=rs.InferenceOptions(outputs=["observation", "next"], **options)
    ).machines
    assert_same_but_for_the_name(found["next"], found.transition)


@settings(deadline=None, max_examples=60)
@given(traces=world_traces(), options=infer_options, data=st.data())
def test_the_order_of_names_makes_no_difference(traces, options, data):
    beside = with_column(traces, "cost", lambda one: [round(10 * pay) for pay in one.rewards])
    named = data.draw(st.sets(st.sampled_from(["observation", "reward", "cost"]), min_size=1))
    orders = [data.draw(st.permutations(sorted(named))) for _ in range(2)]
    one, other = (
        rs.infer(beside, options=rs.InferenceOptions(outputs=order, **options)) for order in orders
    )
    assert list(one.machines) == list(other.machines)
    assert one.machines.replacing(provenance=None) == other.machines.replacing(provenance=None)
    assert encode(one.machines.replacing(provenance=None)) == encode(
        other.machines.replacing(provenance=None)
    )
    assert one.statistics.keys() == other.statistics.keys()


@settings(deadline=None, max_examples=60)
@given(traces=world_traces(), options=infer_options)
def test_further_outputs_do_not_change_the_machines_of_others(traces, options):
    beside = with_column(traces, "cost", lambda one: [round(10 * pay) for pay in one.rewards])
    few = rs.infer(
        beside, options=rs.InferenceOptions(outputs=["observation", "reward"], **options)
    ).machines
    more = rs.infer(
        beside, options=rs.InferenceOptions(outputs=["observation", "reward", "cost"], **options)
    ).machines
    assert more.transition == few.transition
    assert more.reward == few.reward


def test_rewards_are_predicted_without_a_transition_machine():
    """The next observation is a coin; the reward counts keys."""
    traces = rs.TraceSet(
        rs.Trace([0, *coins], [None, *labels], ["go"] * 3, rewards)
        for coins in product((0, 1), repeat=3)
        for labels, rewards in (
            ((None, None, None), (0, 0, 0)),
            (("key", None, None), (0, 1, 1)),
            ((None, "key", None), (0, 0, 1)),
        )
    )
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(traces, noise="none")
    assert caught.value.output == "observation"
    found = rs.infer(traces, outputs=("reward",)).machines
    assert list(found) == ["reward"]
    assert found.reward.states == 2
    assert not found.reward.supplemented
    assert found.reward.output(found.reward.run([{"key"}]), 1, "go") == 1.0
    assert found.reward.output(0, 1, "go") == 0.0
    assert found.score(traces).perfect


# ---- whether episodes end --------------------------------------------------


def until_bell(last, steps):
    """All ways to hear a bell or not at each step; the step after the last bell ends it."""
    for rung in product((False, True), repeat=steps):
        heard = np.cumsum(rung)
        length = int(np.searchsorted(heard, last)) + 1  # steps taken when the last one has rung
        ended = length < steps
        labels = [None, *("bell" if one else None for one in rung)]
        actions = min(length + 1, steps)
        yield rs.Trace(
            [0] * (actions + 1),
            labels[: actions + 1],
            ["go"] * actions,
            [0.0] * actions,
            terminated=ended,
            truncated=not ended,
        )


@pytest.mark.parametrize("last", [1, 2, 3, 4])
@pytest.mark.parametrize("engine", ["native", "python"])
def test_endings_get_a_machine_when_they_depend_on_memory(last, engine):
    """Nothing else does, so that only this machine counts the bells: from none to the last."""
    traces = rs.TraceSet(until_bell(last, last + 3))
    found = rs.infer(traces, options=rs.InferenceOptions(engine=engine)).machines
    assert list(found) == ["transition", "reward", "terminated"]
    assert (found.transition.states, found.reward.states) == (1, 1)
    machine = found["terminated"]
    assert machine.states == last + 1
    for heard in range(last + 1):
        state = machine.run([{"bell"}] * heard)
        assert machine.output(state, (0, 0), "go") is (heard == last)
    assert found.termination.ambiguous == frozenset()
    assert found.termination.ends == {(0, 0, 0, machine.run([{"bell"}] * last), "go")}
    named = rs.infer(
        traces,
        outputs=["terminated", "reward", "observation"],
        options=rs.InferenceOptions(engine=engine),
    )
    assert named.machines["terminated"] == machine


@pytest.mark.parametrize("last", [1, 2, 3])
def test_endings_by_chance_get_none(last):
    """An episode that was cut off exactly where another ended: no memory tells the two apart."""
    ways = list(until_bell(last, last + 3))
    ended = next(one for one in ways if one.terminated)
    cut = rs.Trace(ended.observations, ended.labels, ended.actions, ended.rewards, truncated=True)
    traces = rs.TraceSet([*ways, cut])
    result = rs.infer(traces)
    assert list(result.machines) == ["transition", "reward"]
    assert result.machines.termination.ambiguous == {(0, 0, 0, "go")}
    assert result.machines.termination.ends == frozenset()
    assert result.statistics.keys() == result.trivial.keys() == {"transition", "reward"}
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(traces, outputs=["terminated"], noise="none")
    assert caught.value.output == "terminated"


def test_endings_that_other_machines_predict_get_none():
    """The step that pays is the one that ends it."""
    traces = rs.TraceSet(
        rs.Trace([0] * 3, [None, key, None], ["go"] * 2, [0, pay], terminated=bool(pay))
        for key, pay in ((None, 0), ("key", 1))
    )
    found = rs.infer(traces).machines
    assert list(found) == ["transition", "reward"]
    assert found.termination.ends == {(0, 0, found.reward.run([{"key"}]), "go")}
    assert found.termination.ambiguous == frozenset()
