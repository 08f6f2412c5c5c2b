"""Traces of which some are of no use: their columns shuffled, cut and put together again."""

import numpy as np

import resolvent as rs


def shuffled(trace, random):
    seen = list(trace.observations)
    random.shuffle(seen)
    return rs.Trace(
        seen, trace.labels, trace.actions, trace.rewards, trace.terminated, trace.truncated
    )


def spliced(one, other):
    """The first half of one trace, and the last two thirds of another."""
    here, there = len(one.actions) // 2, len(other.actions) // 3
    columns = ("observations", "labels", "actions", "rewards")
    return rs.Trace(
        *((*getattr(one, name)[:here], *getattr(other, name)[there:]) for name in columns),
        other.terminated,
        other.truncated,
    )


def outliers(traces, numbers, seed=0, kinds=(shuffled, spliced)):
    """The traces with those of some numbers broken, in turn in each way."""
    random = np.random.default_rng(seed)
    made = list(traces)
    for place, number in enumerate(numbers):
        if kinds[place % len(kinds)] is shuffled:
            made[number] = shuffled(traces[number], random)
        else:
            made[number] = spliced(traces[number], traces[int(random.integers(len(traces)))])
    return rs.TraceSet(made)
