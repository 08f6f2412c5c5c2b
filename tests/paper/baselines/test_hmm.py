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
from edge_machines import first_difference
from interrupting import PATIENCE
from resolvent.errors import OptionError, TraceError
from resolvent.paper.baselines import hmm, outcome
from resolvent.paper.baselines.hmm import distill, first_guess, pair_shares
from resolvent.paper.baselines.hmm_em import FinalRewardTask
from resolvent.paper.baselines.outcome import wrong_rewards
from resolvent.worlds import PhaseGrid


def grid_traces(size, episodes, seed=0):
    return rs.collect(gym.make(f"resolvent/PhaseGrid{size}-v0"), episodes=episodes, seed=seed)


def difference_from_truth(found, size, traces):
    truth = rs.machines.EdgeRewardMachine.from_pair(PhaseGrid(size).machines(), traces)
    return first_difference(found.machine, truth, traces.labels)


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


def test_details_are_json(found):
    details = json.loads(json.dumps(found.details))
    assert details["hidden_states"] == 27
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


def test_a_seed_fixes_everything(traces):
    def run(seed):
        details = hmm(traces[:40], states=4, iterations=10, restarts=2, seed=seed).details
        return [attempt["log_likelihood"] for attempt in details["attempts"]]

    assert run(1) == run(1)
    assert run(1)[0] != run(1)[1]
    assert run(1) != run(2)


def test_out_of_time_gives_the_best_so_far(traces, monkeypatch):
    seconds = itertools.count()
    monkeypatch.setattr(outcome, "now", lambda: next(seconds))  # one passes with each look
    found = hmm(traces, states=6, time_limit=4)
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


def test_shares_of_pairs_are_over_all_layers():
    # Two observations, two layers: between observations 0 and 1 there are 1 + 2 + 0 + 5 steps expected.
    counts = np.zeros((4, 4))
    counts[0, 1], counts[0, 3], counts[2, 3] = 1, 2, 5
    counts[1, 0] = 4
    shares = np.zeros((4, 4))
    shares[0, 1], shares[0, 3], shares[2, 3] = 1 / 8, 2 / 8, 5 / 8
    shares[1, 0] = 1
    np.testing.assert_allclose(pair_shares(counts, task_of(([0, 1, 0], True))), shares)


def test_a_wrong_edge_that_is_likely_but_rarely_taken_is_skipped():
    # Few of these traces begin at the coffee, and their second steps are overfitted.
    traces = grid_traces(3, 275, seed=20)
    found = hmm(traces, states=3, restarts=1)
    assert "'Stair' both ends" in found.details["contradiction_at_published_threshold"]
    assert found.details["threshold_of"] == "pairs"
    assert difference_from_truth(found, 3, traces) is None


def test_the_published_guess_has_the_chain_in_every_layer_and_a_mass_elsewhere():
    guess = first_guess(task_of(([0, 1, 0, 0], True)), 3, None)
    # From 0 to 0 and to 1 half each, from 1 to 0 always; elsewhere 1 / (6 - 4).
    assert guess[0].tolist() == pytest.approx(np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5]) / 3)
    assert guess[1].tolist() == pytest.approx(np.array([1, 0.5, 0.5, 0.5, 0.5, 0.5]) / 3.5)
    assert guess[3].tolist() == pytest.approx(np.array([0.5, 0.5, 1, 0.5, 0.5, 0.5]) / 3.5)


def test_drawn_guesses_differ_and_have_no_zeros():
    task = task_of(([0, 1, 0, 0], True))
    one, other = (first_guess(task, 4, np.random.default_rng(seed)) for seed in (0, 1))
    assert not np.allclose(one, other)
    assert one.min() > 0
    np.testing.assert_allclose(one.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": 1}, "states=1: use at least 2"),
        ({"states": 3, "restarts": 0}, "restarts=0"),
        ({"states": 3, "iterations": 0}, "iterations=0"),
        ({"states": 3, "time_limit": 0}, "time_limit=0"),
        ({"states": 2_000}, "2000 states with 9 observations are 18,000 hidden states"),
    ],
)
def test_options_out_of_range_are_refused(traces, options, message):
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
    print("on", flush=True)
    hmm(traces, states=9, restarts=1000)
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


# --- Distillation: transitions made by hand ---
#
# The rooms are a hall without a label, one with a key and one with a door; the task is to get the
# key and then to the door.

NO_EVENT, KEY, DOOR = frozenset(), frozenset({"key"}), frozenset({"door"})
HALL, KEY_ROOM, DOOR_ROOM = range(3)
END = 2

# From (layer, observation) to (layer, observation): every room leads to every other.
RIGHT = {
    **{((0, room), (0, to)): 0.3 for room in (HALL, DOOR_ROOM) for to in (HALL, DOOR_ROOM)},
    **{((0, room), (1, KEY_ROOM)): 0.4 for room in (HALL, DOOR_ROOM)},
    **{((1, room), (1, to)): 0.3 for room in (HALL, KEY_ROOM) for to in (HALL, KEY_ROOM)},
    **{((1, room), (END, DOOR_ROOM)): 0.4 for room in (HALL, KEY_ROOM)},
}


def read_off(edges, *, starts=(HALL,), labels=(NO_EVENT, KEY, DOOR)):
    n_observations = len(labels)
    transitions = np.zeros((3 * n_observations, 3 * n_observations))
    for ((layer, room), (to_layer, to)), probability in edges.items():
        source, target = layer * n_observations + room, to_layer * n_observations + to
        transitions[source, target] = probability
    task = FinalRewardTask(
        observations=np.array([room for start in starts for room in (start, 0)], np.int32),
        offsets=np.arange(len(starts) + 1),
        completed=np.ones(len(starts), bool),
        labels=labels,
        reward=2.0,
    )
    return distill(transitions, task, 1e-3)


