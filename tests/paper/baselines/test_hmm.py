"""The automaton of a task by hidden Markov models, on worlds whose automaton is known."""

import itertools
import json
import os
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from hidden_paths import task_of
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from interrupting import PATIENCE
from resolvent.errors import OptionError, TraceError
from resolvent.machines import EdgeRewardMachine
from resolvent.machines.io.edge_rewards import Edge
from resolvent.machines.io.guards import Guard
from resolvent.paper.baselines import clock, hmm
from resolvent.paper.baselines.hmm import count_wrong_rewards, first_guess, shares_of_moves
from resolvent.paper.baselines.outcome import wrong_rewards
from resolvent.worlds import PhaseGrid


def grid_traces(size, episodes, seed=0):
    return rs.collect(gym.make(f"resolvent/PhaseGrid{size}-v0"), episodes=episodes, seed=seed)


def difference_from_truth(found, size, traces):
    truth = rs.machines.EdgeRewardMachine.from_pair(PhaseGrid(size).machines(), traces)
    return found.machine.first_difference(truth, traces.labels)


@pytest.fixture(scope="module")
def traces():
    return grid_traces(3, 275)


@pytest.fixture(scope="module")
def found(traces):
    return hmm(traces, states=3)


def test_the_task_of_the_smallest_grid_is_found(found, traces):
    assert found.method == "hmm"
    assert found.status == "found"
    assert found.states == 2
    assert difference_from_truth(found, 3, traces) is None
    assert wrong_rewards(found.machine, traces) == 0


def test_details_are_json_and_say_what_it_took(found):
    details = json.loads(json.dumps(found.details))
    assert details["hidden_states"] == 27
    assert details["symbols"] == 18
    assert details["converged"] is True
    assert details["threshold"] == 1e-3
    assert details["contradiction_at_published_threshold"] is None
    assert len(details["attempts"]) == 1
    assert 0 < details["seconds_per_iteration"] * details["iterations"] <= found.seconds


def test_the_likelihood_is_at_least_that_of_the_truth(found, traces):
    """The likeliest transitions of the true layers are counts; no fit of them is likelier."""
    task = PhaseGrid(3).rules.task
    counts = {}
    for trace in traces:
        done, before = 0, None
        for step, (place, label) in enumerate(zip(trace.observations, trace.labels, strict=True)):
            done += step > 0 and done < len(task) and task[done] in label
            now = (done, place)
            if before is not None:
                counts.setdefault(before, {}).setdefault(now, 0)
                counts[before][now] += 1
            before = now
    truth = sum(
        count * np.log(count / sum(row.values()))
        for row in counts.values()
        for count in row.values()
    )
    assert truth <= found.details["log_likelihood"] < truth + 10


def test_the_dense_engine_finds_the_same_in_as_many_iterations(traces):
    few = traces[:40]
    sparse, dense = (
        hmm(few, states=3, engine=engine, iterations=30, restarts=1)
        for engine in ("sparse", "dense")
    )
    assert sparse.details["iterations"] == dense.details["iterations"]
    assert sparse.details["log_likelihood"] == pytest.approx(dense.details["log_likelihood"])
    assert sparse.machine == dense.machine


def test_progress_tells_every_iteration_and_the_likelihood_never_falls(traces):
    told = []
    hmm(traces[:40], states=4, iterations=20, restarts=2, progress=lambda *now: told.append(now))
    assert [iteration for iteration, _ in told] == [*range(1, 21)] * 2
    for one in (told[:20], told[20:]):
        assert all(np.diff([value for _, value in one]) >= -1e-6)


def test_a_seed_fixes_everything(traces):
    def run(seed):
        details = hmm(traces[:40], states=4, iterations=10, restarts=2, seed=seed).details
        return [attempt["log_likelihood"] for attempt in details["attempts"]]

    assert run(1) == run(1)
    assert run(1)[0] != run(1)[1]
    assert run(1) != run(2)


@pytest.mark.parametrize(("engine", "looks"), [("sparse", 3), ("dense", 1_000)])
def test_out_of_time_gives_the_best_so_far(traces, engine, looks, monkeypatch):
    seconds = itertools.count()
    monkeypatch.setattr(clock, "now", lambda: next(seconds))  # one passes with each look
    found = hmm(traces, states=6, tolerance=0, time_limit=looks, engine=engine)
    assert found.status == "time limit"
    assert found.details["iterations"] >= 1
    assert not found.details["converged"]


def test_no_time_at_all_gives_no_machine(traces):
    found = hmm(traces, states=3, time_limit=1e-9)
    assert (found.status, found.machine, found.states) == ("time limit", None, None)
    assert found.details["attempts"] == []


def test_too_few_states_give_no_right_machine(traces):
    found = hmm(traces, states=2)
    assert found.machine is None or found.details["wrong_rewards"] > 0


@pytest.mark.parametrize("guards", [("Stair", "!Stair"), ("Coffee", "!Coffee&!TV"), ()])
def test_wrong_rewards_are_counted_as_every_method_counts_them(traces, guards):
    # Machines that end too early, that do not know a label, that know nothing.
    targets_and_rewards = ((1, 1.0), (0, 0.0))
    edges = tuple(
        Edge(0, target, Guard.parse(guard), reward)
        for guard, (target, reward) in zip(guards, targets_and_rewards, strict=False)
    )
    machine = EdgeRewardMachine(0, frozenset({1}), edges)
    assert count_wrong_rewards(machine, traces) == wrong_rewards(machine, traces) > 0


