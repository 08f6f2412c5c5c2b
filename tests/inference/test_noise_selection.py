"""What is exact comes before noise, and noise where nothing exact is worth believing."""

from random import Random

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_worlds import disturbed, same, slipped
from resolvent.evaluation.diagnosis.inference_warnings import rare_transitions
from resolvent.inference.context import InferenceContext
from resolvent.inference.noise_selection import predicts_held_out
from resolvent.inference.options import InferenceOptions
from resolvent.inference.refinement import refine
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces.source import InMemorySource
from resolvent.worlds import House, TMaze


def kinds(result):
    return {warning.kind for warning in result.warnings}


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=200, seed=0)


@pytest.fixture(scope="module")
def flickering(house):
    return disturbed(house, 0.05, Random(0))


def random_world(seed, episodes):
    return rs.collect(
        gym.make("resolvent/RandomWorld-v0", world_seed=seed), episodes=episodes, seed=seed
    )


@pytest.mark.parametrize("name", ["House", "HouseInterference", "PhaseGrid3", "TwoKeys"])
@pytest.mark.parametrize("episodes", [5, 30, 120])
def test_clean_worlds_give_the_same_machines(name, episodes):
    traces = rs.collect(gym.make(f"resolvent/{name}-v0"), episodes=episodes, seed=1)
    assert same(rs.infer(traces), rs.infer(traces, noise="none"))


@pytest.mark.parametrize("seed", [0, 1, 6, 7])
def test_few_clean_traces_make_large_machines_but_no_noise(seed):
    traces = random_world(seed, 50)
    exact = rs.infer(traces, strategy="edsm", noise="none")
    assert exact.machines.transition.states > 7
    assert same(rs.infer(traces, strategy="edsm"), exact)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_noise_that_contradicts_nothing_is_no_reason_for_states(seed):
    traces = slipped(random_world(seed, 25), 0.05, seed)
    exact = rs.infer(traces, strategy="edsm", noise="none")
    assert exact.machines.transition.states > 15
    result = rs.infer(traces, strategy="edsm")
    assert result.is_noisy
    assert result.machines.transition.states <= 4
    assert 0.02 < result.noise["transition"] < 0.07
    (warning,) = (one for one in result.warnings if one.kind == "noise")
    assert "though no two steps contradict each other" in warning.text


def test_labels_read_at_another_time_are_no_noise():
    traces = rs.collect(TMaze(4), episodes=100, seed=0, max_steps=500)
    with pytest.raises(rs.ContradictoryTraces, match="--timing current-with-initial"):
        rs.infer(traces)


def test_last_digits_of_rewards_are_no_noise():
    pays = [0.5, 0.5 + 1e-9, 0.5]
    traces = rs.TraceSet(rs.Trace([0, 0], [None] * 2, ["go"], [pay]) for pay in pays)
    with pytest.raises(rs.ContradictoryTraces, match="--reward-digits"):
        rs.infer(traces)


def test_labels_called_trivial_are_no_noise():
    days = [
        rs.Trace([0, 0, 0], [None, label, None], ["go"] * 2, [0, pay])
        for label, pay in (("key", 1), (None, 0))
    ]
    with pytest.raises(rs.ContradictoryTraces, match="--keep-trivial"):
        rs.infer(rs.TraceSet(days), options=rs.InferenceOptions(trivial=["key"]))


def test_a_label_that_is_missing_is_told_from_chance(house):
    blind = rs.collect(House(), episodes=200, seed=0, label_of=lambda room: set())
    (missing,) = (one for one in rs.infer(blind).warnings if one.kind == "noise")
    assert "something to remember that no label shows" in missing.text
    random = slipped(house, 0.1)
    (chance,) = (one for one in rs.infer(random).warnings if one.kind == "noise")
    assert "remember" not in chance.text


def test_only_what_is_noisy_gets_noise(house):
    random = np.random.default_rng(0)
    flips = np.where(random.random(house.steps) < 0.1, 1 - house.reward_codes, house.reward_codes)
    traces = rs.TraceSet.from_columns(
        (house.observations, house.observation_codes),
        (house.labels, house.label_codes),
        (house.actions, house.action_codes),
        (house.rewards, flips.astype(np.int32)),
        offsets=house.offsets,
        terminated=house.terminated,
        truncated=house.truncated,
    )
    for noise in ("auto", rs.Noise(rewards="flipped")):
        result = rs.infer(traces, noise=noise)
        exact = rs.infer(traces, noise="none", outputs=["observation"])
        assert result.machines.transition == exact.machines.transition
        assert result.machines.reward.states == 2
        assert result.noise["transition"] == 0
        assert result.noise["reward"] == pytest.approx(0.1, abs=0.02)


