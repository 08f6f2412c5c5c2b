"""The search for the smallest machine: it explains all, it repeats, it beats merging."""

import os
import pickle
import subprocess
import sys
import time
from dataclasses import fields
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_samples
from automata import unexplained
from exact_samples import same
from interrupting import interrupt
from resolvent import _core
from resolvent.inference import engine as searching
from resolvent.inference.engine import (
    SEEDS,
    Limits,
    _without_names,
    merge,
    search_with_restarts,
    seeds_from,
)
from resolvent.inference.fit import FOUND, STOPPED
from resolvent.preprocess.reduction import remove_redundant, remove_trivial
from resolvent.preprocess.samples import (
    ContradictoryRows,
    Histories,
    find_contradiction,
    output_samples,
)
from resolvent.preprocess.timing import LabelTiming
from shuffled_workers import ShuffledWorkers
from strategies import columns, sample_set, sample_sets, targets
from synthetic_pair import synthetic
from worlds import random_world

EFFORT = 0.001  # for small samples, and enough for them


def search(samples, **options):
    return searching.search(samples, **{"effort": EFFORT, **options})


def found_fields(automaton, but=()):
    """Every field as plain values, to be compared; not the work, which differs with the way."""
    return {
        field.name: value.tolist() if isinstance(value, np.ndarray) else value
        for field in fields(automaton)
        if field.name not in (*but, "work")
        for value in [getattr(automaton, field.name)]
    }


def rows_of(samples):
    rows = list(
        zip(samples.beta.tolist(), samples.alpha.tolist(), samples.output.tolist(), strict=True)
    )
    return [rows[start:stop] for start, stop in pairwise(samples.offsets.tolist())]


def smallest_machine(traces, labels, at_most):
    """The fewest states that explain the rows: tables grow a transition when one is first used.

    All ways are tried, up to the names of states, which are numbered as they are met.
    """
    rows = [(n == 0, *row) for trace in traces for n, row in enumerate(trace)]

    def explains(states):
        # What is yet to be tried: (row, state, states in use, transitions, answers).
        ahead = [(0, 0, 1, {}, {})]
        while ahead:
            at, state, used, step, answer = ahead.pop()
            if at == len(rows):
                return True
            first, beta, alpha, output = rows[at]
            state = 0 if first else state
            if beta >= 0 and (state, beta) not in step:
                for target in range(min(used + 1, states)):
                    more = {**step, (state, beta): target}
                    ahead.append((at, state, max(used, target + 1), more, answer))
                continue
            state = step[state, beta] if beta >= 0 else state
            if alpha >= 0:
                if answer.get((state, alpha), output) != output:
                    continue
                answer = {**answer, (state, alpha): output}
            ahead.append((at + 1, state, used, step, answer))
        return False

    return next(states for states in range(1, at_most + 1) if explains(states))


def walks(target, traces, length, seed):
    """What random label words get as answers, one random query after each label."""
    random = Random(seed)
    made = []
    for _ in range(traces):
        state, rows = 0, []
        for _ in range(length):
            beta, alpha = random.choice(target.labels), random.choice(target.alphas)
            state = target.step[state][beta]
            rows.append((beta, alpha, target.answer[state][alpha]))
        made.append(rows)
    return made


