"""Law 4: shuffling or repeating traces changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.machines.io.json import encode
from strategies import assume_engine_has, infer_options, world_traces


def bare(pair, support):
    """The pair without where it came from and, unless wanted, how often things were seen."""
    without = {} if support else {"support": None}
    machines = [replace(one, **without) for one in pair.values()]
    return pair.replacing(*machines, provenance=None)


def assert_same(one, other, support):
    mine, yours = (bare(result.machines, support) for result in (one, other))
    assert mine == yours
    assert encode(mine) == encode(yours)
    for machine in ("transition", "reward"):
        assert one.machines[machine].decisions == other.machines[machine].decisions
        a, b = getattr(one, machine), getattr(other, machine)
        assert (a.attempts, a.prefix_tree_nodes) == (b.attempts, b.prefix_tree_nodes)


@pytest.mark.parametrize("engine", ["native", "python"])
@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), options=infer_options, data=st.data())
def test_shuffled_traces_give_the_same_file(engine, traces, options, data):
    assume_engine_has(options, engine)
    shuffled = traces.take(data.draw(st.permutations(range(len(traces)))))
    results = [
        rs.infer(one, options=rs.InferenceOptions(engine=engine, **options))
        for one in (traces, shuffled)
    ]
    assert_same(*results, support=True)


@pytest.mark.parametrize("engine", ["native", "python"])
@settings(deadline=None, max_examples=80)
@given(traces=world_traces(), options=infer_options, data=st.data())
def test_repeated_traces_give_the_same_file_but_for_counts(engine, traces, options, data):
    assume_engine_has(options, engine)
    again = data.draw(st.lists(st.integers(0, len(traces) - 1), max_size=8))
    # Which trace ended an episode is part of what was seen, so a repeat says nothing new.
    order = data.draw(st.permutations([*range(len(traces)), *again]))
    results = [
        rs.infer(one, options=rs.InferenceOptions(engine=engine, **options))
        for one in (traces, traces.take(order))
    ]
    assert_same(*results, support=False)


@settings(deadline=None, max_examples=40)
@given(world_traces(), infer_options)
def test_repeating_all_traces_doubles_every_count(traces, options):
    once, twice = (
        rs.infer(one, options=rs.InferenceOptions(**options)).machines
        for one in (traces, traces + traces)
    )
    for machine in ("transition", "reward"):
        mine, yours = getattr(once, machine).support, getattr(twice, machine).support
        for name in ("transitions", "outputs", "constants"):
            assert np.array_equal(2 * getattr(mine, name), getattr(yours, name))


def test_the_order_of_first_occurrence_makes_no_difference():
    """Codes are given in sorted order, not in order of appearance."""
    first = rs.Trace(["z", "m", "a"], [None, "q", "b"], ["up", "down"], [2.0, 1.0])
    second = rs.Trace(["a", "m", "z"], ["b", None, "c"], ["down", "up"], [0.0, -1.0])
    results = [rs.infer(rs.TraceSet(order)) for order in ([first, second], [second, first])]
    assert_same(*results, support=True)
    assert list(results[0].machines.transition.observations) == ["a", "m", "z"]
