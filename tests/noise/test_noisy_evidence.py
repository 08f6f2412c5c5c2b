import math
from dataclasses import replace

import numpy as np
import pytest
from evidence_oracle import log_evidence
from noisy_samples import noisy_samples, sample_set

from resolvent.errors import ModelError
from resolvent.noise import marginal_likelihood


@pytest.mark.parametrize("seed", range(30))
def test_the_core_agrees_with_the_definition(seed):
    random = np.random.default_rng(seed)
    states, labels, questions = random.integers(1, [5, 4, 6]).tolist()
    table = random.integers(0, states, (states, labels)).astype(np.int32)
    answers = random.integers(0, 4, (states, questions))
    samples = noisy_samples(table, answers, traces=9, steps=8, noise=0.3, seed=seed)
    table[random.random(table.shape) < 0.2] = 0
    found = marginal_likelihood(samples, table)
    expected = log_evidence(samples, table, found.strength, found.share)
    assert math.isclose(found.log_evidence, expected, rel_tol=1e-9, abs_tol=1e-9)


def test_one_answer_throughout_costs_nothing():
    samples = sample_set([0] * 6, [2] * 6, [-1, 1, 0] * 2, [3, 3], 2)
    # Two moves are read, and both stay: one half, then two thirds.
    assert marginal_likelihood(samples, np.zeros((1, 2), np.int32)).log_evidence == pytest.approx(
        math.log(1 / 3)
    )


def test_rows_that_answer_nothing_are_left_out():
    samples = noisy_samples([[0, 1], [1, 0]], [[0, 1], [1, 0]], seed=3)
    silent = samples.alpha.copy()
    silent[::2] = -1
    table = np.array([[0, 1], [1, 0]], np.int32)
    some = replace(samples, alpha=silent)
    found = marginal_likelihood(some, table)
    assert found.log_evidence == pytest.approx(
        log_evidence(some, table, found.strength, found.share), rel=1e-9
    )


def test_noise_is_the_share_of_answers_that_are_not_the_main_one():
    samples = sample_set([0] * 10, [1] * 7 + [0] * 3, [-1] * 10, [10], 1)
    assert marginal_likelihood(samples, np.zeros((1, 1), np.int32)).noise == pytest.approx(0.3)


def test_the_true_machine_is_likelier_than_one_state_and_than_a_needless_third():
    true = np.array([[0, 1], [1, 0]], np.int32)
    samples = noisy_samples(true, [[0, 1, 2], [1, 0, 0]], seed=1)
    needless = np.array([[0, 1], [2, 0], [1, 0]], np.int32)
    found = [
        marginal_likelihood(samples, np.asarray(each))
        for each in (true, np.zeros((1, 2), int), needless)
    ]
    assert found[0].log_evidence > found[1].log_evidence + 100
    assert found[0].log_evidence > found[2].log_evidence + 3
    assert found[0].share == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ([0, 0], "shape"),
        ([[0]], "shape"),
        ([[0, 1]], "do not fit"),
        ([[0, -1]], "has no move for"),
    ],
)
def test_moves_that_do_not_fit_are_refused(table, wrong):
    samples = noisy_samples([[0, 0]], [[0, 1]], traces=2)
    with pytest.raises(ModelError, match=wrong):
        marginal_likelihood(samples, np.array(table, np.int32))
