from collections import defaultdict
from itertools import pairwise
from math import log

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from resolvent.errors import OptionError, TraceError
from resolvent.paper.baselines import lrm
from resolvent.paper.baselines.lrm import Compressed, neighbors
from resolvent.traces import Trace, TraceSet

NOTHING = frozenset({"nothing"})


def trace_of(word, rewards=None):
    steps = len(word) - 1
    return Trace(["o"] * len(word), list(word), ["a"] * steps, rewards or [0.0] * steps)


@st.composite
def words(draw):
    some = st.lists(st.sampled_from("abc"), min_size=2, max_size=8)
    return TraceSet(trace_of(word) for word in draw(st.lists(some, min_size=1, max_size=5)))


def compressed(trace, first_counts=True):
    labels = [trace.labels[0] if first_counts else NOTHING, *trace.labels[1:]]
    return [labels[0], *(after for before, after in pairwise(labels) if after != before)]


def plain_cost(step, traces, first_counts=True):
    """Σ log |N_{x, l}| as it is defined; `step` is a function of state and label."""
    after, times = defaultdict(set), defaultdict(int)
    for trace in traces:
        word, state = compressed(trace, first_counts), 0
        for now, then in pairwise(word):
            after[state, now].add(then)
            times[state, now] += 1
            state = step(state, then)
    return sum(count * log(len(after[case])) for case, count in times.items())


def moving(machine):
    """Steps of a machine; it stays where it was never shown a label, or has ended."""

    def step(state, label):
        if machine.has_ended(state):
            return state
        target, _ = machine.step(state, label)
        return state if target < 0 else target

    return step


def test_memory_of_a_cue_is_found():
    # After y comes c if a came before, d if b did; x comes before either.
    traces = TraceSet([trace_of("xayc"), trace_of("xbyd")])
    outcome = lrm(traces, steps=20)
    assert outcome.status == "found"
    assert outcome.details["cost_of_one_state"] == pytest.approx(4 * log(2))
    assert outcome.details["cost"] == pytest.approx(2 * log(2))
    assert outcome.states == 2


def test_rewards_are_means_on_the_edges():
    traces = TraceSet([trace_of("xa", [1.0]), trace_of("xa", [0.0]), trace_of("xaa", [0.5, 0.5])])
    outcome = lrm(traces)
    assert outcome.machine.step(0, {"a"}) == (0, 0.5)
    assert outcome.details["edges_with_several_rewards"] == 1


@given(words(), st.booleans(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_cost_is_that_of_the_definition(traces, first_counts, seed):
    outcome = lrm(traces, most_states=3, steps=6, seed=seed, first_counts=first_counts)
    step = moving(outcome.machine)
    assert outcome.details["cost"] == pytest.approx(
        plain_cost(step, traces, first_counts), abs=1e-6
    )
    one = plain_cost(lambda state, label: 0, traces, first_counts)
    assert outcome.details["cost_of_one_state"] == pytest.approx(one, abs=1e-6)
    assert outcome.details["cost"] <= one + 1e-6
    assert outcome.states <= 3


@given(words(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_repeated_labels_change_nothing(traces, first_counts):
    """The machine ends in the same state whether repeated labels are left out or not."""
    step = moving(lrm(traces, most_states=3, steps=6, first_counts=first_counts).machine)
    for trace in traces:
        whole = short = 0
        for label in trace.labels[1:]:
            whole = step(whole, label)
        for label in compressed(trace, first_counts)[1:]:
            short = step(short, label)
        assert whole == short


@given(words(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_neighbors_keep_the_rules(traces, random):
    data = Compressed.of(traces)
    table = np.zeros((1, data.labels), np.int32)
    for _ in range(4):
        around = list(neighbors(table, data, 3))
        for one in around:
            assert len(one) <= 3
            for state, row in enumerate(one):
                for label, target in enumerate(row):
                    if target != state:
                        assert one[target, label] == target
                        assert state != 0 or not data.first[label]
            before = np.vstack([table, np.full((1, data.labels), len(table))])[: len(one)]
            assert np.count_nonzero(one != before) == 1
        if not around:
            break
        table = random.choice(around)


def test_the_same_seed_gives_the_same_machine():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=30, seed=0)
    one, other = (lrm(traces, steps=10, seed=3) for _ in range(2))
    assert one.machine == other.machine
    assert one.details["cost"] == other.details["cost"]


def test_grids_that_begin_on_every_label_leave_one_state():
    traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=275, seed=0)
    outcome = lrm(traces)
    assert (outcome.states, outcome.details["steps"]) == (1, 0)
    assert lrm(traces, first_counts=False, steps=3).details["steps"] == 3


def test_no_machine_is_visited_twice():
    traces = TraceSet([trace_of("xayc"), trace_of("xbyd")])
    data = Compressed.of(traces)
    everything, queue = set(), [np.zeros((1, data.labels), np.int32)]
    while queue:
        table = queue.pop()
        if table.tobytes() not in everything:
            everything.add(table.tobytes())
            queue.extend(neighbors(table, data, 2))
    assert lrm(traces, steps=10_000, most_states=2).details["steps"] < len(everything)


def test_a_time_limit_gives_the_best_so_far():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=30, seed=0)
    outcome = lrm(traces, time_limit=1e-9)
    assert (outcome.status, outcome.states) == ("time limit", 1)


def test_options_that_make_no_sense_are_refused():
    traces = TraceSet([trace_of("xa")])
    for wrong in ({"most_states": 0}, {"steps": -1}, {"time_limit": -1.0}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            lrm(traces, **wrong)
    with pytest.raises(TraceError, match="no traces"):
        lrm(TraceSet([]))
