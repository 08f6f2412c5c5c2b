"""Expectation-maximization, compared with all hidden paths, with hmmlearn and with its guarantees."""

import numpy as np
import pytest
from hidden_paths import over_all_paths, random_transitions, task_of, tasks
from hmmlearn.hmm import CategoricalHMM
from hypothesis import given, settings
from hypothesis import strategies as st

from resolvent import _core
from resolvent.errors import TimeLimitReached, TraceError
from resolvent.paper.baselines import hmm_em
from resolvent.paper.baselines.hmm_em import Expectation, FinalRewardTask, baum_welch
from resolvent.paper.baselines.outcome import Clock
from resolvent.traces import Trace, TraceSet

NO_TIME = Clock(1e-12)

# --- The task ---


def walk(rooms, rewards, **ends):
    labels = ["key" if room == "attic" else None for room in rooms]
    return Trace(rooms, labels, ["go"] * len(rewards), rewards, **ends)


def test_observations_and_completion_are_read_trace_by_trace():
    task = FinalRewardTask.of(
        TraceSet(
            [
                walk(["hall", "attic", "hall"], [0, 2], terminated=True),
                walk(["attic", "attic"], [0], truncated=True),
            ]
        )
    )
    assert task.observations.tolist() == [1, 0, 1, 0, 0]
    assert task.sources.tolist() == [1, 0, 0]
    assert task.targets.tolist() == [0, 1, 0]
    assert task.starts.tolist() == [1, 0]
    assert task.completed.tolist() == [True, False]
    assert task.labels == (frozenset({"key"}), frozenset())
    assert task.reward == 2


@pytest.mark.parametrize(
    ("traces", "message"),
    [
        ([], "there are no traces"),
        ([walk(["a", "b"], [0])], "no trace has a reward"),
        (
            [walk(["a", "b", "a"], [1, 0])],
            "trace 0, step 0 has reward 1: .* only the last step may have a reward",
        ),
        (
            [walk(["a", "b", "a"], [-1, 1])],
            "trace 0, step 0 has reward -1: .* no reward may be negative",
        ),
        ([walk(["a", "b"], [1]), walk(["a", "b"], [2])], "trace 0, step 0 has reward 1: .* here 2"),
        (
            [walk(["a", "b"], [1]), walk(["a", "b"], [0], terminated=True)],
            "trace 1 terminates without a reward",
        ),
        (
            [Trace(["a", "a"], ["key", "lamp"], ["go"], [1])],
            "the observation 'a' has the labels 'key' and 'lamp'",
        ),
    ],
)
def test_traces_of_other_tasks_are_refused_with_the_reason(traces, message):
    with pytest.raises(TraceError, match=message):
        FinalRewardTask.of(TraceSet(traces))


# --- Expected transitions ---


def expected(expectation, transitions):
    probabilities = transitions[expectation.source, expectation.target]
    log_likelihood, values = expectation.counts(probabilities, Clock(None))
    counts = np.zeros_like(transitions)
    counts[expectation.source, expectation.target] = values
    return log_likelihood, counts


def test_one_hidden_choice_by_hand():
    # Observations 0 → 1 → end at 0, two layers and the end: the one choice is the layer at 1.
    task = task_of(([0, 1, 0], True))
    transitions = np.zeros((6, 6))
    transitions[0, 1], transitions[0, 3] = 0.5, 0.25  # to observation 1 in layer 0, in layer 1
    transitions[1, 4], transitions[3, 4] = 0.1, 0.6  # to the end with observation 0
    log_likelihood, counts = expected(Expectation(task, 3), transitions)
    assert log_likelihood == pytest.approx(np.log(0.5 * 0.1 + 0.25 * 0.6))
    assert counts[0, 1] == counts[1, 4] == pytest.approx(0.25)
    assert counts[0, 3] == counts[3, 4] == pytest.approx(0.75)
    assert counts.sum() == pytest.approx(2)


