import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from noisy_samples import noisy_samples, sample_set

from resolvent.errors import OptionError
from resolvent.noise import fit_likely_machine, marginal_likelihood
from resolvent.preprocess.samples import Histories

SWITCH = [[0, 1, 0], [1, 0, 1]]  # label 1 toggles, the others change nothing
SWITCH_ANSWERS = [[0, 1, 2, 0, 1], [1, 0, 2, 0, 1]]
RING = [[0, 1, 2], [1, 2, 0], [2, 0, 0]]
RING_ANSWERS = [[0, 1, 2, 2], [1, 0, 2, 2], [1, 1, 0, 2]]


def is_renamed(table, found) -> bool:
    """Whether tables are the same but for the numbers of states; all moves of both are read."""
    partner, queue = {0: 0}, [0]
    for state in queue:
        for label, target in enumerate(table[state]):
            if partner.setdefault(target, mine := int(found[partner[state], label])) != mine:
                return False
            if target not in queue:
                queue.append(target)
    return sorted(partner.values()) == list(range(len(found)))


def shuffled(samples, order: Iterable[int]):
    rows = [np.arange(samples.offsets[one], samples.offsets[one + 1]) for one in order]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in rows])]).astype(np.int64)
    taken = np.concatenate(rows)
    histories = Histories(samples.beta[taken], offsets, samples.labels)
    return replace(
        samples, alpha=samples.alpha[taken], output=samples.output[taken], histories=histories
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("table", "answers"), [(SWITCH, SWITCH_ANSWERS), (RING, RING_ANSWERS)], ids=["switch", "ring"]
)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_small_machines_come_back(table, answers, seed, noise):
    samples = noisy_samples(table, answers, noise=noise, seed=seed)
    found = fit_likely_machine(samples)
    assert is_renamed(table, found.transitions)
    # A replaced answer is the main one again in one case of three.
    assert found.noise == pytest.approx(noise * 2 / 3, abs=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_needs_one_state(seed):
    samples = noisy_samples([[0, 0, 0]], [[0, 1, 2, 1]], noise=0.5, seed=seed)
    assert fit_likely_machine(samples).transitions.tolist() == [[0, 0, 0]]


def test_a_memory_that_answers_no_question_is_not_found():
    samples = noisy_samples(SWITCH, [SWITCH_ANSWERS[0]] * 2, noise=0.2)
    assert fit_likely_machine(samples).states == 1


def test_no_event_may_change_the_state_after_all():
    # Label 0 is "no event"; here it is the one that toggles.
    table = [[1, 0, 0], [0, 1, 1]]
    samples = noisy_samples(table, SWITCH_ANSWERS, noise=0.1, seed=2)
    assert is_renamed(table, fit_likely_machine(samples).transitions)


def test_evidence_and_noise_are_those_of_the_machine():
    samples = noisy_samples(RING, RING_ANSWERS, seed=4)
    found = fit_likely_machine(samples)
    weighed = marginal_likelihood(samples, found.transitions)
    assert found.log_evidence == pytest.approx(weighed.log_evidence, rel=1e-12)
    assert found.noise == weighed.noise
    assert found.sizes[found.states] == found.log_evidence
    assert found.sizes[1] == pytest.approx(
        marginal_likelihood(samples, np.zeros((1, 3), np.int32)).log_evidence, rel=1e-12
    )
    assert found.sizes[1] < found.sizes[2] < found.sizes[3]


def test_the_order_of_traces_makes_no_difference():
    samples = noisy_samples(RING, RING_ANSWERS, traces=60, seed=5)
    order = np.random.default_rng(0).permutation(60)
    one, other = fit_likely_machine(samples), fit_likely_machine(shuffled(samples, order))
    assert np.array_equal(one.transitions, other.transitions)
    assert (one.log_evidence, one.sizes, one.noise) == (
        other.log_evidence,
        other.sizes,
        other.noise,
    )


def test_the_order_makes_no_difference_where_only_a_part_is_grown_on(monkeypatch):
    monkeypatch.setattr("resolvent.noise.outputs.SUBSAMPLE_ROWS", 700)
    samples = noisy_samples(RING, RING_ANSWERS, traces=200, seed=6)
    order = np.random.default_rng(1).permutation(200)
    one, other = fit_likely_machine(samples), fit_likely_machine(shuffled(samples, order))
    assert is_renamed(RING, one.transitions)
    assert np.array_equal(one.transitions, other.transitions)
    assert (one.log_evidence, one.sizes) == (other.log_evidence, other.sizes)
    assert one.log_evidence == pytest.approx(
        marginal_likelihood(samples, one.transitions).log_evidence
    )


def test_repeated_traces_only_sharpen_the_odds():
    samples = noisy_samples(RING, RING_ANSWERS, seed=7)
    twice = shuffled(samples, [*range(100), *range(100)])
    one, other = fit_likely_machine(samples), fit_likely_machine(twice)
    assert np.array_equal(one.transitions, other.transitions)
    assert one.noise == other.noise
    assert other.sizes[3] - other.sizes[1] > one.sizes[3] - one.sizes[1]


def test_the_same_seed_gives_the_same_machine():
    samples = noisy_samples(RING, RING_ANSWERS, noise=0.3, traces=50, seed=8)
    one, other = (fit_likely_machine(samples, seed=3) for _ in range(2))
    assert np.array_equal(one.transitions, other.transitions)
    assert (one.log_evidence, one.sizes) == (other.log_evidence, other.sizes)


def test_labels_never_read_in_a_state_have_no_move():
    samples = noisy_samples(SWITCH, SWITCH_ANSWERS, traces=80, seed=9)
    beta = samples.beta.copy()
    for first, last in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        state = 0
        for row in range(first + 1, last):
            if state == 1 and beta[row] == 2:
                beta[row] = 0  # which changes nothing either
            state = SWITCH[state][beta[row]]
    read = replace(samples, histories=Histories(beta, samples.offsets, samples.labels))
    assert fit_likely_machine(read).transitions.tolist() == [[0, 1, 0], [1, 0, -1]]


def test_without_answers_there_is_one_state():
    samples = sample_set([-1, -1], [-1, -1], [-1, 1], [2], 2)
    found = fit_likely_machine(samples)
    assert found.transitions.tolist() == [[-1, 0]]
    assert found.noise == 0.0


def test_most_states_is_a_bound():
    samples = noisy_samples(RING, RING_ANSWERS, seed=1)
    assert max(fit_likely_machine(samples, most_states=2).sizes) == 2


def test_when_time_runs_out_the_best_so_far_is_returned():
    samples = noisy_samples(RING, RING_ANSWERS, traces=4000, seed=1)
    found = fit_likely_machine(samples, time_limit=1e-6)
    assert not found.finished
    assert math.isclose(found.log_evidence, found.sizes[found.states])


def search_that_lasts(listener):
    """Search in more and more traces, until it has lasted so long that the listener was told."""
    told = []

    def listen(what, progress):
        told.append(what)
        listener(what, progress)

    for traces in (3_000, 30_000, 300_000):
        fit_likely_machine(
            noisy_samples(RING, RING_ANSWERS, traces=traces, seed=1), listener=listen
        )
        if told:
            break


def test_a_listener_is_told():
    told = []
    search_that_lasts(lambda what, progress: told.append((what, progress.fraction)))
    assert told
    assert {what for what, _ in told} == {"noise"}
    assert all(0 <= fraction <= 1 for _, fraction in told)


def test_a_listener_may_stop_it():
    def stop(what, progress):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        search_that_lasts(stop)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ({"effort": 0}, "effort"),
        ({"most_states": 0}, "most_states"),
        ({"time_limit": 0}, "time_limit"),
    ],
)
def test_options_out_of_range_are_refused(option, wrong):
    samples = noisy_samples([[0, 0]], [[0, 1]], traces=2)
    with pytest.raises(OptionError, match=wrong):
        fit_likely_machine(samples, **option)
