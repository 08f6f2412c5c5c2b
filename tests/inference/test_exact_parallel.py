"""Sizes and seeds in parallel: the same result, whichever attempt ends first."""

import itertools
import pickle
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles import smallest_machine

from exact_samples import (
    assert_explains,
    hard_samples,
    honest_samples,
    partitions,
    rows_of,
    same,
    world_samples,
)
from resolvent.inference import exact_search as search
from resolvent.inference.engine import Limits, merge
from resolvent.inference.exact_search import SizeAttempt, minimal_automaton
from resolvent.inference.exact_solver import DistinctTraces
from resolvent.inference.fit import IMPOSSIBLE, STOPPED, UNDECIDED
from shuffled_workers import ShuffledWorkers
from strategies import sample_set

ORDERS = range(6)


@pytest.fixture
def only_workers(monkeypatch):
    """Have workers do all that solvers do."""
    monkeypatch.setattr("resolvent.inference.exact_search.ALONE", 0)


def in_parallel(samples, workers, time_limit=None):
    return minimal_automaton(samples, merge(samples), limits=Limits(time_limit), workers=workers)


def alone(samples):
    return minimal_automaton(samples, merge(samples))


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(honest_samples, st.integers(0, 2**32), st.integers(0, 2**32))
def test_results_do_not_depend_on_which_attempt_ends_first(only_workers, samples, one, another):
    first, second = (in_parallel(samples, ShuffledWorkers(seed)) for seed in (one, another))
    assert same(first.automaton, second.automaton)
    assert (first.lower_bound, first.unique) == (second.lower_bound, second.unique)
    assert (first.alternative is None) == (second.alternative is None)
    if first.alternative is not None:
        assert same(first.alternative, second.alternative)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(honest_samples, st.integers(0, 2**32))
def test_proofs_hold(only_workers, samples, order):
    found, expected = in_parallel(samples, ShuffledWorkers(order)), alone(samples)
    states = found.automaton.states
    assert_explains(found.automaton, samples)
    assert found.lower_bound == states == expected.automaton.states
    assert found.unique == expected.unique
    if found.unique:
        assert same(found.automaton, expected.automaton)
    assume(states <= 3)
    assert states == smallest_machine(rows_of(samples), len(samples.labels), at_most=3)
    assert found.unique is (len(partitions(samples, states)) == 1)


def scarce_samples(seed):
    """Walks through a random machine of four states, so few that merging finds more."""
    random = np.random.default_rng(seed)
    step, outputs = random.integers(4, size=(4, 2)), random.integers(2, size=(4, 2))
    traces = []
    for _ in range(12):
        state, trace = 0, []
        for _ in range(8):
            label = int(random.integers(2))
            state = int(step[state, label])
            alpha = int(random.integers(2))
            trace.append((label, alpha, int(outputs[state, alpha])))
        traces.append(trace)
    return sample_set(traces, labels=2, alphas=2, outputs=2)


@pytest.mark.parametrize(
    ("seed", "merged", "unique"), [(16, 10, True), (0, 5, True), (22, 5, False), (80, 5, False)]
)
def test_a_smaller_machine_is_the_same_in_any_order(only_workers, seed, merged, unique):
    samples = scarce_samples(seed)
    results = [in_parallel(samples, ShuffledWorkers(order)) for order in range(10)]
    assert merge(samples).states == merged
    first = results[0]
    assert (first.automaton.states, first.lower_bound, first.unique) == (4, 4, unique)
    for result in results[1:]:
        assert same(result.automaton, first.automaton)
        assert result.unique is unique
        assert unique or same(result.alternative, first.alternative)
    # The attempts that ended differ.
    logs = {"; ".join(map(str, result.attempts)) for result in results}
    assert len({re.sub(r", [0-9.]+ s", "", log) for log in logs}) > 1


def test_one_proof_is_enough_and_stops_the_others(monkeypatch):
    _, samples = world_samples(0, 3000, size=11, labels=3, tm_states=4)
    monkeypatch.setattr(search, "ALONE", 0)
    monkeypatch.setattr("resolvent.inference.exact_solver.Part.clique", lambda part: [0])
    for order in ORDERS:
        found = in_parallel(samples, ShuffledWorkers(order))
        assert found.lower_bound == found.automaton.states == 4
        outcomes = {attempt.name: attempt.outcome for attempt in found.attempts}
        assert set(outcomes.values()) <= {IMPOSSIBLE, STOPPED}
        assert IMPOSSIBLE in {outcomes[f"3 states, seed {seed}"] for seed in range(4)}


def test_easy_problems_use_no_workers():
    _, samples = world_samples(0, 40, size=11, labels=4, tm_states=5)
    workers = ShuffledWorkers(0)
    workers.map_until = None  # must not be called
    found, expected = in_parallel(samples, workers), alone(samples)
    assert same(found.automaton, expected.automaton)
    assert (found.lower_bound, found.unique) == (expected.lower_bound, expected.unique)
    assert found.attempts == ()


def test_a_time_limit_returns_the_bounds_proven_so_far(only_workers, monkeypatch):
    seconds = itertools.count()  # one passes with each look at the clock
    clock = SimpleNamespace(
        time=lambda: float(next(seconds)), monotonic=time.monotonic, perf_counter=time.perf_counter
    )
    monkeypatch.setattr(search, "time", clock)
    samples = hard_samples()
    found = in_parallel(samples, ShuffledWorkers(1), time_limit=5_000)
    assert_explains(found.automaton, samples)
    assert found.lower_bound < found.automaton.states
    assert {attempt.outcome for attempt in found.attempts} == {IMPOSSIBLE, UNDECIDED}
    proven = {attempt.name for attempt in found.attempts if attempt.outcome == IMPOSSIBLE}
    assert f"{found.lower_bound - 1} states, seed 0" in proven


def test_traces_can_be_sent():
    _, samples = world_samples(0, 40, size=11, labels=4, tm_states=5)
    traces = DistinctTraces.of(samples)
    table = traces.canonical(np.zeros((2, traces.labels), np.int32))  # builds what is not sent
    again = pickle.loads(pickle.dumps(traces))  # noqa: S301
    assert np.array_equal(again.canonical(np.zeros((2, traces.labels), np.int32)), table)


def test_text_of_an_attempt():
    assert str(SizeAttempt(6, 1)) == "6 states, seed 1"
