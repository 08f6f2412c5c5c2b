import numpy as np
import pytest
from lying_samples import lied, lying_samples, two_sided
from noisy_samples import noisy_samples
from test_likely import RING, RING_ANSWERS, SWITCH, SWITCH_ANSWERS, is_renamed, shuffled

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.noise import fit_latent_machine, fit_likely_machine, marginal_likelihood
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming

DRAWN = {"traces": 200, "steps": 40}


def hidden_ring(noise=0.0, **shares):
    """A ring of three states, and what labels would have been recorded of it."""
    true = noisy_samples(RING, RING_ANSWERS, noise=noise, **DRAWN)
    return true, lying_samples(true, seed=1, **shares)


def test_chances_of_true_labels_are_those_of_bayes():
    table = _core.true_label_chances(
        3, silence=0, missed=0.1, added=0.2, swapped=0.05, shares=np.array([0.5, 0.4, 0.1])
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
def test_moves_and_shares_of_lies_are_found(shares):
    _, recorded = hidden_ring(**shares)
    found = fit_latent_machine(recorded)
    assert is_renamed(RING, found.transitions)
    for name in ("missed", "false", "swapped"):
        assert getattr(found.label_noise, name) == pytest.approx(shares.get(name, 0.0), abs=0.02)
    assert sum(found.label_shares) == pytest.approx(1)


def test_lies_and_noisy_answers_together():
    _, recorded = hidden_ring(noise=0.05, missed=0.05, swapped=0.03)
    found = fit_latent_machine(recorded)
    assert is_renamed(RING, found.transitions)
    assert found.noise == pytest.approx(0.05 * 2 / 3, abs=0.01)
    assert found.label_noise.missed == pytest.approx(0.05, abs=0.02)


def test_states_behind_lies_are_inferred():
    true, recorded = hidden_ring(missed=0.1)
    found = fit_latent_machine(recorded)
    truth = _core.walk_states(np.array(RING, np.int32).ravel(), 3, true.beta, true.offsets)
    naive = _core.walk_states(np.array(RING, np.int32).ravel(), 3, recorded.beta, true.offsets)
    names = [int(np.bincount(truth[found.path == state]).argmax()) for state in range(3)]
    inferred = np.array(names)[found.path]
    assert (naive == truth).mean() < 0.8
    assert (inferred == truth).mean() > 0.93
    walked = _core.walk_states(found.transitions.ravel().copy(), 3, found.true_labels, true.offsets)
    assert np.array_equal(walked, found.path)


def test_truthful_labels_give_the_machine_that_reads_them():
    samples = noisy_samples(SWITCH, SWITCH_ANSWERS, noise=0.1)
    found, read = fit_latent_machine(samples), fit_likely_machine(samples)
    assert np.array_equal(found.transitions, read.transitions)
    assert np.array_equal(found.true_labels, samples.beta)
    assert max(found.label_noise.missed, found.label_noise.swapped) < 0.02
    # To take three kinds of lies into account costs some evidence, and gains none here.
    evidence = marginal_likelihood(samples, read.transitions).log_evidence
    assert evidence - 25 < found.log_evidence < evidence + 1


def test_the_order_of_traces_changes_nothing():
    _, recorded = hidden_ring(missed=0.1, swapped=0.05)
    order = np.random.default_rng(3).permutation(len(recorded.offsets) - 1)
    one, other = fit_latent_machine(recorded), fit_latent_machine(shuffled(recorded, order))
    assert np.array_equal(one.transitions, other.transitions)
    assert one.log_evidence == other.log_evidence
    assert one.label_noise == other.label_noise
    assert one.sizes == other.sizes


@pytest.mark.parametrize("with_switch", [False, True])
def test_hidden_starts_are_told_apart(with_switch):
    traces = two_sided(400, with_switch=with_switch)
    histories = Histories.of(traces, LabelTiming.CURRENT)
    samples = output_samples(traces, histories, "observation")
    found = fit_latent_machine(samples, labels=False, starts=True)
    assert found.states == 2
    assert found.starts == pytest.approx((0.7, 0.3), abs=0.06)
    assert found.noise < 1e-6
    if with_switch:
        switch = samples.labels.get(frozenset({"switch"}))
        assert found.transitions[:, switch].tolist() == [1, 0]


def test_one_start_is_enough_where_labels_tell():
    samples = noisy_samples(SWITCH, SWITCH_ANSWERS, noise=0.1)
    found = fit_latent_machine(samples, labels=False, starts=True)
    assert is_renamed(SWITCH, found.transitions)
    assert max(found.starts) > 0.99


def test_one_trace_whose_start_is_undecided_has_a_start():
    """On the way a machine is weighed in which no state is the start with a chance of one half."""
    alpha = [0, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0]
    output = [1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1]
    beta = [3, 0, 3, 0, 2, 1, 3, 2, 1, 1, -1, -1, 1, -1, 3, 0, 2, 2, 2, 3]
    found = _core.grow_hidden_machine(
        *(np.array(column, np.int32) for column in (alpha, output, beta)),
        np.array([0, len(beta)], np.int64),
        labels=4,
        silence=-1,
        labels_lie=False,
        random_starts=True,
        seed=0,
        effort=0.02,
        most_states=3,
        part=10**6,
    )
    states = len(found["starts"])
    assert len(found["transitions"]) == 4 * states
    assert found["starts"].sum() == pytest.approx(1)
    assert min(found["sizes"]) == 1
    assert set(found["states"].tolist()) <= set(range(states))


def test_time_that_runs_out_leaves_a_machine():
    _, recorded = hidden_ring(missed=0.1)
    found = fit_latent_machine(recorded, time_limit=1e-6)
    assert not found.finished
    assert found.states >= 1
    assert len(found.path) == len(recorded.beta)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": 0}, "effort is 0"),
        ({"most_states": 40}, "choose a number from 1 to 16"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"labels": False}, "nothing is hidden"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(OptionError, match=message):
        fit_latent_machine(noisy_samples(SWITCH, SWITCH_ANSWERS), **options)


def test_samples_without_answers_or_labels():
    assert lied(np.zeros(0, np.int32), 2).shape == (0,)
    traces = two_sided(5)
    histories = Histories.of(traces[:1], LabelTiming.CURRENT)
    found = fit_latent_machine(output_samples(traces[:1], histories, "observation"), starts=True)
    assert found.states == 1
