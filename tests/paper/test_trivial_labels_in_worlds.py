"""Labels judged by the traces against labels known: over worlds with and without decoys."""

import pytest

import resolvent as rs
from worlds import random_world, with_decoys

WORLDS = [
    (9, 3, 3, 3),
    (9, 5, 4, 3),
    (13, 6, 7, 3),
    (17, 8, 6, 4),
    (25, 5, 7, 3),
    (25, 8, 10, 4),
]  # size, labels, TM states, RM states with the terminal one


def needed(world, kind):
    """The labels that change some state of a machine, by name; the end is never read."""
    table = world.tm_transitions if kind == "transition" else world.rm_transitions[:-1]
    return {
        str(label)
        for label in range(world.labels)
        if any(row[label] not in (state, len(table)) for state, row in enumerate(table))
    }


def assert_nothing_needed_was_dropped(world, result):
    for kind, label_tests in result.trivial.items():
        taken = {name for one in label_tests if one.triviality == "trivial" for name in one.label}
        assert not taken & needed(world, kind)


@pytest.mark.parametrize(("size", "labels", "tm", "rm"), WORLDS[:2])
def test_a_small_world_with_decoys(size, labels, tm, rm):
    check_with_decoys(80, size, labels, tm, rm)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [81, 82, 83])
@pytest.mark.parametrize(("size", "labels", "tm", "rm"), WORLDS)
def test_worlds_with_decoys(seed, size, labels, tm, rm):
    check_with_decoys(seed, size, labels, tm, rm)


def check_with_decoys(seed, size, labels, tm, rm):
    world = with_decoys(random_world(seed, size, labels, tm, rm_states=rm), 2, seed)
    traces = world.rollouts(1000, seed, 400)
    decoys = [str(labels), str(labels + 1)]
    judged, named = rs.infer(traces), rs.infer(traces, options=rs.InferenceOptions(trivial=decoys))
    assert_nothing_needed_was_dropped(world, judged)
    for kind in ("transition", "reward"):
        assert getattr(judged, kind).states <= getattr(named, kind).states
    assert judged.machines.score(traces).perfect


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("size", "labels", "tm", "rm"), WORLDS)
def test_worlds_without_decoys_come_out_the_same(seed, size, labels, tm, rm):
    world = random_world(seed, size, labels, tm, rm_states=rm)
    traces = world.rollouts(1500, seed)
    judged, kept = rs.infer(traces), rs.infer(traces, options=rs.InferenceOptions(trivial=[]))
    assert_nothing_needed_was_dropped(world, judged)
    assert judged.transition.states <= kept.transition.states
    if (kept.transition.states, kept.reward.states) == (tm, rm - 1):
        assert judged.machines.transition == kept.machines.transition
        assert judged.machines.reward == kept.machines.reward