@given(task=tasks(longest=5, most_walks=3), states=st.integers(2, 4), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_expectations_are_sums_over_all_hidden_paths(task, states, seed):
    transitions = random_transitions(task, states, seed)
    log_likelihood, counts = expected(Expectation(task, states), transitions)
    true_log_likelihood, true_counts = over_all_paths(task, states, transitions)
    assert log_likelihood == pytest.approx(true_log_likelihood, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(counts, true_counts, rtol=1e-9, atol=1e-12)


def test_traces_in_parts_give_the_same_as_all_at_once(monkeypatch):
    walks = [([0, 1, 2, 1, 0], True), ([1, 1], False), ([2, 0, 1], True), ([0, 2], True)]
    transitions = random_transitions(task_of(*walks), 3, 0)
    whole = expected(Expectation(task_of(*walks), 3), transitions)
    monkeypatch.setattr(hmm_em, "_STEPS_AT_ONCE", 3)
    parts = expected(Expectation(task_of(*walks), 3), transitions)
    assert parts[0] == pytest.approx(whole[0])
    np.testing.assert_allclose(parts[1], whole[1])


def test_long_traces_do_not_underflow():
    # Each step has probability 1/8, so that of the whole is far below the smallest number.
    task = task_of(([0, 1] * 2_000, True))
    transitions = np.full((6, 6), 1 / 8)
    log_likelihood, counts = expected(Expectation(task, 3), transitions)
    # Two layers fit each of the 3,998 observations in the middle.
    assert log_likelihood == pytest.approx(3_999 * np.log(1 / 8) + 3_998 * np.log(2))
    assert counts.sum() == pytest.approx(3_999)


def test_the_clock_is_checked():
    expectation = Expectation(task_of(([0, 1, 0], True)), 3)
    with pytest.raises(TimeLimitReached):
        expectation.counts(np.full(len(expectation.source), 0.1), NO_TIME)


def arguments(**changes):
    fine = {
        "move": np.zeros(2, np.int32),
        "offsets": np.array([0, 2]),
        "paid": np.ones(1, np.int32),
        "layers": 2,
        "onward": np.ones(4),
        "ending": np.ones(2),
    }
    return fine | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "at least one layer"),
        ({"onward": np.ones(5)}, "do not fit the layers"),
        ({"ending": np.ones(3)}, "do not fit the layers"),
        ({"move": np.array([1, 0], np.int32)}, "out of range"),
        ({"move": np.array([0, 1], np.int32)}, "out of range"),
        ({"move": np.array([-1, 0], np.int32)}, "out of range"),
        ({"paid": np.ones(2, np.int32)}, "one entry per trace"),
        ({"offsets": np.array([0, 0, 2]), "paid": np.ones(2, np.int32)}, "has no moves"),
        ({"offsets": np.array([0, 3])}, "offsets must end"),
    ],
)
def test_the_core_refuses_columns_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.expected_layers(**arguments(**changes))


def test_the_core_refuses_other_types_of_numbers():
    with pytest.raises(TypeError):
        _core.expected_layers(**arguments(onward=np.ones(4, np.int64)))
    with pytest.raises(TypeError):
        _core.expected_layers(**arguments(ending=np.ones(2, np.float32)))
    with pytest.raises(TypeError):
        _core.expected_layers(**arguments(move=np.zeros(2)))


# --- The likeliest transitions ---


class Recording(Expectation):
    """Records the likelihood before each update."""

    def __init__(self, task, states):
        super().__init__(task, states)
        self.likelihoods = []

    def counts(self, probabilities, clock):
        log_likelihood, counts = super().counts(probabilities, clock)
        self.likelihoods.append(log_likelihood)
        return log_likelihood, counts


def fit(expectation, guess, *, tolerance=0.0, iterations=15, clock=None):
    clock = clock or Clock(None)
    return baum_welch(expectation, guess, clock, tolerance=tolerance, iterations=iterations)


