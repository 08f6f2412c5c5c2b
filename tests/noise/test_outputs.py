"""The most likely machines: small ones come back, and evidence is what its definition says."""

import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from evidence_oracle import log_evidence
from noisy_samples import (
    RING,
    RING_OUTPUTS,
    SWITCH,
    SWITCH_OUTPUTS,
    is_renumbered,
    noisy_samples,
    sample_set,
    shuffled,
)

import resolvent as rs
from resolvent.errors import OptionError
from resolvent.noise import SearchLimits, fit_likely_machine, marginal_likelihood
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces.trace_set import with_column


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("table", "outputs"), [(SWITCH, SWITCH_OUTPUTS), (RING, RING_OUTPUTS)], ids=["switch", "ring"]
)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_small_machines_come_back(table, outputs, seed, noise):
    samples = noisy_samples(table, outputs, noise=noise, seed=seed)
    fit = fit_likely_machine(samples)
    assert is_renumbered(table, fit.transitions)
    # A replaced output is the main one again in one case of three.
    assert fit.noise == pytest.approx(noise * 2 / 3, abs=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_needs_one_state(seed):
    samples = noisy_samples([[0, 0, 0]], [[0, 1, 2, 1]], noise=0.5, seed=seed)
    assert fit_likely_machine(samples).transitions.tolist() == [[0, 0, 0]]


def test_memory_without_effect_on_outputs_needs_no_state():
    samples = noisy_samples(SWITCH, [SWITCH_OUTPUTS[0]] * 2, noise=0.2)
    assert fit_likely_machine(samples).states == 1


def test_no_event_may_change_the_state_after_all():
    # Label 0 is "no event"; here it is the one that toggles.
    table = [[1, 0, 0], [0, 1, 1]]
    samples = noisy_samples(table, SWITCH_OUTPUTS, noise=0.1, seed=2)
    assert is_renumbered(table, fit_likely_machine(samples).transitions)


def test_evidence_and_noise_are_those_of_the_machine():
    samples = noisy_samples(RING, RING_OUTPUTS, seed=4)
    fit = fit_likely_machine(samples)
    weighed = marginal_likelihood(samples, fit.transitions)
    assert fit.log_evidence == pytest.approx(weighed.log_evidence, rel=1e-12)
    assert fit.noise == weighed.noise
    assert fit.sizes[fit.states] == fit.log_evidence
    assert fit.sizes[1] == pytest.approx(
        marginal_likelihood(samples, np.zeros((1, 3), np.int32)).log_evidence, rel=1e-12
    )
    assert fit.sizes[1] < fit.sizes[2] < fit.sizes[3]


def test_the_order_of_traces_makes_no_difference():
    samples = noisy_samples(RING, RING_OUTPUTS, traces=60, seed=5)
    order = np.random.default_rng(0).permutation(60)
    fit, shuffled_fit = fit_likely_machine(samples), fit_likely_machine(shuffled(samples, order))
    assert np.array_equal(fit.transitions, shuffled_fit.transitions)
    assert (fit.log_evidence, fit.sizes, fit.noise) == (
        shuffled_fit.log_evidence,
        shuffled_fit.sizes,
        shuffled_fit.noise,
    )


def test_the_order_makes_no_difference_on_a_subsample(monkeypatch):
    monkeypatch.setattr("resolvent.noise.outputs.SUBSAMPLE_ROWS", 700)
    samples = noisy_samples(RING, RING_OUTPUTS, traces=200, seed=6)
    order = np.random.default_rng(1).permutation(200)
    fit, shuffled_fit = fit_likely_machine(samples), fit_likely_machine(shuffled(samples, order))
    assert is_renumbered(RING, fit.transitions)
    assert np.array_equal(fit.transitions, shuffled_fit.transitions)
    assert (fit.log_evidence, fit.sizes) == (shuffled_fit.log_evidence, shuffled_fit.sizes)
    assert fit.log_evidence == pytest.approx(
        marginal_likelihood(samples, fit.transitions).log_evidence
    )


def test_repeated_traces_only_increase_the_odds():
    samples = noisy_samples(RING, RING_OUTPUTS, seed=7)
    twice = shuffled(samples, [*range(100), *range(100)])
    fit, fit_of_twice = fit_likely_machine(samples), fit_likely_machine(twice)
    assert np.array_equal(fit.transitions, fit_of_twice.transitions)
    assert fit.noise == fit_of_twice.noise
    assert fit_of_twice.sizes[3] - fit_of_twice.sizes[1] > fit.sizes[3] - fit.sizes[1]


def test_the_same_seed_gives_the_same_machine():
    samples = noisy_samples(RING, RING_OUTPUTS, noise=0.3, traces=50, seed=8)
    fit, again = (fit_likely_machine(samples, SearchLimits(seed=3)) for _ in range(2))
    assert np.array_equal(fit.transitions, again.transitions)
    assert (fit.log_evidence, fit.sizes) == (again.log_evidence, again.sizes)


def test_labels_never_read_in_a_state_have_no_transition():
    samples = noisy_samples(SWITCH, SWITCH_OUTPUTS, traces=80, seed=9)
    beta = samples.beta.copy()
    for first, last in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        state = 0
        for row in range(first + 1, last):
            if state == 1 and beta[row] == 2:
                beta[row] = 0  # which changes nothing either
            state = SWITCH[state][beta[row]]
    read = replace(samples, histories=Histories(beta, samples.offsets, samples.labels))
    assert fit_likely_machine(read).transitions.tolist() == [[0, 1, 0], [1, 0, -1]]


def test_without_outputs_there_is_one_state():
    samples = sample_set([-1, -1], [-1, -1], [-1, 1], [2], 2)
    fit = fit_likely_machine(samples)
    assert fit.transitions.tolist() == [[-1, 0]]
    assert fit.noise == 0.0


def test_most_states_is_a_bound():
    samples = noisy_samples(RING, RING_OUTPUTS, seed=1)
    assert max(fit_likely_machine(samples, SearchLimits(most_states=2)).sizes) == 2


def test_at_the_time_limit_the_best_machine_so_far_is_returned():
    samples = noisy_samples(RING, RING_OUTPUTS, traces=4000, seed=1)
    fit = fit_likely_machine(samples, SearchLimits(time_limit=1e-6))
    assert not fit.finished
    assert math.isclose(fit.log_evidence, fit.sizes[fit.states])


def search_that_lasts(listener):
    """Search in more and more traces, until it has lasted long enough for a call of the listener."""
    calls = []

    def listen(progress):
        calls.append(progress)
        listener(progress)

    for traces in (3_000, 30_000, 300_000):
        samples = noisy_samples(RING, RING_OUTPUTS, traces=traces, seed=1)
        fit_likely_machine(samples, listener=listen)
        if calls:
            break


def test_a_listener_receives_progress():
    calls = []
    search_that_lasts(lambda progress: calls.append(progress.fraction))
    assert calls
    assert all(0 <= fraction <= 1 for fraction in calls)


def test_a_listener_may_stop_the_search():
    def stop(progress):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        search_that_lasts(stop)


def test_a_search_without_effort_is_refused():
    with pytest.raises(OptionError, match="effort is 0: choose a number above 0"):
        SearchLimits(effort=0)


@pytest.mark.parametrize("seed", range(30))
def test_evidence_agrees_with_its_definition(seed):
    random = np.random.default_rng(seed)
    states, labels, queries = random.integers(1, [5, 4, 6]).tolist()
    table = random.integers(0, states, (states, labels)).astype(np.int32)
    outputs = random.integers(0, 4, (states, queries))
    samples = noisy_samples(table, outputs, traces=9, steps=8, noise=0.3, seed=seed)
    table[random.random(table.shape) < 0.2] = 0
    evidence = marginal_likelihood(samples, table)
    expected = log_evidence(samples, table, evidence.strength, evidence.share)
    assert math.isclose(evidence.log_evidence, expected, rel_tol=1e-9, abs_tol=1e-9)


def test_queries_with_one_output_cost_nothing():
    samples = sample_set([0] * 6, [2] * 6, [-1, 1, 0] * 2, [3, 3], 2)
    # Two moves are read, and both stay: one half, then two thirds.
    assert marginal_likelihood(samples, np.zeros((1, 2), np.int32)).log_evidence == pytest.approx(
        math.log(1 / 3)
    )


def test_rows_without_output_are_skipped():
    samples = noisy_samples([[0, 1], [1, 0]], [[0, 1], [1, 0]], seed=3)
    silent = samples.alpha.copy()
    silent[::2] = -1
    table = np.array([[0, 1], [1, 0]], np.int32)
    some = replace(samples, alpha=silent)
    evidence = marginal_likelihood(some, table)
    assert evidence.log_evidence == pytest.approx(
        log_evidence(some, table, evidence.strength, evidence.share), rel=1e-9
    )


def test_noise_is_the_share_of_outputs_that_are_not_the_main_one():
    samples = sample_set([0] * 10, [1] * 7 + [0] * 3, [-1] * 10, [10], 1)
    assert marginal_likelihood(samples, np.zeros((1, 1), np.int32)).noise == pytest.approx(0.3)


def test_the_true_machine_is_likelier_than_one_state_and_than_a_needless_third():
    true = np.array([[0, 1], [1, 0]], np.int32)
    samples = noisy_samples(true, [[0, 1, 2], [1, 0, 0]], seed=1)
    needless = np.array([[0, 1], [2, 0], [1, 0]], np.int32)
    evidence = [
        marginal_likelihood(samples, np.asarray(each))
        for each in (true, np.zeros((1, 2), int), needless)
    ]
    assert evidence[0].log_evidence > evidence[1].log_evidence + 100
    assert evidence[0].log_evidence > evidence[2].log_evidence + 3
    assert evidence[0].share == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ([[0]], "one row of `labels` targets per state"),
        ([[0, 1]], "out of range"),
        ([[0, -1]], "has no move for"),
    ],
)
def test_transitions_of_another_shape_are_refused(table, wrong):
    samples = noisy_samples([[0, 0]], [[0, 1]], traces=2)
    with pytest.raises(ValueError, match=wrong):
        marginal_likelihood(samples, np.array(table, np.int32))


