"""Outputs that were observed are right on fresh traces, once there were enough traces."""

import pytest

import resolvent as rs
from worlds import random_world

WORLDS = [(seed, size) for seed in range(5) for size in (9, 11, 13, 15)]


@pytest.mark.parametrize(("seed", "size"), WORLDS)
def test_no_observed_output_is_wrong_on_fresh_traces(seed, size, record_property):
    """An observed output is that of the true world, if the machines are those of the world.

    Generalized outputs may be wrong. How often it is, is recorded: `pytest --junit-xml`
    writes it down.
    """
    world = random_world(seed, size=size, labels=4, tm_states=4)
    result = rs.infer(world.rollouts(60 * size, seed=seed))
    assert (result.transition.states, result.reward.states) == (4, world.terminal)
    fresh = world.rollouts(200, seed=seed + 1_000_000)
    score = result.machines.score(fresh)
    for kind, one in score.items():
        for figure in ("right", "assumed_right", "assumed_wrong", "unseen"):
            record_property(f"{kind} {figure}", getattr(one, figure))
        assert one.wrong == 0, one.first_mismatch
        assert one.steps == fresh.steps
        # There is something to be right about: nearly all is observed.
        assert one.right > 0.98 * fresh.steps


@pytest.mark.parametrize(("seed", "size"), WORLDS[:4])
def test_few_traces_observe_less_and_generalize_more(seed, size):
    world = random_world(seed, size=size, labels=4, tm_states=4)
    fresh = world.rollouts(200, seed=seed + 1_000_000)
    many = world.rollouts(60 * size, seed=seed)
    few, more = (rs.infer(some).machines.score(fresh) for some in (many[:100], many))
    for kind in few:
        assert few[kind].right < more[kind].right
        assert few[kind].unseen + few[kind].assumed_right + few[kind].all_wrong > 0


def partners(machine, table):
    """The world's state for each of the machine's, by reading the same labels in both."""
    partner, queue = {0: 0}, [0]
    for state in queue:
        for label, target in enumerate(table[partner[state]]):
            found = machine.step(state, {str(label)})
            if found is not rs.UNSEEN:
                if found not in partner:
                    queue.append(found)
                assert partner.setdefault(found, target) == target
    return partner


@pytest.mark.parametrize(("seed", "size"), WORLDS[::3])
def test_every_observed_output_is_that_of_the_world(seed, size):
    """All states and queries, against a step of the world from the state that they stand for."""
    world = random_world(seed, size=size, labels=4, tm_states=4)
    pair = rs.infer(world.rollouts(60 * size, seed=seed)).machines
    q_of = partners(pair.transition, world.tm_transitions)
    u_of = partners(pair.reward, world.rm_transitions)
    looked = 0
    for state in range(pair.transition.states):
        for seen in pair.transition.observations:
            for action in pair.transition.actions:
                told = pair.transition.output(state, seen, action, generalized=False)
                if told is not rs.UNSEEN:
                    assert told == world.move(seen, q_of[state], action)
                    looked += 1
    for state in range(pair.reward.states):
        for seen, q in pair.reward.observations:
            for action in pair.reward.actions:
                told = pair.reward.output(state, (seen, q), action, generalized=False)
                if told is not rs.UNSEEN:
                    assert told == world.step(seen, q_of[q], u_of[state], action)[3]
                    looked += 1
    assert looked > 1000
