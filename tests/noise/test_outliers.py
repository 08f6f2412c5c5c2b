"""Traces of no use are found, named and left out; those that are merely unlucky stay."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from broken_traces import broken, shuffled
from noisy_worlds import same, slipped
from resolvent.worlds import House


@pytest.fixture(scope="module")
def clean():
    """A 25×25 world, of which these traces show all seven states."""
    env = gym.make("resolvent/RandomWorld-v0", world_seed=3)
    return rs.collect(env, episodes=300, seed=3)


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=200, seed=0)


def test_one_broken_trace_in_a_house(house):
    odd = rs.Trace(["corridor", "cyanroom"], [None, "toilet"], ["up"], [0])
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(house + rs.TraceSet([odd]), noise="none")
    result = rs.infer(house + rs.TraceSet([odd]))
    assert result.broken == (200,)
    assert not result.is_noisy
    assert same(result, rs.infer(house))
    figures = result.as_dict()
    assert figures["broken"] == [200]
    assert figures["traces"] == 201
    assert figures["noise"]["broken"] == pytest.approx(1 / 201)
    assert not figures["explains_all_traces"]
    assert "trace 200 from step 0 on (1 of 1 answers odd)" in str(result)
    assert len(result.all_traces()) == 200


@pytest.mark.slow
def test_a_clean_world_with_broken_traces_gives_the_machines_of_the_others(clean):
    numbers = [3, 60, 110, 205]
    result = rs.infer(broken(clean, numbers))
    assert list(result.broken) == numbers
    kept = np.setdiff1d(np.arange(len(clean)), numbers)
    assert same(result, rs.infer(clean.take(kept), noise="none"))
    assert result.machines.transition.states == 7
    assert not result.is_noisy


def test_their_order_makes_no_difference(house):
    traces = broken(house, [3, 60, 110, 196], kinds=(shuffled,))
    order = np.random.default_rng(1).permutation(len(traces))
    one, other = rs.infer(traces), rs.infer(traces.take(order))
    assert one.broken
    assert sorted(order[list(other.broken)].tolist()) == list(one.broken)
    assert same(one, other)


@pytest.mark.slow
def test_traces_that_are_merely_unlucky_stay(clean):
    result = rs.infer(slipped(clean, 0.05))
    assert result.is_noisy
    assert result.broken == ()


@pytest.mark.slow
def test_broken_ones_among_noisy_ones(clean):
    numbers = [3, 60, 110]
    result = rs.infer(broken(slipped(clean, 0.05), numbers, kinds=(shuffled,)))
    assert list(result.broken) == numbers
    assert result.is_noisy
    assert result.machines.transition.states == 7
    (warning,) = (one for one in result.warnings if one.kind == "broken-traces")
    assert warning.figures["traces"] == numbers


def test_more_than_may_be_left_out_are_kept_and_it_says_so(house):
    traces = broken(house, range(0, 200, 20), kinds=(shuffled,))
    result = rs.infer(traces, noise=rs.Noise(outcomes=True, broken=0.01))
    assert result.broken == ()
    (warning,) = (one for one in result.warnings if one.kind == "too-many-broken")
    assert "more than the 1% that may be left out" in warning.text


def test_nothing_but_broken_traces_is_allowed_for(clean):
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(slipped(clean, 0.05), noise=rs.Noise(broken=0.05))


def test_an_update_keeps_the_numbers(house):
    odd = rs.Trace(["corridor", "cyanroom"], [None, "toilet"], ["up"], [0])
    traces = house[:100] + rs.TraceSet([odd]) + house[100:150]
    first = rs.infer(traces)
    assert first.broken == (100,)
    result = first.update(house[150:] + rs.TraceSet([odd]))
    assert result.broken == (100, 201)
    assert result.traces == 202
    assert result.steps == traces.steps + house[150:].steps + 1
    assert same(result, rs.infer(house))


def test_of_a_handful_of_traces_none_is_broken():
    walks = [("hall", "attic")] * 9 + [("hall", "hall")]
    traces = rs.TraceSet(rs.Trace(walk, [None] * 2, ["up"], [0]) for walk in walks)
    result = rs.infer(traces)
    assert result.broken == ()
    assert result.noise["transition"] == pytest.approx(0.1)
