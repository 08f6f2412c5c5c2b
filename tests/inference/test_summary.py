"""Messages about noise are true: noise that is absent, inferred states, updates."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_labels import with_label_noise
from noisy_worlds import Slips, exact_pay, gaussian, paying, two_moods
from outlier_traces import outliers, shuffled
from resolvent.inference.summary import noise_lines
from resolvent.traces.trace_set import with_column
from resolvent.worlds import House


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=300, seed=0)


@pytest.fixture(scope="module")
def slippery():
    env = Slips(gym.make("resolvent/House-v0"))
    return rs.collect(env, episodes=300, seed=0)


def texts_of(result, kind):
    return [warning.text for warning in result.warnings if warning.kind == kind]


@pytest.mark.parametrize(
    ("noise", "what"),
    [
        (rs.Noise(labels=0.02), "Labels were stated to be noisy"),
        (rs.Noise(labels=True), "Labels were stated to be noisy"),
        (rs.Noise(rewards="flipped"), "Rewards were stated to be flipped"),
        (rs.Noise(starts=True), "Starts were stated to be hidden"),
    ],
)
def test_noise_that_the_traces_exclude_is_reported(house, noise, what):
    result = rs.infer(house, noise=noise)
    (text,) = texts_of(result, "no-noise")
    assert text.startswith(what)
    assert result.machines.transition == rs.infer(house).machines.transition


@pytest.mark.parametrize("seen", [True, False])
def test_hidden_starts_are_found_whichever_output_shows_them(seen):
    result = rs.infer(two_moods(300, seen))
    assert len(result.machines.state_uncertainty.starts) == 2
    assert max(machine.states for machine in result.machines.values()) == 2
    assert all(machine.noise == 0 for machine in result.machines.values())
    assert any("hidden starts" in line for line in noise_lines(result))
    (text,) = texts_of(result, "noise")
    assert "hidden starts" in text
    assert "chance" not in text


def test_an_update_keeps_the_reason_for_noise(slippery):
    before = rs.infer(slippery[:250])
    after = before.update(slippery[250:])
    assert texts_of(after, "noise") == texts_of(before, "noise")
    assert "No two steps contradict" not in str(after)


def test_an_update_keeps_the_numbers_of_outliers(house):
    damaged = outliers(house, [7, 91, 260], kinds=(shuffled,))
    before = rs.infer(damaged[:250])
    assert before.outliers == (7, 91)
    after = before.update(damaged[250:])
    assert after.outliers == (7, 91, 260)
    assert after.traces == 300
    assert len(texts_of(after, "outliers")) == 2


def test_small_noise_does_not_read_as_none(house):
    codes = house.observation_codes.copy()
    codes[5] = (codes[5] + 1) % len(house.observations)
    noisy = with_column(house, "observation", house.observations, codes)
    lines = noise_lines(rs.infer(noisy, noise=rs.Noise(outcomes=True)))
    assert any("% of the outputs" in line for line in lines)
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


def test_a_search_that_ran_out_of_time_is_reported(slippery):
    cut = rs.infer(slippery, time_limit=1e-6)
    (text,) = texts_of(cut, "time-ran-out")
    assert "transition" in text
    assert not texts_of(rs.infer(slippery), "time-ran-out")


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_columns_with_rewards_that_are_not_finite_are_refused(reward):
    with pytest.raises(rs.TraceError, match="rewards must be finite"):
        rs.TraceSet.from_columns(
            ([0], [0, 0]),
            ([frozenset()], [0, 0]),
            (["go"], [0]),
            ([reward], [0]),
            offsets=[0, 1],
            terminated=[False],
            truncated=[False],
        )


def test_very_large_rewards_are_kept(house):
    paid = exact_pay(house) * 1e300 + np.random.default_rng(0).normal(0, 1e299, house.steps)
    assert rs.infer(paying(house, paid)).preprocessor.rewards is None


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda traces: rs.Noise(rewards=np.ones(2)), "choose 'gaussian', 'flipped' or False"),
        (lambda traces: rs.infer(traces, noise=np.ones(2)), "give a Noise"),
    ],
)
def test_arrays_are_no_noise(house, wrong, advice):
    with pytest.raises(rs.OptionError, match=advice):
        wrong(house)


def test_denoised_labels_are_reported_also_after_an_update(house):
    recorded = with_label_noise(house, missed=0.05)
    before = rs.infer(recorded[:250])
    (text,) = texts_of(before, "label-noise")
    assert "missed" in text
    assert "compute them from the observation instead" in text
    assert texts_of(before.update(recorded[250:]), "label-noise") == [text]
    assert not texts_of(rs.infer(house), "label-noise")


def test_noisy_outputs_besides_rewards_are_reported(slippery):
    both = rs.infer(gaussian(slippery))
    assert both.preprocessor.rewards is not None
    assert texts_of(both, "noisy-rewards")
    (text,) = texts_of(both, "noise")
    assert "transition" in text
