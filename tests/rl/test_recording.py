"""Traces of the world inside a wrapper that adds to what it shows."""

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
def test_inside_a_wrapper_traces_are_those_of_the_plain_world(pair, mode):
    wrapped = gym.wrappers.TimeLimit(rs.AugmentObservation(House(), pair, mode=mode), 20)
    assert rs.collect(wrapped, episodes=2, policy=walking(), inner=True) == plain()
    shown = rs.collect(wrapped, episodes=2, policy=walking())
    assert shown != plain()
    assert [one.actions for one in shown] == [one.actions for one in plain()]


def test_random_steps_inside_a_wrapper_are_those_of_the_plain_world(pair):
    wrapped = rs.AugmentObservation(House(), pair)
    inside = rs.collect(wrapped, episodes=20, seed=0, inner=True)
    assert inside == rs.collect(House(), episodes=20, seed=0)


def test_such_traces_update_the_machines_that_were_shown():
    house = House()
    few = rs.infer(rs.collect(house, episodes=5, seed=0))
    wrapped = rs.AugmentObservation(house, few)
    more = rs.collect(wrapped, episodes=200, seed=1, inner=True)
    whole = rs.infer(few.all_traces() + more).machines
    assert few.update(more).machines.transition == whole.transition
    assert few.update(more).machines.reward == whole.reward


def test_labels_are_found_as_the_wrapper_finds_them(pair):
    rooms = []

    def label_of(room):
        rooms.append(room)
        return "key" if room == 1 else None

    wrapped = rs.AugmentObservation(House(), pair, label_of=label_of)
    (trace,) = rs.collect(wrapped, episodes=1, policy=walking(), inner=True)
    assert [sorted(label) for label in trace.labels[:3]] == [[], ["key"], []]
    assert set(map(type, rooms)) == {int}  # of the room, not of what is shown
    (trace,) = rs.collect(
        wrapped, episodes=1, policy=walking(), inner=True, label_of=lambda room: f"in {room}"
    )
    assert sorted(trace.labels[1]) == ["in 1"]


def test_a_world_with_nothing_added_has_no_inside(pair):
    with pytest.raises(rs.OptionError, match=r"inner=True: nothing here shows more .* wrap it in"):
        rs.collect(gym.wrappers.TimeLimit(House(), 5), episodes=1, inner=True)
    many = gym.vector.SyncVectorEnv([lambda: rs.AugmentObservation(House(), pair)])
    with pytest.raises(rs.OptionError, match="from one environment, not from a VectorEnv"):
        rs.collect(many, episodes=1, inner=True)
