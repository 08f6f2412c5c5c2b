"""Expectation-maximisation, held to hmmlearn and to what it promises."""

import numpy as np
import pytest
from hidden_paths import over_all_paths, random_transitions, task_of, tasks
from hmmlearn.hmm import CategoricalHMM
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent.paper.baselines.hmm_em import Deadline, DenseEngine, SparseEngine, baum_welch

ENGINES = [SparseEngine, DenseEngine]


def fit(engine, guess, *, tolerance=0.0, iterations=15, time_limit=None, progress=None):
    return baum_welch(
        engine,
        guess,
        tolerance=tolerance,
        iterations=iterations,
        deadline=Deadline(time_limit),
        progress=progress,
    )


def random_walks(seed, places, count):
    draws = np.random.default_rng(seed)
    lengths = draws.integers(2, 30, count)
    return task_of(
        *((draws.integers(0, places, n).tolist(), bool(draws.random() < 0.7)) for n in lengths),
        ([0, places - 1], True),
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(3))
def test_hmmlearn_finds_the_same(engine, seed):
    states, places = 3, 4
    task = random_walks(seed, places, 20)
    guess = random_transitions(task, states, seed)
    likelihoods = []
    mine = fit(engine(task, states), guess, progress=lambda _, value: likelihoods.append(value))

    symbols = task.places.copy()
    symbols[task.offsets[1:] + np.arange(len(task.paid))] += places * task.paid
    emissions = np.zeros((places * states, 2 * places))
    for state in range(places * states):
        layer, place = divmod(state, places)
        emissions[state, place + places * (layer == states - 1)] = 1
    theirs = CategoricalHMM(
        places * states, params="t", init_params="", n_iter=15, tol=-np.inf, n_features=2 * places
    )
    starts = np.bincount(task.starts, minlength=places * states) / len(task.starts)
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = starts, guess, emissions
    theirs.fit(symbols.reshape(-1, 1), lengths=np.diff(task.offsets) + 1)

    of_starts = np.log(starts[task.starts]).sum()
    np.testing.assert_allclose(
        np.array(likelihoods) + of_starts, list(theirs.monitor_.history), rtol=1e-9
    )
    np.testing.assert_allclose(mine.transitions, theirs.transmat_, rtol=1e-7, atol=1e-9)


@given(task=tasks(longest=20), states=st.integers(2, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_no_update_lowers_the_likelihood(task, states, seed):
    likelihoods = []
    fit(
        SparseEngine(task, states),
        random_transitions(task, states, seed),
        progress=lambda _, value: likelihoods.append(value),
    )
    assert len(likelihoods) == 15
    assert all(np.diff(likelihoods) >= -1e-9 * (1 + np.abs(likelihoods[:-1])))


@given(task=tasks(longest=20), states=st.integers(2, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_both_engines_end_in_the_same_place(task, states, seed):
    guess = random_transitions(task, states, seed)
    sparse, dense = (fit(engine(task, states), guess) for engine in ENGINES)
    assert sparse.log_likelihood == pytest.approx(dense.log_likelihood, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(sparse.transitions, dense.transitions, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_update_is_the_share_of_expected_transitions(engine):
    task = task_of(([0, 1, 0, 1], True), ([1, 1, 0], False))
    guess = random_transitions(task, 3, 0)
    _, counts = over_all_paths(task, 3, guess)
    rows = counts.sum(axis=1, keepdims=True)
    updated = fit(engine(task, 3), guess, iterations=1).transitions
    np.testing.assert_allclose(updated, counts / np.where(rows > 0, rows, 1))


@pytest.mark.parametrize("engine", ENGINES)
def test_both_engines_stop_at_the_iteration_that_the_rule_names(engine):
    """The rule, in plain NumPy over all hidden paths."""
    task = task_of(([0, 1, 0, 1], True), ([1, 1, 0], False), ([0, 0, 1, 0], True))
    guess, tolerance = random_transitions(task, 3, 1), 1e-3
    now, before, wanted = guess, None, 0
    while True:
        likelihood, counts = over_all_paths(task, 3, now)
        rows = counts.sum(axis=1, keepdims=True)
        updated = np.where(rows > 0, counts / np.where(rows > 0, rows, 1), now)
        change = np.abs(updated - now).sum(axis=1).max() / len(guess)
        gain = np.inf if before is None else abs(likelihood - before) / (1 + abs(before))
        now, before, wanted = updated, likelihood, wanted + 1
        if max(change, gain) < tolerance:
            break
    assert wanted > 2
    found = fit(engine(task, 3), guess, tolerance=tolerance, iterations=1_000)
    assert (found.iterations, found.converged) == (wanted, True)


@pytest.mark.parametrize("engine", ENGINES)
def test_out_of_time_keeps_what_was_reached(engine):
    task = task_of(([0, 1, 0, 1], True))
    guess = random_transitions(task, 3, 0)
    found = fit(engine(task, 3), guess, time_limit=-1.0)
    assert (found.iterations, found.out_of_time, found.converged) == (0, True, False)