def random_walks(seed, n_observations, count):
    draws = np.random.default_rng(seed)
    lengths = draws.integers(2, 30, count)
    return task_of(
        *(
            (draws.integers(0, n_observations, n).tolist(), bool(draws.random() < 0.7))
            for n in lengths
        ),
        ([0, n_observations - 1], True),
    )


@pytest.mark.parametrize("seed", range(3))
def test_hmmlearn_finds_the_same(seed):
    states, n_observations = 3, 4
    task = random_walks(seed, n_observations, 20)
    guess = random_transitions(task, states, seed)
    ours = Recording(task, states)
    fitted = fit(ours, guess)

    symbols = task.observations.copy()
    symbols[task.offsets[1:] + np.arange(len(task.completed))] += n_observations * task.completed
    emissions = np.zeros((n_observations * states, 2 * n_observations))
    for state in range(n_observations * states):
        layer, observation = divmod(state, n_observations)
        emissions[state, observation + n_observations * (layer == states - 1)] = 1
    theirs = CategoricalHMM(
        n_observations * states,
        params="t",
        init_params="",
        n_iter=15,
        tol=-np.inf,
        n_features=2 * n_observations,
    )
    starts = np.bincount(task.starts, minlength=n_observations * states) / len(task.starts)
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = starts, guess, emissions
    theirs.fit(symbols.reshape(-1, 1), lengths=np.diff(task.offsets) + 1)

    of_starts = np.log(starts[task.starts]).sum()
    np.testing.assert_allclose(
        np.array(ours.likelihoods) + of_starts, list(theirs.monitor_.history), rtol=1e-9
    )
    np.testing.assert_allclose(fitted.transitions, theirs.transmat_, rtol=1e-7, atol=1e-9)


@given(task=tasks(longest=20), states=st.integers(2, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_no_update_lowers_the_likelihood(task, states, seed):
    expectation = Recording(task, states)
    fit(expectation, random_transitions(task, states, seed))
    likelihoods = expectation.likelihoods
    assert len(likelihoods) == 15
    assert all(np.diff(likelihoods) >= -1e-9 * (1 + np.abs(likelihoods[:-1])))


def test_one_update_is_the_share_of_expected_transitions():
    task = task_of(([0, 1, 0, 1], True), ([1, 1, 0], False))
    guess = random_transitions(task, 3, 0)
    _, counts = over_all_paths(task, 3, guess)
    rows = counts.sum(axis=1, keepdims=True)
    updated = fit(Expectation(task, 3), guess, iterations=1).transitions
    np.testing.assert_allclose(updated, counts / np.where(rows > 0, rows, 1))


def test_it_stops_at_the_iteration_that_the_rule_names():
    """The rule, in plain NumPy over all hidden paths."""
    task = task_of(([0, 1, 0, 1], True), ([1, 1, 0], False), ([0, 0, 1, 0], True))
    guess, tolerance = random_transitions(task, 3, 1), 1e-3
    current, before, expected_iterations = guess, None, 0
    while True:
        likelihood, counts = over_all_paths(task, 3, current)
        rows = counts.sum(axis=1, keepdims=True)
        updated = np.where(rows > 0, counts / np.where(rows > 0, rows, 1), current)
        change = np.abs(updated - current).sum(axis=1).max() / len(guess)
        gain = np.inf if before is None else abs(likelihood - before) / (1 + abs(before))
        current, before, expected_iterations = updated, likelihood, expected_iterations + 1
        if max(change, gain) < tolerance:
            break
    assert expected_iterations > 2
    fitted = fit(Expectation(task, 3), guess, tolerance=tolerance, iterations=1_000)
    assert (fitted.iterations, fitted.converged) == (expected_iterations, True)


def test_out_of_time_before_the_first_iteration():
    task = task_of(([0, 1, 0, 1], True))
    fitted = fit(Expectation(task, 3), random_transitions(task, 3, 0), clock=NO_TIME)
    assert (fitted.iterations, fitted.out_of_time, fitted.converged) == (0, True, False)