def world_samples(world, steps):
    """Whole traces of a world, up to so many steps."""
    traces = world.rollouts(steps // 20, seed=0)
    traces = traces[: int(np.searchsorted(traces.offsets, steps, side="right")) - 1]
    no_event = [traces.labels.code(frozenset())]
    histories = remove_trivial(Histories.of(traces, LabelTiming.CURRENT), no_event)
    return remove_redundant(output_samples(traces, histories, "observation"))[0]


def is_the_world(automaton, world, samples):
    """Whether the automaton's transitions are the world's, but for the names of states."""
    names = [next(iter(label), None) for label in samples.labels]
    moves = zip(
        automaton.transition_state.tolist(),
        automaton.transition_label.tolist(),
        automaton.transition_target.tolist(),
        strict=True,
    )
    moves = list(moves)
    partner, ahead = {0: 0}, [0]
    for state in ahead:
        for source, label, target in moves:
            if source == state:
                theirs = world.tm_transitions[partner[state]][int(names[label])]
                if target not in partner:
                    ahead.append(target)
                if partner.setdefault(target, theirs) != theirs:
                    return False
    return len(partner) == len(set(partner.values())) == len(world.tm_transitions)


# ---- laws ------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(samples=sample_sets(), seed=st.integers(0, 2**64 - 1))
def test_the_search_explains_every_row_and_is_never_larger_than_edsm(samples, seed):
    rows = find_contradiction(samples)
    if rows is not None:
        with pytest.raises(ContradictoryRows) as same:
            search(samples)
        assert same.value.args == rows.args
        return
    merged = merge(samples)
    found = search(samples, seed=seed)
    assert unexplained(found, samples) == []
    assert found.states <= merged.states
    assert found.tree_nodes == merged.tree_nodes


@settings(deadline=None, max_examples=60)
@given(target=targets(states=5, labels=3), seed=st.integers(0, 2**32), data=st.data())
def test_shuffled_and_repeated_traces_give_the_same_automaton(target, seed, data):
    made = walks(target, traces=8, length=12, seed=seed)
    order = data.draw(st.permutations(range(len(made))))
    once, shuffled = search(sample_set(made)), search(sample_set([made[n] for n in order]))
    assert found_fields(once) == found_fields(shuffled)
    counts = ("transition_count", "output_count")
    again = search(sample_set([*made, *made[:5]]))
    assert found_fields(once, but=counts) == found_fields(again, but=counts)


@settings(deadline=None, max_examples=60)
@given(target=targets(states=5, labels=3), seed=st.integers(0, 2**32))
def test_the_merge_log_turns_the_tree_into_the_automaton(target, seed):
    found = search(sample_set(walks(target, traces=8, length=12, seed=seed)))
    promoted = [event.blue for event in found.events if event.red is None]
    assert found.access.tolist() == [0, *promoted]
    merged = [event for event in found.events if event.red is not None]
    assert {event.red for event in merged} <= {0, *promoted}
    assert found.states + sum(event.folded for event in merged) == found.tree_nodes
    assert found.transition_count.sum() == 8 * 12
    assert found.output_count.sum() == 8 * 12


@settings(deadline=None, max_examples=100)
@given(
    target=targets(states=4, labels=2, alphas=2, outputs=3),
    traces=st.integers(1, 4),
    length=st.integers(1, 8),
    seed=st.integers(0, 2**32),
)
def test_on_tiny_samples_no_machine_is_smaller(target, traces, length, seed):
    made = walks(target, traces, length, seed)
    assert search(sample_set(made)).states == smallest_machine(made, 2, len(target.step))


# ---- values worked out by hand ---------------------------------------------


def test_no_rows_need_one_state():
    assert search(sample_set([])).states == 1
    assert search(sample_set([[], []])).states == 1


def test_one_output_needs_one_state_and_no_search():
    made = [[(0, 0, 1), (1, 0, 1), (0, 1, 0)]] * 3
    found = search(sample_set(made), effort=1e9)
    assert (found.states, found.attempts) == (1, merge(sample_set(made)).attempts)


def test_pairwise_conflicts_of_states_prove_the_minimum():
    # A ring of four: each state answers the one query its own way.
    made = [[(-1, 0, 0), *((0, 0, n % 4) for n in range(1, 13))]]
    found = search(sample_set(made), effort=1e9)
    assert (found.states, found.attempts) == (4, merge(sample_set(made)).attempts)


def test_codes_may_be_of_any_size():
    big = 2**31 - 1
    beta, alpha = np.array([-1, big, 5, big], np.int32), np.array([big, big, 7, big], np.int32)
    output, offsets = np.array([0, big, 3, 2], np.int32), np.array([0, 4], np.int64)
    tree = _core.build_history_tree(beta, offsets)
    found = _core.search(tree, alpha, output, seed=0, budget=100_000)
    assert len(found["access"]) == 3  # three outputs for one alpha


def test_without_budget_the_result_is_that_of_edsm():
    world = random_world(0, size=9, labels=4, tm_states=4)
    samples = world_samples(world, 2_000)
    nothing = ("attempts",)
    assert found_fields(search(samples, effort=0), nothing) == found_fields(merge(samples), nothing)


# ---- what it is for --------------------------------------------------------


@pytest.fixture(scope="module")
def scarce():
    """A world of 6 states and so few traces that edsm finds far too many."""
    world = random_world(1, labels=6, tm_states=6)
    return world, world_samples(world, 10_000)


def test_the_search_finds_a_machine_that_merging_misses(scarce):
    world, samples = scarce
    found = searching.search(samples)
    assert merge(samples).states > 20
    assert unexplained(found, samples) == []
    assert is_the_world(found, world, samples)


def test_other_seeds_find_the_same_machine(scarce):
    _, samples = scarce
    found = [search(samples, seed=seed, effort=1) for seed in range(4)]
    first, *others = (found_fields(automaton, but=("attempts",)) for automaton in found)
    assert all(other == first for other in others)


def test_the_same_seed_gives_the_same_automaton(scarce):
    _, samples = scarce
    one, other = (search(samples, seed=7, effort=0.1) for _ in range(2))
    assert found_fields(one) == found_fields(other)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_search_finds_the_papers_worlds_in_25_000_steps(seed):
    world = random_world(seed)
    samples = world_samples(world, 25_000)
    found = searching.search(samples)
    assert found.states == 7
    assert unexplained(found, samples) == []


# ---- options, time and Ctrl-C ----------------------------------------------


@pytest.fixture(scope="module")
def hopeless():
    """So little about so large a machine that the search goes on for long."""
    world = random_world(1, labels=5, tm_states=9)
    return world_samples(world, 5_000)


def test_at_the_time_limit_the_best_machine_is_returned(hopeless):
    for limit in (0.5, 5.0, 50.0):  # until a slow machine has come to search
        started = time.process_time()
        found = search(hopeless, effort=1, limits=Limits(limit))
        assert time.process_time() - started < 10 * limit
        assert len(unexplained(found, hopeless)) == found.wrong
        if found.finished:
            break
    assert found.finished
    assert found.wrong == 0
    assert found.states <= merge(hopeless).states


def test_time_may_run_out_before_the_first_machine():
    samples = world_samples(random_world(0), 200_000)
    found = search(samples, effort=1, limits=Limits(1e-9))
    assert not found.finished
    assert len(unexplained(found, samples)) == found.wrong > 0


def test_progress_reports_the_best_size_and_the_present_one(hopeless):
    seen = []

    def listen(progress):
        seen.append(progress)
        if len(seen) == 8:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        search(hopeless, effort=1, limits=Limits(listener=listen))
    last = seen[-1]
    assert last.states <= merge(hopeless).states
    assert 2 <= last.undecided < last.states
    assert all(0 <= progress.done <= progress.total for progress in seen)
    # It grows, but for once at most: where merging is over and the search begins.
    assert sum(later.done < earlier.done for earlier, later in pairwise(seen)) <= 1


SEARCH_SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits "ignore"
sys.path[:0] = sys.argv[1:]
from test_engine_search import world_samples, random_world, searching
samples = world_samples(random_world(1, labels=5, tm_states=9), 5_000)
print("ready", flush=True)
searching.search(samples)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGINT works otherwise there")
def test_ctrl_c_stops_the_search():
    command = [sys.executable, "-c", SEARCH_SCRIPT, *filter(None, sys.path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    interrupt(process)
    _, complaint = process.communicate()
    assert b"KeyboardInterrupt" in complaint


@pytest.mark.parametrize("place", range(2))
def test_arrays_of_another_type_are_refused(place):
    alpha, output, beta, offsets = columns(sample_set([[(-1, 0, 0), (0, 0, 1)]]))
    arrays = [alpha, output]
    arrays[place] = arrays[place].astype(np.float64)
    tree = _core.build_history_tree(beta, offsets)
    with pytest.raises(TypeError):
        _core.search(tree, *arrays, seed=0, budget=1)


def test_a_negative_budget_is_refused():
    alpha, output, beta, offsets = columns(sample_set([[(0, 0, 0)]]))
    tree = _core.build_history_tree(beta, offsets)
    with pytest.raises(ValueError, match="budget"):
        _core.search(tree, alpha, output, seed=0, budget=-1)


def log_samples(states, steps):
    """One log without restarts, and the machine that it is of."""
    pair, traces = synthetic(states, 1, steps)
    histories = Histories.of(traces, LabelTiming.CURRENT)
    return output_samples(traces, histories, "observation"), pair.transition


@pytest.mark.parametrize(("states", "steps"), [(2, 500), (5, 3000), (5, 30_000), (8, 100_000)])
def test_one_long_log_is_enough(states, steps):
    samples, truth = log_samples(states, steps)
    found = search(samples, effort=1)
    assert found.states == states
    assert not unexplained(found, samples)
    moves = (found.transition_state, found.transition_label, found.transition_target)
    same = {0: 0}  # walked side by side from the start, each state has one counterpart
    for state, label, target in np.stack(moves, axis=1).tolist():
        led = int(truth.transitions[same[state], label])
        assert same.setdefault(target, led) == led
    assert len(set(same.values())) == states


def test_deferred_merging_is_resumed():
    samples, _ = log_samples(20, 8000)
    merged = merge(samples, order="edsm")
    assert merged.states > 128
    assert merged.attempts > 1_000_000
    found = search(samples, effort=1e-9)
    assert found_fields(found, but=("attempts",)) == found_fields(merged, but=("attempts",))


@pytest.fixture(scope="module")
def few_traces():
    """So few traces that nothing is proven, and paths end in different machines."""
    return exact_samples.world_samples(1, 25, size=11, labels=5, tm_states=7)[1]


@pytest.fixture(scope="module")
def many_traces():
    """Traces that prove the machine smallest."""
    return exact_samples.world_samples(0, 3000, size=11, labels=3, tm_states=4)[1]


def test_the_smallest_of_all_searches_wins_in_any_order(few_traces):
    alone = [searching.search(few_traces, seed=seed, effort=EFFORT) for seed in seeds_from(3)]
    best = min(alone, key=lambda one: one.states)
    for order in range(3):
        found, attempts = search_with_restarts(
            few_traces, ShuffledWorkers(order), seed=3, effort=EFFORT
        )
        assert same(found, best)
        assert [attempt.outcome for attempt in attempts] == [FOUND] * SEEDS


def test_a_proof_stops_later_searches_and_waits_for_earlier_ones(many_traces, monkeypatch):
    monkeypatch.setattr("resolvent.inference.engine.EASY", 0.0)
    monkeypatch.setattr(
        "resolvent.inference.engine._is_smallest", lambda samples, found: samples is not many_traces
    )
    alone, stopped = searching.search(many_traces, seed=3), 0
    for order in range(6):
        found, attempts = search_with_restarts(many_traces, ShuffledWorkers(order), seed=3)
        assert same(found, alone)
        assert attempts[0].outcome == FOUND
        stopped += sum(attempt.outcome == STOPPED for attempt in attempts)
    assert stopped


def test_easy_samples_use_no_workers(many_traces):
    workers = ShuffledWorkers(0)
    workers.map_until = None  # must not be called
    found, attempts = search_with_restarts(many_traces, workers, seed=3)
    assert same(found, searching.search(many_traces, seed=3))
    assert attempts == []


def test_samples_are_sent_without_derived_data(few_traces):
    again = pickle.loads(pickle.dumps(_without_names(few_traces)))  # noqa: S301
    assert same(
        searching.search(again, seed=1, effort=EFFORT),
        searching.search(few_traces, seed=1, effort=EFFORT),
    )
    assert len(pickle.dumps(_without_names(few_traces))) < 13 * len(few_traces.alpha) + 10_000


def test_the_seed_of_the_user_is_the_first_of_several():
    assert seeds_from(0)[0] == 0
    assert len({number for seed in range(50) for number in seeds_from(seed)[1:]}) == 50 * (
        SEEDS - 1
    )
    assert all(0 <= number < 2**64 for number in seeds_from(2**64 - 1))


def test_contradictions_are_refused():
    with pytest.raises(ContradictoryRows):
        search_with_restarts(sample_set([[(-1, 0, 0)], [(-1, 0, 1)]]), ShuffledWorkers(0))


def test_a_known_machine_bounds_the_result(many_traces):
    known = np.full((4, len(many_traces.labels)), -1, np.int32)
    found = searching.search(many_traces, seed=0)
    known[found.transition_state, found.transition_label] = found.transition_target
    again, _ = search_with_restarts(many_traces, ShuffledWorkers(0), known=known)
    assert again.states == 4