def recorded(traces, *, slip=0.0, replaced=0.0):
    """The traces with some actions and observations replaced by random ones, only in the record."""
    random = np.random.default_rng(0)

    def noisy(codes, values, share):
        drawn = random.integers(0, values, len(codes))
        return np.where(random.random(len(codes)) < share, drawn, codes).astype(np.int32)

    observations, actions = traces.observations, traces.actions
    observed = noisy(traces.observation_codes, len(observations), replaced)
    traces = with_column(traces, "observation", observations, observed)
    return with_column(traces, "action", actions, noisy(traces.action_codes, len(actions), slip))


def states_pair_up(samples, machine, transitions):
    """Whether states of both, walked side by side, belong together one to one."""
    labels = list(samples.labels)
    pairs = {(0, 0)}
    for first, last in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        state = target = 0
        for label in samples.beta[first:last].tolist():
            if label >= 0:
                state, target = machine.step(state, labels[label]), int(transitions[target, label])
                pairs.add((state, target))
    return len(pairs) == machine.states == len(transitions) == len({target for _, target in pairs})


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("noise", [{"slip": 0.1}, {"replaced": 0.05}], ids=["slip", "replaced"])
def test_the_machine_of_a_small_world_comes_back(seed, noise):
    world = gym.make(
        "resolvent/RandomWorld-v0", world_seed=seed, size=9, labels=3, tm_states=3
    ).unwrapped
    traces = recorded(rs.collect(world, episodes=600, seed=seed), **noise)
    samples = output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation")
    fit = fit_likely_machine(samples)
    assert states_pair_up(samples, world.machines().transition, fit.transitions)


