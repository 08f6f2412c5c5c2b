from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from lying_samples import RING, RING_ANSWERS, lying_traces, ring_traces, two_sided

import resolvent as rs
from resolvent.noise import StateUncertainty
from resolvent.noise.hidden import infer_latent, start_label
from resolvent.preprocess.timing import LabelTiming

EVENTS = ["", "one", "two"]


@pytest.mark.parametrize("timing", ["current", "lagged"])
def test_labels_stand_where_they_were_read(timing):
    traces = rs.TraceSet([rs.Trace([0, 1, 2], ["a", "b", "c"], ["go", "go"])] * 9)
    assert infer_latent(traces, LabelTiming(timing), ["observation"]) is None


def test_a_world_whose_labels_are_missed():
    env = gym.make("resolvent/RandomWorld-v0", world_seed=1, size=8, labels=3, tm_states=3)
    traces = rs.collect(env, episodes=300, seed=0)
    recorded = lying_traces(traces, missed=0.05)
    found = infer_latent(recorded, LabelTiming.CURRENT, ["observation"])
    assert found.doubt.label_noise.missed == pytest.approx(0.05, abs=0.02)
    assert sum(found.doubt.label_shares.values()) == pytest.approx(1)
    assert found.timing is LabelTiming.CURRENT
    # What was changed is labels alone, and only some of them.
    assert np.array_equal(found.traces.observation_codes, recorded.observation_codes)
    changed = found.traces.label_codes != recorded.label_codes
    assert 0 < changed.mean() < 0.05


def is_the_ring(machine):
    """Whether a machine answers as the ring does, whatever its states are called."""
    for history in product(["one", "two"], repeat=3):
        state, mine = 0, 0
        for event in ("", *history):
            if event:
                state, mine = RING[state][EVENTS.index(event)], machine.step(mine, {event})
            for action, answer in enumerate(RING_ANSWERS[state]):
                if any(machine.output(mine, seen, action) != answer for seen in range(3)):
                    return False
    return machine.states == 3


@pytest.mark.parametrize(
    "noise",
    [
        "auto",
        pytest.param(rs.Noise(labels=True), marks=pytest.mark.slow),
        pytest.param(rs.Noise(outcomes=True, labels=0.1), marks=pytest.mark.slow),
    ],
)
def test_events_that_nothing_else_shows_are_inferred(noise):
    result = rs.infer(ring_traces(100, 0.1), noise=noise)
    assert is_the_ring(result.machines.transition)
    assert result.machines.transition.noise < 0.01
    assert result.machines.doubt.label_noise.missed == pytest.approx(0.1, abs=0.02)
    assert result.noise["missed labels"] == pytest.approx(0.1, abs=0.02)
    held_out = ring_traces(50, 0.1, seed=1)
    believed = result.machines.score(held_out).transition
    read = result.machines.replacing(doubt=StateUncertainty()).score(held_out).transition
    assert believed.all_wrong < 0.7 * read.all_wrong
    assert believed.log_loss < 0.7 * read.log_loss


@pytest.mark.slow
def test_events_are_inferred_in_a_world_that_slips():
    result = rs.infer(ring_traces(300, 0.1, slip=0.05), noise="auto")
    assert is_the_ring(result.machines.transition)
    assert result.machines.doubt.label_noise.missed == pytest.approx(0.1, abs=0.03)


def test_labels_that_tell_the_truth_are_believed():
    result = rs.infer(ring_traces(150, 0.0), noise=rs.Noise(labels=True))
    assert not result.machines.doubt
    assert not result.is_noisy
    slipping = rs.infer(ring_traces(150, 0.0, slip=0.05))
    assert not slipping.machines.doubt


def test_hidden_starts_become_first_labels():
    traces = two_sided(300, with_switch=True)
    found = infer_latent(traces, LabelTiming.CURRENT, ["observation"], labels=False, starts=True)
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


def test_an_update_reads_all_traces_anew():
    traces, noise = two_sided(400), rs.Noise(starts=True)
    updated = rs.infer(traces[:300], noise=noise).update(traces[300:])
    whole = rs.infer(traces, noise=noise)
    assert updated.machines.doubt == whole.machines.doubt
    assert updated.machines == whole.machines
    assert updated.traces == 400


def test_nothing_is_hidden_where_starts_are_read():
    traces = two_sided(50)
    timing = LabelTiming.CURRENT_WITH_INITIAL
    assert infer_latent(traces, timing, ["observation"], labels=False, starts=True) is None
