"""Traces of worlds with noise, and machines that know what such traces show."""

from functools import cache
from random import Random

import gymnasium as gym
import numpy as np

import resolvent as rs
from resolvent.inference.counterexamples import observed_termination, with_evidence
from resolvent.replay.replaying import replay_traces
from resolvent.traces import Trace, TraceSet
from resolvent.traces.trace_set import with_column


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
    found = with_evidence(machines, shown, constants=constants)
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
    """The machine of a die that showed so much: one state, one query, many answers."""
    return taught(rs.infer(dice(*pays[:1]), outputs=["reward"]).machines, dice(*pays))


class Slips(gym.ActionWrapper):
    """A world in which one action in ten is another one than was meant."""

    def __init__(self, env, share=0.1):
        super().__init__(env)
        self.share, self.chance = share, Random(0)

    def action(self, action):
        drawn = self.chance.random() < self.share
        return self.chance.randrange(int(self.action_space.n)) if drawn else action


def bell_world(traces, steps=20, seed=0):
    """A bell changes what four rooms pay, and back; one reward in ten is another.

    In the last trace it snows once, before the last step: hardly anything tells what that does.
    """
    random, rooms = Random(seed), "abcd"
    pays = {False: dict(zip(rooms, (0, 1, 2, 0), strict=True)), True: {}}
    pays[True] = dict(zip(rooms, (1, 2, 0, 2), strict=True))

    def day(snows):
        rung, seen, labels, paid = False, [random.choice(rooms)], [None], []
        for step in range(steps):
            pay = random.choice([0, 1, 2]) if random.random() < 0.1 else pays[rung][seen[-1]]
            paid.append(pay)
            rings = random.random() < 0.2 and not snows
            rung ^= rings
            seen.append(random.choice(rooms))
            labels.append("snow" if snows and step == steps - 2 else "bell" if rings else None)
        return Trace(seen, labels, ["go"] * steps, paid)

    return TraceSet(day(number == traces - 1) for number in range(traces))


def two_moods(episodes, seen=True):
    """Episodes begin in one of two moods, which a label turns; an arm pays in each."""
    random, traces = Random(0), []
    for _ in range(episodes):
        mood = random.random() < 0.4
        rooms, labels, arms, paid = ["start"], [None], [], []
        for _ in range(12):
            arms.append(random.choice("lr"))
            good = (arms[-1] == "l") == mood
            rooms.append(("bright" if good else "dark") if seen else "start")
            paid.append(float(good))
            labels.append("flip" if random.random() < 0.1 else None)
            mood ^= labels[-1] is not None
        traces.append(rs.Trace(rooms, labels, arms, paid))
    return rs.TraceSet(traces)


def slipped(traces, share, seed=0):
    """The traces with other actions recorded than were carried out."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(traces.actions), traces.steps)
    slips = random.random(traces.steps) < share
    codes = np.where(slips, drawn, traces.action_codes).astype(np.int32)
    return with_column(traces, "action", traces.actions, codes)


def same(one, other):
    """Whether two results have the same machines, however they were inferred."""
    return one.machines.replacing(provenance=None) == other.machines.replacing(provenance=None)


def paying(traces, paid):
    """The traces with other rewards, one for each step."""
    values, codes = np.unique(paid, return_inverse=True)
    return with_column(traces, "reward", values.tolist(), codes.astype(np.int32))


def exact_pay(traces):
    """The reward of each step."""
    return np.array(traces.rewards)[traces.reward_codes]


def gaussian(traces, sigma=0.4, seed=0):
    """The traces with normally distributed noise in their rewards."""
    return paying(
        traces, exact_pay(traces) + np.random.default_rng(seed).normal(0, sigma, traces.steps)
    )
