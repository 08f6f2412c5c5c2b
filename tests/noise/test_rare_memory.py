"""Memory that rarely matters: answers so rare that they look like noise, unless they return."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.noise import fit_likely_machine, marginal_likelihood
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming


def ring(size, seed, returns=True):
    """Traces in which every press goes one place further, and one place of `size` answers "here".

    The button is pressed only late, so that few looks find it: no more than get lost. With
    `returns=False` as many do, but at random, whatever was pressed.
    """
    random = np.random.default_rng(seed)
    traces = []
    for _ in range(150):
        place, seen, labels, actions = 0, ["hall"], [None], []
        for step in range(100):
            at_door = random.random() < 0.15
            actions.append("look" if at_door else f"walk {random.integers(20)}")
            is_here = place == size - 1 if returns else random.random() < 0.03
            answer = "here" if at_door and is_here else "hall"
            seen.append("lost" if random.random() < 0.05 else answer)
            pressed = step > 70 and random.random() < 0.3
            labels.append("press" if pressed else None)
            place = (place + pressed) % size
        traces.append(rs.Trace(seen, labels, actions, [0.0] * len(actions)))
    return rs.TraceSet(traces)


def samples_of(traces):
    return output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation")


@pytest.mark.parametrize("size", [3, 5])
def test_a_ring_that_is_of_no_use_before_it_is_whole(size):
    samples = samples_of(ring(size, seed=size))
    found = fit_likely_machine(samples)
    press = samples.labels.get(frozenset({"press"}))
    state, visited = 0, []
    for _ in range(size):
        visited.append(state)
        state = int(found.transitions[state, press])
    assert found.states == size
    assert state == 0
    assert sorted(visited) == list(range(size))


def test_answers_as_rare_that_do_not_return_make_no_state():
    assert fit_likely_machine(samples_of(ring(5, seed=0, returns=False))).states == 1


@pytest.mark.parametrize(
    ("world", "steps"),
    [("TwoKeys", 216_000), pytest.param("Cookie", 300_000, marks=pytest.mark.slow)],
)
def test_worlds_that_slip_are_known_from_random_walks(world, steps):
    """A machine as likely as the true one, but for the price of one state."""
    env = gym.make(f"resolvent/{world}-v0", slip=0.05)
    samples = samples_of(rs.collect(env, episodes=steps // 5_000 + 1, seed=0))
    truth = env.unwrapped.machines().transition
    moves = np.full((truth.states, len(samples.labels)), -1, np.int32)
    for state, code in np.ndindex(*moves.shape):
        target = truth.step(state, samples.labels[code])
        moves[state, code] = target if isinstance(target, int) else -1
    true = marginal_likelihood(samples, moves)
    assert fit_likely_machine(samples).log_evidence > true.log_evidence - 10
