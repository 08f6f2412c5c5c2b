"""Traces with label noise, and environments that miss labels."""

from random import Random

import gymnasium as gym
import numpy as np

from resolvent.traces.trace_set import with_column


def with_label_noise(traces, *, missed=0.0, false=0.0, swapped=0.0, seed=0):
    """The traces with some labels missed, false or swapped, only in the record."""
    random = np.random.default_rng(seed)
    none = traces.labels.get(frozenset())
    events = np.array([code for code in range(len(traces.labels)) if code != none])
    true, drawn = traces.label_codes, random.random(len(traces.label_codes))
    recorded = true.copy()
    recorded[(true == none) & (drawn < false)] = random.choice(
        events, int(((true == none) & (drawn < false)).sum())
    )
    recorded[(true != none) & (drawn < missed)] = none
    swaps = (true != none) & (drawn >= missed) & (drawn < missed + swapped)
    ahead = random.integers(1, max(len(events), 2), int(swaps.sum()))
    recorded[swaps] = events[(np.searchsorted(events, true[swaps]) + ahead) % len(events)]
    return with_labels(traces, recorded)


def with_labels(traces, codes):
    """The traces with other labels, of those that they have."""
    return with_column(traces, "label", traces.labels, codes.astype(np.int32))


class Forgets(gym.Wrapper):
    """A world that misses some events."""

    def __init__(self, env, share):
        super().__init__(env)
        self.share, self.chance = share, Random(0)

    def step(self, action):
        seen, reward, terminated, truncated, info = self.env.step(action)
        if self.chance.random() < self.share:
            info = {**info, "labels": frozenset()}
        return seen, reward, terminated, truncated, info
