"""The exact search against all machines, tried one by one."""

import itertools
import pickle
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles import smallest_machine

from automata import moves
from exact_samples import (
    assert_explains,
    hard_samples,
    honest_samples,
    partitions,
    rows_of,
    same,
    world_samples,
)
from interrupting import interrupt
from resolvent.errors import MissingExtra
from resolvent.inference import exact_search, state_merging
from resolvent.inference.engine import Limits, merge, search
from resolvent.inference.exact_search import SizeAttempt, minimal_automaton
from resolvent.inference.exact_solver import DistinctTraces
from resolvent.inference.fit import IMPOSSIBLE, STOPPED, UNDECIDED
from resolvent.preprocess.reduction import remove_redundant, remove_trivial, trivial_codes
from resolvent.preprocess.samples import Histories, find_contradiction, output_samples
from resolvent.preprocess.timing import LabelTiming
from shuffled_workers import ShuffledWorkers
from strategies import sample_set
from worlds import random_world


def exact(samples):
    return minimal_automaton(samples, merge(samples))


def is_proven(found):
    return found.lower_bound == found.automaton.states


# ---- against all machines --------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(honest_samples)
def test_no_machine_is_smaller_and_unique_means_unique(samples):
    found = exact(samples)
    states = found.automaton.states
    assert_explains(found.automaton, samples)
    assert found.lower_bound == states
    assume(states <= 3)
    assert states == smallest_machine(rows_of(samples), len(samples.labels), at_most=3)
    assert found.unique is (len(partitions(samples, states)) == 1)
    if found.unique:
        assert found.alternative is None
    else:
        assert_explains(found.alternative, samples)
        assert found.alternative.states == states
        assert not same(found.alternative, found.automaton)


@settings(deadline=None, max_examples=60)
@given(honest_samples, st.integers(0, 2**32))
def test_the_order_and_number_of_traces_make_no_difference(samples, seed):
    traces = rows_of(samples)
    random = np.random.default_rng(seed)
    shuffled = [traces[i] for i in random.permutation(len(traces))]
    again = sample_set(
        shuffled,
        labels=len(samples.labels),
        alphas=len(samples.alpha_keys),
        outputs=len(samples.outputs),
    )
    first, second = exact(samples).automaton, exact(again).automaton
    assert same(first, second)
    assert np.array_equal(first.access, second.access)


# ---- by hand ---------------------------------------------------------------


def test_without_rows_one_state_is_enough():
    found = exact(sample_set([[]]))
    assert (found.lower_bound, found.unique) == (1, True)
    assert found.automaton.access.tolist() == [0]


def test_a_transition_without_later_queries_is_no_difference():
    # Label 1 is read last, and nothing is asked after it.
    found = exact(sample_set([[(-1, 0, 0), (0, 0, 1), (0, 0, 0), (1, -1, -1)]]))
    automaton = found.automaton
    assert (automaton.states, found.lower_bound, found.unique) == (2, 2, True)
    edges = zip(
        automaton.transition_state.tolist(),
        automaton.transition_label.tolist(),
        automaton.transition_target.tolist(),
        strict=True,
    )
    assert list(edges) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]


def test_machines_with_different_initial_states_are_two():
    """Found by Hypothesis: all that the one does the other does too, begun in another state."""
    rows = [(0, 1, 1), (0, -1, -1), (1, -1, -1), (1, -1, -1), (-1, 1, 1), (1, 1, 0)]
    found = exact(sample_set([rows]))
    assert (found.automaton.states, found.unique) == (2, False)


def test_a_query_observed_once_leaves_two_machines():
    # After label 1 only alpha 1 is asked, and never elsewhere: any state will do.
    found = exact(sample_set([[(-1, 0, 0), (0, 0, 1), (1, 1, 0)]]))
    assert (found.automaton.states, found.unique) == (2, False)
    assert found.alternative is not None


# ---- recovery --------------------------------------------------------------


def is_truth(world, samples, automaton):
    """Whether there is a bijection that takes the world's transitions to the automaton's."""
    step = moves(automaton)
    codes = {int(next(iter(label))): code for code, label in enumerate(samples.labels) if label}
    partner, ahead = {0: 0}, [0]
    for state in ahead:
        for label, code in codes.items():
            target = world.tm_transitions[state][label]
            found = step.get((partner[state], code))
            if found is None:
                continue
            if target not in partner:
                partner[target] = found
                ahead.append(target)
            if partner[target] != found:
                return False
    return len(set(partner.values())) == len(partner) == automaton.states