def table(machine):
    """All that a machine does with single labels, as {(state, label): (state, reward)}."""
    return {
        (state, name): machine.step(state, {name} if name else set())
        for state in sorted(machine.states - machine.terminal)
        for name in ("", "key", "door")
    }


KEY_THEN_DOOR = {
    (0, ""): (0, 0.0),
    (0, "key"): (1, 0.0),
    (0, "door"): (0, 0.0),
    (1, ""): (1, 0.0),
    (1, "key"): (1, 0.0),
    (1, "door"): (2, 2.0),
}


def test_the_task_is_read_off_its_transitions():
    distilled = read_off(RIGHT)
    assert table(distilled.machine) == KEY_THEN_DOOR
    assert distilled.machine.terminal == {2}
    assert distilled.contradiction is None
    assert distilled.edges == len(RIGHT)


def test_transitions_below_the_threshold_are_noise():
    noisy = RIGHT | {((0, HALL), (1, HALL)): 9e-4}
    assert table(read_off(noisy).machine) == KEY_THEN_DOOR


def test_unreachable_states_do_not_count():
    # Layer 1 at the door would contradict the end; only layer 0 at the key, unreached, leads there.
    unreached = RIGHT | {((0, KEY_ROOM), (1, DOOR_ROOM)): 0.5, ((1, DOOR_ROOM), (0, HALL)): 1.0}
    assert table(read_off(unreached).machine) == KEY_THEN_DOOR


def test_cone_lumping_merges_the_targets_of_one_label():
    # The unused state of layer 1 at the door doubles that of layer 0.
    doubled = RIGHT | {
        ((0, HALL), (1, DOOR_ROOM)): 0.05,
        ((1, DOOR_ROOM), (0, HALL)): 0.5,
        ((1, DOOR_ROOM), (1, KEY_ROOM)): 0.5,
    }
    distilled = read_off(doubled)
    assert table(distilled.machine) == KEY_THEN_DOOR
    assert distilled.merged_by_label == 1


def test_traces_may_begin_with_several_observations_and_their_first_label_is_not_read():
    begins_at_key = RIGHT | {
        ((0, KEY_ROOM), (0, HALL)): 0.5,
        ((0, KEY_ROOM), (1, KEY_ROOM)): 0.5,
    }
    distilled = read_off(begins_at_key, starts=(KEY_ROOM, HALL))
    assert table(distilled.machine) == KEY_THEN_DOOR


def test_a_leaking_layer_contradicts_itself():
    leaking = RIGHT | {((0, HALL), (1, HALL)): 2e-3}
    distilled = read_off(leaking)
    assert distilled.machine is None
    assert (
        distilled.contradiction
        == "after one label sequence, 'door' both ends the task and does not"
    )


def test_a_state_that_few_labels_follow_is_folded_and_keeps_its_edges():
    # From the lamp, in layer 1, there is no way but to the door: it has no edge without a label.
    lamp = frozenset({"lamp"})
    edges = RIGHT | {((1, KEY_ROOM), (1, 3)): 0.1, ((1, 3), (END, DOOR_ROOM)): 1.0}
    distilled = read_off(edges, labels=(NO_EVENT, KEY, DOOR, lamp))
    machine = distilled.machine
    assert distilled.folded == 1
    assert machine.step(1, {"lamp"}) == (1, 0.0)
    assert machine.step(1, {"door"}) == (2, 2.0)


def test_a_state_that_is_never_left_is_not_the_end():
    stuck = {((0, HALL), (0, DOOR_ROOM)): 0.5, ((0, HALL), (END, KEY_ROOM)): 0.5}
    machine = read_off(stuck).machine
    assert machine.step(0, {"door"})[1] == 0
    assert not machine.has_ended(machine.step(0, {"door"})[0])
    assert machine.step(0, {"key"}) == (1, 2.0)


@pytest.mark.parametrize("starts", [(HALL,), (HALL, DOOR_ROOM)])
def test_without_a_likely_transition_nothing_is_known(starts):
    machine = read_off({}, starts=starts).machine
    assert machine.edges == ()
    assert machine.terminal == frozenset()


def test_a_fold_forces_others_or_is_refused():
    # Label by label: a chain of lamps, the last one leads to the end by the key in one branch
    # only. So the lamps of the two branches stay apart, and all else is one.
    labels = tuple(frozenset({name}) for name in ("a", "b", "lamp", "key"))
    start, other, lamp, key = range(4)
    edges = {
        ((0, start), (0, start)): 0.2,
        ((0, start), (0, other)): 0.4,
        ((0, start), (0, lamp)): 0.4,
        ((0, lamp), (0, key)): 1.0,
        ((0, other), (1, lamp)): 1.0,
        ((1, lamp), (END, key)): 1.0,
    }
    distilled = read_off(edges, labels=labels)
    machine = distilled.machine

    def run(*names):
        state, paid = machine.initial, 0.0
        for name in names:
            state, paid = machine.step(state, {name})
        return machine.has_ended(state), paid

    assert run("b", "lamp", "key") == (True, 2.0)
    assert run("lamp", "key") == (False, 0.0)
    assert run("a", "a", "b", "lamp", "key") == (True, 2.0)
    # Of start, other, the two lamps and the key without an end, two are left.
    assert len(machine.states) - 1 == 2
    assert distilled.folded == 3
