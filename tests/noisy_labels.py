"""Traces whose labels lie, and environments that tell lies."""

from random import Random

import gymnasium as gym
import numpy as np

import resolvent as rs


def lying(traces, *, missed=0.0, false=0.0, swapped=0.0, seed=0):
    """The traces with some labels missed, false or swapped, only in the record."""
    random = np.random.default_rng(seed)
    none = traces.labels.get(frozenset())
    events = np.array([code for code in range(len(traces.labels)) if code != none])
    true, drawn = traces.label_codes, random.random(len(traces.label_codes))
    told = true.copy()
    told[(true == none) & (drawn < false)] = random.choice(
        events, int(((true == none) & (drawn < false)).sum())
    )
    told[(true != none) & (drawn < missed)] = none
    swaps = (true != none) & (drawn >= missed) & (drawn < missed + swapped)
    ahead = random.integers(1, max(len(events), 2), int(swaps.sum()))
    told[swaps] = events[(np.searchsorted(events, true[swaps]) + ahead) % len(events)]
    return with_labels(traces, told)


def with_labels(traces, codes):
    """The traces with other labels, of those that they have."""
    return rs.TraceSet.from_columns(
        (traces.observations, traces.observation_codes),
        (traces.labels, codes.astype(np.int32)),
        (traces.actions, traces.action_codes),
        (traces.rewards, traces.reward_codes),
        offsets=traces.offsets,
        terminated=traces.terminated,
        truncated=traces.truncated,
    )


class Forgets(gym.Wrapper):
    """A world that tells nothing of some events."""

    def __init__(self, env, share):
        super().__init__(env)
        self.share, self.chance = share, Random(0)

    def step(self, action):
        seen, reward, terminated, truncated, info = self.env.step(action)
        if self.chance.random() < self.share:
            info = {**info, "labels": frozenset()}
        return seen, reward, terminated, truncated, info
