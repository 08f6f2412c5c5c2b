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
from resolvent.inference.attempts import IMPOSSIBLE, STOPPED, UNDECIDED
from resolvent.inference.engine import merge
from resolvent.inference.exact import search
from resolvent.inference.exact.problem import Problem
from resolvent.inference.exact.search import Portfolio, SizeAttempt, minimal_automaton
from resolvent.preprocess.samples import SampleSet
from shuffled_workers import ShuffledWorkers
from strategies import sample_set

ORDERS = range(6)


@pytest.fixture
def nothing_alone(monkeypatch):
    """Have workers do all that solvers do."""
    monkeypatch.setattr("resolvent.inference.exact.search.ALONE", 0)


def side_by_side(samples: SampleSet, workers, time_limit=None):
    return minimal_automaton(samples, merge(samples), time_limit=time_limit, workers=workers)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(honest_samples, st.integers(0, 2**32), st.integers(0, 2**32))
def test_results_do_not_depend_on_which_attempt_ends_first(nothing_alone, samples, one, another):
    automaton, certificate = side_by_side(samples, ShuffledWorkers(one))
    again, second = side_by_side(samples, ShuffledWorkers(another))
    assert same(automaton, again)
    assert (certificate.states, certificate.lower_bound, certificate.unique) == (
        second.states,
        second.lower_bound,
        second.unique,
    )
    assert (certificate.alternative is None) == (second.alternative is None)
    if certificate.alternative is not None:
        assert same(certificate.alternative, second.alternative)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(honest_samples, st.integers(0, 2**32))
def test_proofs_hold(nothing_alone, samples, order):
    automaton, certificate = side_by_side(samples, ShuffledWorkers(order))
    assert_explains(automaton, samples)
    assert certificate.proven
    alone, known = minimal_automaton(samples, merge(samples), time_limit=None)
    assert known.states == certificate.states
    assert known.unique == certificate.unique
    if certificate.unique:
        assert same(automaton, alone)
    assume(automaton.states <= 3)
    assert automaton.states == smallest_machine(rows_of(samples), len(samples.labels), at_most=3)
    assert certificate.unique is (len(partitions(samples, automaton.states)) == 1)


def few_answers(seed):
    """Walks through a random machine of four states, so few that merging finds more."""
    random = np.random.default_rng(seed)
    step, answer = random.integers(4, size=(4, 2)), random.integers(2, size=(4, 2))
    traces = []
    for _ in range(12):
        state, trace = 0, []
        for _ in range(8):
            label = int(random.integers(2))
            state = int(step[state, label])
            asked = int(random.integers(2))
            trace.append((label, asked, int(answer[state, asked])))
        traces.append(trace)
    return sample_set(traces, labels=2, alphas=2, outputs=2)


@pytest.mark.parametrize(
    ("seed", "merged", "unique"), [(16, 10, True), (0, 5, True), (22, 5, False), (80, 5, False)]
)
def test_a_smaller_machine_is_the_same_in_any_order(nothing_alone, seed, merged, unique):
    samples = few_answers(seed)
    found = [side_by_side(samples, ShuffledWorkers(order)) for order in range(10)]
    assert merge(samples).states == merged
    first, certificate = found[0]
    assert (first.states, certificate.lower_bound, certificate.unique) == (4, 4, unique)
    for automaton, other in found[1:]:
        assert same(automaton, first)
        assert other.unique is unique
        assert unique or same(other.alternative, certificate.alternative)
    # Not all of them have gone the same way.
    ways = {tuple(map(str, one.effort.ran)) for _, one in found}
    assert len({re.sub(r", [0-9.]+ s", "", "; ".join(way)) for way in ways}) > 1


def test_one_proof_is_enough_and_stops_the_others(nothing_alone):
    _, samples = world_samples(0, 3000, size=11, labels=3, tm_states=4)
    problem = Problem(samples)
    best = problem.table_of(merge(samples))
    assert len(best) == 4
    for order in ORDERS:
        portfolio = Portfolio(problem.question, ShuffledWorkers(order), None, lambda: None)
        lower, table = portfolio.close_gap(1, best)
        assert (lower, table is best) == (4, True)
        outcomes = {one.what: one.outcome for one in portfolio.ran}
        assert set(outcomes.values()) <= {IMPOSSIBLE, STOPPED}
        assert IMPOSSIBLE in {outcomes[f"3 states, seed {seed}"] for seed in range(4)}


def test_easy_problems_use_no_workers():
    _, samples = world_samples(0, 40, size=11, labels=4, tm_states=5)
    workers = ShuffledWorkers(0)
    workers.first = None  # nobody calls it
    automaton, certificate = side_by_side(samples, workers)
    alone, known = minimal_automaton(samples, merge(samples), time_limit=None)
    assert same(automaton, alone)
    assert certificate == known
    assert certificate.effort.ran == ()


def test_a_time_limit_returns_the_bounds_proven_so_far(nothing_alone, monkeypatch):
    seconds = itertools.count()  # one passes with each look at the clock
    looked = SimpleNamespace(
        time=lambda: float(next(seconds)), monotonic=time.monotonic, perf_counter=time.perf_counter
    )
    monkeypatch.setattr(search, "time", looked)
    samples = hard_samples()
    automaton, certificate = side_by_side(samples, ShuffledWorkers(1), time_limit=5_000)
    assert_explains(automaton, samples)
    assert not certificate.proven
    assert {one.outcome for one in certificate.effort.ran} == {IMPOSSIBLE, UNDECIDED}
    proven = {one.what for one in certificate.effort.ran if one.outcome == IMPOSSIBLE}
    assert f"{certificate.lower_bound - 1} states, seed 0" in proven


def test_a_question_can_be_sent():
    _, samples = world_samples(0, 40, size=11, labels=4, tm_states=5)
    question = Problem(samples).question
    table = question.canonical(np.zeros((2, question.labels), np.int32))  # builds what is not sent
    again = pickle.loads(pickle.dumps(question))  # noqa: S301
    assert np.array_equal(again.canonical(np.zeros((2, question.labels), np.int32)), table)


def test_text_of_an_attempt():
    table = np.zeros((1, 2), np.int32)
    assert str(SizeAttempt(6, 1)) == "6 states, seed 1"
    assert str(SizeAttempt(1, 0, table)) == "another of 1 state, seed 0"
