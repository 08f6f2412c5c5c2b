"""Machines whose labels are noisy or whose initial states are hidden, and the inferred states."""

from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from latent_samples import (
    noisily_labeled,
    noisily_labeled_samples,
    record_labels,
    ring_traces,
    two_sided,
)
from noisy_samples import (
    RING,
    RING_OUTPUTS,
    SWITCH,
    SWITCH_OUTPUTS,
    is_renumbered,
    noisy_samples,
    shuffled,
)

import resolvent as rs
from resolvent import _core
from resolvent.errors import OptionError
from resolvent.machines.augmented_state import StateUncertainty
from resolvent.noise import (
    SearchLimits,
    fit_latent_machine,
    fit_likely_machine,
    marginal_likelihood,
)
from resolvent.noise.latent import infer_latent, start_label
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming

DRAWN = {"traces": 200, "steps": 40}


def hidden_ring(noise=0.0, **shares):
    """A ring of three states, and what labels would have been recorded of it."""
    true = noisy_samples(RING, RING_OUTPUTS, noise=noise, **DRAWN)
    return true, noisily_labeled_samples(true, seed=1, **shares)


def test_probabilities_of_true_labels_follow_from_bayes_rule():
    table = _core.true_label_probabilities(
        3, no_event=0, missed=0.1, added=0.2, swapped=0.05, shares=np.array([0.5, 0.4, 0.1])
    ).reshape(3, 3)
    # Recorded as no event: truly none, or one of both events missed.
    silent = np.array([0.5 * 0.8, 0.4 * 0.1, 0.1 * 0.1])
    # Recorded as the first event: added with its share of events, truly so, or swapped.
    first = np.array([0.5 * 0.2 * 0.8, 0.4 * 0.85, 0.1 * 0.05])
    assert table[0] == pytest.approx(silent / silent.sum())
    assert table[1] == pytest.approx(first / first.sum())
    assert table.sum(axis=1) == pytest.approx(np.ones(3))


@pytest.mark.parametrize(
    "shares", [{"missed": 0.1}, {"false": 0.05}, {"swapped": 0.1}, {"missed": 0.05, "false": 0.03}]
)
def test_transitions_and_rates_of_wrong_labels_are_estimated(shares):
    _, recorded = hidden_ring(**shares)
    fit = fit_latent_machine(recorded)
    assert is_renumbered(RING, fit.transitions)
    for name in ("missed", "false", "swapped"):
        assert getattr(fit.label_noise, name) == pytest.approx(shares.get(name, 0.0), abs=0.02)
    assert sum(fit.label_shares) == pytest.approx(1)


def test_label_noise_and_noisy_outputs_together():
    _, recorded = hidden_ring(noise=0.05, missed=0.05, swapped=0.03)
    fit = fit_latent_machine(recorded)
    assert is_renumbered(RING, fit.transitions)
    assert fit.noise == pytest.approx(0.05 * 2 / 3, abs=0.01)
    assert fit.label_noise.missed == pytest.approx(0.05, abs=0.02)


def test_states_are_inferred_despite_label_noise():
    true, recorded = hidden_ring(missed=0.1)
    fit = fit_latent_machine(recorded)
    truth = _core.walk_states(np.array(RING, np.int32).ravel(), 3, true.beta, true.offsets)
    naive = _core.walk_states(np.array(RING, np.int32).ravel(), 3, recorded.beta, true.offsets)
    names = [int(np.bincount(truth[fit.path == state]).argmax()) for state in range(3)]
    inferred = np.array(names)[fit.path]
    assert (naive == truth).mean() < 0.8
    assert (inferred == truth).mean() > 0.93
    walked = _core.walk_states(fit.transitions.ravel().copy(), 3, fit.true_labels, true.offsets)
    assert np.array_equal(walked, fit.path)


def test_exact_labels_give_the_machine_that_reads_them():
    samples = noisy_samples(SWITCH, SWITCH_OUTPUTS, noise=0.1)
    fit, read = fit_latent_machine(samples), fit_likely_machine(samples)
    assert np.array_equal(fit.transitions, read.transitions)
    assert np.array_equal(fit.true_labels, samples.beta)
    assert max(fit.label_noise.missed, fit.label_noise.swapped) < 0.02
    # To take three kinds of lies into account costs some evidence, and gains none here.
    evidence = marginal_likelihood(samples, read.transitions).log_evidence
    assert evidence - 25 < fit.log_evidence < evidence + 1


