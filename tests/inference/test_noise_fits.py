"""Traces with label noise → the machines of the world; and labels that are kept."""

import pickle

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_labels import Forgets, with_label_noise, with_labels
from resolvent.machines import is_isomorphic
from resolvent.traces.trace_set import with_column
from resolvent.worlds import House, RandomWorld


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=300, seed=0)


@pytest.fixture(scope="module")
def denoised(house):
    return rs.infer(with_label_noise(house, missed=0.05), noise="auto")


def states(result):
    return [machine.states for machine in result.machines.values()]


def are_those_of(machines, true):
    """Whether two pairs of machines are isomorphic."""
    return all(is_isomorphic(machines[kind], true[kind]) for kind in ("transition", "reward"))


def test_machines_are_those_of_true_labels(denoised, house):
    assert are_those_of(denoised.machines, rs.infer(house).machines)
    assert not denoised.is_noisy
    assert denoised.preprocessor.labeling.reads == "observation"
    assert denoised.label_noise.missed == pytest.approx(0.05, abs=0.02)
    assert denoised.noise["missed labels"] == denoised.label_noise.missed
    assert (denoised.label_noise.false, denoised.label_noise.swapped) == (0, 0)
    assert "missed, 0% false, 0% swapped; computed from the observation instead" in str(denoised)


def test_label_noise_is_refused_with_noise_none(house):
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(with_label_noise(house, missed=0.05), noise="none")


def test_exact_labels_are_kept(house):
    result = rs.infer(house, noise="auto")
    assert result.label_noise is None
    assert result.preprocessor.is_identity
    without = rs.infer(house, noise="none")
    assert result.machines.replacing(provenance=None) == without.machines.replacing(provenance=None)


def test_machines_store_the_labeling_function(denoised, house, tmp_path):
    denoised.machines.save(tmp_path / "house.json")
    assert rs.load(tmp_path / "house.json") == denoised.machines
    assert pickle.loads(pickle.dumps(denoised)) == denoised  # noqa: S301
    recorded = with_label_noise(house, missed=0.5, seed=1)
    once = denoised.preprocessor.transform(recorded)
    assert denoised.preprocessor.transform(once) == once
    score = denoised.machines.score(recorded)["transition"]  # more label noise does no harm
    assert score.wrong == 0


def test_an_update_keeps_the_labeling_function(denoised):
    more = with_label_noise(rs.collect(House(), episodes=50, seed=9), missed=0.2, seed=9)
    updated = denoised.update(more)
    assert states(updated) == [2, 2]
    assert not updated.is_noisy
    assert updated.label_noise == denoised.label_noise


def test_wrappers_need_no_labels_of_the_environment(denoised):
    """The state changes when the key is observed, although the environment gives no label."""
    env = rs.AugmentObservation(Forgets(House(), 1.0), denoised.machines)
    env.reset(seed=0)
    moved = [env.step(action)[0]["transition_state"] for action in (2, 2, 2)]
    assert moved[0] == denoised.machines.transition.run([{"key"}]) != 0


def test_the_order_of_traces_makes_no_difference(denoised, house):
    recorded = with_label_noise(house, missed=0.05)
    shuffled = recorded.take(np.random.default_rng(0).permutation(len(recorded)))
    again = rs.infer(shuffled, noise="auto").machines.replacing(provenance=None)
    assert again == denoised.machines.replacing(provenance=None)


def test_a_folder(house, denoised, tmp_path):
    recorded = with_label_noise(house, missed=0.05)
    recorded[:150].save(tmp_path / "a.parquet")
    recorded[150:].save(tmp_path / "b.parquet")
    scanned = rs.infer(rs.scan_traces(tmp_path), noise="auto")
    assert states(scanned) == [2, 2]
    assert scanned.preprocessor == denoised.preprocessor
    assert scanned.label_noise == denoised.label_noise


@pytest.mark.parametrize("stated", [True, 0.05])
def test_stated_label_noise_is_denoised(house, stated):
    recorded = with_label_noise(house, missed=0.05)
    result = rs.infer(recorded, noise=rs.Noise(labels=stated))
    assert states(result) == [2, 2]
    assert result.label_noise is not None
    with pytest.raises(rs.ContradictoryTraces):
        rs.infer(recorded, noise=rs.Noise(rewards="flipped"))


def small_world(seed):
    return RandomWorld(world_seed=seed, size=9, labels=3, tm_states=3)


@pytest.mark.parametrize("rates", [{"false": 0.02}, {"swapped": 0.05}, {"missed": 0.1}], ids=str)
def test_random_worlds(rates):
    world = small_world(2)
    clean = rs.collect(world, episodes=600, seed=2)
    result = rs.infer(with_label_noise(clean, **rates), noise="auto")
    assert are_those_of(result.machines, rs.infer(clean).machines)


def test_labels_are_kept_if_observations_are_noisy():
    clean = rs.collect(small_world(2), episodes=400, seed=2)
    random = np.random.default_rng(0)
    drawn = random.integers(0, len(clean.observations), len(clean.observation_codes))
    seen = np.where(random.random(len(drawn)) < 0.05, drawn, clean.observation_codes)
    replaced = with_column(clean, "observation", clean.observations, seen.astype(np.int32))
    result = rs.infer(replaced, noise="auto")
    assert result.label_noise is None
    assert result.preprocessor.is_identity
    assert result.machines.transition.states == 3


def test_labels_that_depend_on_hidden_state_are_kept():
    """An eaten cookie has a label, and no later observation shows it."""
    walks = rs.collect(gym.make("resolvent/Cookie-v0"), episodes=30, seed=0)
    result = rs.infer(walks, noise="auto")
    assert result.label_noise is None
    assert result.preprocessor.is_identity


def test_labels_drawn_at_random_are_ignored():
    walks = rs.collect(small_world(1), episodes=200, seed=1)
    drawn = np.random.default_rng(0).integers(0, len(walks.labels), len(walks.label_codes))
    result = rs.infer(with_labels(walks, drawn), noise="auto")
    assert states(result) == [1, 1]
    assert "not improve predictions" in str(result)
