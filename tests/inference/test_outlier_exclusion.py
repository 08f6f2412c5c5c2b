"""Outliers are found, named and excluded; traces of a noisy world are kept."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_worlds import same, slipped
from outlier_traces import outliers, shuffled
from resolvent.worlds import House


@pytest.fixture(scope="module")
def clean():
    """A 25×25 world, of which these traces show all seven states."""
    env = gym.make("resolvent/RandomWorld-v0", world_seed=3)
    return rs.collect(env, episodes=300, seed=3)


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=200, seed=0)


def test_one_outlier_in_a_house(house):
    odd = rs.Trace(["corridor", "cyanroom"], [None, "toilet"], ["up"], [0])
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(house + rs.TraceSet([odd]), noise="none")
    result = rs.infer(house + rs.TraceSet([odd]))
    assert result.outliers == (200,)
    assert not result.is_noisy
    assert same(result, rs.infer(house))
    figures = result.as_dict()
    assert figures["outliers"] == [200]
    assert figures["traces"] == 201
    assert figures["noise"]["outliers"] == pytest.approx(1 / 201)
    assert not figures["explains_all_traces"]
    assert "trace 200 from step 0 on (1 of 1 outputs deviate)" in str(result)
    assert len(result.all_traces()) == 200


@pytest.mark.slow
def test_outliers_do_not_change_the_machines(clean):
    numbers = [3, 60, 110, 205]
    result = rs.infer(outliers(clean, numbers))
    assert list(result.outliers) == numbers
    kept = np.setdiff1d(np.arange(len(clean)), numbers)
    assert same(result, rs.infer(clean.take(kept), noise="none"))
    assert result.machines.transition.states == 7
    assert not result.is_noisy


def test_the_order_of_outliers_makes_no_difference(house):
    traces = outliers(house, [3, 60, 110, 196], kinds=(shuffled,))
    order = np.random.default_rng(1).permutation(len(traces))
    result, shuffled_result = rs.infer(traces), rs.infer(traces.take(order))
    assert result.outliers
    assert sorted(order[list(shuffled_result.outliers)].tolist()) == list(result.outliers)
    assert same(result, shuffled_result)


@pytest.mark.slow
def test_traces_of_a_noisy_world_are_no_outliers(clean):
    result = rs.infer(slipped(clean, 0.05))
    assert result.is_noisy
    assert result.outliers == ()


@pytest.mark.slow
def test_outliers_among_noisy_traces(clean):
    numbers = [3, 60, 110]
    result = rs.infer(outliers(slipped(clean, 0.05), numbers, kinds=(shuffled,)))
    assert list(result.outliers) == numbers
    assert result.is_noisy
    assert result.machines.transition.states == 7
    (warning,) = (finding for finding in result.warnings if finding.kind == "outliers")
    assert warning.figures["traces"] == numbers


def test_too_many_outliers_are_kept_and_reported(house):
    traces = outliers(house, range(0, 200, 20), kinds=(shuffled,))
    result = rs.infer(traces, noise=rs.Noise(outcomes=True, outliers=0.01))
    assert result.outliers == ()
    (warning,) = (finding for finding in result.warnings if finding.kind == "too-many-outliers")
    assert "more than the 1% that may be excluded" in warning.text


def test_stated_outliers_allow_no_other_noise(clean):
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(slipped(clean, 0.05), noise=rs.Noise(outliers=0.05))


def test_an_update_adds_to_the_outliers(house):
    odd = rs.Trace(["corridor", "cyanroom"], [None, "toilet"], ["up"], [0])
    traces = house[:100] + rs.TraceSet([odd]) + house[100:150]
    first = rs.infer(traces)
    assert first.outliers == (100,)
    result = first.update(house[150:] + rs.TraceSet([odd]))
    assert result.outliers == (100, 201)
    assert result.traces == 202
    assert result.steps == traces.steps + house[150:].steps + 1
    assert same(result, rs.infer(house))


def test_of_a_few_traces_none_is_an_outlier():
    walks = [("hall", "attic")] * 9 + [("hall", "hall")]
    traces = rs.TraceSet(rs.Trace(walk, [None] * 2, ["up"], [0]) for walk in walks)
    result = rs.infer(traces)
    assert result.outliers == ()
    assert result.noise["transition"] == pytest.approx(0.1)