def test_the_order_of_traces_changes_nothing():
    _, recorded = hidden_ring(missed=0.1, swapped=0.05)
    order = np.random.default_rng(3).permutation(len(recorded.offsets) - 1)
    fit, shuffled_fit = fit_latent_machine(recorded), fit_latent_machine(shuffled(recorded, order))
    assert np.array_equal(fit.transitions, shuffled_fit.transitions)
    assert fit.log_evidence == shuffled_fit.log_evidence
    assert fit.label_noise == shuffled_fit.label_noise
    assert fit.sizes == shuffled_fit.sizes


@pytest.mark.parametrize("with_switch", [False, True])
def test_hidden_starts_are_distinguished(with_switch):
    traces = two_sided(400, with_switch=with_switch)
    histories = Histories.of(traces, LabelTiming.CURRENT)
    samples = output_samples(traces, histories, "observation")
    fit = fit_latent_machine(samples, labels=False, starts=True)
    assert fit.states == 2
    assert fit.starts == pytest.approx((0.7, 0.3), abs=0.06)
    assert fit.noise < 1e-6
    if with_switch:
        switch = samples.labels.get(frozenset({"switch"}))
        assert fit.transitions[:, switch].tolist() == [1, 0]


def test_one_start_is_enough_if_labels_determine_the_state():
    samples = noisy_samples(SWITCH, SWITCH_OUTPUTS, noise=0.1)
    fit = fit_latent_machine(samples, labels=False, starts=True)
    assert is_renumbered(SWITCH, fit.transitions)
    assert max(fit.starts) > 0.99


def test_one_trace_whose_start_is_undecided_has_a_start():
    """The search meets a machine in which no state is the start with probability one half."""
    alpha = [0, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0]
    output = [1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1]
    beta = [3, 0, 3, 0, 2, 1, 3, 2, 1, 1, -1, -1, 1, -1, 3, 0, 2, 2, 2, 3]
    fit = _core.grow_latent_machine(
        *(np.array(column, np.int32) for column in (alpha, output, beta)),
        np.array([0, len(beta)], np.int64),
        labels=4,
        no_event=-1,
        noisy_labels=False,
        random_starts=True,
        seed=0,
        effort=0.02,
        most_states=3,
        part=10**6,
    )
    states = len(fit["starts"])
    assert len(fit["transitions"]) == 4 * states
    assert fit["starts"].sum() == pytest.approx(1)
    assert min(fit["sizes"]) == 1
    assert set(fit["states"].tolist()) <= set(range(states))


def test_at_the_time_limit_the_best_machine_is_returned():
    _, recorded = hidden_ring(missed=0.1)
    fit = fit_latent_machine(recorded, SearchLimits(time_limit=1e-6))
    assert not fit.finished
    assert fit.states >= 1
    assert len(fit.path) == len(recorded.beta)


def test_something_has_to_be_latent():
    with pytest.raises(OptionError, match="nothing is latent"):
        fit_latent_machine(noisy_samples(SWITCH, SWITCH_OUTPUTS), labels=False)


def test_samples_without_outputs_or_labels():
    assert record_labels(np.zeros(0, np.int32), 2).shape == (0,)
    traces = two_sided(5)
    histories = Histories.of(traces[:1], LabelTiming.CURRENT)
    fit = fit_latent_machine(output_samples(traces[:1], histories, "observation"), starts=True)
    assert fit.states == 1


EVENTS = ["", "one", "two"]


@pytest.mark.parametrize("timing", ["current", "lagged"])
def test_labels_without_effect_are_not_latent(timing):
    traces = rs.TraceSet([rs.Trace([0, 1, 2], ["a", "b", "c"], ["go", "go"])] * 9)
    assert infer_latent(traces, LabelTiming(timing), ["observation"]) is None