@st.composite
def reach_traces(draw):
    places = st.lists(st.integers(0, 3), min_size=2, max_size=10)
    walks = draw(st.lists(st.tuples(places, st.booleans()), min_size=1, max_size=5))
    walks.append((draw(places), True))
    names = draw(st.tuples(*[st.sampled_from([None, "key", "door"])] * 4))
    return rs.TraceSet(
        rs.Trace(
            walk,
            [names[place] for place in walk],
            ["go"] * (len(walk) - 1),
            [0] * (len(walk) - 2) + [int(paid)],
            terminated=paid,
        )
        for walk, paid in walks
    )


@given(traces=reach_traces(), states=st.integers(2, 5))
@settings(deadline=None, max_examples=40)
def test_any_traces_that_pay_at_their_end_have_an_outcome(traces, states):
    found = hmm(traces, states=states, iterations=30, restarts=2)
    assert found.status in ("found", "no solution")
    assert (found.machine is None) == (found.status == "no solution")
    if found.machine is not None:
        assert wrong_rewards(found.machine, traces) == found.details["wrong_rewards"]


def test_a_share_of_a_move_is_over_all_layers():
    # Two places, two layers: between places 0 and 1 there are 1 + 2 + 0 + 5 steps expected.
    counts = np.zeros((4, 4))
    counts[0, 1], counts[0, 3], counts[2, 3] = 1, 2, 5
    counts[1, 0] = 4
    shares = np.zeros((4, 4))
    shares[0, 1], shares[0, 3], shares[2, 3] = 1 / 8, 2 / 8, 5 / 8
    shares[1, 0] = 1
    np.testing.assert_allclose(shares_of_moves(counts, task_of(([0, 1, 0], True))), shares)


def test_a_wrong_edge_that_is_likely_but_seldom_taken_is_left_out():
    # Few of these traces begin at the coffee, and their second steps are overfitted.
    traces = grid_traces(3, 275, seed=20)
    found = hmm(traces, states=3, restarts=1)
    assert "'Stair' both ends" in found.details["contradiction_at_published_threshold"]
    assert found.details["threshold_of"] == "moves"
    assert difference_from_truth(found, 3, traces) is None


def test_the_published_guess_has_the_places_in_every_layer_and_a_mass_elsewhere():
    guess = first_guess(task_of(([0, 1, 0, 0], True)), 3, None)
    # From 0 to 0 and to 1 half each, from 1 to 0 always; elsewhere 1 / (6 - 4).
    assert guess[0].tolist() == pytest.approx(np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5]) / 3)
    assert guess[1].tolist() == pytest.approx(np.array([1, 0.5, 0.5, 0.5, 0.5, 0.5]) / 3.5)
    assert guess[3].tolist() == pytest.approx(np.array([0.5, 0.5, 1, 0.5, 0.5, 0.5]) / 3.5)


def test_drawn_guesses_differ_and_leave_nothing_out():
    task = task_of(([0, 1, 0, 0], True))
    one, other = (first_guess(task, 4, np.random.default_rng(seed)) for seed in (0, 1))
    assert not np.allclose(one, other)
    assert one.min() > 0
    np.testing.assert_allclose(one.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": 1}, "states=1: it must be at least 2"),
        ({"states": 3, "restarts": 0}, "restarts=0"),
        ({"states": 3, "iterations": 0}, "iterations=0"),
        ({"states": 3, "engine": "quantum"}, "engine='quantum': use 'sparse' or 'dense'"),
        ({"states": 3, "time_limit": 0}, "time limit is 0 s"),
        ({"states": 2_000}, "2000 states at 9 places are 18,000 hidden states"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(traces, options, message):
    with pytest.raises(OptionError, match=message):
        hmm(traces, **options)


def test_tasks_that_pay_more_than_once_are_refused():
    cookies = rs.collect(gym.make("resolvent/Cookie-v0"), episodes=20, seed=0, max_steps=3_000)
    with pytest.raises(TraceError):
        hmm(cookies, states=3)


INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits "ignore"
import gymnasium as gym, resolvent as rs
from resolvent.paper.baselines import hmm
traces = rs.collect(gym.make("resolvent/PhaseGrid4-v0"), episodes=200, seed=0)
try:
    hmm(traces, states=6, tolerance=0, progress=lambda *now: print("on", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGINT works otherwise there")
def test_it_can_be_interrupted():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=PATIENCE)
    assert rest.splitlines()[-1] == "interrupted"


@pytest.mark.slow
def test_the_task_of_the_middle_grid_is_found():
    traces = grid_traces(4, 500)
    found = hmm(traces, states=4)
    assert (found.status, found.states) == ("found", 3)
    assert difference_from_truth(found, 4, traces) is None


@pytest.mark.slow
def test_the_task_of_the_largest_grid_is_found():
    traces = grid_traces(5, 6_000)
    found = hmm(traces, states=5)
    assert (found.status, found.states) == ("found", 4)
    assert difference_from_truth(found, 5, traces) is None
