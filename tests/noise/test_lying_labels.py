"""Traces whose labels lie → the machines of the world, and where labels are left alone."""

import pickle

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_labels import Forgets, lying, with_labels
from resolvent.machines import is_isomorphic
from resolvent.worlds import House, RandomWorld


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=300, seed=0)


@pytest.fixture(scope="module")
def found(house):
    return rs.infer(lying(house, missed=0.05), noise="auto")


def states(result):
    return [machine.states for machine in result.machines.values()]


def are_those_of(machines, true):
    """Whether two sets of machines answer alike along all labels that both know."""
    return all(is_isomorphic(machines[kind], true[kind]) for kind in ("transition", "reward"))


def test_the_machines_are_those_of_true_labels(found, house):
    assert are_those_of(found.machines, rs.infer(house).machines)
    assert not found.is_noisy
    assert found.senses.labelling.reads == "observation"
    assert found.label_noise.missed == pytest.approx(0.05, abs=0.02)
    assert found.noise["missed labels"] == found.label_noise.missed
    assert (found.label_noise.false, found.label_noise.swapped) == (0, 0)
    assert "missed, 0% false, 0% swapped; read off the observation instead" in str(found)


def test_it_is_refused_where_noise_is(house):
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(lying(house, missed=0.05), noise="none")


def test_true_labels_are_left_alone(house):
    result = rs.infer(house, noise="auto")
    assert result.label_noise is None
    assert result.senses.are_plain
    without = rs.infer(house, noise="none")
    assert result.machines.replacing(provenance=None) == without.machines.replacing(provenance=None)


def test_the_machines_keep_it(found, house, tmp_path):
    found.machines.save(tmp_path / "house.json")
    assert rs.load(tmp_path / "house.json") == found.machines
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301
    told = lying(house, missed=0.5, seed=1)
    once = found.senses.on(told)
    assert found.senses.on(once) == once
    score = found.machines.score(told)["transition"]  # labels that lie even more do no harm
    assert score.wrong == 0


def test_more_traces_may_lie_as_well(found):
    more = lying(rs.collect(House(), episodes=50, seed=9), missed=0.2, seed=9)
    updated = found.update(more)
    assert states(updated) == [2, 2]
    assert not updated.is_noisy
    assert updated.label_noise == found.label_noise


def test_a_live_world_that_forgets_its_labels(found):
    """The state moves where the key is seen, though the world never tells."""
    env = rs.AugmentObservation(Forgets(House(), 1.0), found.machines)
    env.reset(seed=0)
    moved = [env.step(action)[0]["transition_state"] for action in (2, 2, 2)]
    assert moved[0] == found.machines.transition.run([{"key"}]) != 0


def test_the_order_of_traces_makes_no_difference(found, house):
    told = lying(house, missed=0.05)
    shuffled = told.take(np.random.default_rng(0).permutation(len(told)))
    again = rs.infer(shuffled, noise="auto").machines.replacing(provenance=None)
    assert again == found.machines.replacing(provenance=None)


def test_a_folder(house, found, tmp_path):
    told = lying(house, missed=0.05)
    told[:150].save(tmp_path / "a.parquet")
    told[150:].save(tmp_path / "b.parquet")
    scanned = rs.infer(rs.scan_traces(tmp_path), noise="auto")
    assert states(scanned) == [2, 2]
    assert scanned.senses == found.senses
    assert scanned.label_noise == found.label_noise


@pytest.mark.parametrize("stated", [True, 0.05])
def test_noise_that_is_stated(house, stated):
    told = lying(house, missed=0.05)
    result = rs.infer(told, noise=rs.Noise(labels=stated))
    assert states(result) == [2, 2]
    assert result.label_noise is not None
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(told, noise=rs.Noise(rewards="flipped"))


def small_world(seed):
    return RandomWorld(world_seed=seed, size=9, labels=3, tm_states=3)


@pytest.mark.parametrize("lies", [{"false": 0.02}, {"swapped": 0.05}, {"missed": 0.1}], ids=str)
def test_random_worlds(lies):
    world = small_world(2)
    clean = rs.collect(world, episodes=600, seed=2)
    result = rs.infer(lying(clean, **lies), noise="auto")
    assert are_those_of(result.machines, rs.infer(clean).machines)


def test_labels_are_true_where_observations_lie():
    clean = rs.collect(small_world(2), episodes=400, seed=2)
    random = np.random.default_rng(0)
    drawn = random.integers(0, len(clean.observations), len(clean.observation_codes))
    seen = np.where(random.random(len(drawn)) < 0.05, drawn, clean.observation_codes)
    replaced = rs.TraceSet.from_columns(
        (clean.observations, seen.astype(np.int32)),
        (clean.labels, clean.label_codes),
        (clean.actions, clean.action_codes),
        (clean.rewards, clean.reward_codes),
        offsets=clean.offsets,
        terminated=clean.terminated,
        truncated=clean.truncated,
    )
    result = rs.infer(replaced, noise="auto")
    assert result.label_noise is None
    assert result.senses.are_plain
    assert result.machines.transition.states == 3


def test_labels_that_depend_on_what_cannot_be_seen_are_true():
    """A cookie is told where it is eaten, and there is nothing to be seen of it afterwards."""
    walks = rs.collect(gym.make("resolvent/Cookie-v0"), episodes=30, seed=0)
    result = rs.infer(walks, noise="auto")
    assert result.label_noise is None
    assert result.senses.are_plain


def test_labels_drawn_at_random_tell_nothing():
    walks = rs.collect(small_world(1), episodes=200, seed=1)
    drawn = np.random.default_rng(0).integers(0, len(walks.labels), len(walks.label_codes))
    result = rs.infer(with_labels(walks, drawn), noise="auto")
    assert states(result) == [1, 1]
    assert "nothing" in str(result)