def test_missed_labels_of_a_world_are_inferred():
    env = gym.make("resolvent/RandomWorld-v0", world_seed=1, size=8, labels=3, tm_states=3)
    traces = rs.collect(env, episodes=300, seed=0)
    recorded = noisily_labeled(traces, missed=0.05)
    fit = infer_latent(recorded, LabelTiming.CURRENT, ["observation"])
    assert fit.state_uncertainty.label_noise.missed == pytest.approx(0.05, abs=0.02)
    assert sum(fit.state_uncertainty.label_shares.values()) == pytest.approx(1)
    assert fit.timing is LabelTiming.CURRENT
    # What was changed is labels alone, and only some of them.
    assert np.array_equal(fit.traces.observation_codes, recorded.observation_codes)
    changed = fit.traces.label_codes != recorded.label_codes
    assert 0 < changed.mean() < 0.05


def is_the_ring(machine):
    """Whether a machine has the outputs of the ring, whatever the numbers of its states."""
    for history in product(["one", "two"], repeat=3):
        state, mine = 0, 0
        for event in ("", *history):
            if event:
                state, mine = RING[state][EVENTS.index(event)], machine.step(mine, {event})
            for action, output in enumerate(RING_OUTPUTS[state]):
                if any(machine.output(mine, seen, action) != output for seen in range(3)):
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
def test_events_that_no_observation_shows_are_inferred(noise):
    result = rs.infer(ring_traces(100, 0.1), noise=noise)
    assert is_the_ring(result.machines.transition)
    assert result.machines.transition.noise < 0.01
    assert result.machines.state_uncertainty.label_noise.missed == pytest.approx(0.1, abs=0.02)
    assert result.noise["missed labels"] == pytest.approx(0.1, abs=0.02)
    held_out = ring_traces(50, 0.1, seed=1)
    believed = result.machines.score(held_out).transition
    read = (
        result.machines.replacing(state_uncertainty=StateUncertainty()).score(held_out).transition
    )
    assert believed.all_wrong < 0.7 * read.all_wrong
    assert believed.log_loss < 0.7 * read.log_loss


@pytest.mark.slow
def test_events_are_inferred_in_a_world_that_slips():
    result = rs.infer(ring_traces(300, 0.1, slip=0.05), noise="auto")
    assert is_the_ring(result.machines.transition)
    assert result.machines.state_uncertainty.label_noise.missed == pytest.approx(0.1, abs=0.03)


def test_exact_labels_are_not_latent():
    result = rs.infer(ring_traces(150, 0.0), noise=rs.Noise(labels=True))
    assert not result.machines.state_uncertainty
    assert not result.is_noisy
    slipping = rs.infer(ring_traces(150, 0.0, slip=0.05))
    assert not slipping.machines.state_uncertainty


def test_hidden_starts_become_first_labels():
    traces = two_sided(300, with_switch=True)
    fit = infer_latent(traces, LabelTiming.CURRENT, ["observation"], labels=False, starts=True)
    assert fit.timing is LabelTiming.CURRENT_WITH_INITIAL
    assert list(fit.state_uncertainty.starts) == [start_label(0), start_label(1)]
    first = fit.traces.label_codes[fit.traces.offsets[:-1] + np.arange(len(traces))]
    began = [fit.traces.labels[code] for code in first.tolist()]
    assert {start_label(1), start_label(0)} == set(began)
    assert began.count(start_label(1)) / len(began) == pytest.approx(0.3, abs=0.06)


def test_hidden_starts_from_end_to_end():
    result = rs.infer(two_sided(300), noise=rs.Noise(starts=True))
    assert result.machines.transition.states == 2
    assert result.machines.transition.noise == 0.0
    assert result.machines.state_uncertainty.starts[start_label(1)] == pytest.approx(0.3, abs=0.06)
    assert result.noise["other starts"] == pytest.approx(0.3, abs=0.06)


def test_an_update_infers_latent_starts_of_all_traces():
    traces, noise = two_sided(400), rs.Noise(starts=True)
    updated = rs.infer(traces[:300], noise=noise).update(traces[300:])
    whole = rs.infer(traces, noise=noise)
    assert updated.machines.state_uncertainty == whole.machines.state_uncertainty
    assert updated.machines == whole.machines
    assert updated.traces == 400


def test_no_start_is_latent_if_the_first_label_is_read():
    traces = two_sided(50)
    timing = LabelTiming.CURRENT_WITH_INITIAL
    assert infer_latent(traces, timing, ["observation"], labels=False, starts=True) is None
