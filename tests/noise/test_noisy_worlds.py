"""Small random worlds whose record is noisy: the true machine comes out."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from resolvent.noise import fit_likely_machine
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming


def recorded(traces, *, slip=0.0, replaced=0.0):
    """The traces with some actions and observations replaced by random ones, only in the record."""
    random = np.random.default_rng(0)

    def noisy(codes, values, share):
        drawn = random.integers(0, values, len(codes))
        return np.where(random.random(len(codes)) < share, drawn, codes).astype(np.int32)

    return rs.TraceSet.from_columns(
        (traces.observations, noisy(traces.observation_codes, len(traces.observations), replaced)),
        (traces.labels, traces.label_codes),
        (traces.actions, noisy(traces.action_codes, len(traces.actions), slip)),
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )


def states_pair_up(samples, machine, found):
    """Whether states of both, walked side by side, belong together one to one."""
    labels = list(samples.labels)
    pairs = {(0, 0)}
    for first, last in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        one = other = 0
        for label in samples.beta[first:last].tolist():
            if label >= 0:
                one, other = machine.step(one, labels[label]), int(found[other, label])
                pairs.add((one, other))
    return len(pairs) == machine.states == len(found) == len({other for _, other in pairs})


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("noise", [{"slip": 0.1}, {"replaced": 0.05}], ids=["slip", "replaced"])
def test_the_true_machine_comes_out(seed, noise):
    world = gym.make(
        "resolvent/RandomWorld-v0", world_seed=seed, size=9, labels=3, tm_states=3
    ).unwrapped
    traces = recorded(rs.collect(world, episodes=600, seed=seed), **noise)
    samples = output_samples(traces, Histories.of(traces, LabelTiming.CURRENT), "observation")
    found = fit_likely_machine(samples)
    assert states_pair_up(samples, world.machines().transition, found.transitions)
