"""Traces of worlds with noise, and machines that know what such traces show."""

from functools import cache
from random import Random

import gymnasium as gym

import resolvent as rs
from resolvent.refinement.rebuilding import observed_termination, rebuilt
from resolvent.replay import replay_traces
from resolvent.traces import Trace, TraceSet


def disturbed(traces, share, random):
    """The traces with a share of what steps lead to replaced by something else that occurs."""
    seen, paid = list(traces.observations), [0.0, 1.0, -0.25]

    def flicker(values, instead):
        return [random.choice(instead) if random.random() < share else one for one in values]

    return TraceSet(
        Trace(
            [one.observations[0], *flicker(one.observations[1:], seen)],
            one.labels,
            one.actions,
            flicker(one.rewards, paid),
            one.terminated,
            one.truncated,
        )
        for one in traces
    )


def taught(machines, traces, constants=True):
    """The machines with the answers and counts of these traces, which may contradict each other."""
    shown = replay_traces(machines, traces)
    found = rebuilt(machines, shown, constants=constants)
    return machines.replacing(*found, termination=observed_termination(shown))


@cache
def noisy_house():
    """The house, where every twentieth answer is another: its machines, and noisy traces of it."""
    clean = rs.collect(gym.make("resolvent/House-v0"), episodes=300, seed=0)
    noisy = disturbed(clean, 0.05, Random(0))
    return taught(rs.infer(clean).machines, noisy), noisy


def dice(*pays):
    """A trace for each throw of a die."""
    return TraceSet(Trace([0, 0], [None, None], ["roll"], [pay]) for pay in pays)


def loaded_die(*pays):
    """The machine of a die that showed so much: one state, one question, many answers."""
    return taught(rs.infer(dice(*pays[:1]), outputs=["reward"]).machines, dice(*pays))


class Slips(gym.ActionWrapper):
    """A world in which one action in ten is another one than was meant."""

    def __init__(self, env, share=0.1):
        super().__init__(env)
        self.share, self.chance = share, Random(0)

    def action(self, action):
        drawn = self.chance.random() < self.share
        return self.chance.randrange(int(self.action_space.n)) if drawn else action
