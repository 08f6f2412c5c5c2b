"""Traces of the environment inside a wrapper that adds to its observations."""

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.worlds import House

WAY = (2, 3, 0, 1, 3, 4)  # left, right, up, down, right, sit


@pytest.fixture(scope="module")
def pair():
    return rs.infer(rs.collect(House(), episodes=300, seed=0)).machines


def walking():
    steps = iter(WAY * 2)
    return lambda observation: next(steps)


def plain():
    return rs.collect(House(), episodes=2, policy=walking())


@pytest.mark.parametrize("mode", ["dict", "flatten", "multidiscrete", "discrete"])
def test_inner_traces_are_those_of_the_plain_environment(pair, mode):
    wrapped = gym.wrappers.TimeLimit(rs.AugmentObservation(House(), pair, mode=mode), 20)
    assert rs.collect(wrapped, episodes=2, policy=walking(), inner=True) == plain()
    shown = rs.collect(wrapped, episodes=2, policy=walking())
    assert shown != plain()
    assert [one.actions for one in shown] == [one.actions for one in plain()]


def test_inner_random_traces_are_those_of_the_plain_environment(pair):
    wrapped = rs.AugmentObservation(House(), pair)
    inside = rs.collect(wrapped, episodes=20, seed=0, inner=True)
    assert inside == rs.collect(House(), episodes=20, seed=0)


def test_inner_traces_update_the_machines_of_the_wrapper():
    house = House()
    few = rs.infer(rs.collect(house, episodes=5, seed=0))
    wrapped = rs.AugmentObservation(house, few)
    more = rs.collect(wrapped, episodes=200, seed=1, inner=True)
    whole = rs.infer(few.all_traces() + more).machines
    assert few.update(more).machines.transition == whole.transition
    assert few.update(more).machines.reward == whole.reward


def test_inner_labels_are_those_of_the_wrapper(pair):
    rooms = []

    def labeling_fn(room):
        rooms.append(room)
        return "key" if room == 1 else None

    wrapped = rs.AugmentObservation(House(), pair, labeling_fn=labeling_fn)
    (trace,) = rs.collect(wrapped, episodes=1, policy=walking(), inner=True)
    assert [sorted(label) for label in trace.labels[:3]] == [[], ["key"], []]
    assert set(map(type, rooms)) == {int}  # of the inner observation
    (trace,) = rs.collect(
        wrapped, episodes=1, policy=walking(), inner=True, labeling_fn=lambda room: f"in {room}"
    )
    assert sorted(trace.labels[1]) == ["in 1"]


def test_inner_needs_a_wrapper(pair):
    with pytest.raises(rs.OptionError, match=r"inner=True: no wrapper adds to .* wrap it in"):
        rs.collect(gym.wrappers.TimeLimit(House(), 5), episodes=1, inner=True)
    many = gym.vector.SyncVectorEnv([lambda: rs.AugmentObservation(House(), pair)])
    with pytest.raises(rs.OptionError, match="from one environment, not from a VectorEnv"):
        rs.collect(many, episodes=1, inner=True)
