"""What a learner takes from a model, on a model small enough to work out by hand."""

import numpy as np
import pytest

from resolvent.planning.model import Model
from resolvent.rl.potential import values_of_states
from resolvent.traces import Vocabulary


def model(observation, states, following, reward, ends):
    """All steps are known but those that lead nowhere and do not end."""
    following, ends = np.array(following, np.int32), np.array(ends, bool)
    known = (following >= 0) | ends
    return Model(
        observations=Vocabulary(["here", "there", "far"]),
        actions=Vocabulary(["go", "stay"]),
        observation=np.array(observation, np.int32),
        states={
            "transition": np.array([q for q, _ in states], np.int32),
            "reward": np.array([u for _, u in states], np.int32),
        },
        following=following,
        reward=np.where(known, np.array(reward, float), np.nan),
        ends=ends,
        known=known,
        sometimes_ends=np.zeros(known.shape, bool),
        starts=np.array([0], np.int32),
        start_counts=np.array([1]),
        reward_range=(0.0, 1.0),
        labels=Vocabulary([frozenset()]),
        read=np.where(following >= 0, 0, -1).astype(np.int32),
        read_first=np.zeros(1, np.int32),
    )


def test_moves_between_states_take_the_time_they_take():
    """Two steps within (0, 0), then one into (1, 0), from which the next step pays 8 and ends."""
    walk = model(
        observation=[0, 1, 2, 0],
        states=[(0, 0), (0, 0), (0, 0), (1, 0)],
        following=[[1, 0], [2, 1], [3, 2], [-1, 3]],
        reward=[[0, 0], [0, 0], [0, 0], [8, 0]],
        ends=[[0, 0], [0, 0], [0, 0], [1, 0]],
    )
    # In (1, 0): 8 at once. In (0, 0): it is 1, 2 or 3 steps to the promise of 8.
    assert values_of_states(walk, (2, 1), 0.5) == pytest.approx(np.array([[(4 + 2 + 1) / 3], [8]]))


def test_what_is_not_known_promises_nothing():
    lost = model(
        observation=[0, 1],
        states=[(0, 0), (0, 1)],
        following=[[1, -1], [-1, -1]],
        reward=[[3, 100], [100, 100]],
        ends=[[0, 0], [0, 0]],
    )
    assert values_of_states(lost, (1, 3), 0.5) == pytest.approx(np.array([[3.0, 0.0, 0.0]]))


def test_where_all_ways_cost_the_promise_is_the_least_cost():
    costly = model(
        observation=[0, 1],
        states=[(0, 0), (0, 1)],
        following=[[1, 1], [-1, -1]],
        reward=[[-1, -4], [-2, -6]],
        ends=[[0, 0], [1, 1]],
    )
    assert values_of_states(costly, (1, 2), 0.5) == pytest.approx(np.array([[-1 - 0.5 * 2, -2.0]]))
