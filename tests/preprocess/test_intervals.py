"""Edges of intervals: how few digits they have, and what that costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.errors import TraceError
from resolvent.preprocess.intervals import Intervals, intervals_of, rounded

numbers = st.lists(
    st.one_of(st.floats(-1e9, 1e9), st.floats(-1, 1), st.integers(-20, 20).map(float)),
    min_size=2,
    max_size=200,
)


@given(numbers, st.integers(2, 9))
def test_rounding_moves_at_most_one_reading_in_a_hundred(values, bins):
    values = np.sort(values)
    edges = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    edges = edges[edges > values[0]]
    if not len(edges):
        return
    short = rounded(edges, values)
    exact = [int((values < edge).sum()) for edge in edges]
    held = np.diff([0, *exact, len(values)])
    for number, edge in enumerate(short):
        moved = abs(int((values < edge).sum()) - exact[number])
        assert moved <= 0.01 * min(held[number], held[number + 1])


def test_an_edge_is_as_short_as_readings_allow():
    readings = np.array([17.0, 17.5, 18.5, 19.0])
    assert rounded(np.array([18.0412345]), readings).tolist() == [18.0]
    # Two thirds is a reading itself, and has to stay above its edge.
    thirds = np.array([0, 1 / 3, 2 / 3, 1])
    (edge,) = rounded(np.array([2 / 3]), thirds)
    assert edge == 0.66


def test_edges_of_many_readings_have_few_digits():
    readings = np.random.default_rng(0).normal(size=100_000)
    made = intervals_of(readings, "quantile", 4, seed=0)
    assert all(len(f"{edge!r}") <= 6 for edge in made.edges)
    assert np.abs(np.array(made.edges) - [-0.6745, 0, 0.6745]).max() < 0.02


def test_neighboring_floats_are_separated():
    values = np.array([1.0, np.nextafter(1.0, 2), np.nextafter(np.nextafter(1.0, 2), 2)])
    for method in ("quantile", "uniform"):
        made = intervals_of(values, method, 3, seed=0)
        assert len(set(made.names)) == len(made) >= 2


def test_readings_too_large_for_distances_are_refused():
    with pytest.raises(TraceError, match=r"beyond 1e\+300 are too large"):
        intervals_of(np.array([-1.7e308, 1.7e308]), "uniform", 2, seed=0)


def test_k_means_is_deterministic_on_a_sample_of_readings():
    chance = np.random.default_rng(0)
    readings = np.concatenate([chance.normal(at, 0.2, 15_000) for at in (0, 3, 7)])
    made = intervals_of(readings, "kmeans", 3, seed=0)
    assert made == intervals_of(chance.permutation(readings), "kmeans", 3, seed=0)
    assert made.names == ("about 0", "about 3", "about 7")
    names = [made(reading) for reading in readings.tolist()]
    assert [names.count(name) for name in made.names] == [15_000] * 3


def test_an_edge_belongs_to_the_interval_above_it():
    heat = Intervals((18, 21.5))
    assert [heat(number) for number in (17.2, 18.0, 30)] == ["below 18", "18…21.5", "above 21.5"]
    assert Intervals((1.0,), centers=(0.25, 3.0))(0.1) == "about 0.25"