def late_ring(size, seed, returns=True):
    """Traces in which each press leads one state on, and one state of `size` has the output "here".

    The button is pressed only late, so that few looks find it: no more than get lost. With
    `returns=False` as many do, but at random, whatever was pressed.
    """
    random = np.random.default_rng(seed)
    traces = []
    for _ in range(150):
        room, seen, labels, actions = 0, ["hall"], [None], []
        for step in range(100):
            at_door = random.random() < 0.15
            actions.append("look" if at_door else f"walk {random.integers(20)}")
            is_here = room == size - 1 if returns else random.random() < 0.03
            output = "here" if at_door and is_here else "hall"
            seen.append("lost" if random.random() < 0.05 else output)
            pressed = step > 70 and random.random() < 0.3
            labels.append("press" if pressed else None)
            room = (room + pressed) % size
        traces.append(rs.Trace(seen, labels, actions, [0.0] * len(actions)))
    return rs.TraceSet(traces)


def samples_of(traces):
    return output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation")


@pytest.mark.parametrize("size", [3, 5])
def test_a_ring_is_found_although_no_part_of_it_helps(size):
    samples = samples_of(late_ring(size, seed=size))
    fit = fit_likely_machine(samples)
    press = samples.labels.get(frozenset({"press"}))
    state, visited = 0, []
    for _ in range(size):
        visited.append(state)
        state = int(fit.transitions[state, press])
    assert fit.states == size
    assert state == 0
    assert sorted(visited) == list(range(size))


def test_rare_outputs_at_random_need_no_state():
    assert fit_likely_machine(samples_of(late_ring(5, seed=0, returns=False))).states == 1


@pytest.mark.parametrize(
    ("world", "steps"),
    [("TwoKeys", 216_000), pytest.param("Cookie", 300_000, marks=pytest.mark.slow)],
)
def test_worlds_that_slip_are_inferred_from_random_walks(world, steps):
    """A machine as likely as the true one, but for the price of one state."""
    env = gym.make(f"resolvent/{world}-v0", slip=0.05)
    samples = samples_of(rs.collect(env, episodes=steps // 5_000 + 1, seed=0))
    truth = env.unwrapped.machines().transition
    transitions = np.full((truth.states, len(samples.labels)), -1, np.int32)
    for state, code in np.ndindex(*transitions.shape):
        target = truth.step(state, samples.labels[code])
        transitions[state, code] = target if isinstance(target, int) else -1
    true = marginal_likelihood(samples, transitions)
    assert fit_likely_machine(samples).log_evidence > true.log_evidence - 10
