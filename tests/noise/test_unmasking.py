import gymnasium as gym
import numpy as np
import pytest
from lying_samples import lying_traces, two_sided

import resolvent as rs
from resolvent.noise import unmask
from resolvent.noise.unmasking import start_label
from resolvent.samples import LabelTiming


@pytest.fixture(scope="module")
def world():
    """A small random world, and traces of it."""
    env = gym.make("resolvent/RandomWorld-v0", world_seed=1, size=8, labels=3, tm_states=3)
    return env, rs.collect(env, episodes=300, seed=0)


@pytest.mark.parametrize("timing", ["current", "lagged"])
def test_labels_stand_where_they_were_read(timing):
    traces = rs.TraceSet([rs.Trace([0, 1, 2], ["a", "b", "c"], ["go", "go"])] * 9)
    assert unmask(traces, LabelTiming(timing), ["observation"]) is None


def test_a_world_whose_labels_are_missed(world):
    env, traces = world
    recorded = lying_traces(traces, missed=0.05)
    found = unmask(recorded, LabelTiming.CURRENT, ["observation"])
    assert found.doubt.label_noise.missed == pytest.approx(0.05, abs=0.02)
    assert sum(found.doubt.label_shares.values()) == pytest.approx(1)
    assert found.timing is LabelTiming.CURRENT
    # What was changed is labels alone, and only some of them.
    assert np.array_equal(found.traces.observation_codes, recorded.observation_codes)
    changed = found.traces.label_codes != recorded.label_codes
    assert 0 < changed.mean() < 0.05
    result = rs.infer(recorded, noise=rs.Noise(outcomes=True, labels=True))
    assert rs.is_isomorphic(result.machines.transition, env.unwrapped.machines().transition)
    assert result.noise["missed labels"] == pytest.approx(0.05, abs=0.02)
    assert result.machines.doubt.label_noise is not None
    assert result.machines.transition.noise < 0.004


def test_noise_is_found_by_itself_where_it_depends_on_the_past(world):
    env, traces = world
    result = rs.infer(lying_traces(traces, missed=0.05))
    assert rs.is_isomorphic(result.machines.transition, env.unwrapped.machines().transition)
    assert result.machines.doubt.label_noise.missed == pytest.approx(0.05, abs=0.02)


def test_hidden_starts_become_first_labels():
    traces = two_sided(300, with_switch=True)
    found = unmask(traces, LabelTiming.CURRENT, ["observation"], labels=False, starts=True)
    assert found.timing is LabelTiming.CURRENT_WITH_INITIAL
    assert list(found.doubt.starts) == [start_label(0), start_label(1)]
    first = found.traces.label_codes[found.traces.offsets[:-1] + np.arange(len(traces))]
    began = [found.traces.labels[code] for code in first.tolist()]
    assert {start_label(1), start_label(0)} == set(began)
    assert began.count(start_label(1)) / len(began) == pytest.approx(0.3, abs=0.06)


def test_hidden_starts_from_end_to_end():
    result = rs.infer(two_sided(300), noise=rs.Noise(starts=True))
    assert result.machines.transition.states == 2
    assert result.machines.transition.noise == 0.0
    assert result.machines.doubt.starts[start_label(1)] == pytest.approx(0.3, abs=0.06)
    assert result.noise["other starts"] == pytest.approx(0.3, abs=0.06)


def test_nothing_is_hidden_where_starts_are_read():
    traces = two_sided(50)
    timing = LabelTiming.CURRENT_WITH_INITIAL
    assert unmask(traces, timing, ["observation"], labels=False, starts=True) is None
