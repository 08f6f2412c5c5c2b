"""Traces that contradict each other by chance → the most likely machines, from end to end."""

import pickle

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_worlds import Slips
from resolvent.worlds import House


@pytest.fixture(scope="module")
def slipped():
    return rs.collect(Slips(House()), episodes=300, seed=0)


@pytest.fixture(scope="module")
def found(slipped):
    return rs.infer(slipped, noise="auto")


def test_noise_is_found_by_default_and_refused_when_asked(slipped, found):
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(slipped, noise="none")
    by_default = rs.infer(slipped)
    assert by_default == found
    (warning,) = (one for one in found.warnings if one.kind == "noise")
    assert warning.figures["places"] == [*map(str, caught.value.places)]
    assert "noise='none' (--noise none)" in warning.text


def test_the_machines_are_those_of_the_world_without_noise(found):
    true = House().machines()
    for kind in ("transition", "reward"):
        machine = found.machines[kind]
        assert machine.states == true[kind].states
        for history in ([], [{"key"}], [{"key"}, {"toilet"}]):
            state, told = machine.run(history), true[kind].run(history)
            for _, seen, done, output in true[kind].answers():
                if true[kind].output(told, seen, done) == output:
                    assert machine.output(state, seen, done) in (output, rs.UNSEEN)
    assert found.is_noisy
    assert not found.as_dict()["explains_all_traces"]


def test_a_state_answers_with_a_distribution(found):
    machine = found.machines.transition
    has_key = machine.run([{"key"}])
    told = machine.distribution(has_key, "corridor", "up")
    assert (
        max(told, key=told.__getitem__) == "cyanroom" == machine.output(has_key, "corridor", "up")
    )
    assert told["cyanroom"] == pytest.approx(0.92, abs=0.04)  # one in five slips is up, too
    assert sum(told.values()) == pytest.approx(1)
    assert found.as_dict()["noise"]["transition"] == pytest.approx(machine.noise)
    assert 0.03 < machine.noise < 0.08


def test_other_sizes_are_less_likely_and_it_says_how_much(found):
    odds = found.odds("transition")
    assert odds[2] == 1.0
    assert all(odd < 1e-3 for states, odd in odds.items() if states != 2)
    text = str(found)
    assert "of the answers of the transition machine; " in text
    assert "but for noise, all traces are explained" in text
    assert "prefix-tree" not in text


def test_clean_traces_give_what_they_give_without_the_option():
    clean = rs.collect(House(), episodes=200, seed=0)
    plain, asked = rs.infer(clean, noise="none"), rs.infer(clean)
    assert asked.machines.replacing(provenance=None) == plain.machines.replacing(provenance=None)
    assert not asked.is_noisy
    assert asked.odds("transition") == {}
    assert asked.as_dict()["noise"] == {"transition": 0.0, "reward": 0.0}


def test_order_and_copies(found, slipped, tmp_path):
    shuffled = slipped.take(np.random.default_rng(0).permutation(len(slipped)))
    again = rs.infer(shuffled, noise="auto")
    assert again.machines.replacing(provenance=None) == found.machines.replacing(provenance=None)
    found.machines.save(tmp_path / "house.json")
    assert rs.load(tmp_path / "house.json") == found.machines
    back = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert back == found
    assert back.odds("reward") == found.odds("reward")


def test_more_traces_and_fresh_ones(found):
    more = rs.collect(Slips(House()), episodes=100, seed=5)
    updated = found.update(more)
    assert updated.is_noisy
    assert updated.traces == 400
    assert updated.machines.transition.states == 2
    score = found.machines.score(more)["transition"]
    assert score.wrong / (score.right + score.wrong) == pytest.approx(
        found.machines.transition.noise, abs=0.02
    )
    assert score.log_loss < 0.5


def test_a_lake_that_slips_needs_no_memory():
    lake = rs.collect(gym.make("FrozenLake-v1"), episodes=500, seed=0, labels="observation")
    result = rs.infer(lake, labels="observation", noise="auto")
    assert [machine.states for machine in result.machines.values()] == [1, 1]
    assert result.machines.transition.noise > 0.4


def test_agents_see_the_states_and_plans_say_what_to_expect(found, slipped):
    wrapped = rs.AugmentObservation(Slips(House(), 0.0), found.machines)
    wrapped.reset()
    assert wrapped.step(2)[0]["transition_state"] == found.machines.transition.run([{"key"}])
    plan = rs.plan(found, slipped)
    runs = plan.run(Slips(House()), episodes=200, seed=3)
    assert runs.discounted_returns.mean() == pytest.approx(plan.value, abs=0.02)
    assert plan.value == pytest.approx(0.746, abs=0.01)  # 0.7738 without slips


def test_a_folder(slipped, tmp_path):
    slipped[:150].save(tmp_path / "a.parquet")
    slipped[150:].save(tmp_path / "b.parquet")
    scanned = rs.infer(rs.scan_traces(tmp_path), noise="auto").machines
    assert [machine.states for machine in scanned.values()] == [2, 2]


@pytest.mark.parametrize("noise", ["some", None, 0.1])
def test_a_word_that_means_nothing(slipped, noise):
    with pytest.raises(rs.OptionError, match=r"^noise=.*: choose 'auto', 'none', or say"):
        rs.infer(slipped, noise=noise)
