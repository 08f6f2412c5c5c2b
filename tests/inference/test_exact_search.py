"""The exact search against all machines, tried one by one."""

import itertools
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
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
from resolvent.inference import state_merging
from resolvent.inference.engine import Limits, merge, search
from resolvent.inference.exact_search import minimal_automaton
from resolvent.preprocess.reduction import remove_redundant, remove_trivial, trivial_codes
from resolvent.preprocess.samples import Histories, find_contradiction, output_samples
from resolvent.preprocess.timing import LabelTiming
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


def test_no_time_at_all_gives_back_the_upper_bound():
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
def test_ctrl_c_ends_it_soon(wait):
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
