"""What is said of noise is true: of what was stated in vain, of inferred states, after updates."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from broken_traces import broken, shuffled
from noisy_labels import lying
from noisy_worlds import Slips, exact_pay, gaussian, paying, two_moods
from resolvent.worlds import House


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=300, seed=0)


@pytest.fixture(scope="module")
def slippery():
    env = Slips(gym.make("resolvent/House-v0"))
    return rs.collect(env, episodes=300, seed=0)


def said(result, kind):
    return [one.text for one in result.warnings if one.kind == kind]


@pytest.mark.parametrize(
    ("noise", "what"),
    [
        (rs.Noise(labels=0.02), "Labels were said to lie"),
        (rs.Noise(labels=True), "Labels were said to lie"),
        (rs.Noise(rewards="flipped"), "Rewards were said to be flipped"),
        (rs.Noise(starts=True), "Starts were said to be hidden"),
    ],
)
def test_noise_that_the_traces_exclude_is_named(house, noise, what):
    result = rs.infer(house, noise=noise)
    (text,) = said(result, "no-noise")
    assert text.startswith(what)
    assert result.machines.transition == rs.infer(house).machines.transition


@pytest.mark.parametrize("seen", [True, False])
def test_hidden_starts_are_found_and_named_whatever_shows_them(seen):
    result = rs.infer(two_moods(300, seen))
    assert len(result.machines.doubt.starts) == 2
    assert max(one.states for one in result.machines.values()) == 2
    assert all(one.noise == 0 for one in result.machines.values())
    assert any("hidden starts" in line for line in result.noise_text())
    (text,) = said(result, "noise")
    assert "hidden starts" in text
    assert "chance" not in text


def test_an_update_gives_the_reason_that_was_given(slippery):
    before = rs.infer(slippery[:250])
    after = before.update(slippery[250:])
    assert said(after, "noise") == said(before, "noise")
    assert "no two steps contradict" not in str(after)


def test_an_update_keeps_the_numbers_of_broken_traces(house):
    damaged = broken(house, [7, 91, 260], kinds=(shuffled,))
    before = rs.infer(damaged[:250])
    assert before.broken == (7, 91)
    after = before.update(damaged[250:])
    assert after.broken == (7, 91, 260)
    assert after.traces == 300
    assert len(said(after, "broken-traces")) == 2


def test_small_noise_does_not_read_as_none(house):
    codes = house.observation_codes.copy()
    codes[5] = (codes[5] + 1) % len(house.observations)
    noisy = rs.TraceSet.from_columns(
        (house.observations, codes),
        (house.labels, house.label_codes),
        (house.actions, house.action_codes),
        (house.rewards, house.reward_codes),
        offsets=house.offsets,
        terminated=house.terminated,
        truncated=house.truncated,
    )
    lines = rs.infer(noisy, noise=rs.Noise(outcomes=True)).noise_text()
    assert any("% of the answers" in line for line in lines)
    assert not any(line.startswith("0.0%") for line in lines)


def test_named_trivial_labels_do_not_forbid_noise(slippery):
    assert rs.infer(slippery, options=rs.InferenceOptions(trivial=["toilet"])).is_noisy


def test_rounded_rewards_are_not_called_noise():
    pays = (0.3, 0.3 + 1e-9, 0.3)
    traces = rs.TraceSet(rs.Trace([0, 0], [None, None], ["go"], [pay]) for pay in pays * 20)
    with pytest.raises(rs.ContradictoryTraces, match="reward_digits") as refused:
        rs.infer(traces)
    assert refused.value.exact_remedy
    assert "noise='auto'" not in str(refused.value)


def test_a_search_that_ran_out_of_time_says_so(slippery):
    cut = rs.infer(slippery, time_limit=1e-6)
    (text,) = said(cut, "time-ran-out")
    assert "transition" in text
    assert not said(rs.infer(slippery), "time-ran-out")


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_columns_with_rewards_that_are_no_numbers_are_refused(house, odd):
    with pytest.raises(rs.TraceError, match="rewards must be finite"):
        paying(house, np.array([odd] + [0.0] * (house.steps - 1)))


def test_rewards_beyond_all_measure_are_taken_as_they_are(house):
    paid = exact_pay(house) * 1e300 + np.random.default_rng(0).normal(0, 1e299, house.steps)
    assert rs.infer(paying(house, paid)).senses.rewards is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda traces: rs.Noise(rewards=np.ones(2)),
        lambda traces: rs.infer(traces, noise=np.ones(2)),
    ],
)
def test_arrays_are_no_noise(house, wrong):
    with pytest.raises(rs.OptionError, match="choose"):
        wrong(house)


def test_labels_that_were_corrected_are_named_and_stay_so(house):
    told = lying(house, missed=0.05)
    before = rs.infer(told[:250])
    (text,) = said(before, "lying-labels")
    assert "missed" in text
    assert "read them off the observation instead" in text
    assert said(before.update(told[250:]), "lying-labels") == [text]
    assert not said(rs.infer(house), "lying-labels")


def test_outcomes_that_vary_besides_rewards_are_named(slippery):
    both = rs.infer(gaussian(slippery))
    assert both.senses.rewards is not None
    assert said(both, "noisy-rewards")
    (text,) = said(both, "noise")
    assert "transition" in text