def test_a_world_that_merging_misses_is_found():
    world, samples = world_samples(0, 40, size=11, labels=4, tm_states=5)
    upper = merge(samples)
    assert upper.states > 5
    found = minimal_automaton(samples, upper)
    assert (found.automaton.states, found.lower_bound, found.unique) == (5, 5, True)
    assert is_truth(world, samples, found.automaton)


def test_a_minimal_machine_is_returned_unchanged():
    _, samples = world_samples(0, 3000, size=11, labels=3, tm_states=4)
    upper = merge(samples)
    found = minimal_automaton(samples, upper)
    automaton = found.automaton
    assert found.lower_bound == automaton.states == upper.states == 4
    assert found.unique
    assert sorted(automaton.output_count.tolist()) == sorted(upper.output_count.tolist())
    assert sorted(automaton.transition_count.tolist()) == sorted(upper.transition_count.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_papers_worlds_are_found_in_25_000_steps(seed):
    world = random_world(seed)
    traces = world.rollouts(400, 0)
    traces = traces[: int(np.searchsorted(traces.offsets, 25_000, side="right")) - 1]
    histories = remove_trivial(
        Histories.of(traces, LabelTiming.CURRENT), trivial_codes(traces.labels)
    )
    samples = remove_redundant(output_samples(traces, histories, "observation"))[0]
    found = minimal_automaton(samples, search(samples), limits=Limits(60))
    assert is_proven(found)
    assert is_truth(world, samples, found.automaton)


# ---- time, signals, extras -------------------------------------------------


@pytest.fixture
def looks(monkeypatch):
    """A clock on which a second passes with each look at it."""
    seconds = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr(state_merging, "time", clock)


def test_out_of_time_gives_the_best_machine_with_the_proven_bounds(looks):
    samples = hard_samples()
    assert find_contradiction(samples) is None
    upper = merge(samples)
    found = minimal_automaton(samples, upper, limits=Limits(4_000))
    assert_explains(found.automaton, samples)
    assert 2 <= found.lower_bound < found.automaton.states <= upper.states
    assert found.unique is None


def test_without_time_the_upper_bound_is_returned():
    samples = hard_samples()
    upper = merge(samples)
    found = minimal_automaton(samples, upper, limits=Limits(1e-9))
    assert found.automaton.states == upper.states
    assert found.lower_bound >= 1


def test_the_bounds_are_reported(looks):
    heard = []
    samples = hard_samples()
    minimal_automaton(samples, merge(samples), limits=Limits(4_000, heard.append))
    assert heard
    assert all(now.states >= 1 and now.undecided >= 0 and now.done <= now.total for now in heard)
    assert [now.states for now in heard] == sorted(now.states for now in heard)


def test_an_error_of_the_listener_passes_through():
    def stop(_):
        raise RuntimeError("enough")

    samples = hard_samples()
    with pytest.raises(RuntimeError, match="enough"):
        minimal_automaton(samples, merge(samples), limits=Limits(listener=stop))


SLOW = """
import signal, sys
sys.path[:0] = {paths!r}
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits "ignore"
from test_exact_search import hard_samples, exact
samples = hard_samples()
print("ready", flush=True)
exact(samples)
print("finished", flush=True)
"""


@pytest.mark.parametrize("wait", [0.3, 1.5])
def test_ctrl_c_stops_the_exact_search(wait):
    paths = [path for path in sys.path if path]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(paths=paths)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(wait)
        assert process.poll() is None
        interrupt(process)
        out, err = process.communicate()
    finally:
        process.kill()
        process.communicate()
    assert "KeyboardInterrupt" in err
    assert out == ""


def test_without_a_solver_the_extra_is_named(monkeypatch):
    samples = sample_set([[(-1, 0, 0)]])
    monkeypatch.setitem(sys.modules, "pysat.solvers", None)
    with pytest.raises(MissingExtra) as caught:
        exact(samples)
    assert str(caught.value) == (
        'proving machines minimal needs a SAT solver: pip install "resolvent[exact]"'
    )


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
    monkeypatch.setattr(exact_search, "ALONE", 0)
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
    monkeypatch.setattr(exact_search, "time", clock)
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