def test_what_is_not_stated_is_exact(flickering):
    for noise in (rs.Noise(), rs.Noise(rewards="flipped"), rs.Noise(broken=0.02)):
        with pytest.raises(rs.ContradictoryTraces) as caught:
            rs.infer(flickering, noise=noise)
        assert caught.value.output == "observation"


def test_stated_noise_that_is_not_there_is_told(house):
    stated = rs.Noise(outcomes=True)
    clean = rs.infer(house, noise=stated)
    assert "no-noise" in kinds(clean)
    assert [machine.states for machine in clean.machines.values()] == [2, 2]
    noisy = rs.infer(slipped(house, 0.05), noise=stated)
    assert "no-noise" not in kinds(noisy)
    assert noisy.machines.transition.states == 2
    assert noisy.noise["transition"] > 0.02


def test_an_update_may_bring_noise(house, flickering):
    refusing, allowing = rs.infer(house, noise="none"), rs.infer(house)
    with pytest.raises(rs.ContradictoryTraces):
        refusing.update(flickering)
    updated = allowing.update(flickering)
    assert updated.is_noisy
    assert updated.traces == 400
    assert same(updated, rs.infer(house + flickering))


def test_events_come_before_noise():
    blank = rs.collect(House(), episodes=200, seed=0, label_of=lambda room: set())
    found = rs.infer(blank, labels="auto")
    assert not found.is_noisy
    assert [machine.states for machine in found.machines.values()] == [2, 2]
    assert found.options.noise == "auto"


def test_files_say_what_was_meant(house, tmp_path):
    rs.infer(house).machines.save(tmp_path / "m.json")
    made = rs.load(tmp_path / "m.json").provenance
    assert made.options["noise"] == "auto"
    stored = InferenceOptions(noise="none").as_dict()
    assert stored.pop("noise") == "none"
    assert InferenceOptions.from_dict(stored).noise == "none"  # as before there was a choice
    stated = rs.Noise(outcomes=True, broken=0.1)
    assert InferenceOptions.from_dict(InferenceOptions(noise=stated).as_dict()).noise == stated


def test_labels_that_tell_nothing_are_named():
    random = Random(0)
    traces = rs.TraceSet(
        rs.Trace(
            [0] * 21,
            [random.choice(["a", "b", "c"]) for _ in range(21)],
            ["go"] * 20,
            [int(random.random() < 0.2) for _ in range(20)],
        )
        for _ in range(60)
    )
    result = rs.infer(traces)
    assert [machine.states for machine in result.machines.values()] == [1, 1]
    assert "labels-tell-nothing" in kinds(result)


def hidden_passenger(episodes, label_of):
    """Taxi with the passenger hidden, who waits at any depot until picked up."""
    env = gym.wrappers.TransformObservation(
        gym.make("Taxi-v4"), lambda state: state // 20 * 4 + state % 4, gym.spaces.Discrete(100)
    )
    return rs.collect(env, episodes=episodes, seed=0, label_of=label_of)


@pytest.mark.slow
def test_what_is_hidden_at_the_start_breaks_no_traces():
    traces = hidden_passenger(120, lambda seen, action, now: now // 4)
    result = rs.infer(traces)
    assert not result.broken
    assert result.machines.reward.states == 1
    (said,) = (warning for warning in result.warnings if warning.kind == "noise")
    assert "something to remember that no label shows" in said.text
    assert result.noise_text()[0].startswith("memory of these labels tells nothing; but")


@pytest.mark.parametrize("is_hidden", [True, False])
def test_machines_that_know_traces_by_heart_do_not_foretell_others(house, is_hidden):
    traces = house
    if is_hidden:
        pick = {4: "pick", 5: "drop"}
        traces = hidden_passenger(30, lambda seen, action, now: pick.get(action))
    context = InferenceContext(InferenceOptions(noise="none"), Preprocessor())
    corpus = context.corpus_of(InMemorySource([traces]))
    assert not any(rare_transitions(refine(context, corpus).standing.shown))
    assert predicts_held_out(context, corpus, 0.05) != is_hidden
